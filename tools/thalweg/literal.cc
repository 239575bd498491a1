#include "words.h"

namespace thalweg::cli {
namespace {

constexpr size_t kMostAxes = 254;  // the limit of a tensor

class Literal {
 public:
  explicit Literal(const std::string& text) : text_(text) {
    Element(0);
    Blanks();
    if (at_ != text_.size())
      Wrong(Next() == ',' ? "something follows the value; a list is written [1, 2, 3]" : "something follows the value");
  }
  Words Take() { return std::move(words_); }

 private:
  [[noreturn]] void Wrong(const std::string& why) const {
    const std::string shown = text_.size() > 60 ? text_.substr(0, 57) + "..." : text_;
    throw std::runtime_error("'" + shown + "': " + why + " (column " + std::to_string(at_ + 1) + ")");
  }
  char Next() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void Blanks() {
    while (Next() == ' ' || Next() == '\t' || Next() == '\n') ++at_;
  }
  // The first path down sets dims; every later list must match them.
  void Element(size_t depth) {
    Blanks();
    if (Next() == '[') return List(depth);
    if (depth != words_.dims.size()) Wrong("the lists are not equally deep");
    depth_known_ = true;
    Word();
  }
  void List(size_t depth) {
    std::vector<int64_t>& dims = words_.dims;
    if (depth == dims.size()) {
      if (depth_known_) Wrong("the lists are not equally deep");
      if (depth == kMostAxes) Wrong("lists are nested too deeply");
      dims.push_back(-1);
    }
    int64_t n = 0;
    ++at_;
    for (Blanks(); at_ < text_.size() && Next() != ']'; Blanks(), ++n) {
      if (n > 0 && text_[at_++] != ',') Wrong("expected a comma or ]");
      Element(depth + 1);
    }
    if (at_ == text_.size()) Wrong("a list is not closed");
    ++at_;
    depth_known_ = true;
    if (dims[depth] < 0) dims[depth] = n;
    if (dims[depth] != n) Wrong("lists of " + std::to_string(dims[depth]) + " and of " + std::to_string(n) + " elements side by side");
  }
  void Word() {
    std::string word;
    if (Next() == '"') {
      words_.quoted = true;
      for (++at_; at_ < text_.size() && Next() != '"'; ++at_) word += Next() == '\\' ? Escaped() : Next();
      if (at_ == text_.size()) Wrong("a text is not closed");
      ++at_;
    } else {
      while (at_ < text_.size() && Next() != ',' && Next() != ']' && Next() != ' ') word += text_[at_++];
      if (word.empty()) Wrong("expected a value");
    }
    words_.words.push_back(std::move(word));
  }
  // Returns the character for an escape after a backslash: n, t, xNN, or a character for itself.
  // Leaves at_ on the escape's last character.
  char Escaped() {
    ++at_;
    if (Next() == 'n') return '\n';
    if (Next() == 't') return '\t';
    if (Next() != 'x') return Next();
    const auto digit = [&](size_t i) {
      const size_t found = i < text_.size() ? std::string("0123456789abcdef").find(text_[i]) : std::string::npos;
      if (found == std::string::npos) Wrong("\\x takes two digits, 0 to f");
      return int(found);
    };
    const int byte = digit(at_ + 1) * 16 + digit(at_ + 2);
    at_ += 2;
    return char(byte);
  }

  const std::string& text_;
  size_t at_ = 0;
  bool depth_known_ = false;
  Words words_;
};

}  // namespace

Words ParseLiteral(const std::string& text) { return Literal(text).Take(); }

}  // namespace thalweg::cli
