#include "framework/base/scanner.h"

#include <charconv>

namespace thalweg {
namespace {

// Not <cctype>, whose functions depend on the locale.
bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

}  // namespace

size_t Scanner::column() {
  Peek();
  return pos_ + 1;
}

void Scanner::Fail(size_t column, std::string_view message) {
  if (ok()) status_ = InvalidArgument(what_, ", column ", column, ": ", message);
}

void Scanner::FailUnknown(size_t column, std::string_view message) {
  if (ok()) status_ = Unimplemented(what_, ", column ", column, ": ", message);
}

char Scanner::Peek() {
  if (!ok()) return 0;
  while (pos_ < text_.size() && IsSpace(text_[pos_])) ++pos_;
  return pos_ < text_.size() ? text_[pos_] : 0;
}

bool Scanner::Take(std::string_view token) {
  Peek();
  if (!ok() || text_.substr(pos_, token.size()) != token) return false;
  pos_ += token.size();
  return true;
}

bool Scanner::Expect(std::string_view token, std::string_view where) {
  if (Take(token)) return true;
  if (ok()) Fail(column(), StrCat("expected '", token, "' ", where, ", found ", Found()));
  return false;
}

std::string_view Scanner::TakeWord(std::string_view also) {
  if (!IsLetter(Peek())) return {};
  // A character of `also` only joins two parts of one word: "a->b" is not one word.
  auto joins = [&](size_t i) { return also.find(text_[i]) != also.npos && i + 1 < text_.size() && IsLetter(text_[i + 1]); };
  size_t begin = pos_;
  while (pos_ < text_.size() && (IsLetter(text_[pos_]) || IsDigit(text_[pos_]) || joins(pos_))) ++pos_;
  return text_.substr(begin, pos_ - begin);
}

std::string_view Scanner::ExpectWord(std::string_view what, std::string_view also) {
  std::string_view word = TakeWord(also);
  if (word.empty() && ok()) Fail(column(), StrCat("expected ", what, ", found ", Found()));
  return word;
}

bool Scanner::TakeKeyword(std::string_view word) {
  Peek();
  size_t before = pos_;
  if (TakeWord() == word) return true;
  pos_ = before;
  return false;
}

bool Scanner::PeekNumber() {
  char c = Peek();
  return IsDigit(c) || (c == '-' && pos_ + 1 < text_.size() && IsDigit(text_[pos_ + 1]));
}

std::string_view Scanner::Number() {
  Peek();
  size_t end = pos_;
  while (end < text_.size() &&
         (IsLetter(text_[end]) || IsDigit(text_[end]) || text_[end] == '.' || text_[end] == '-' || text_[end] == '+')) {
    ++end;
  }
  return text_.substr(pos_, end - pos_);
}

int64_t Scanner::ExpectInt(std::string_view what) {
  if (!ok()) return 0;
  std::string_view digits = Number();
  int64_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc::result_out_of_range) {
    Fail(column(), StrCat(what, " ", digits, " does not fit into 64 bits"));
  } else if (error != std::errc() || end != digits.data() + digits.size()) {
    Fail(column(), StrCat("expected ", what, ", an integer, found ", Found()));
  } else {
    pos_ += digits.size();
  }
  return ok() ? value : 0;
}

double Scanner::ExpectFloat(std::string_view what) {
  if (!ok()) return 0;
  std::string_view digits = Number();
  double value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc::result_out_of_range) {
    Fail(column(), StrCat(what, " ", digits, " does not fit into a double; write inf for infinity"));
  } else if (error != std::errc() || end != digits.data() + digits.size()) {
    Fail(column(), StrCat("expected ", what, ", a number, found ", Found()));
  } else {
    pos_ += digits.size();
  }
  return ok() ? value : 0;
}

std::string Scanner::ExpectQuoted(std::string_view what) {
  std::string out;
  size_t begin = column();
  if (Peek() != '"') {
    if (ok()) Fail(begin, StrCat("expected ", what, " in double quotes, found ", Found()));
    return out;
  }
  for (++pos_; pos_ < text_.size() && text_[pos_] != '"'; ++pos_) {
    if (text_[pos_] != '\\') {
      out += text_[pos_];
      continue;
    }
    if (++pos_ == text_.size()) break;
    switch (text_[pos_]) {
      case '"':
      case '\\': out += text_[pos_]; break;
      case 'n': out += '\n'; break;
      case 't': out += '\t'; break;
      default: Fail(pos_, StrCat("unknown escape '\\", text_.substr(pos_, 1), "'; there are \\\", \\\\, \\n and \\t")); return {};
    }
  }
  if (pos_ >= text_.size()) {
    Fail(begin, "the text in quotes has no end");
    return {};
  }
  ++pos_;
  return out;
}

void Scanner::SkipClause() {
  while (ok() && Peek() != 0 && Peek() != ';') {
    if (Peek() == '"') {
      ExpectQuoted("text");
    } else {
      ++pos_;
    }
  }
}

std::string Scanner::Found() {
  char c = Peek();
  if (pos_ == text_.size()) return "the end";
  if (IsLetter(c) || IsDigit(c)) return StrCat("'", Number(), "'");
  return StrCat("'", text_.substr(pos_, 1), "'");
}

}  // namespace thalweg
