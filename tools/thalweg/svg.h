// Writes SVG 1.1: shapes and texts in the order of the calls. Every text and attribute is escaped.
#pragma once
#include <string>
#include <string_view>

namespace thalweg::cli {

// As XML has it: < > & " ' and what is no character of XML or no UTF-8 are replaced.
std::string XmlEscape(std::string_view text);
// At most two digits behind the point, none if they are 0.
std::string SvgNumber(double value);
// About how wide a text will be in a sans-serif font of that size.
double TextWidth(std::string_view text, double size);
// The text, or its beginning and its end with ... between, so that it is no wider.
std::string FitText(const std::string& text, double size, double width);

class Svg {
 public:
  Svg(double width, double height, const std::string& title);
  // style: further attributes, as they stand in the file: "fill=\"red\"".
  void Rectangle(double x, double y, double width, double height, double radius, const std::string& style);
  void Line(double x1, double y1, double x2, double y2, const std::string& style);
  void Path(const std::string& d, const std::string& style);
  void Circle(double x, double y, double radius, const std::string& style);
  // anchor: "start", "middle" or "end".
  void Text(double x, double y, const std::string& text, double size, const char* anchor, const std::string& style = "");
  // What follows until End belongs together; tip: shown by browsers when the pointer is over it, "" for none.
  void Group(const std::string& tip, const std::string& style = "");
  void End();
  // Everything; all groups must be closed.
  std::string text() const { return text_ + "</svg>\n"; }
  // Raw SVG, for definitions.
  void Raw(const std::string& svg) { text_ += svg; }

 private:
  std::string text_;
};

}  // namespace thalweg::cli
