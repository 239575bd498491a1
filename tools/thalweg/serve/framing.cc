#include "framing.h"

#include <strings.h>

#include <algorithm>
#include <string_view>

namespace thalweg::cli::serve {
namespace {

constexpr size_t kMostHeader = 64 << 10, kMostLines = 256;
constexpr unsigned kMostDigits = 15, kMostExtension = 4096;

// A character of a field's name (RFC 9110, section 5.6.2).
bool IsOfName(char c) {
  constexpr std::string_view kPunctuation = "!#$%&'*+-.^_`|~";
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || kPunctuation.find(c) != kPunctuation.npos;
}

// The library drops a field without a value, and decodes %XX in values.
bool IsCertainField(const std::string& line) {
  const size_t colon = line.find(':');
  if (colon == line.npos || colon == 0 || !std::all_of(line.begin(), line.begin() + ptrdiff_t(colon), IsOfName)) return false;
  const std::string name = line.substr(0, colon);
  if (strcasecmp(name.c_str(), "Content-Length") != 0 && strcasecmp(name.c_str(), "Transfer-Encoding") != 0) return true;
  return line.find_first_not_of(" \t", colon + 1) != line.npos && line.find('%', colon) == line.npos;
}

}  // namespace

bool HeaderCheck::Take(char c) {
  if (++bytes_ > kMostHeader || c == '\0') return false;
  if (c == '\n') return return_ && EndLine();
  if (return_) return false;
  return_ = c == '\r';
  if (!return_) line_ += c;
  return true;
}

// The library itself checks the first line.
bool HeaderCheck::EndLine() {
  whole_ = lines_ > 0 && line_.empty();
  const bool good = lines_ == 0 || whole_ || IsCertainField(line_);
  line_.clear();
  return_ = false;
  return ++lines_ <= kMostLines && good;
}

bool ChunkCheck::Take(const char* bytes, size_t n) {
  while (n > 0) {
    size_t taken = 1;
    if (at_ == At::kData) {
      taken = size_t(std::min<uint64_t>(n, left_));
      left_ -= taken;
      if (left_ == 0) at_ = At::kDataReturn;
    } else if (!Take(*bytes)) {
      return false;
    }
    bytes += taken;
    n -= taken;
  }
  return true;
}

bool ChunkCheck::Take(char c) {
  switch (at_) {
    case At::kSize: return TakeSize(c);
    case At::kExtension:
      if (c == '\r') return Expect(c, '\r', At::kSizeEnd);
      return c != '\n' && c != '\0' && ++extension_ <= kMostExtension;
    case At::kSizeEnd: digits_ = extension_ = 0; return Expect(c, '\n', left_ > 0 ? At::kData : At::kLastReturn);
    case At::kDataReturn: return Expect(c, '\r', At::kDataEnd);
    case At::kDataEnd: return Expect(c, '\n', At::kSize);
    case At::kLastReturn: return Expect(c, '\r', At::kLastEnd);
    case At::kLastEnd: return Expect(c, '\n', At::kEnd);
    default: return false;
  }
}

bool ChunkCheck::TakeSize(char c) {
  static constexpr std::string_view kDigits = "0123456789abcdefABCDEF";
  if (const size_t digit = kDigits.find(c); digit != kDigits.npos) {
    left_ = left_ << 4 | (digit < 16 ? digit : digit - 6);
    return ++digits_ <= kMostDigits;
  }
  if (digits_ == 0) return false;
  at_ = c == '\r' ? At::kSizeEnd : At::kExtension;
  return c == '\r' || c == ';' || c == ' ' || c == '\t';
}

bool ChunkCheck::Expect(char c, char expected, At next) {
  at_ = next;
  return c == expected;
}

}  // namespace thalweg::cli::serve
