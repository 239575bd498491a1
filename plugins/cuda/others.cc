#include "others.h"

#include "device.h"

namespace thalweg::cuda {

void Others::Add(CUstream theirs) {
  const Driver& driver = device_.driver();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult error = driver.cuStreamIsCapturing(theirs, &status);
  if (error == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE)
    throw tw::Error{TW_FAILED_PRECONDITION, "the stream to wait for is being captured: its work does not run; end the capture first"};
  const CUevent event = device_.TakeEvent();
  if (error == CUDA_SUCCESS) error = driver.cuEventRecord(event, theirs);
  if (error != CUDA_SUCCESS) {
    device_.GiveEvent(event);
    if (error != CUDA_ERROR_INVALID_HANDLE && error != CUDA_ERROR_INVALID_VALUE && error != CUDA_ERROR_INVALID_CONTEXT)
      throw Failure(driver, error, "marking another library's stream");
    throw tw::Error{TW_INVALID_ARGUMENT, "the stream to wait for is none of '" + device_.uid() + "' in its primary context"};
  }
  std::lock_guard lock(mutex_);
  Prune();
  works_.push_back({count_.load(std::memory_order_relaxed) + 1, event});
  count_.store(works_.back().number, std::memory_order_release);
}

// An enqueued wait keeps its condition even if the event is reused. Failed work invalidates the
// context, so later work fails without a check here.
void Others::Prune() {
  std::erase_if(works_, [&](const Work& w) {
    const bool over = device_.driver().cuEventQuery(w.event) != CUDA_ERROR_NOT_READY;
    if (over) device_.GiveEvent(w.event);
    return over;
  });
}

void Others::Wait(CUstream queue, uint64_t* seen) {
  std::lock_guard lock(mutex_);
  Prune();
  for (const Work& w : works_)
    if (w.number > *seen)
      Check(device_.driver(), device_.driver().cuStreamWaitEvent(queue, w.event, CU_EVENT_WAIT_DEFAULT), "waiting for another library");
  *seen = count_.load(std::memory_order_relaxed);
}

void Others::Clear() {
  for (const Work& w : works_) device_.driver().cuEventDestroy(w.event);
  works_.clear();
}

}  // namespace thalweg::cuda
