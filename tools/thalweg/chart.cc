#include "chart.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "axis.h"
#include "svg.h"
#include "utf8.h"

namespace thalweg::cli {
namespace {

constexpr double kMargin = 20, kPanelWidth = 440, kPanelHeight = 280, kLeft = 62, kRight = 16, kTop = 34, kBottom = 44;
constexpr double kPlotWidth = kPanelWidth - kLeft - kRight, kPlotHeight = kPanelHeight - kTop - kBottom;
constexpr double kTick = 10, kTitle = 12;

// Colours that colour-blind readers can distinguish too: from M. Okabe and K. Ito, "Color universal
// design" (2008), without black.
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195"};
constexpr const char* kDashes[] = {"", " stroke-dasharray=\"6 3\"", " stroke-dasharray=\"2 2\"", " stroke-dasharray=\"8 2 2 2\""};

std::string LineStyle(size_t run, double opacity, double width) {
  std::string style = std::string("fill=\"none\" stroke=\"") + kColours[run % std::size(kColours)] + "\" stroke-linejoin=\"round\"";
  style += " stroke-width=\"" + SvgNumber(width) + "\"" + kDashes[run / std::size(kColours) % std::size(kDashes)];
  return style + (opacity < 1 ? " stroke-opacity=\"" + SvgNumber(opacity) + "\"" : "");
}

// Returns an exponential moving average without bias towards the first value: it is divided by the
// sum of the weights so far.
std::vector<double> Smooth(const std::vector<double>& values, double smoothing) {
  std::vector<double> out;
  double sum = 0, weight = 0;
  for (const double value : values) {
    if (std::isfinite(value)) {
      sum = sum * smoothing + value * (1 - smoothing);
      weight = weight * smoothing + (1 - smoothing);
    }
    out.push_back(std::isfinite(value) ? sum / weight : value);
  }
  return out;
}

struct Curve {
  size_t run = 0;
  std::string name;
  std::vector<double> x, raw, smooth;  // NaN marks a value that cannot be shown
};

struct Panel {
  std::string title;
  std::vector<Curve> curves;
  size_t hidden = 0, shown = 0;
  double x_low = 0, x_high = 0, y_low = 0, y_high = 0;
};

void Extend(double value, bool first, double* low, double* high) {
  *low = first ? value : std::min(*low, value);
  *high = first ? value : std::max(*high, value);
}

void AddCurve(const Series& series, size_t run, const ChartStyle& style, Panel* panel) {
  Curve curve{run, series.run, {}, {}, {}};
  for (const Measurement& m : series.points) {
    const bool good = std::isfinite(m.value) && std::isfinite(m.step) && (!style.log_y || m.value > 0);
    curve.x.push_back(m.step);
    curve.raw.push_back(good ? m.value : std::nan(""));
    panel->hidden += !good;
    if (!good) continue;
    Extend(m.step, panel->shown == 0, &panel->x_low, &panel->x_high);
    Extend(m.value, panel->shown == 0, &panel->y_low, &panel->y_high);
    ++panel->shown;
  }
  curve.smooth = Smooth(curve.raw, style.smoothing);
  panel->curves.push_back(std::move(curve));
}

class PanelDrawing {
 public:
  PanelDrawing(const Panel& panel, const ChartStyle& style, double left, double top, Svg* svg)
      : p_(panel),
        style_(style),
        left_(left + kLeft),
        top_(top + kTop),
        x_(panel.x_low, panel.x_high, false, 0.01),
        y_(panel.shown ? panel.y_low : 1, panel.shown ? panel.y_high : 1, style.log_y, 0.05),
        svg_(*svg) {}

  void Draw(bool points_named) {
    svg_.Group(OneLine(p_.title));
    svg_.Text(left_ + kPlotWidth / 2, top_ - 12, FitText(OneLine(p_.title), kTitle, kPlotWidth), kTitle, "middle", "font-weight=\"bold\"");
    DrawAxes();
    for (const Curve& curve : p_.curves) {
      svg_.Group(points_named ? OneLine(curve.name) : "");
      if (style_.smoothing > 0) DrawLine(curve, curve.raw, 0.25, 1);
      DrawLine(curve, curve.smooth, 1, 1.6);
      svg_.End();
    }
    svg_.Rectangle(left_, top_, kPlotWidth, kPlotHeight, 0, "fill=\"none\" stroke=\"#909090\"");
    if (p_.hidden) {
      const std::string what = std::string(p_.hidden == 1 ? " value is" : " values are") + (style_.log_y ? " not positive" : " not finite");
      svg_.Text(left_ + kPlotWidth - 6, top_ + 14, std::to_string(p_.hidden) + what, kTick, "end", "fill=\"#b00020\"");
    }
    svg_.End();
  }

 private:
  double X(double value) const { return left_ + x_.Place(value) * kPlotWidth; }
  double Y(double value) const { return top_ + (1 - y_.Place(value)) * kPlotHeight; }

