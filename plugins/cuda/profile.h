// When the work of a device ran, for the host that asks, on the host's clock. Threads: any.
#ifndef THALWEG_PLUGINS_CUDA_PROFILE_H_
#define THALWEG_PLUGINS_CUDA_PROFILE_H_

#include <atomic>
#include <mutex>
#include <vector>

#include "driver.h"

namespace thalweg::cuda {

class Device;

// A piece of work between two events that keep times. NULL: an event that could not be had.
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
  // REQUIRES: the device's context. NULL: there is none to be had, and the work is not told of.
  CUevent Take(const Driver& driver);
  // Work that is over, or, with tell false, that failed; its events are used again.
  void Add(const Driver& driver, const Timing& t, const void* stream, bool tell);
  void Clear(const Driver& driver);  // before the context goes

 private:
  void Calibrate(const tw_host* host, Device& device);

  std::atomic<bool> on_{false};
  std::mutex mutex_;
  tw_span_list* to_ = nullptr;
  CUevent base_ = nullptr;  // reached at base_time_ on the host's clock
  int64_t base_time_ = 0;
  std::vector<CUevent> events_;
};

extern const tw_profile_set kProfile;

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_PROFILE_H_
