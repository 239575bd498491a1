// Streams. Settle examines every command of a mark, because only a command's own event reports its
// failure.
#include "stream.h"

#include <algorithm>
#include <chrono>
#include <memory>

namespace thalweg::opencl {
namespace {

constexpr size_t kPruneFrom = 256;                         // events kept between two marks before completed ones are released
constexpr auto kPatience = std::chrono::microseconds(20);  // about the time to wake a thread
constexpr uint32_t kMostLooks = 1024;
constexpr const char* kWaitingForOthers = "waiting for another library";

}  // namespace

Stream::Stream(const tw_host* host, Device& device, tw_timeline* line)
    : host_(host), device_(device), cl_(device.cl()), prune_at_(kPruneFrom), marks_(host, line, device.uid()) {
  cl_int error = CL_SUCCESS;
  const cl_command_queue_properties order = device.out_of_order() ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0;
  queue_ = cl_.clCreateCommandQueue(device.context(), device.id(), CL_QUEUE_PROFILING_ENABLE | order, &error);
  Check(error, "clCreateCommandQueue");
  try {
    marks_.Start(
        [this](Mark& mark) {
          Settle(mark);
          Told(mark.commands, mark.after);
        },
        [](Mark&) {});
  } catch (...) {
    cl_.clReleaseCommandQueue(queue_);
    throw;
  }
}

Stream::~Stream() {
  if (cl_int error = cl_.clFinish(queue_); error != CL_SUCCESS) {
    const std::string text = "draining a queue of '" + device_.uid() + "' failed with " + ErrorName(error);
    host_->run->log(host_, 3, text.data(), text.size());
  }
  marks_.Finish();
  for (Command& c : commands_) cl_.clReleaseEvent(c.event);
  for (cl_event e : before_) cl_.clReleaseEvent(e);
  for (cl_event e : next_) cl_.clReleaseEvent(e);
  cl_.clReleaseCommandQueue(queue_);
}

void Stream::Track(cl_event event, const char* what) {
  try {
    if (commands_.size() >= prune_at_) Prune();
    if (device_.out_of_order()) next_.reserve(next_.size() + 1);
    commands_.push_back({event, what});
  } catch (...) {
    cl_.clReleaseEvent(event);
    throw;
  }
  if (!device_.out_of_order()) return;
  cl_.clRetainEvent(event);
  next_.push_back(event);
  if (!together_) EndTogether();
}

void Stream::EndTogether() {
  together_ = false;
  if (next_.empty()) return;
  before_.swap(next_);
  for (cl_event e : next_) cl_.clReleaseEvent(e);
  next_.clear();
}

bool Stream::over(cl_event event) const {
  cl_int status = CL_QUEUED;
  cl_.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
  return status == CL_COMPLETE;
}

// Releases completed commands, so that events do not pile up if the host rarely signals.
void Stream::Prune() {
  std::erase_if(commands_, [&](Command& c) {
    const bool done = over(c.event);
    if (done) cl_.clReleaseEvent(c.event);
    return done;
  });
  prune_at_ = std::max(kPruneFrom, 2 * commands_.size());
}

// Returns true if all commands since the last mark are complete, possibly after a short polling
// wait. It polls less often after polls that were in vain.
bool Stream::OverSoon() {
  const auto all = [&] { return std::all_of(commands_.rbegin(), commands_.rend(), [&](const Command& c) { return over(c.event); }); };
  if (all()) return true;
  if (looks_ > 0) return --looks_, false;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (std::chrono::steady_clock::now() < end)
    if (all()) return looks_after_failure_ = 1, true;
  looks_ = looks_after_failure_ = std::min(2 * looks_after_failure_, kMostLooks);
  return false;
}

void Stream::Told(const std::vector<Command>& commands, uint64_t after) {
  for (const Command& c : commands) {
    if (device_.profile().on()) device_.profile().Add(cl_, c.event, c.what, this, after);
    cl_.clReleaseEvent(c.event);
  }
}

bool Stream::idle() {
  return std::all_of(commands_.rbegin(), commands_.rend(), [&](const Command& c) { return over(c.event); }) && marks_.idle();
}

void Stream::Signal(uint64_t value) {
  if (!commands_.empty()) Check(cl_.clFlush(queue_), "clFlush");
  const uint64_t after = signalled_;
  signalled_ = value;
  if (marks_.told() && OverSoon()) {
    Told(commands_, after);
    commands_.clear();
    return marks_.Signal(value);
  }
  Mark mark{value, after, {}};
  mark.commands.swap(commands_);
  marks_.Add(std::move(mark));
  prune_at_ = kPruneFrom;
}

// A failed command may end before later commands whose memory must not be reused yet, so this waits
// for every command. It waits for the last one first; a mark without a failure then costs only one
// real wait.
void Stream::Settle(const Mark& mark) {
  if (mark.commands.empty()) return;
  cl_.clWaitForEvents(1, &mark.commands.back().event);
  for (const Command& c : mark.commands) {
    if (cl_.clWaitForEvents(1, &c.event) == CL_SUCCESS) continue;
    cl_int status = CL_OUT_OF_RESOURCES;
    const cl_int error = cl_.clGetEventInfo(c.event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr);
    if (error != CL_SUCCESS || status >= 0)
      status = error != CL_SUCCESS ? error : cl_int(CL_OUT_OF_RESOURCES);  // for a driver that does not report the cause
    if (tw_status* why = tw::guard(host_, [&] { throw Failure(status, std::string(c.what) + " on '" + device_.uid() + "'"); }))
      marks_.Fail(why);
  }
}

void Stream::Wait(tw_timeline* other, uint64_t value) {
  auto gate = std::make_unique<Gate>();
  gate->stream = this;
  marks_.AddGate();
  host_->timeline->when(other, value, &Stream::Open, gate.get());
  if (gate->state.load(std::memory_order_acquire) == Gate::kOpened) return;  // the gate was already open
  Close(gate.release());
}

// From here on, the later of Close and Open owns the gate.
void Stream::Close(Gate* gate) {
  cl_int error = CL_SUCCESS;
  cl_event passed = nullptr;
  gate->event = cl_.clCreateUserEvent(device_.context(), &error);
  if (error == CL_SUCCESS) {
    std::vector<cl_event> after = before_;
    after.push_back(gate->event);
    error = cl_.clEnqueueBarrierWithWaitList(queue_, cl_uint(after.size()), after.data(), &passed);
  } else {
    gate->event = nullptr;
  }
  if (gate->state.exchange(Gate::kHasEvent, std::memory_order_acq_rel) == Gate::kOpened) OpenEvent(gate);
  Check(error, "waiting for another stream");
  Track(passed, "waiting for another stream");
}

void Stream::WaitForOthers() {
  const Events others = device_.others().Since(&others_seen_);
  if (others.empty()) return;
  std::vector<cl_event> after = before_;
  after.insert(after.end(), others.data(), others.data() + others.size());
  cl_event passed = nullptr;
  Check(cl_.clEnqueueBarrierWithWaitList(queue_, cl_uint(after.size()), after.data(), &passed), kWaitingForOthers);
  Track(passed, kWaitingForOthers);
}

void Stream::OpenEvent(Gate* gate_ptr) {
  const std::unique_ptr<Gate> gate(gate_ptr);
  if (!gate->event) return;
  cl_.clSetUserEventStatus(gate->event, CL_COMPLETE);
  cl_.clReleaseEvent(gate->event);
}

// The gate opens after a failure, too: values must be signalled, and drivers differ in what a queue
// does after a failed event.
void Stream::Open(void* gate_ptr, const tw_status* why) {
  Gate* gate = static_cast<Gate*>(gate_ptr);
  Stream& s = *gate->stream;
  s.marks_.FailLike(why);
  if (gate->state.exchange(Gate::kOpened, std::memory_order_acq_rel) == Gate::kHasEvent) s.OpenEvent(gate);
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

}  // namespace thalweg::opencl
