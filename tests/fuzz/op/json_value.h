// JSON that the runtime wrote itself, as a tree. Nothing is checked: what is malformed ends somewhere.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace thalweg::fuzz {

struct JsonValue {
  std::string text;  // of a string; of anything else but lists and objects as it is written: 3, true, null
  std::vector<JsonValue> items;
  std::vector<std::string> names;  // of the items of an object

  // The member of that name; an empty value if there is none.
  const JsonValue& operator[](std::string_view name) const;
  bool Has(std::string_view name) const;
};

JsonValue ReadJson(std::string_view text);

}  // namespace thalweg::fuzz
