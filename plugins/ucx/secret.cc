#include "secret.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <openssl/sha.h>
#include <sys/random.h>
#include <sys/stat.h>

namespace thalweg::ucx_transport {
namespace {

constexpr size_t kBlock = 64;  // bytes that SHA-256 takes at once
constexpr size_t kLeast = 32, kMost = 256;

}  // namespace

std::string ReadToken(const std::string& folder, std::string* out) {
  const std::string path = folder + "/token";
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // without O_NONBLOCK, a named pipe would wait for a writer
  struct stat s = {};
  if (fd < 0 || fstat(fd, &s) != 0) {
    const std::string why = std::strerror(errno);
    if (fd >= 0) close(fd);
    return "'" + path + "': " + why;
  }
  char text[kMost + 2];
  const ssize_t n = S_ISREG(s.st_mode) ? read(fd, text, sizeof text) : 0;
  close(fd);
  if ((s.st_mode & (S_IRWXG | S_IRWXO)) != 0) return "'" + path + "' is accessible to others; chmod 600";
  std::string_view token(text, n > 0 ? size_t(n) : 0);
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.remove_suffix(1);
  if (token.size() < kLeast || token.size() > kMost || token.find_first_not_of("0123456789abcdefABCDEF") != token.npos)
    return "'" + path + "' is no secret of 32 to 256 hexadecimal digits";
  *out = token;
  return "";
}

bool FillRandom(void* to, size_t n) {
  auto* at = static_cast<uint8_t*>(to);
  while (n > 0) {
    const ssize_t got = getrandom(at, n, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    n -= size_t(got);
  }
  return true;
}

Digest Proof(std::string_view key, std::string_view role, const Digest& one, const Digest& other, std::string_view rest) {
  Digest inner, outer;
  std::string pad(key);
  if (pad.size() > kBlock) {
    SHA256(reinterpret_cast<const uint8_t*>(key.data()), key.size(), inner.data());
    pad.assign(inner.begin(), inner.end());
  }
  pad.resize(kBlock);
  for (char& c : pad) c = char(c ^ 0x36);
  std::string text = pad;
  text += role;
  text.append(one.begin(), one.end());
  text.append(other.begin(), other.end());
  text += rest;
  SHA256(reinterpret_cast<const uint8_t*>(text.data()), text.size(), inner.data());
  for (char& c : pad) c = char(c ^ 0x36 ^ 0x5c);
  pad.append(inner.begin(), inner.end());
  SHA256(reinterpret_cast<const uint8_t*>(pad.data()), pad.size(), outer.data());
  return outer;
}

bool Same(const void* a, const void* b, size_t n) {
  const auto *x = static_cast<const uint8_t*>(a), *y = static_cast<const uint8_t*>(b);
  uint8_t differs = 0;
  for (size_t i = 0; i < n; ++i) differs |= x[i] ^ y[i];
  return differs == 0;
}

}  // namespace thalweg::ucx_transport
