// Simulated hosts, made by changing what the real host passes to the plugin: an older or a newer
// host, one whose records become inaccessible after each call, one whose calls fail, one that knows
// fewer optional sets of devices.
// Threads: a play is chosen before the runtime is made; the ledger may be used by any thread.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "thalweg/plugin/plugin.h"

namespace thalweg::conformance {

enum DeviceSet : uint32_t {
  kStreams = 1,
  kPinned = 2,
  kPeer = 4,
  kEvents = 8,
  kStatistics = 16,
  kCapture = 32,
  kProfile = 64,
  kDlpack = 128,
  kAllSets = 255
};

enum class Effort { kBrief, kUsual, kFull };

struct Play {
  std::string name;       // of the simulated host; empty: the real host
  bool newer = false;     // records of the host are longer and end in poison
  bool older = false;     // records have the size that they had at the plugin's floor; so have definitions at the floor of their role
  bool hasty = false;     // each call comes on a new thread, and its records become inaccessible after it
  uint32_t stripped = 0;  // DeviceSets that the host does not support
  // Settings of the plugin, by key.
  std::vector<std::pair<std::string, std::string>> settings;
};

class Place;

// Counts the plugin's calls of the host, and selects the one that fails. One per process.
struct Ledger {
  std::atomic<int64_t> calls{0};    // of host functions that return a status
  std::atomic<int64_t> fail_at{0};  // the call with this number, counted from 1, fails; 0: none
  std::atomic<int64_t> failed{0};   // calls that were made to fail
  std::atomic<int64_t> tensors{0};  // tensors made or kept and not yet released
  std::atomic<int64_t> inits{0}, shutdowns{0};
  std::mutex mu;
  std::map<tw_token, int> completed;                       // completions by token; guarded by mu
  std::map<const tw_tensor*, std::weak_ptr<Place>> walls;  // places of outputs that kernels allocated; guarded by mu
  std::atomic<bool> quiet{false};                          // drops log messages of plugins

  // Resets `calls` and `failed`, and makes only call n from now on fail; 0: none.
  void FailAt(int64_t n);
  // Returns and forgets the place of a tensor that `allocate` gave to a kernel; NULL: the tensor has
  // none.
  std::shared_ptr<Place> TakeWall(const tw_tensor* t);
};
Ledger& TheLedger();

// Sets the plugin and the play of runtimes that this process makes with PlayedQuery from now on.
void SetSubject(const tw_plugin* plugin, const Play& play);
const tw_plugin* PlayedQuery(const tw_host_info* info);

// The size in bytes of a record of the host in a minor of this epoch. A record that a minor extends
// gets a specialisation; tests/abi/gates_test.py checks that each has one.
template <class T>
constexpr uint32_t SizeAt(uint32_t /*minor*/) {
  return sizeof(T);
}
template <>
constexpr uint32_t SizeAt<tw_run_api>(uint32_t minor) {
  return minor < 1 ? offsetof(tw_run_api, trace) : sizeof(tw_run_api);
}

// Returns the size that the host writes into a record under the play.
uint32_t PlayedSize(uint32_t now, uint32_t at_floor);
uint32_t PlayedFloor();  // the plugin's
template <class T>
uint32_t RecordSize() {
  return PlayedSize(sizeof(T), SizeAt<T>(PlayedFloor()));
}
// The same for a record of the host that belongs to a role and is extended by minors of that role. The
// older host has the role in the minor that is the floor of the plugin's definitions.
template <class T>
constexpr uint32_t RoleSizeAt(uint32_t minor) = delete;
template <>
constexpr uint32_t RoleSizeAt<tw_collective_call>(uint32_t minor) {
  return minor < 1 ? offsetof(tw_collective_call, sources) : sizeof(tw_collective_call);
}
uint32_t PlayedRoleFloor(std::string_view role);  // the highest of the plugin's definitions so far
template <class T>
uint32_t RoleRecordSize(std::string_view role) {
  return PlayedSize(sizeof(T), RoleSizeAt<T>(PlayedRoleFloor(role)));
}
// Returns true if the plugin knows names that the oldest host that it accepts does not have.
bool UsesLaterMinors();
// Returns the DeviceSets that the plugin's devices have, including stripped ones.
uint32_t SetsBrought();

}  // namespace thalweg::conformance
