#include "graph_svg.h"

#include <algorithm>

#include "layers.h"
#include "svg.h"
#include "utf8.h"

namespace thalweg::cli {
namespace {

constexpr double kName = 11, kSmall = 9, kMargin = 24, kHeader = 58, kWidest = 190, kPadding = 9;

struct Style {
  const char *fill, *stroke, *legend;
};
constexpr Style kStyles[] = {{"#ffffff", "#7a7a7a", "operation"},
                             {"#d7f0d9", "#4f9a55", "input"},
                             {"#ffe9bf", "#c08a1e", "variable"},
                             {"#ececec", "#a0a0a0", "constant"},
                             {"#d5e5f7", "#4a7fb5", "closed scope"}};

struct Label {
  std::string name;                // the last two parts of the full name
  std::vector<std::string> lines;  // lines below the name
};

Label MakeLabel(const Box& box) {
  Label label;
  const std::string name = OneLine(box.name);
  size_t slash = name.size() < 2 ? name.npos : name.rfind('/', name.size() - 2);
  if (slash != name.npos && slash > 0) slash = name.rfind('/', slash - 1);
  label.name = FitText(slash == name.npos ? name : name.substr(slash + 1), kName, kWidest);
  if (box.kind == BoxKind::kScope) {
    label.lines.push_back(std::to_string(box.operations) + " operations");
    return label;
  }
  label.lines.push_back(FitText(OneLine(box.type), kSmall, kWidest));
  if (!box.outputs.empty()) label.lines.push_back(FitText(OneLine(box.outputs), kSmall, kWidest));
  return label;
}

LayoutBox Measure(const Label& label) {
  double width = std::max(60.0, TextWidth(label.name, kName) * 1.08);  // bold text is wider
  for (const std::string& line : label.lines) width = std::max(width, TextWidth(line, kSmall));
  return {width + 2 * kPadding, 22 + 13 * double(label.lines.size()), {}};
}

void DrawBox(const Box& box, const Label& label, const LayoutBox& at, Svg* svg) {
  const Style& style = kStyles[size_t(box.kind)];
  const double x = at.centre.x - at.width / 2, y = at.centre.y - at.height / 2;
  const std::string look = std::string("fill=\"") + style.fill + "\" stroke=\"" + style.stroke + "\"";
  svg->Group(OneLine(box.name) + (box.type.empty() ? "" : "\n" + OneLine(box.type)) + (box.outputs.empty() ? "" : "\n" + box.outputs));
  if (box.kind == BoxKind::kScope) svg->Rectangle(x + 3, y + 3, at.width, at.height, 5, look);
  svg->Rectangle(x, y, at.width, at.height, box.kind == BoxKind::kConstant ? 12 : 5, look);
  svg->Text(at.centre.x, y + 16, label.name, kName, "middle", "font-weight=\"bold\"");
  for (size_t i = 0; i < label.lines.size(); ++i) {
    svg->Text(at.centre.x, y + 29 + 13 * double(i), label.lines[i], kSmall, "middle", "fill=\"#444444\"");
  }
  svg->End();
}

// Draws a straight line down, then an S-curve to the next point, and so on.
std::string Curve(const std::vector<Point>& points) {
  std::string d = "M" + SvgNumber(points[0].x) + " " + SvgNumber(points[0].y);
  for (size_t i = 1; i < points.size(); ++i) {
    const Point &from = points[i - 1], &to = points[i];
    if (i % 2 == 1) {
      if (to.y > from.y) d += "V" + SvgNumber(to.y);
      continue;
    }
    const std::string middle = SvgNumber((from.y + to.y) / 2);
    d += "C" + SvgNumber(from.x) + " " + middle + " " + SvgNumber(to.x) + " " + middle + " " + SvgNumber(to.x) + " " + SvgNumber(to.y);
  }
  return d;
}

void DrawArrow(const Arrow& arrow, const LayoutArrow& at, const Boxes& boxes, Svg* svg) {
  if (at.points.empty()) return;
  const std::string what = arrow.values == 0 ? "only order" : arrow.values == 1 ? arrow.label : std::to_string(arrow.values) + " values";
  svg->Group(OneLine(boxes.boxes[arrow.from].name) + " to " + OneLine(boxes.boxes[arrow.to].name) + "\n" + what);
  std::string style = "fill=\"none\" stroke=\"#808080\"";
  style += arrow.values == 0 ? " stroke-dasharray=\"4 3\"" : arrow.values > 1 ? " stroke-width=\"1.8\"" : "";
  svg->Path(Curve(at.points), style + (at.upwards ? " marker-start=\"url(#up)\"" : " marker-end=\"url(#down)\""));
  svg->End();
}

void DrawHeader(const Boxes& boxes, const std::string& title, Svg* svg) {
  size_t operations = 0;
  std::vector<char> met(std::size(kStyles));
  for (const Box& box : boxes.boxes) {
    operations += box.operations;
    met[size_t(box.kind)] = 1;
  }
  std::string text = OneLine(title) + ": " + std::to_string(operations) + " operations";
  if (boxes.closed) text += ", " + std::to_string(boxes.closed) + (boxes.closed == 1 ? " scope" : " scopes") + " closed";
  svg->Text(kMargin, 26, text, 13, "start");
  double x = kMargin;
  for (size_t i = 0; i < met.size(); ++i) {
    if (!met[i]) continue;
    svg->Rectangle(x, 36, 12, 12, 2, std::string("fill=\"") + kStyles[i].fill + "\" stroke=\"" + kStyles[i].stroke + "\"");
    svg->Text(x + 17, 46, kStyles[i].legend, 10, "start");
    x += 17 + TextWidth(kStyles[i].legend, 10) + 16;
  }
}

}  // namespace

std::string MakeGraphSvg(const Boxes& boxes, const std::string& title) {
  Layout layout;
  std::vector<Label> labels;
  for (const Box& box : boxes.boxes) {
    labels.push_back(MakeLabel(box));
    layout.boxes.push_back(Measure(labels.back()));
  }
  for (const Arrow& arrow : boxes.arrows) layout.arrows.push_back({arrow.from, arrow.to, {}, false});
  LayOut(&layout);
  const std::string shown = OneLine(title);
  const double least = std::max(420.0, TextWidth(shown, 13) + 240);
  Svg svg(std::max(layout.width, least) + 2 * kMargin, layout.height + kHeader + 2 * kMargin, shown);
  svg.Raw(
      "<defs><marker id=\"down\" markerWidth=\"7\" markerHeight=\"7\" refX=\"6\" refY=\"3\" orient=\"auto\" markerUnits=\"userSpaceOnUse\">"
      "<path d=\"M0 0L7 3L0 6Z\" fill=\"#808080\"/></marker>\n"
      "<marker id=\"up\" markerWidth=\"7\" markerHeight=\"7\" refX=\"1\" refY=\"3\" orient=\"auto\" markerUnits=\"userSpaceOnUse\">"
      "<path d=\"M7 0L0 3L7 6Z\" fill=\"#808080\"/></marker></defs>\n");
  DrawHeader(boxes, title, &svg);
  svg.Group("", "transform=\"translate(" + SvgNumber(kMargin) + " " + SvgNumber(kHeader + kMargin) + ")\"");
  for (size_t e = 0; e < boxes.arrows.size(); ++e) DrawArrow(boxes.arrows[e], layout.arrows[e], boxes, &svg);
  for (size_t i = 0; i < boxes.boxes.size(); ++i) DrawBox(boxes.boxes[i], labels[i], layout.boxes[i], &svg);
  svg.End();
  return svg.text();
}

}  // namespace thalweg::cli
