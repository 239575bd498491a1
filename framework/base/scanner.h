// Scanner: reads the short texts that plugins register (op schemas, kernel specs) word by word. The first thing that does not fit makes
// an error with its column; after it every call answers "nothing", so that a parser may look at the status once per clause.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "framework/base/status.h"

namespace thalweg {

class Scanner {
 public:
  // what: how errors call the text, such as "op schema". `text` is borrowed.
  Scanner(std::string_view text, std::string what) : text_(text), what_(std::move(what)) {}

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  void set_what(std::string what) { what_ = std::move(what); }
  // Counted in bytes, from 1; of the next thing that is not white space.
  size_t column();
  // Keeps the first error only.
  void Fail(size_t column, std::string_view message);

  // The next character that is not white space, not taken; 0 at the end or after an error.
  char Peek();
  bool AtEnd() { return ok() && Peek() == 0 && pos_ == text_.size(); }
  // Takes the token if it comes next.
  bool Take(std::string_view token);
  // Takes the token or fails; `where` says after or in what, for the message.
  bool Expect(std::string_view token, std::string_view where);
  // [A-Za-z_][A-Za-z0-9_]*, and inside it the characters of `also`; empty if there is none.
  std::string_view TakeWord(std::string_view also = "");
  std::string_view ExpectWord(std::string_view what, std::string_view also = "");
  // Takes the word if it comes next as a whole.
  bool TakeKeyword(std::string_view word);
  bool PeekNumber();
  int64_t ExpectInt(std::string_view what);
  // Also inf, -inf and nan.
  double ExpectFloat(std::string_view what);
  // "text" with \" \\ \n \t inside.
  std::string ExpectQuoted(std::string_view what);
  // Past everything up to the next `;` that is not inside quotes.
  void SkipClause();

 private:
  std::string Found();  // the next thing, for a message
  std::string_view Number();

  std::string_view text_;
  std::string what_;
  size_t pos_ = 0;
  Status status_;
};

}  // namespace thalweg
