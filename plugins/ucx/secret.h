// The secrets of a meeting: the token of a cluster, random numbers, and proofs that a peer knows the
// token. Threads: any.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace thalweg::ucx_transport {

using Digest = std::array<uint8_t, 32>;  // a proof, or a random number

// Reads DIR/token, as `thalweg cluster init` makes it. Returns empty, or the error.
std::string ReadToken(const std::string& folder, std::string* out);

// Fills the memory with random bytes of the system. Returns false if there are none.
bool FillRandom(void* to, size_t n);

// Returns HMAC-SHA256 (RFC 2104) of the parts, one after the other, under the key.
Digest Proof(std::string_view key, std::string_view role, const Digest& one, const Digest& other, std::string_view rest = {});

// Compares in a time that does not depend on the contents.
bool Same(const void* a, const void* b, size_t n);

}  // namespace thalweg::ucx_transport
