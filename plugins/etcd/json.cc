#include "json.h"

#include <cstdlib>

#include "http.h"
#include "thalweg/plugin/abi.h"

namespace thalweg::etcd {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr int kDeepest = 50;

}  // namespace

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}
  Value All() {
    Value v = One(0);
    Skip();
    if (at_ != text_.size()) Fail();
    return v;
  }

 private:
  [[noreturn]] static void Fail() { throw Failed(TW_UNAVAILABLE, "what answers is no etcd: it speaks no JSON"); }
  void Skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) ++at_;
  }
  bool Take(char c) {
    Skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::string Text() {
    std::string out;
    for (;; ++at_) {
      if (at_ >= text_.size()) Fail();
      const char c = text_[at_];
      if (c == '"') return ++at_, out;
      if (c != '\\') {
        out += c;
        continue;
      }
      if (++at_ >= text_.size()) Fail();
      switch (text_[at_]) {
        case 'n': out += '\n'; break;
        case 't': out += '\t'; break;
        case 'r': out += '\r'; break;
        case 'u': at_ += 4, out += '?'; break;  // only messages contain these
        default: out += text_[at_];
      }
    }
  }

  Value One(int depth) {
    if (depth > kDeepest) Fail();
    Value v;
    v.there_ = true;
    if (Take('{')) {
      while (!Take('}')) {
        if (!v.items_.empty() && !Take(',')) Fail();
        if (!Take('"')) Fail();
        v.keys_.push_back(Text());
        if (!Take(':')) Fail();
        v.items_.push_back(One(depth + 1));
      }
    } else if (Take('[')) {
      while (!Take(']')) {
        if (!v.items_.empty() && !Take(',')) Fail();
        v.items_.push_back(One(depth + 1));
      }
    } else if (Take('"')) {
      v.text_ = Text();
    } else {
      const size_t end = std::min(text_.find_first_of(",]} \n\r\t", at_), text_.size());
      if (end == at_) Fail();
      v.text_ = text_.substr(at_, end - at_);
      at_ = end;
    }
    return v;
  }

  const std::string_view text_;
  size_t at_ = 0;
};

Value Value::Parse(std::string_view text) { return JsonReader(text).All(); }

const Value& Value::operator[](std::string_view key) const {
  static const Value none;
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (keys_[i] == key) return items_[i];
  }
  return none;
}

uint64_t Value::number() const { return std::strtoull(text_.c_str(), nullptr, 10); }

std::string Value::bytes() const {
  std::string out;
  uint32_t bits = 0, n = 0;
  for (char c : text_) {
    const size_t digit = kDigits.find(c);
    if (digit == kDigits.npos) break;
    bits = bits << 6 | uint32_t(digit);
    if ((n += 6) < 8) continue;
    n -= 8;
    out += char(bits >> n & 255);
  }
  return out;
}

std::string Base64(std::string_view bytes) {
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k) bits = bits << 8 | (i + k < bytes.size() ? uint8_t(bytes[i + k]) : 0u);
    for (size_t k = 0; k < 4; ++k) out += i + k > bytes.size() ? '=' : kDigits[bits >> (18 - 6 * k) & 63];
  }
  return out;
}

}  // namespace thalweg::etcd
