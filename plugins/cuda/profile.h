// Records when the work of a device ran, on the host's clock, for a host that asks. Threads: any.
#ifndef THALWEG_PLUGINS_CUDA_PROFILE_H_
#define THALWEG_PLUGINS_CUDA_PROFILE_H_

#include <atomic>
#include <mutex>
#include <vector>

#include "driver.h"

namespace thalweg::cuda {

class Device;

// Work between two events with timing. NULL: the event could not be created.
struct Timing {
  const char* what;
  CUevent begin, end;
  uint64_t after;  // see tw_span
};

class Profile {
 public:
  void Start(const tw_host* host, Device& device, tw_span_list* to);
  void Stop();
  bool on() const { return on_.load(std::memory_order_acquire); }
  // REQUIRES: the device's context is current. Returns NULL if no event can be created; the work is
  // then not reported.
  CUevent Take(const Driver& driver);
  // Adds completed work, or failed work with `tell` false. Its events are reused.
  void Add(const Driver& driver, const Timing& t, const void* stream, bool tell);
  void Clear(const Driver& driver);  // called before the context is released

 private:
  void Calibrate(const tw_host* host, Device& device);

  std::atomic<bool> on_{false};
  std::mutex mutex_;
  tw_span_list* to_ = nullptr;
  CUevent base_ = nullptr;  // recorded at base_time_ on the host's clock
  int64_t base_time_ = 0;
  std::vector<CUevent> events_;
};

extern const tw_profile_set kProfile;

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_PROFILE_H_
