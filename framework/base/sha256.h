// SHA-256 (FIPS 180-4), in hexadecimal. Threads: a sum is used by one; the function by any.
#pragma once
#include <memory>
#include <string>
#include <string_view>

namespace thalweg {

// Adds up bytes that come in pieces.
class Sha256Sum {
 public:
  Sha256Sum();
  ~Sha256Sum();
  void Add(std::string_view bytes);
  // Returns the digest of all bytes. The sum takes no more of them.
  std::string Finish();

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

std::string Sha256(std::string_view bytes);

}  // namespace thalweg
