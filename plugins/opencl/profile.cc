#include "profile.h"

#include <cstring>

#include "device.h"

namespace thalweg::opencl {
namespace {

constexpr int64_t kCalibrationLasts = 5'000'000'000;  // ns; the clocks drift

// Returns the device time at which a command began or ended; 0 if the driver does not report it.
int64_t TimeOf(const Api& cl, cl_event event, cl_profiling_info what) {
  cl_ulong time = 0;
  return cl.clGetEventProfilingInfo(event, what, sizeof time, &time, nullptr) == CL_SUCCESS ? int64_t(time) : 0;
}

// A wait is not work.
bool IsWait(const char* what) { return std::strncmp(what, "waiting for", 11) == 0; }
bool IsCopy(const char* what) { return std::strcmp(what, "a copy") == 0; }

}  // namespace

// Reads the device's clock through a command that does almost nothing. Of several attempts, it uses
// the one with the shortest wait.
void Profile::Calibrate(const tw_host* host, Device& device) {
  const Api& cl = device.cl();
  cl_int error = CL_SUCCESS;
  cl_command_queue queue = cl.clCreateCommandQueue(device.context(), device.id(), CL_QUEUE_PROFILING_ENABLE, &error);
  Check(error, "clCreateCommandQueue");
  cl_mem memory = nullptr;
  int64_t least = INT64_MAX;
  tw_status* failed = tw::guard(host, [&] {
    memory = device.Allocate(sizeof(int64_t));
    for (int i = 0; i < 5; ++i) {
      cl_event event = nullptr;
      const int64_t begin = host->run->now(host);
      Check(cl.clEnqueueWriteBuffer(queue, memory, CL_TRUE, 0, sizeof begin, &begin, 0, nullptr, &event), "reading the device's clock");
      const int64_t end = host->run->now(host), told = TimeOf(cl, event, CL_PROFILING_COMMAND_END);
      cl.clReleaseEvent(event);
      if (told == 0 || end - begin >= least) continue;
      least = end - begin;
      offset_ = end - told;
    }
    if (least == INT64_MAX) throw tw::Error{TW_UNIMPLEMENTED, "'" + device.uid() + "' does not tell when its commands ran"};
  });
  if (memory) cl.clReleaseMemObject(memory);
  cl.clReleaseCommandQueue(queue);
  if (failed) throw tw::Raised{failed};
  calibrated_ = host->run->now(host);
}

void Profile::Start(const tw_host* host, Device& device, tw_span_list* to) {
  std::lock_guard lock(mutex_);
  if (calibrated_ == 0 || host->run->now(host) - calibrated_ > kCalibrationLasts) Calibrate(host, device);
  to_ = to;
  on_.store(true, std::memory_order_release);
}

void Profile::Stop() {
  std::lock_guard lock(mutex_);
  on_.store(false, std::memory_order_release);
  to_ = nullptr;
}

void Profile::Add(const Api& cl, cl_event event, const char* what, const void* stream, uint64_t after) {
  const int64_t begin = TimeOf(cl, event, CL_PROFILING_COMMAND_START), end = TimeOf(cl, event, CL_PROFILING_COMMAND_END);
  if (begin == 0 || end < begin || IsWait(what)) return;
  std::lock_guard lock(mutex_);
  if (!to_) return;
  const char* queue = IsCopy(what) ? "copies" : "compute";
  const tw_span span{TW_SIZED(tw_span), queue, std::strlen(queue), what, std::strlen(what), begin + offset_, end + offset_, stream, after};
  to_->add(to_, &span);
}

namespace {

tw_status* Start(const tw_host* host, void* self, tw_span_list* to) {
  return tw::guard(host, [&] {
    Device& device = *static_cast<Device*>(self);
    device.profile().Start(host, device, to);
  });
}
void Stop(const tw_host*, void* self) { static_cast<Device*>(self)->profile().Stop(); }

}  // namespace

const tw_profile_set kProfile = {TW_SIZED(tw_profile_set), Start, Stop};

}  // namespace thalweg::opencl
