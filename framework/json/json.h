// Writes JSON: objects, arrays and values in the order of the calls. Needs nothing outside its folder, so that tools may use it too.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace thalweg {

// A string; bytes that are no UTF-8 become U+FFFD.
std::string JsonQuote(std::string_view text);

class Json {
 public:
  // Inside an object each value has a key; elsewhere the key is left out.
  Json& Object(std::string_view key = {}) { return Open(key, '{'); }
  Json& Array(std::string_view key = {}) { return Open(key, '['); }
  Json& End();
  Json& Text(std::string_view key, std::string_view value) { return Raw(key, JsonQuote(value)); }
  Json& Number(std::string_view key, int64_t value) { return Raw(key, std::to_string(value)); }
  Json& Real(std::string_view key, double value);
  Json& Bool(std::string_view key, bool value) { return Raw(key, value ? "true" : "false"); }
  // A value that is JSON already.
  Json& Raw(std::string_view key, std::string_view json);
  // Everything, with an end of line; all must be closed.
  std::string text() const { return text_ + "\n"; }

 private:
  Json& Open(std::string_view key, char bracket);
  void Separate(std::string_view key);

  std::string text_;
  std::vector<char> open_;
  bool first_ = true;
};

}  // namespace thalweg
