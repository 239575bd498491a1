#include "others.h"

namespace thalweg::opencl {

void Others::Add(cl_command_queue queue) {
  cl_event event = nullptr;
  Check(cl_.clEnqueueMarkerWithWaitList(queue, 0, nullptr, &event), "a marker in another library's queue");
  if (const cl_int error = cl_.clFlush(queue); error != CL_SUCCESS) {
    cl_.clReleaseEvent(event);
    throw Failure(error, "flushing another library's queue");
  }
  std::lock_guard lock(mutex_);
  Prune();
  works_.push_back({count_.load(std::memory_order_relaxed) + 1, event, false});
  count_.store(works_.back().number, std::memory_order_release);
}

cl_int Others::StatusOf(const Work& work) const {
  cl_int status = CL_QUEUED;
  const cl_int error = cl_.clGetEventInfo(work.event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  return error == CL_SUCCESS ? status : error;
}

void Others::Prune() {
  std::erase_if(works_, [&](const Work& w) {
    const cl_int status = StatusOf(w);
    const bool over = status == CL_COMPLETE || (status < 0 && w.told);
    if (over) cl_.clReleaseEvent(w.event);
    return over;
  });
}

bool Others::none() {
  if (count() == 0) return true;
  std::lock_guard lock(mutex_);
  Prune();
  return works_.empty();
}

Events Others::Since(uint64_t* seen) {
  Events fresh(cl_);
  if (count() == *seen) return fresh;
  std::lock_guard lock(mutex_);
  Prune();
  for (Work& w : works_) {
    if (w.number <= *seen) continue;
    w.told = true;
    if (const cl_int status = StatusOf(w); status < 0) throw Failure(status, "work of another library that made a tensor");
    fresh.Add(w.event);
  }
  *seen = count_.load(std::memory_order_relaxed);
  return fresh;
}

}  // namespace thalweg::opencl
