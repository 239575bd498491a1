#include "framework/base/sha256.h"

// OpenSSL 3 deprecates the plain functions of the algorithm in favour of a layer with a hundred
// times the code.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

namespace thalweg {

struct Sha256Sum::State {
  SHA256_CTX context;
};

Sha256Sum::Sha256Sum() : state_(std::make_unique<State>()) { SHA256_Init(&state_->context); }
Sha256Sum::~Sha256Sum() = default;

void Sha256Sum::Add(std::string_view bytes) { SHA256_Update(&state_->context, bytes.data(), bytes.size()); }

std::string Sha256Sum::Finish() {
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256_Final(digest, &state_->context);
  std::string out;
  for (unsigned char byte : digest) out += {kHexDigits[byte >> 4], kHexDigits[byte & 15]};
  return out;
}

std::string Sha256(std::string_view bytes) {
  Sha256Sum sum;
  sum.Add(bytes);
  return sum.Finish();
}

}  // namespace thalweg
