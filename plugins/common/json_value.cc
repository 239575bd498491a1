#include "json_value.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

namespace thalweg::common {

// Builds the tree from the events of the library's parser, which has no recursion and bounds neither depth nor memory.
class JsonBuilder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  using Kind = JsonValue::Kind;
  JsonBuilder(std::string_view text, const std::function<void(uint64_t)>& charge, JsonValue* root)
      : text_(text), charge_(charge), root_(root) {}

  bool null() override { return Put(Kind::kNull, 0) != nullptr; }
  bool boolean(bool value) override { return Put(Kind::kBool, value) != nullptr; }
  bool number_integer(number_integer_t value) override {
    JsonValue* v = Put(Kind::kNumber, double(value));
    v->is_whole_ = true;
    v->whole_ = value;
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (value <= uint64_t{INT64_MAX}) return number_integer(int64_t(value));
    return Put(Kind::kNumber, double(value)) != nullptr;
  }
  bool number_float(number_float_t value, const string_t&) override { return Put(Kind::kNumber, value) != nullptr; }
  bool string(string_t& value) override {
    Count(value.size() + sizeof value);
    Put(Kind::kText, 0)->text_ = std::move(value);
    return true;
  }
  bool binary(binary_t&) override { return false; }  // JSON has none
  bool start_object(size_t) override { return Open(Kind::kObject); }
  bool start_array(size_t) override { return Open(Kind::kArray); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(string_t& value) override {
    Count(value.size() + sizeof value);
    open_.back()->keys_.push_back(std::move(value));
    return true;
  }
  bool parse_error(size_t read, const std::string&, const nlohmann::detail::exception& e) override {
    Fail(read ? read - 1 : 0, JsonFault(e.what()));
  }

  [[noreturn]] void Fail(size_t at, const std::string& why) const {
    throw JsonError("this is no JSON, at byte " + std::to_string(at) + " of " + std::to_string(text_.size()) + ": " + why);
  }
  void Flush() {
    if (charge_ && uncharged_) charge_(uncharged_);
    uncharged_ = 0;
  }

 private:
  static constexpr uint64_t kPortion = 1 << 16;

  void Count(uint64_t bytes) {
    uncharged_ += bytes;
    if (uncharged_ >= kPortion) Flush();
  }
  JsonValue* Put(Kind kind, double number) {
    Count(2 * sizeof(JsonValue));  // the vector that holds it may be half empty
    JsonValue* v = open_.empty() ? root_ : &open_.back()->items_.emplace_back();
    v->kind_ = kind;
    v->number_ = number;
    return v;
  }
  bool Open(Kind kind) {
    if (open_.size() == JsonValue::kDeepest)
      throw JsonError("this JSON has more than " + std::to_string(JsonValue::kDeepest) + " arrays and objects within one another");
    open_.push_back(Put(kind, 0));
    return true;
  }
  bool Close() {
    open_.pop_back();
    return true;
  }

  const std::string_view text_;
  const std::function<void(uint64_t)>& charge_;
  JsonValue* const root_;
  std::vector<JsonValue*> open_;  // arrays and objects that are not closed; none gets another value while its last one is open
  uint64_t uncharged_ = 0;
};

JsonValue JsonValue::Parse(std::string_view text, const std::function<void(uint64_t)>& charge) {
  JsonValue root;
  JsonBuilder builder(text, charge, &root);
  if (charge) charge(JsonReadingBytes(text));
  // The library takes a NUL byte between values for the end of the text.
  if (const size_t nul = text.find('\0'); nul != text.npos) builder.Fail(nul, "there is a NUL byte");
  nlohmann::json::sax_parse(text.data(), text.data() + text.size(), &builder);
  builder.Flush();
  return root;
}

const JsonValue& JsonValue::operator[](std::string_view key) const {
  static const JsonValue missing;
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (keys_[i] == key) return items_[i];
  }
  return missing;
}

uint64_t JsonReadingBytes(std::string_view text) {
  // Two buffers that double, 3 times the stored bytes each; for an error two copies that double and two more, in which a control character
  // is written as <U+000A>.
  constexpr uint64_t kCopies = 12, kControl = 8;
  constexpr std::string_view kOfNumber = "0123456789+-.eE";
  uint64_t most = 0, stored = 0;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    size_t end = at + 1;
    if (c == '"') {
      while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
      stored = 0;
    } else if (c == '-' || (c >= '0' && c <= '9')) {
      end = std::min(text.find_first_not_of(kOfNumber, at), text.size());
      stored = 0;
    }
    stored += end - at > 1 || uint8_t(c) >= 0x20 ? end - at : kControl;
    most = std::max(most, stored);
    at = end;
  }
  return kCopies * (most + kControl);
}

std::string JsonFault(std::string_view message) {
  constexpr std::string_view kEndOfCode = "] ", kPlace = "parse error at ", kEndOfPlace = ": ", kQuote = "; last read: ";
  constexpr size_t kLongest = 120;
  if (const size_t end = message.find(kEndOfCode); end != message.npos) message.remove_prefix(end + kEndOfCode.size());
  if (const size_t end = message.find(kEndOfPlace); message.substr(0, kPlace.size()) == kPlace && end != message.npos)
    message.remove_prefix(end + kEndOfPlace.size());
  return std::string(message.substr(0, std::min(message.find(kQuote), kLongest)));
}

}  // namespace thalweg::common
