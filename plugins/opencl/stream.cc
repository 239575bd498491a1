// Streams. The queue is in order, so the last command of a mark is over after all others; still each one is looked at, because only its
// own event says that it failed.
#include "stream.h"

#include <algorithm>
#include <memory>

namespace thalweg::opencl {
namespace {

constexpr size_t kPruneFrom = 256;  // events kept between two marks before finished ones are let go

// The bytes of a status text.
std::string Text(const tw_host* host, const tw_status* status) {
  std::string text;
  tw_sink sink{TW_SIZED(tw_sink), &text, [](tw_sink* s, const void* bytes, uint64_t len) -> tw_status* {
                 static_cast<std::string*>(s->user)->append(static_cast<const char*>(bytes), len);
                 return nullptr;
               }};
  host->status->release(host->status->text(status, &sink));
  return text;
}

}  // namespace

Stream::Stream(const tw_host* host, Device& device, tw_timeline* line)
    : host_(host), device_(device), cl_(device.cl()), line_(line), prune_at_(kPruneFrom) {
  cl_int error = CL_SUCCESS;
  queue_ = cl_.clCreateCommandQueue(device.context(), device.id(), CL_QUEUE_PROFILING_ENABLE, &error);
  Check(error, "clCreateCommandQueue");
  try {
    thread_ = std::thread([this] { Report(); });
  } catch (...) {
    cl_.clReleaseCommandQueue(queue_);
    throw;
  }
  host_->timeline->retain(line_);
}

Stream::~Stream() {
  if (cl_int error = cl_.clFinish(queue_); error != CL_SUCCESS) {
    const std::string text = "draining a queue of '" + device_.uid() + "' failed with " + ErrorName(error);
    host_->run->log(host_, 3, text.data(), text.size());
  }
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return gates_ == 0; });
    closing_ = true;
    changed_.notify_all();
  }
  thread_.join();
  for (Command& c : commands_) cl_.clReleaseEvent(c.event);
  cl_.clReleaseCommandQueue(queue_);
  host_->timeline->release(line_);
}

void Stream::Track(cl_event event, const char* what) {
  try {
    if (commands_.size() >= prune_at_) Prune();
    commands_.push_back({event, what});
  } catch (...) {
    cl_.clReleaseEvent(event);
    throw;
  }
}

// Lets go of what is over and went well, so that a host that rarely signals does not pile up events.
void Stream::Prune() {
  std::erase_if(commands_, [&](Command& c) {
    cl_int status = CL_QUEUED;
    cl_.clGetEventInfo(c.event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
    if (status == CL_COMPLETE) cl_.clReleaseEvent(c.event);
    return status == CL_COMPLETE;
  });
  prune_at_ = std::max(kPruneFrom, 2 * commands_.size());
}

void Stream::Signal(uint64_t value) {
  Check(cl_.clFlush(queue_), "clFlush");
  {
    std::lock_guard lock(mutex_);
    marks_.push_back({value, signalled_, {}});
    marks_.back().commands.swap(commands_);
  }
  signalled_ = value;
  prune_at_ = kPruneFrom;
  changed_.notify_all();
}

void Stream::Report() {
  for (;;) {
    Mark mark;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return closing_ || !marks_.empty(); });
      if (marks_.empty()) return;
      mark = std::move(marks_.front());
      marks_.pop_front();
    }
    Settle(mark);
    for (const Command& c : mark.commands) {
      if (device_.profile().on()) device_.profile().Add(cl_, c.event, c.what, this, mark.after);
      cl_.clReleaseEvent(c.event);
    }
    host_->timeline->signal(line_, mark.value);
  }
}

// A failed command may end before those behind it, whose memory must not be used again yet: hence the wait for every single one. The
// last comes first, so that a mark without a failure costs one wait that really waits.
void Stream::Settle(const Mark& mark) {
  if (mark.commands.empty()) return;
  cl_.clWaitForEvents(1, &mark.commands.back().event);
  for (const Command& c : mark.commands) {
    if (cl_.clWaitForEvents(1, &c.event) == CL_SUCCESS) continue;
    cl_int status = CL_OUT_OF_RESOURCES;  // what a driver that cannot even tell is likely to mean
    cl_.clGetEventInfo(c.event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
    if (tw_status* why = tw::guard(host_, [&] { throw Failure(status, std::string(c.what) + " on '" + device_.uid() + "'"); }))
      host_->timeline->fail(line_, why);
  }
}

void Stream::Wait(tw_timeline* other, uint64_t value) {
  auto gate = std::make_unique<Gate>();
  gate->stream = this;
  cl_int error = CL_SUCCESS;
  gate->open = cl_.clCreateUserEvent(device_.context(), &error);
  Check(error, "clCreateUserEvent");
  cl_event passed = nullptr;
  error = cl_.clEnqueueBarrierWithWaitList(queue_, 1, &gate->open, &passed);
  if (error != CL_SUCCESS) {
    cl_.clSetUserEventStatus(gate->open, CL_COMPLETE);
    cl_.clReleaseEvent(gate->open);
    throw Failure(error, "clEnqueueBarrierWithWaitList");
  }
  {
    std::lock_guard lock(mutex_);
    ++gates_;
  }
  host_->timeline->when(other, value, &Stream::Open, gate.release());
  Track(passed, "waiting for another stream");
}

// The gate opens after a failure too: values must be signalled, and what a queue does behind a failed event differs between drivers.
void Stream::Open(void* gate_ptr, const tw_status* why) {
  std::unique_ptr<Gate> gate(static_cast<Gate*>(gate_ptr));
  Stream& s = *gate->stream;
  if (why) {
    if (tw_status* copy = tw::guard(s.host_, [&] {
          throw tw::Error{s.host_->status->code(why), "the stream that '" + s.device_.uid() + "' waits for failed: " + Text(s.host_, why)};
        }))
      s.host_->timeline->fail(s.line_, copy);
  }
  s.cl_.clSetUserEventStatus(gate->open, CL_COMPLETE);
  s.cl_.clReleaseEvent(gate->open);
  std::lock_guard lock(s.mutex_);
  --s.gates_;
  s.changed_.notify_all();
}

namespace {

tw_status* Create(const tw_host* host, void* self, tw_timeline* line, void** out_stream) {
  return tw::guard(host, [&] { *out_stream = new Stream(host, *static_cast<Device*>(self), line); });
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

}  // namespace thalweg::opencl
