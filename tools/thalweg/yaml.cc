#include "yaml.h"

namespace thalweg::cli {
namespace {

void Append(const JsonValue& value, const std::string& indent, bool at_line_start, std::string* out) {
  if (value.items().empty()) {  // a scalar, {} or []
    *out += (at_line_start ? indent : "") + JsonText(value) + "\n";
    return;
  }
  for (size_t i = 0; i < value.items().size(); ++i) {
    const bool list = value.keys().empty();
    const JsonValue& item = value.items()[i];
    *out += (at_line_start ? indent : "") + (list ? "-" : value.keys()[i] + ":");
    at_line_start = true;
    if (item.items().empty()) {
      *out += " " + JsonText(item) + "\n";
    } else if (list) {
      *out += " ";  // the first line of the item stands beside the dash
      Append(item, indent + "  ", false, out);
    } else {
      *out += "\n";
      Append(item, indent + "  ", true, out);
    }
  }
}

}  // namespace

std::string YamlText(const JsonValue& value) {
  std::string text;
  Append(value, "", true, &text);
  return text;
}

}  // namespace thalweg::cli
