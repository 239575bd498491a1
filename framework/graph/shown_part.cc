#include "framework/graph/shown_part.h"

#include <map>
#include <mutex>

namespace thalweg {
namespace {

// A record may be a copy, or one that was destroyed, so it is looked up instead of cast.
struct ShownParts {
  std::mutex mu;
  std::map<const tw_part*, const ShownPart*> parts;  // guarded by mu
};
ShownParts& LiveParts() {
  static auto* shown = new ShownParts;  // never destroyed: plans may end after static objects
  return *shown;
}

int64_t LargestSize(const tw_part* part, int32_t node, uint32_t port, uint32_t axis) {
  const ShownPart* found = nullptr;
  {
    ShownParts& shown = LiveParts();
    std::lock_guard lock(shown.mu);
    const auto it = shown.parts.find(part);
    if (it != shown.parts.end()) found = it->second;
  }
  if (!found) return -1;
  try {
    const Shape limit = found->LimitOf(node, port);
    return limit.has_rank() && axis < uint32_t(limit.rank()) ? limit.dim(int32_t(axis)) : -1;
  } catch (...) {  // without memory for the search, no limit is known
    return -1;
  }
}

constexpr tw_limits_api kLimitsSet = {TW_SIZED(tw_limits_api), LargestSize};

}  // namespace

ShownPart::~ShownPart() {
  ShownParts& shown = LiveParts();
  std::lock_guard lock(shown.mu);
  shown.parts.erase(record_);
}

void ShownPart::Show(const tw_part* record) {
  ShownParts& shown = LiveParts();
  std::lock_guard lock(shown.mu);
  shown.parts.erase(record_);
  record_ = record;
  shown.parts[record] = this;
}

const tw_limits_api* LimitsSet() { return &kLimitsSet; }

}  // namespace thalweg
