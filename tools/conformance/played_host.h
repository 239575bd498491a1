// Simulated hosts, made by changing what the real host passes to the plugin: an older or a newer
// host, one whose records become inaccessible after each call, one whose calls fail, one that knows
// fewer optional sets of devices.
// Threads: a play is chosen before the runtime is made; the ledger may be used by any thread.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

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
  std::string name;       // empty: the real host
  bool newer = false;     // records of the host are longer, the rest of them poison
  bool older = false;     // records end where they ended at the plugin's floor
  bool hasty = false;     // calls come on changing threads, records go away with the call
  uint32_t stripped = 0;  // DeviceSets that the host does not know
  // Settings of the plugin, by key.
  std::vector<std::pair<std::string, std::string>> settings;
};

class Place;

// What the plugin did with the host's calls, and which of them shall fail. One per process.
struct Ledger {
  std::atomic<int64_t> calls{0};    // that return a status
  std::atomic<int64_t> fail_at{0};  // the call with this number, counted from 1, fails; 0: none
  std::atomic<int64_t> failed{0};   // that were made to fail
  std::atomic<int64_t> tensors{0};  // made or kept and not released
  std::atomic<int64_t> inits{0}, shutdowns{0};
  std::mutex mu;
  std::map<tw_token, int> completed;                       // how often; under mu
  std::map<const tw_tensor*, std::weak_ptr<Place>> walls;  // round what kernels allocated for outputs; under mu
  std::atomic<bool> quiet{false};                          // what plugins log is dropped

  // Makes only call n fail, counted from now; 0: none.
  void FailAt(int64_t n);
  // The place of a tensor that `allocate` gave to a kernel; NULL: it gave it no such.
  std::shared_ptr<Place> TakeWall(const tw_tensor* t);
};
Ledger& TheLedger();

// The runtimes that this process makes from now on with PlayedQuery have this plugin, under this play.
void SetSubject(const tw_plugin* plugin, const Play& play);
const tw_plugin* PlayedQuery(const tw_host_info* info);

// Bytes of a record at a minor of this epoch.
uint32_t SizeAt(uint32_t minor, uint32_t now);
// The size that a record of the host says that it has, under the play.
uint32_t RecordSize(uint64_t now);
// The DeviceSets that the plugin's devices have, stripped or not.
uint32_t SetsBrought();

}  // namespace thalweg::conformance
