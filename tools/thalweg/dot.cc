#include "dot.h"

#include "utf8.h"

namespace thalweg::cli {
namespace {

constexpr const char* kStyles[] = {"", ", fillcolor=\"#d7f0d9\"", ", fillcolor=\"#ffe9bf\"", ", fillcolor=\"#ececec\"",
                                   ", fillcolor=\"#d5e5f7\", shape=box3d"};

// Quotes `text`; lines are separated by \n, which DOT interprets.
std::string Quote(const std::string& text) {
  std::string out = "\"";
  for (const char c : OneLine(text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string Label(const Box& box) {
  const std::string second = box.kind == BoxKind::kScope ? std::to_string(box.operations) + " operations" : box.type;
  std::string label = Quote(box.name);
  label.pop_back();
  for (const std::string& line : {second, box.outputs}) {
    if (!line.empty()) label += "\\n" + Quote(line).substr(1, Quote(line).size() - 2);
  }
  return label + '"';
}

}  // namespace

std::string MakeDot(const Boxes& boxes, const std::string& title) {
  std::string out = "digraph " + Quote(title) +
                    " {\n  node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=\"sans-serif\", fontsize=10];\n"
                    "  edge [fontname=\"sans-serif\", fontsize=8, color=\"#606060\"];\n";
  for (size_t i = 0; i < boxes.boxes.size(); ++i) {
    const Box& box = boxes.boxes[i];
    out += "  n" + std::to_string(i) + " [label=" + Label(box) + ", tooltip=" + Quote(box.name) + kStyles[size_t(box.kind)] + "];\n";
  }
  for (const Arrow& arrow : boxes.arrows) {
    out += "  n" + std::to_string(arrow.from) + " -> n" + std::to_string(arrow.to);
    if (arrow.values == 0) out += " [style=dashed]";
    if (arrow.values == 1) out += " [label=" + Quote(arrow.label) + "]";
    if (arrow.values > 1) out += " [label=\"" + std::to_string(arrow.values) + " values\", penwidth=1.5]";
    out += ";\n";
  }
  return out + "}\n";
}

}  // namespace thalweg::cli
