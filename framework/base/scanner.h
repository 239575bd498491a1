// Scanner: reads the short texts that plugins register (op schemas, kernel specs) word by word. The
// first mismatch becomes an error with its column. After an error every call returns an empty
// result, so a parser may check the status once per clause. Threads: one.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "framework/base/status.h"

namespace thalweg {

class Scanner {
 public:
  // what: the name of the text in errors, such as "op schema". `text` is borrowed.
  Scanner(std::string_view text, std::string what) : text_(text), what_(std::move(what)) {}

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  void set_what(std::string what) { what_ = std::move(what); }
  // Returns the position of the next character that is not white space, in bytes from 1.
  size_t column();
  // Records an error, unless one is already recorded.
  void Fail(size_t column, std::string_view message);
  // As Fail, for a word that is correct in a later version of the language: the error is
  // UNIMPLEMENTED.
  void FailUnknown(size_t column, std::string_view message);

  // Returns the next character that is not white space without consuming it; 0 at the end or after
  // an error.
  char Peek();
  bool AtEnd() { return ok() && Peek() == 0 && pos_ == text_.size(); }
  // Consumes the token if it comes next.
  bool Take(std::string_view token);
  // Consumes the token or fails. `where` ends the message: it says after or in which part the token
  // belongs.
  bool Expect(std::string_view token, std::string_view where);
  // Consumes a word: [A-Za-z_][A-Za-z0-9_]*, where characters of `also` may join two parts. Returns
  // an empty view if no word comes next.
  std::string_view TakeWord(std::string_view also = "");
  std::string_view ExpectWord(std::string_view what, std::string_view also = "");
  // Consumes the word if it comes next as a whole word.
  bool TakeKeyword(std::string_view word);
  bool PeekNumber();
  int64_t ExpectInt(std::string_view what);
  // Accepts inf, -inf and nan too.
  double ExpectFloat(std::string_view what);
  // Consumes "text", in which \" \\ \n \t are escapes.
  std::string ExpectQuoted(std::string_view what);
  // Skips everything up to the next `;` outside quotes.
  void SkipClause();

 private:
  std::string Found();  // the next word or character, for a message
  std::string_view Number();

  std::string_view text_;
  std::string what_;
  size_t pos_ = 0;
  Status status_;
};

}  // namespace thalweg
