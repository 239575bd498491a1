#include "digest.h"

#include <cstdint>

// OpenSSL 3 deprecates the plain functions of the algorithm in favour of a layer with a hundred
// times the code. Its HMAC is a part of that layer, so the two hashes of an HMAC are made here.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

namespace thalweg::s3 {
namespace {

std::string Sha256Of(std::string_view a, std::string_view b) {
  SHA256_CTX context;
  SHA256_Init(&context);
  SHA256_Update(&context, a.data(), a.size());
  SHA256_Update(&context, b.data(), b.size());
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256_Final(reinterpret_cast<unsigned char*>(digest.data()), &context);
  return digest;
}

}  // namespace

std::string Sha256(std::string_view bytes) { return Sha256Of(bytes, {}); }

std::string HmacSha256(std::string_view key, std::string_view bytes) {
  std::string block = key.size() > SHA256_CBLOCK ? Sha256(key) : std::string(key);
  block.resize(SHA256_CBLOCK, '\0');
  std::string inner = block, outer = block;
  for (char& c : inner) c = char(c ^ 0x36);
  for (char& c : outer) c = char(c ^ 0x5c);
  return Sha256Of(outer, Sha256Of(inner, bytes));
}

std::string Hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (unsigned char byte : bytes) out += {kDigits[byte >> 4], kDigits[byte & 15]};
  return out;
}

std::string Base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t word = 0;
    for (size_t k = 0; k < 3; ++k) word = word << 8 | (i + k < bytes.size() ? uint8_t(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k) out += i + k > bytes.size() ? '=' : kDigits[word >> (18 - 6 * k) & 63];
  }
  return out;
}

}  // namespace thalweg::s3
