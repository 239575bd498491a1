#include "tests/fuzz/op/json_value.h"

#include <algorithm>

namespace thalweg::fuzz {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  JsonValue Value() {
    JsonValue v;
    switch (Next()) {
      case '"': v.text = Text(); break;
      case '[':
        for (++at_; More(']');) v.items.push_back(Value());
        break;
      case '{':
        for (++at_; More('}');) {
          v.names.push_back(Text());
          Next();
          ++at_;  // the colon
          v.items.push_back(Value());
        }
        break;
      default:
        while (at_ < text_.size() && !Among(",]} \n", text_[at_])) v.text += text_[at_++];
    }
    return v;
  }

 private:
  static bool Among(std::string_view set, char c) { return set.find(c) != set.npos; }
  char Next() {
    while (at_ < text_.size() && Among(" \n\t", text_[at_])) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  // Returns true if another entry follows; consumes the end of the list or object otherwise.
  bool More(char end) {
    if (Next() == ',') ++at_;
    const char c = Next();
    if (c == end) ++at_;
    return c != end && c != '\0';
  }
  std::string Text() {
    std::string out;
    Next();
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\') ++at_;
      if (at_ < text_.size()) out += text_[at_];
    }
    ++at_;
    return out;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

const JsonValue& JsonValue::operator[](std::string_view name) const {
  static const JsonValue none;
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? none : items[size_t(found - names.begin())];
}

bool JsonValue::Has(std::string_view name) const { return std::find(names.begin(), names.end(), name) != names.end(); }

JsonValue ReadJson(std::string_view text) { return Reader(text).Value(); }

}  // namespace thalweg::fuzz
