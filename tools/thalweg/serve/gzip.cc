#include "gzip.h"

#include <strings.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>

#include "http_error.h"

namespace thalweg::cli::serve {
namespace {

constexpr uint64_t kDeflateBytes = 300 << 10;  // that zlib holds for a window of 32 KiB at memory level 8: 268 KB
constexpr uint64_t kMostAtOnce = 1 << 30;      // bytes that zlib is given in one call, which counts in 32 bits

std::string_view TrimmedWord(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  text.remove_prefix(begin);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Takes the part before the separator, and it, from the front.
std::string_view TakePart(std::string_view* rest, char separator) {
  const size_t end = std::min(rest->find(separator), rest->size());
  const std::string_view part = rest->substr(0, end);
  rest->remove_prefix(std::min(end + 1, rest->size()));
  return TrimmedWord(part);
}

bool IsZeroWeight(std::string_view parameter) {
  if (!parameter.starts_with("q=") && !parameter.starts_with("Q=")) return false;
  return parameter.substr(2).find_first_not_of("0.") == parameter.npos;
}

}  // namespace

bool AcceptsGzip(std::string_view accepted) {
  while (!accepted.empty()) {
    std::string_view coding = TakePart(&accepted, ',');
    const std::string name(TakePart(&coding, ';'));
    if (strcasecmp(name.c_str(), "gzip") != 0 && strcasecmp(name.c_str(), "x-gzip") != 0) continue;
    return !IsZeroWeight(TakePart(&coding, ';'));
  }
  return false;
}

void Gzip(std::string_view bytes, ChargedText* out) {
  Charge state = out->NewCharge();
  state.Add(kDeflateBytes);
  out->Reserve(out->size() + std::min<size_t>(bytes.size() / 4, kMostAtOnce));
  z_stream stream = {};
  constexpr int kGzip = 16;
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + kGzip, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw HttpError(503, "there is not enough memory to pack the answer");
  }
  const std::unique_ptr<z_stream, decltype(&deflateEnd)> end(&stream, &deflateEnd);
  std::array<char, 16384> part;
  int result = Z_OK;
  while (result != Z_STREAM_END) {
    if (stream.avail_in == 0 && !bytes.empty()) {
      const size_t n = std::min<size_t>(bytes.size(), kMostAtOnce);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
      stream.avail_in = uInt(n);
      bytes.remove_prefix(n);
    }
    stream.next_out = reinterpret_cast<Bytef*>(part.data());
    stream.avail_out = uInt(part.size());
    result = deflate(&stream, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
    out->Append({part.data(), part.size() - stream.avail_out});
  }
}

}  // namespace thalweg::cli::serve
