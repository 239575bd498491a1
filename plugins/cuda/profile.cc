#include "profile.h"

#include <cmath>
#include <cstring>

#include "device.h"

namespace thalweg::cuda {

// Records an event and waits for it at once. Of several attempts, it uses the one with the shortest
// wait.
void Profile::Calibrate(const tw_host* host, Device& device) {
  const Driver& driver = device.driver();
  const CUstream stream = device.stream();
  int64_t least = INT64_MAX;
  for (int i = 0; i < 5; ++i) {
    CUevent event = nullptr;
    Check(driver, driver.cuEventCreate(&event, CU_EVENT_DEFAULT), "cuEventCreate");
    const int64_t begin = host->run->now(host);
    CUresult error = driver.cuEventRecord(event, stream);
    if (error == CUDA_SUCCESS) error = driver.cuEventSynchronize(event);
    const int64_t end = host->run->now(host);
    if (error == CUDA_SUCCESS && end - begin < least) {
      least = end - begin;
      base_time_ = begin + (end - begin) / 2;
      std::swap(base_, event);
    }
    if (event) driver.cuEventDestroy(event);
    Check(driver, error, "reading the device's clock");
  }
}

// Calibrates at each start: the time between two events has only seven digits, and clocks drift.
void Profile::Start(const tw_host* host, Device& device, tw_span_list* to) {
  std::lock_guard lock(mutex_);
  Calibrate(host, device);
  to_ = to;
  on_.store(true, std::memory_order_release);
}

void Profile::Stop() {
  std::lock_guard lock(mutex_);
  on_.store(false, std::memory_order_release);
  to_ = nullptr;
}

CUevent Profile::Take(const Driver& driver) {
  std::lock_guard lock(mutex_);
  CUevent event = nullptr;
  if (!events_.empty()) {
    event = events_.back();
    events_.pop_back();
  } else if (driver.cuEventCreate(&event, CU_EVENT_DEFAULT) != CUDA_SUCCESS) {
    event = nullptr;
  }
  return event;
}

void Profile::Add(const Driver& driver, const Timing& t, const void* stream, bool tell) {
  std::lock_guard lock(mutex_);
  float begin = 0, lasted = 0;  // ms
  if (tell && to_ && t.begin && t.end && driver.cuEventElapsedTime(&begin, base_, t.begin) == CUDA_SUCCESS &&
      driver.cuEventElapsedTime(&lasted, t.begin, t.end) == CUDA_SUCCESS) {
    const int64_t at = base_time_ + std::llround(double(begin) * 1e6);
    const char* queue = std::strncmp(t.what, "a copy", 6) == 0 ? "copies" : "compute";
    const tw_span span{TW_SIZED(tw_span),
                       queue,
                       std::strlen(queue),
                       t.what,
                       std::strlen(t.what),
                       at,
                       at + std::llround(double(lasted) * 1e6),
                       stream,
                       t.after};
    to_->add(to_, &span);
  }
  for (CUevent e : {t.begin, t.end}) {
    if (e) events_.push_back(e);
  }
}

void Profile::Clear(const Driver& driver) {
  for (CUevent e : events_) driver.cuEventDestroy(e);
  if (base_) driver.cuEventDestroy(base_);
}

namespace {

tw_status* Start(const tw_host* host, void* self, tw_span_list* to) {
  return tw::guard(host, [&] {
    Device& device = *static_cast<Device*>(self);
    device.Enter();
    device.profile().Start(host, device, to);
  });
}
void Stop(const tw_host*, void* self) { static_cast<Device*>(self)->profile().Stop(); }

}  // namespace

const tw_profile_set kProfile = {TW_SIZED(tw_profile_set), Start, Stop};

}  // namespace thalweg::cuda