  void DrawAxes() {
    if (p_.shown) {
      for (const Tick& tick : y_.Ticks(7)) {
        svg_.Line(left_, Y(tick.value), left_ + kPlotWidth, Y(tick.value), "stroke=\"#e4e4e4\"");
        svg_.Text(left_ - 6, Y(tick.value) + 3.5, tick.label, kTick, "end", "fill=\"#444444\"");
      }
      for (const Tick& tick : x_.Ticks(8)) {
        svg_.Line(X(tick.value), top_ + kPlotHeight, X(tick.value), top_ + kPlotHeight + 4, "stroke=\"#909090\"");
        svg_.Text(X(tick.value), top_ + kPlotHeight + 16, tick.label, kTick, "middle", "fill=\"#444444\"");
      }
    }
    svg_.Text(left_ + kPlotWidth / 2, top_ + kPlotHeight + 32, style_.x_label, kTick, "middle", "fill=\"#444444\"");
  }

  // Within each half unit of the picture, draws only the lowest and the highest point, which keeps
  // the files of long runs small.
  void DrawLine(const Curve& curve, const std::vector<double>& values, double opacity, double width) {
    std::string d;
    size_t begin = 0, in_piece = 0;
    const auto point = [&](size_t i) { d += (in_piece++ ? "L" : "M") + SvgNumber(X(curve.x[i])) + " " + SvgNumber(Y(values[i])); };
    const auto dot_if_alone = [&](size_t last) {
      if (in_piece == 1) svg_.Circle(X(curve.x[last]), Y(values[last]), 2, DotStyle(curve, opacity));
      in_piece = 0;
    };
    while (begin < values.size()) {
      if (!std::isfinite(values[begin])) {
        if (begin > 0) dot_if_alone(begin - 1);
        ++begin;
        continue;
      }
      size_t end = begin, low = begin, high = begin;
      while (end < values.size() && std::isfinite(values[end]) && (end == begin || X(curve.x[end]) - X(curve.x[begin]) < 0.5)) {
        low = values[end] < values[low] ? end : low;
        high = values[end] > values[high] ? end : high;
        ++end;
      }
      point(std::min(low, high));
      if (low != high) point(std::max(low, high));
      begin = end;
    }
    if (!values.empty() && std::isfinite(values.back())) dot_if_alone(values.size() - 1);
    if (!d.empty()) svg_.Path(d, LineStyle(curve.run, opacity, width));
  }
  static std::string DotStyle(const Curve& curve, double opacity) {
    return std::string("fill=\"") + kColours[curve.run % std::size(kColours)] + "\" fill-opacity=\"" + SvgNumber(opacity) + "\"";
  }

  const Panel& p_;
  const ChartStyle& style_;
  const double left_, top_;
  const Axis x_, y_;
  Svg& svg_;
};

struct LegendEntry {
  size_t run;
  std::string name;
  double x, y;
};

// Places the runs side by side, on as many lines as they need. Returns the height of the whole
// legend.
double PlaceLegend(const std::vector<std::string>& runs, double width, std::vector<LegendEntry>* entries) {
  double x = 0, y = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::string name = FitText(OneLine(runs[i]), kTick, width - 40);
    const double needed = 28 + TextWidth(name, kTick) + 18;
    if (x > 0 && x + needed > width) {
      x = 0;
      y += 18;
    }
    entries->push_back({i, name, x, y});
    x += needed;
  }
  return runs.empty() ? 0 : y + 22;
}

}  // namespace

std::string MakeChart(const SeriesSet& set, const ChartStyle& style) {
  std::vector<std::string> runs;
  for (const Series& s : set.series) runs.push_back(s.run);
  std::sort(runs.begin(), runs.end());
  runs.erase(std::unique(runs.begin(), runs.end()), runs.end());
  std::vector<Panel> panels;
  for (const Series& s : set.series) {
    if (panels.empty() || panels.back().title != s.tag) panels.push_back({s.tag, {}, 0, 0, 0, 0, 0, 0});
    AddCurve(s, size_t(std::lower_bound(runs.begin(), runs.end(), s.run) - runs.begin()), style, &panels.back());
  }
  const size_t wanted = style.columns ? style.columns : panels.size() > 4 ? 3 : 2;
  const size_t columns = std::max<size_t>(1, std::min(wanted, panels.size())), rows = (panels.size() + columns - 1) / columns;
  const double width = double(columns) * kPanelWidth + 2 * kMargin;
  std::vector<LegendEntry> legend;
  const double header = 34 + PlaceLegend(runs.size() > 1 ? runs : std::vector<std::string>(), width - 2 * kMargin, &legend);
  Svg svg(width, header + double(rows) * kPanelHeight + kMargin, OneLine(style.title));
  svg.Text(kMargin, 24, FitText(OneLine(style.title), 14, width - 2 * kMargin), 14, "start");
  for (const LegendEntry& e : legend) {
    const double y = 44 + e.y;
    svg.Line(kMargin + e.x, y, kMargin + e.x + 22, y, LineStyle(e.run, 1, 2));
    svg.Text(kMargin + e.x + 28, y + 3.5, e.name, kTick, "start");
  }
  for (size_t i = 0; i < panels.size(); ++i) {
    const double left = kMargin + double(i % columns) * kPanelWidth, top = header + double(i / columns) * kPanelHeight;
    PanelDrawing(panels[i], style, left, top, &svg).Draw(runs.size() > 1);
  }
  return svg.text();
}

}  // namespace thalweg::cli
