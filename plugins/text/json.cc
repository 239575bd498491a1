#include "json.h"

#include <charconv>
#include <cmath>

#include "chars.h"

namespace thalweg::text {

class JsonReader {
 public:
  JsonReader(std::string_view text, tw::Charge* charge) : text_(text), charge_(charge) {}
  Json All() {
    Json v = One(0);
    Skip();
    if (at_ != text_.size()) Fail("the end of the text");
    charge_->add(uncharged_);
    return v;
  }

 private:
  static constexpr int kDeepest = 64;
  static constexpr uint64_t kPortion = 1 << 16;  // bytes that are charged at once

  [[noreturn]] void Fail(const char* wanted) const {
    Invalid("'model' is no JSON: " + std::string(wanted) + " is missing at byte " + std::to_string(at_) + " of " +
            std::to_string(text_.size()));
  }
  void Count(uint64_t bytes) {
    uncharged_ += bytes;
    if (uncharged_ < kPortion) return;
    charge_->add(uncharged_);
    uncharged_ = 0;
  }
  void Skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) ++at_;
  }
  bool Take(char c) {
    Skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool TakeWord(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  uint32_t Hex() {
    uint32_t c = 0;
    const std::string_view digits = text_.substr(at_, 4);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), c, 16);
    if (digits.size() < 4 || error != std::errc() || end != digits.data() + 4) Fail("a number of four hexadecimal digits");
    at_ += 4;
    return c;
  }
  // Reads the character behind \u; the two halves of a UTF-16 pair are one.
  uint32_t Escaped() {
    const uint32_t c = Hex();
    if (c < 0xd800 || c > 0xdfff) return c;
    if (c > 0xdbff || text_.substr(at_, 2) != "\\u") return kReplacement;
    const size_t before = at_;
    at_ += 2;
    const uint32_t low = Hex();
    if (low >= 0xdc00 && low <= 0xdfff) return 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    at_ = before;
    return kReplacement;
  }

  std::string Text() {
    std::string out;
    for (;;) {
      if (at_ >= text_.size()) Fail("the \" that ends a text");
      const char c = text_[at_];
      if (c == '"') break;
      if (c == '\\') {
        ++at_;
        const char kind = at_ < text_.size() ? text_[at_] : '\0';
        ++at_;
        switch (kind) {
          case 'n': out += '\n'; break;
          case 't': out += '\t'; break;
          case 'r': out += '\r'; break;
          case 'b': out += '\b'; break;
          case 'f': out += '\f'; break;
          case 'u': AppendChar(Escaped(), &out); break;
          case '"':
          case '\\':
          case '/': out += kind; break;
          default: --at_; Fail("a letter that may follow \\");
        }
        continue;
      }
      if (uint8_t(c) < 0x20) Fail("a printable character");
      size_t end = at_;
      bool valid = false;
      NextChar(text_, &end, &valid);
      if (!valid) Fail("a character in UTF-8");
      out.append(text_, at_, end - at_);
      at_ = end;
    }
    ++at_;
    Count(out.size() + sizeof(std::string));
    return out;
  }

  double Number() {
    const size_t end = std::min(text_.find_first_not_of("+-.0123456789eE", at_), text_.size());
    double value = 0;
    const auto [stop, error] = std::from_chars(text_.data() + at_, text_.data() + end, value);
    if (error != std::errc() || stop != text_.data() + end) Fail("a value");
    at_ = end;
    return value;
  }

  Json One(int depth) {
    if (depth > kDeepest) Fail("the end of values in values");
    Count(2 * sizeof(Json));
    Json v;
    if (Take('{')) {
      v.type_ = Json::Type::kObject;
      while (!Take('}')) {
        if (!v.items_.empty() && !Take(',')) Fail(", or }");
        if (!Take('"')) Fail("the name of a member");
        v.keys_.push_back(Text());
        if (!Take(':')) Fail(":");
        v.items_.push_back(One(depth + 1));
      }
    } else if (Take('[')) {
      v.type_ = Json::Type::kList;
      while (!Take(']')) {
        if (!v.items_.empty() && !Take(',')) Fail(", or ]");
        v.items_.push_back(One(depth + 1));
      }
    } else if (Take('"')) {
      v.type_ = Json::Type::kText;
      v.text_ = Text();
    } else if (TakeWord("true") || TakeWord("false")) {
      v.type_ = Json::Type::kBool;
      v.number_ = text_[at_ - 2] == 'u' ? 1 : 0;
    } else if (TakeWord("null")) {
      v.type_ = Json::Type::kNull;
    } else {
      v.type_ = Json::Type::kNumber;
      v.number_ = Number();
    }
    return v;
  }

  const std::string_view text_;
  tw::Charge* const charge_;
  size_t at_ = 0;
  uint64_t uncharged_ = 0;
};

Json Json::Parse(std::string_view text, tw::Charge* charge) { return JsonReader(text, charge).All(); }

const Json& Json::operator[](std::string_view key) const {
  static const Json none;
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (keys_[i] == key) return items_[i];
  }
  return none;
}

}  // namespace thalweg::text
