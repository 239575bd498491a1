// Spreads: distribute variables over the tasks of a job.
#include "thalweg/spread.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "thalweg/status.h"

struct tw_spread {
  std::vector<std::string> devices;
  std::vector<uint64_t> bytes;  // of each task
  uint32_t how = TW_SPREAD_IN_TURN;
  size_t turn = 0;
};

namespace {

tw_status* Refuse(const std::string& text) { return tw_status_create(TW_INVALID_ARGUMENT, ("tw_spread_create: " + text).c_str()); }

}  // namespace

tw_status* tw_spread_create(const char* job, uint32_t tasks, uint32_t how, tw_spread** out_spread) {
  constexpr uint32_t kMost = 1 << 20;
  if (!job || !out_spread) return Refuse("job or out_spread is NULL");
  try {
    if (tasks == 0 || tasks > kMost) return Refuse("tasks is " + std::to_string(tasks) + "; give 1 to " + std::to_string(kMost));
    if (how > TW_SPREAD_BY_SIZE) return Refuse("how is " + std::to_string(how) + "; it is 0, in turn, or 1, by size");
    auto spread = std::make_unique<tw_spread>();
    for (uint32_t i = 0; i < tasks; ++i) spread->devices.push_back("/job:" + std::string(job) + "/task:" + std::to_string(i));
    spread->bytes.resize(tasks);
    spread->how = how;
    *out_spread = spread.release();
    return nullptr;
  } catch (const std::bad_alloc&) {
    return tw_status_create(TW_RESOURCE_EXHAUSTED, "out of host memory for a spread");
  }
}

void tw_spread_destroy(tw_spread* spread) { delete spread; }

const char* tw_spread_next(tw_spread* spread, uint64_t bytes) {
  if (!spread) return nullptr;
  std::vector<uint64_t>& all = spread->bytes;
  const size_t task = spread->how == TW_SPREAD_BY_SIZE ? size_t(std::min_element(all.begin(), all.end()) - all.begin())
                                                       : std::exchange(spread->turn, (spread->turn + 1) % all.size());
  all[task] += std::min(bytes, UINT64_MAX - all[task]);
  return spread->devices[task].c_str();
}

uint64_t tw_spread_bytes(const tw_spread* spread, uint32_t task) { return spread && task < spread->bytes.size() ? spread->bytes[task] : 0; }
