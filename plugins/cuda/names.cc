// A program's functions carry a hash of its text.
#include <cstdint>
#include <cstdio>

#include "modules.h"

namespace thalweg::cuda {
namespace {

uint64_t Hash(const std::string& text) {  // FNV-1a
  uint64_t hash = 14695981039346656037u;
  for (unsigned char c : text) hash = (hash ^ c) * 1099511628211u;
  return hash;
}

}  // namespace

size_t ShardOf(const std::string& text) { return size_t(Hash(text) >> 32) % kShards; }

std::string FunctionName(const std::string& text, const char* name) {
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(Hash(text)));
  return std::string(name) + "_" + hash;
}

}  // namespace thalweg::cuda
