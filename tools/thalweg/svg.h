// Writes SVG 1.1: shapes and texts in call order. Escapes every text and attribute.
#pragma once
#include <string>
#include <string_view>

namespace thalweg::cli {

// Escapes text for XML: replaces < > & " ', characters that XML forbids, and invalid UTF-8.
std::string XmlEscape(std::string_view text);
// Formats a number with at most two decimals, without trailing zeros.
std::string SvgNumber(double value);
// Estimates the width of a text in a sans-serif font of the given size.
double TextWidth(std::string_view text, double size);
// Returns the text, or its beginning and its end with ... between, so that it is no wider than
// `width`.
std::string FitText(const std::string& text, double size, double width);

class Svg {
 public:
  Svg(double width, double height, const std::string& title);
  // style: further attributes in SVG syntax: "fill=\"red\"".
  void Rectangle(double x, double y, double width, double height, double radius, const std::string& style);
  void Line(double x1, double y1, double x2, double y2, const std::string& style);
  void Path(const std::string& d, const std::string& style);
  void Circle(double x, double y, double radius, const std::string& style);
  // anchor: "start", "middle" or "end".
  void Text(double x, double y, const std::string& text, double size, const char* anchor, const std::string& style = "");
  // Groups the shapes drawn until End. tip: the tooltip in browsers; "" for none.
  void Group(const std::string& tip, const std::string& style = "");
  void End();
  // Returns the whole picture. REQUIRES: all groups are closed.
  std::string text() const { return text_ + "</svg>\n"; }
  // Appends raw SVG, for definitions.
  void Raw(const std::string& svg) { text_ += svg; }

 private:
  std::string text_;
};

}  // namespace thalweg::cli
