// File layout: magic, key length, key, binary length, FNV-1a of the binary, binary. Lengths and
// hash are in the machine's byte order.
#include "program_cache.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace thalweg::opencl {
namespace {

constexpr std::string_view kMagic = "thalweg opencl program 1\n";

uint64_t Hash(std::string_view bytes) {
  uint64_t h = 0xcbf29ce484222325u;
  for (unsigned char c : bytes) h = (h ^ c) * 0x100000001b3u;
  return h;
}

std::string Hex(uint64_t v) {
  std::ostringstream s;
  s << std::hex << v;
  return s.str();
}

std::string Number(uint64_t v) { return std::string(reinterpret_cast<const char*>(&v), sizeof v); }

// Takes `n` bytes from the front of `rest`; returns false if there are fewer.
bool Take(std::string_view* rest, uint64_t n, std::string_view* out) {
  if (rest->size() < n) return false;
  *out = rest->substr(0, n);
  rest->remove_prefix(n);
  return true;
}
bool Take(std::string_view* rest, uint64_t* out) {
  std::string_view bytes;
  if (!Take(rest, sizeof *out, &bytes)) return false;
  std::memcpy(out, bytes.data(), sizeof *out);
  return true;
}

std::string Folder(const tw_host* host, const std::string& name) {
  if (std::string set = Setting(host, "cache_dir"); !set.empty()) return set;
  if (const char* cache = secure_getenv("XDG_CACHE_HOME"); cache && *cache == '/') return std::string(cache) + "/thalweg/" + name;
  if (const char* home = secure_getenv("HOME"); home && *home == '/') return std::string(home) + "/.cache/thalweg/" + name;
  return {};
}

}  // namespace

ProgramCache::ProgramCache(const tw_host* host, const std::string& identity, const std::string& source, const std::string& folder)
    : host_(host), key_(identity + Hex(Hash(source))), path_(Folder(host, folder)) {
  if (!path_.empty()) path_ += "/" + Hex(Hash(key_)) + ".bin";
}

std::string ProgramCache::Load() const {
  std::ifstream file(path_, std::ios::binary);
  if (!file) return {};
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  std::string_view rest = bytes, magic, key, binary;
  uint64_t size = 0, hash = 0;
  if (!Take(&rest, kMagic.size(), &magic) || magic != kMagic || !Take(&rest, &size) || !Take(&rest, size, &key) || key != key_ ||
      !Take(&rest, &size) || !Take(&rest, &hash) || !Take(&rest, size, &binary) || hash != Hash(binary)) {
    Log(1, "'" + path_ + "' is damaged or of another program; compiling again");
    return {};
  }
  return std::string(binary);
}

// Writes a temporary file and renames it, so that a reader in another process sees the whole file
// or none.
void ProgramCache::Store(const std::string& binary) const {
  if (path_.empty()) return Log(0, "no HOME, no XDG_CACHE_HOME and no setting 'cache_dir': compiled kernels are not kept");
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), error);
  std::string aside = path_ + ".XXXXXX";
  const int fd = mkstemp(aside.data());
  if (fd < 0) return Log(1, "compiled kernels are not kept: cannot write '" + path_ + "': " + std::strerror(errno));
  close(fd);
  std::ofstream file(aside, std::ios::binary);
  file << kMagic << Number(key_.size()) << key_ << Number(binary.size()) << Number(Hash(binary)) << binary;
  file.close();
  if (file) std::filesystem::rename(aside, path_, error);
  if (file && !error) return;
  Log(1, "compiled kernels are not kept: cannot write '" + path_ + "'" + (error ? ": " + error.message() : ""));
  std::filesystem::remove(aside, error);
}

void ProgramCache::Log(uint32_t level, const std::string& text) const { host_->run->log(host_, level, text.data(), text.size()); }

}  // namespace thalweg::opencl
