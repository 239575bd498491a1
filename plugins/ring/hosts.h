// Hosts: which members of a group are on one host, so that they can share memory.
// Threads: any.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace thalweg::ring {

// Equal for members that can share memory.
struct HostKey {
  uint64_t words[2] = {};
  bool operator==(const HostKey&) const = default;
};

// Returns the key of this process's host: a hash of the kernel's boot id, the file system and the
// name of `folder`, the user, and `name`. A process that cannot tell its host gets a random key.
HostKey OwnHost(const std::string& name, const std::string& folder);

struct Hosts {
  std::vector<std::vector<uint32_t>> ranks;  // of each host's members, in order; hosts in the order of their first members
  std::vector<uint32_t> host, place;         // by rank: the number of its host, and its place among the members there
  uint64_t most = 0;                         // members of the largest host
};
// keys: by rank.
Hosts HostsOf(const std::vector<HostKey>& keys);

}  // namespace thalweg::ring
