#include "json_value.h"

#include <algorithm>
#include <charconv>
#include <stdexcept>

#include "json.h"

namespace thalweg::cli {

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}
  JsonValue Read() {
    JsonValue value = Value(0);
    if (Next() != '\0') Wrong();
    return value;
  }

 private:
  static constexpr int kDeepest = 100;

  [[noreturn]] void Wrong() const { throw std::runtime_error("this is no JSON, at byte " + std::to_string(at_)); }
  // Skips blanks and returns the next character; 0 at the end.
  char Next() {
    while (at_ < text_.size() && std::string_view(" \n\r\t").find(text_[at_]) != std::string_view::npos) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool Take(char c) {
    if (Next() != c) return false;
    ++at_;
    return true;
  }
  bool TakeWord(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  JsonValue Value(int depth) {
    if (depth > kDeepest) Wrong();
    JsonValue value;
    const char c = Next();
    if (c == '{' || c == '[') {
      ++at_;
      Members(c == '{', depth, &value);
    } else if (c == '"') {
      value.kind_ = JsonValue::Kind::kText;
      value.text_ = Text();
    } else if (!TakeWord("null")) {
      value.kind_ = JsonValue::Kind::kBool;
      if (TakeWord("true")) {
        value.number_ = 1;
      } else if (!TakeWord("false")) {
        value.kind_ = JsonValue::Kind::kNumber;
        value.number_ = Number();
      }
    }
    return value;
  }
  void Members(bool object, int depth, JsonValue* value) {
    const char close = object ? '}' : ']';
    value->kind_ = object ? JsonValue::Kind::kObject : JsonValue::Kind::kArray;
    if (Take(close)) return;
    do {
      if (object) {
        if (Next() != '"') Wrong();
        value->keys_.push_back(Text());
        if (!Take(':')) Wrong();
      }
      value->items_.push_back(Value(depth + 1));
    } while (Take(','));
    if (!Take(close)) Wrong();
  }
  double Number() {
    double number = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
    if (error != std::errc()) Wrong();
    at_ = size_t(end - text_.data());
    return number;
  }
  // The library writes UTF-8 unescaped; the only escapes are \", \\, \n and \u00XX.
  std::string Text() {
    std::string text;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] != '\\') {
        text += text_[at_];
        continue;
      }
      const char c = ++at_ < text_.size() ? text_[at_] : '\0';
      if (c == 'u') {
        int code = 0;
        if (at_ + 4 >= text_.size()) Wrong();
        std::from_chars(text_.data() + at_ + 1, text_.data() + at_ + 5, code, 16);
        text += char(code);
        at_ += 4;
      } else {
        text += c == 'n' ? '\n' : c == 't' ? '\t' : c;
      }
    }
    if (at_ == text_.size()) Wrong();
    ++at_;
    return text;
  }

  std::string_view text_;
  size_t at_ = 0;
};

JsonValue JsonValue::Parse(std::string_view text) { return JsonReader(text).Read(); }

const JsonValue& JsonValue::Missing() {
  static const JsonValue none;
  return none;
}

std::string JsonValue::json(const std::vector<std::pair<std::string, std::string>>& instead) const {
  switch (kind_) {
    case Kind::kNull: return "null";
    case Kind::kBool: return number_ != 0 ? "true" : "false";
    case Kind::kText: return JsonQuote(text_);
    case Kind::kNumber: {
      char text[32];
      return std::string(text, std::to_chars(text, text + sizeof text, number_).ptr);
    }
    default: break;
  }
  const bool object = kind_ == Kind::kObject;
  std::string text(1, object ? '{' : '[');
  for (size_t i = 0; i < items_.size(); ++i) {
    if (i) text += ", ";
    const auto other = std::find_if(instead.begin(), instead.end(), [&](const auto& o) { return object && o.first == keys_[i]; });
    if (object) text += JsonQuote(keys_[i]) + ": ";
    text += other == instead.end() ? items_[i].json() : other->second;
  }
  return text + (object ? '}' : ']');
}

const JsonValue& JsonValue::operator[](std::string_view key) const {
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (keys_[i] == key) return items_[i];
  }
  return Missing();
}

}  // namespace thalweg::cli
