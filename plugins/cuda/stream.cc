#include "stream.h"

#include <atomic>
#include <memory>
#include <utility>

#include "recording.h"

namespace thalweg::cuda {
namespace {

constexpr size_t kFlagsOfPage = 1024;

}  // namespace

Stream::Stream(const tw_host* host, Device& device, tw_timeline* line)
    : host_(host), device_(device), driver_(device.driver()), line_(line), marks_(host, line, device.uid()) {
  device_.Enter();
  Check(driver_, driver_.cuStreamCreate(&queue_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  try {
    marks_.Start([this](Mark& mark) { Settle(mark); }, [this](Mark& mark) { Passed(mark); });
  } catch (...) {
    driver_.cuStreamDestroy(queue_);
    throw;
  }
  device_.lines().Add(line_, this);
}

// Removes the stream from Lines, then waits for all that it waits for. Only then does it release
// its flags and events.
Stream::~Stream() {
  device_.lines().Remove(line_);
  marks_.Finish();
  for (const Timing& t : timings_) device_.profile().Add(driver_, t, this, false);
  const tw_status* none = tw::guard(host_, [&] { device_.Enter(); });
  host_->status->release(const_cast<tw_status*>(none));
  if (CUresult error = driver_.cuStreamSynchronize(queue_); error != CUDA_SUCCESS) {
    const std::string text = Failure(driver_, error, "draining a stream of '" + device_.uid() + "'").text;
    host_->run->log(host_, 3, text.data(), text.size());
  }
  driver_.cuStreamDestroy(queue_);
  for (uint32_t* page : pages_) driver_.cuMemFreeHost(page);
}

CUevent Stream::Now() {
  const CUevent event = device_.profile().Take(driver_);
  if (event && driver_.cuEventRecord(event, queue_) == CUDA_SUCCESS) return event;
  if (event) driver_.cuEventDestroy(event);
  return nullptr;
}

void Stream::CheckNotRecording(const char* what) const {
  if (recording_)
    throw tw::Error{TW_FAILED_PRECONDITION, std::string("a stream of '") + device_.uid() + "' that is being recorded " + what};
}

// Relaxed mode: calls may allocate memory meanwhile, and other threads may use other streams.
void Stream::BeginRecording() {
  CheckNotRecording("cannot begin once more");
  device_.Enter();
  Check(driver_, driver_.cuStreamBeginCapture(queue_, CU_STREAM_CAPTURE_MODE_RELAXED), "beginning to record a stream");
  recording_ = true;
  device_.SetTape(queue_, &tape_);
}

void Stream::EndRecording(Recording* to) {
  if (!recording_) throw tw::Error{TW_FAILED_PRECONDITION, std::string("a stream of '") + device_.uid() + "' is not being recorded"};
  device_.Enter();
  CUgraph graph = nullptr;
  const CUresult error = driver_.cuStreamEndCapture(queue_, &graph);
  recording_ = false;
  device_.SetTape(queue_, nullptr);
  Tape tape = std::exchange(tape_, {});
  if (error == CUDA_SUCCESS && graph) return to->Become(graph, std::move(tape));
  ReleaseAll(device_, tape.memory);
  throw Failure(driver_, error == CUDA_SUCCESS ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : error, "recording a stream");
}

void Stream::Signal(uint64_t value) {
  CheckNotRecording("signals nothing");
  const CUevent event = device_.TakeEvent();
  if (CUresult error = driver_.cuEventRecord(event, queue_); error != CUDA_SUCCESS) {
    device_.GiveEvent(event);
    throw Failure(driver_, error, "marking a stream");
  }
  marks_.Add({value, event, last_, std::move(open_), std::move(timings_), std::move(ways_)});
  told_ = value;
  open_.clear();
  timings_.clear();
  ways_.clear();
}

void Stream::Settle(Mark& mark) {
  tw_status* failed = tw::guard(host_, [&] {
    device_.Enter();
    if (CUresult error = driver_.cuEventSynchronize(mark.event); error != CUDA_SUCCESS)
      throw Failure(driver_, error, std::string("work on '") + device_.uid() + "' up to '" + mark.last + "'");
  });
  if (failed) marks_.Fail(failed);
  for (const Timing& t : mark.timings) device_.profile().Add(driver_, t, this, !failed);
  mark.ways.clear();
}

void Stream::Passed(Mark& mark) {
  device_.GiveEvent(mark.event);
  std::lock_guard lock(mutex_);
  flags_.insert(flags_.end(), mark.open.begin(), mark.open.end());
}

bool Stream::OrderBefore(CUstream waiting, uint64_t value) {
  return marks_.Find(value, [&](const Mark& mark) {
    Check(driver_, driver_.cuStreamWaitEvent(waiting, mark.event, CU_EVENT_WAIT_DEFAULT), "cuStreamWaitEvent");
  });
}

// Returns a word of host memory that the queue can wait for.
uint32_t* Stream::TakeFlag() {
  std::lock_guard lock(mutex_);
  if (flags_.empty()) {
    void* page = nullptr;
    Check(driver_, driver_.cuMemHostAlloc(&page, kFlagsOfPage * sizeof(uint32_t), CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
          "cuMemHostAlloc");
    pages_.push_back(static_cast<uint32_t*>(page));
    for (size_t i = 0; i < kFlagsOfPage; ++i) flags_.push_back(pages_.back() + i);
  }
  uint32_t* flag = flags_.back();
  flags_.pop_back();
  std::atomic_ref(*flag).store(0, std::memory_order_release);
  return flag;
}

// A wait for another stream's work runs on the device. A wait for any other timeline, or for a
// value without a mark yet, uses a flag that the host sets.
void Stream::Wait(tw_timeline* other, uint64_t value) {
  CheckNotRecording("waits for nothing");
  device_.Enter();
  auto gate = std::make_unique<Gate>(Gate{this, nullptr});
  if (!device_.lines().With(other, [&](Stream& s) { return s.OrderBefore(queue_, value); })) {
    gate->flag = TakeFlag();
    CUdeviceptr at = 0;
    Check(driver_, driver_.cuMemHostGetDevicePointer(&at, gate->flag, 0), "cuMemHostGetDevicePointer");
    Check(driver_, driver_.cuStreamWaitValue32(queue_, at, 1, CU_STREAM_WAIT_VALUE_GEQ), "cuStreamWaitValue32");
    open_.push_back(gate->flag);
  }
  marks_.AddGate();
  last_ = "waiting for another stream";
  host_->timeline->when(other, value, &Stream::Open, gate.release());
}

// The gate opens after a failure, too, because values must be signalled.
void Stream::Open(void* gate_ptr, const tw_status* why) {
  const std::unique_ptr<Gate> gate(static_cast<Gate*>(gate_ptr));
  Stream& s = *gate->stream;
  s.marks_.FailLike(why);
  if (gate->flag) std::atomic_ref(*gate->flag).store(1, std::memory_order_release);
  s.marks_.Opened();
}

namespace {

tw_status* Create(const tw_host* host, void* self, const tw_stream_config* c, void** out_stream) {
  return tw::guard(host, [&] { *out_stream = new Stream(host, *static_cast<Device*>(self), c->line); });
}
void Destroy(const tw_host*, void* stream) { delete static_cast<Stream*>(stream); }
tw_status* Signal(const tw_host* host, void* stream, uint64_t value) {
  return tw::guard(host, [&] { static_cast<Stream*>(stream)->Signal(value); });
}
tw_status* Wait(const tw_host* host, void* stream, tw_timeline* other, uint64_t value) {
  return tw::guard(host, [&] { static_cast<Stream*>(stream)->Wait(other, value); });
}

}  // namespace

const tw_stream_set kStreams = {TW_SIZED(tw_stream_set), Create, Destroy, Signal, Wait};

}  // namespace thalweg::cuda
