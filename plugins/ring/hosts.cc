#include "hosts.h"

#include <unistd.h>

#include <algorithm>

#include <sys/stat.h>

#include "../shm/group.h"
#include "address.h"

namespace thalweg::ring {
namespace {

// FNV-1a.
uint64_t HashOf(uint64_t sum, const std::string& text) {
  for (const char c : text) sum = (sum ^ uint8_t(c)) * 0x100000001b3;
  return sum;
}

}  // namespace

HostKey OwnHost(const std::string& name, const std::string& folder) {
  std::string text;
  try {
    struct stat about = {};
    if (stat(folder.c_str(), &about) != 0) return {{RandomNumber(), RandomNumber()}};
    // Containers of one machine have file systems of their own.
    text = shm::HostNumber() + " " + std::to_string(about.st_dev) + " " + std::to_string(about.st_ino) + " " + folder + " " +
           std::to_string(geteuid()) + " " + name;
  } catch (const tw::Error&) {
    return {{RandomNumber(), RandomNumber()}};
  }
  return {{HashOf(0xcbf29ce484222325, text), HashOf(0x6c62272e07bb0142, text)}};
}

Hosts HostsOf(const std::vector<HostKey>& keys) {
  Hosts hosts;
  std::vector<HostKey> known;
  for (uint32_t r = 0; r < keys.size(); ++r) {
    const size_t h = size_t(std::find(known.begin(), known.end(), keys[r]) - known.begin());
    if (h == known.size()) {
      known.push_back(keys[r]);
      hosts.ranks.emplace_back();
    }
    hosts.host.push_back(uint32_t(h));
    hosts.place.push_back(uint32_t(hosts.ranks[h].size()));
    hosts.ranks[h].push_back(r);
    hosts.most = std::max<uint64_t>(hosts.most, hosts.ranks[h].size());
  }
  return hosts;
}

}  // namespace thalweg::ring
