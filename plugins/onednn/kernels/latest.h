// The plans that one node has made for the sizes that it has seen, while its shapes were planned or
// at the first step with new sizes. If there are too many sizes, the oldest plan is evicted.
// Threads: any.
#ifndef THALWEG_PLUGINS_ONEDNN_KERNELS_LATEST_H_
#define THALWEG_PLUGINS_ONEDNN_KERNELS_LATEST_H_

#include <memory>
#include <mutex>
#include <vector>

#include "library.h"

namespace thalweg::onednn {

template <class Sizes, class Plan>
class Latest {
 public:
  // Returns the plan for these sizes, or the new plan that make() returns. If make() threw because
  // the library does not support the sizes, returns NULL and remembers that.
  template <class F>
  std::shared_ptr<const Plan> Of(const Sizes& sizes, F&& make) const {
    std::lock_guard lock(mutex_);
    for (const Met& m : met_)
      if (m.sizes == sizes) return m.plan;
    Met met{sizes, nullptr};
    try {
      met.plan = make();
    } catch (const tw::Error& e) {
      if (e.code == TW_RESOURCE_EXHAUSTED) throw;
    }
    if (met_.size() == kMost) met_.erase(met_.begin());
    met_.push_back(met);
    return met.plan;
  }

 private:
  static constexpr size_t kMost = 32;
  struct Met {
    Sizes sizes;
    std::shared_ptr<const Plan> plan;
  };
  mutable std::mutex mutex_;
  mutable std::vector<Met> met_;  // the newest last
};

}  // namespace thalweg::onednn

#endif  // THALWEG_PLUGINS_ONEDNN_KERNELS_LATEST_H_
