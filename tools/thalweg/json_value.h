// Parsed JSON: the library's reports, and traces.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace thalweg::cli {

class JsonValue {
 public:
  // Throws std::runtime_error.
  static JsonValue Parse(std::string_view text);

  // Returns the member named `key`, or a null value if there is none.
  const JsonValue& operator[](std::string_view key) const;
  bool has(std::string_view key) const { return &(*this)[key] != &Missing(); }
  bool null() const { return kind_ == Kind::kNull; }
  const std::vector<JsonValue>& items() const { return items_; }  // elements of an array, or values of an object in the order of keys()
  const std::vector<std::string>& keys() const { return keys_; }  // of an object
  const std::string& text() const { return text_; }               // of a string
  double number() const { return number_; }                       // of a number; 1 for true
  // Returns the value as JSON on one line. Members in `instead` replace the members of the same
  // names.
  std::string json(const std::vector<std::pair<std::string, std::string>>& instead = {}) const;

 private:
  friend class JsonReader;
  static const JsonValue& Missing();
  enum class Kind { kNull, kBool, kNumber, kText, kArray, kObject } kind_ = Kind::kNull;
  double number_ = 0;
  std::string text_;
  std::vector<std::string> keys_;  // of an object; items_ holds the values
  std::vector<JsonValue> items_;
};

}  // namespace thalweg::cli
