// JSON (RFC 8259) as a tree of values, read by nlohmann-json. The text may be damaged or hostile: nesting is bounded, and the caller
// may bound the memory of the tree while it grows. Threads: values, no sharing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace thalweg::common {

// The text is no JSON. The message names the byte, counted from 0, at which the reader stopped, and what is wrong there.
class JsonError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class JsonValue {
 public:
  enum class Kind : uint8_t { kMissing, kNull, kBool, kNumber, kText, kArray, kObject };
  static constexpr size_t kDeepest = 64;  // arrays and objects within one another

  // charge: NULL, or called first with JsonReadingBytes and then with the bytes that the tree has grown by, in portions of about 64 KB and
  // once at the end; it may throw.
  // Throws JsonError if the text is no JSON, is nested deeper than kDeepest, is no UTF-8, contains a NUL byte, or has a number beyond
  // the range of double.
  static JsonValue Parse(std::string_view text, const std::function<void(uint64_t bytes)>& charge = nullptr);

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool null() const { return kind_ <= Kind::kNull; }  // also of a missing member
  // Returns the member named `key`, the first of several; of kind kMissing if there is none or this is no object.
  const JsonValue& operator[](std::string_view key) const;
  bool has(std::string_view key) const { return !(*this)[key].is(Kind::kMissing); }
  // The elements of an array, or the values of an object in the order of keys(); empty for other kinds.
  const std::vector<JsonValue>& items() const { return items_; }
  const std::vector<std::string>& keys() const { return keys_; }  // as in the text, with duplicates; empty for other kinds than kObject
  const std::string& text() const { return text_; }               // of a text; empty for other kinds
  double number() const { return number_; }                       // of a number, the nearest double; 1 for true; 0 for other kinds
  // The value of a number that is written as a whole one and is one of int64_t; else NULL. A double has no more than 53 bits of it.
  const int64_t* whole() const { return is_whole_ ? &whole_ : nullptr; }
  bool yes() const { return kind_ == Kind::kBool && number_ != 0; }

 private:
  friend class JsonBuilder;
  Kind kind_ = Kind::kMissing;
  bool is_whole_ = false;
  double number_ = 0;
  int64_t whole_ = 0;
  std::string text_;
  std::vector<std::string> keys_;
  std::vector<JsonValue> items_;
};

// Returns a bound on the bytes that nlohmann-json's reader takes beside the values. It stores all bytes since the last string or number
// began, blanks and words such as `true` included, and copies them into the text of an error. Reads the text once.
uint64_t JsonReadingBytes(std::string_view text);

// Returns what a message of nlohmann-json says of the text, without its code, its place and the bytes that it quotes: these may be long
// and no UTF-8.
std::string JsonFault(std::string_view message);

}  // namespace thalweg::common
