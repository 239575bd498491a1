// Parses JSON that the runtime wrote. It does not validate: malformed input ends at some point.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace thalweg::fuzz {

struct JsonValue {
  std::string text;  // of a string; of other scalars as written: 3, true, null
  std::vector<JsonValue> items;
  std::vector<std::string> names;  // names of the items of an object

  // Returns the member of that name, or an empty value if there is none.
  const JsonValue& operator[](std::string_view name) const;
  bool Has(std::string_view name) const;
};

JsonValue ReadJson(std::string_view text);

}  // namespace thalweg::fuzz
