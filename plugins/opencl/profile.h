// Records when the commands of a device ran, on the host's clock, for a host that asks. Threads:
// any.
#ifndef THALWEG_PLUGINS_OPENCL_PROFILE_H_
#define THALWEG_PLUGINS_OPENCL_PROFILE_H_

#include <atomic>
#include <mutex>

#include "api.h"

namespace thalweg::opencl {

class Device;

class Profile {
 public:
  void Start(const tw_host* host, Device& device, tw_span_list* to);
  void Stop();
  bool on() const { return on_.load(std::memory_order_acquire); }
  // Adds a completed command of a queue with profiling enabled. after: see tw_span.
  void Add(const Api& cl, cl_event event, const char* what, const void* stream, uint64_t after);

 private:
  void Calibrate(const tw_host* host, Device& device);

  std::atomic<bool> on_{false};
  std::mutex mutex_;
  tw_span_list* to_ = nullptr;
  int64_t offset_ = 0;      // from the device's clock to the host's
  int64_t calibrated_ = 0;  // time of the last calibration
};

extern const tw_profile_set kProfile;

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_PROFILE_H_
