#include "json_value.h"

#include <algorithm>
#include <charconv>

#include "json.h"

namespace thalweg::cli {

std::string JsonText(const JsonValue& value, const std::vector<std::pair<std::string, std::string>>& instead) {
  using Kind = JsonValue::Kind;
  switch (value.kind()) {
    case Kind::kMissing:
    case Kind::kNull: return "null";
    case Kind::kBool: return value.yes() ? "true" : "false";
    case Kind::kText: return JsonQuote(value.text());
    case Kind::kNumber: {
      char text[32];
      return std::string(text, std::to_chars(text, text + sizeof text, value.number()).ptr);
    }
    default: break;
  }
  const bool object = value.is(Kind::kObject);
  std::string text(1, object ? '{' : '[');
  for (size_t i = 0; i < value.items().size(); ++i) {
    if (i) text += ", ";
    const auto other = std::find_if(instead.begin(), instead.end(), [&](const auto& o) { return object && o.first == value.keys()[i]; });
    if (object) text += JsonQuote(value.keys()[i]) + ": ";
    text += other == instead.end() ? JsonText(value.items()[i]) : other->second;
  }
  return text + (object ? '}' : ']');
}

}  // namespace thalweg::cli
