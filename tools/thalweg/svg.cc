#include "svg.h"

#include <cmath>
#include <cstdio>

#include "utf8.h"

namespace thalweg::cli {
namespace {

// Returns the width of a printable ASCII character in hundredths of the font size, from the metrics
// of DejaVu Sans, which is wider than most.
int CharacterWidth(unsigned char c) {
  if (c >= 0x80) return 62;
  if (c == 'm' || c == 'M' || c == 'W' || c == 'w' || c == '@' || c == '%') return 98;
  if (c == 'i' || c == 'l' || c == 'j' || c == 'I' || c == '\'' || c == '|') return 30;
  if (c == ' ' || c == '.' || c == ',' || c == ':' || c == ';' || c == '/' || c == '[' || c == ']' || c == '(' || c == ')') return 40;
  if (c == 'f' || c == 't' || c == 'r' || c == '-') return 42;
  if (c >= 'A' && c <= 'Z') return 72;
  return 63;
}

std::string Attribute(const char* name, double value) { return std::string(" ") + name + "=\"" + SvgNumber(value) + "\""; }

}  // namespace

std::string XmlEscape(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t n = Utf8Length(text);
    const auto c = static_cast<unsigned char>(text[0]);
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\'')
      out += "&#39;";
    else if (n == 0 || (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f || text.substr(0, n) == "\uFFFE" || text.substr(0, n) == "\uFFFF")
      out += "\uFFFD";
    else
      out += text.substr(0, n);
    text.remove_prefix(n > 0 ? n : 1);
  }
  return out;
}

std::string SvgNumber(double value) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.2f", std::isfinite(value) ? value : 0);
  std::string out = text;
  out.erase(out.find_last_not_of('0') + 1);
  if (out.back() == '.') out.pop_back();
  return out == "-0" ? "0" : out;
}

double TextWidth(std::string_view text, double size) {
  int hundredths = 0;
  while (!text.empty()) {
    const size_t n = Utf8Length(text);
    hundredths += n >= 3 ? 105 : CharacterWidth(static_cast<unsigned char>(text[0]));  // many characters of three UTF-8 bytes are wide
    text.remove_prefix(n > 0 ? n : 1);
  }
  return hundredths * size / 100;
}

std::string FitText(const std::string& text, double size, double width) {
  if (TextWidth(text, size) <= width) return text;
  const auto starts = [&](size_t i) { return i >= text.size() || (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80; };
  std::string best = "...";
  for (size_t kept = 1; kept < text.size() / 2; ++kept) {
    if (!starts(kept) || !starts(text.size() - kept)) continue;
    std::string shorter = text.substr(0, kept) + "..." + text.substr(text.size() - kept);
    if (TextWidth(shorter, size) > width) break;
    best = std::move(shorter);
  }
  return best;
}

Svg::Svg(double width, double height, const std::string& title) {
  text_ = "<svg xmlns=\"http://www.w3.org/2000/svg\"" + Attribute("width", width) + Attribute("height", height) + " viewBox=\"0 0 " +
          SvgNumber(width) + " " + SvgNumber(height) + "\" font-family=\"DejaVu Sans, Verdana, sans-serif\">\n<title>" + XmlEscape(title) +
          "</title>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
}

void Svg::Rectangle(double x, double y, double width, double height, double radius, const std::string& style) {
  text_ += "<rect" + Attribute("x", x) + Attribute("y", y) + Attribute("width", width) + Attribute("height", height);
  if (radius > 0) text_ += Attribute("rx", radius);
  text_ += " " + style + "/>\n";
}

void Svg::Line(double x1, double y1, double x2, double y2, const std::string& style) {
  text_ += "<line" + Attribute("x1", x1) + Attribute("y1", y1) + Attribute("x2", x2) + Attribute("y2", y2) + " " + style + "/>\n";
}

void Svg::Path(const std::string& d, const std::string& style) { text_ += "<path d=\"" + d + "\" " + style + "/>\n"; }

void Svg::Circle(double x, double y, double radius, const std::string& style) {
  text_ += "<circle" + Attribute("cx", x) + Attribute("cy", y) + Attribute("r", radius) + " " + style + "/>\n";
}

void Svg::Text(double x, double y, const std::string& text, double size, const char* anchor, const std::string& style) {
  text_ += "<text" + Attribute("x", x) + Attribute("y", y) + Attribute("font-size", size) + " text-anchor=\"" + anchor + "\"";
  text_ += (style.empty() ? "" : " " + style) + ">" + XmlEscape(text) + "</text>\n";
}

void Svg::Group(const std::string& tip, const std::string& style) {
  text_ += "<g" + (style.empty() ? "" : " " + style) + ">";
  if (!tip.empty()) text_ += "<title>" + XmlEscape(tip) + "</title>";
  text_ += "\n";
}

void Svg::End() { text_ += "</g>\n"; }

}  // namespace thalweg::cli
