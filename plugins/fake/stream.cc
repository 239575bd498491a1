#include "stream.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "text.h"

namespace thalweg::fake {
namespace {

std::string Text(const tw_host* host, const tw_status* status) {
  std::string text;
  tw_sink sink = SinkInto(&text);
  host->status->release(host->status->text(status, &sink));
  return text;
}

}  // namespace

Stream::Stream(Device& device, tw_timeline* line)
    : device_(device),
      host_(device.host()),
      line_(line),
      worker_(device.settings().queue_threads ? std::make_shared<Worker>() : device.worker()) {
  worker_->Start();
  worker_->Add(&queue_);
  host_->timeline->retain(line_);
  ++device_.counters().streams;
}

Stream::~Stream() {
  worker_->Remove(&queue_);
  if (device_.settings().queue_threads) worker_->Stop();
  host_->timeline->release(line_);
  --device_.counters().streams;
}

void Stream::Put(Queue::Item item) { worker_->Put(&queue_, std::move(item)); }

void Stream::Enqueue(Command command) {
  if (recording_) return recording_->push_back({part_, std::move(command)});
  for (const uint32_t* work : device_.others().Since(&others_seen_))
    PutCommand({Command::kWait, "a wait for another library", [work] { Others::Await(work); }, nullptr, nullptr, 0, 0});
  PutCommand(std::move(command));
}

void Stream::PutCommand(Command command) {
  std::shared_ptr<Gate> gate = command.gate;
  command.stream = this;
  command.after = last_;
  Put({[this, c = std::move(command)] { RunLate(c); }, std::move(gate)});
}

void Stream::Signal(uint64_t value) {
  if (recording_) throw tw::Error{TW_FAILED_PRECONDITION, device_.uid() + ": a queue that is being recorded signals nothing"};
  last_ = value;
  Put({[this, value] { host_->timeline->signal(line_, value); }, nullptr});
}

void Stream::WaitFor(std::shared_ptr<Gate> gate, const char* what) {
  gate->Join(worker_);
  Enqueue({Command::kWait, what, [gate] { gate->Pass(); }, gate, nullptr, 0, 0});
}

void Stream::Wait(tw_timeline* other, uint64_t value) {
  struct Arg {
    const tw_host* host;
    std::shared_ptr<Gate> gate;
  };
  auto gate = std::make_shared<Gate>();
  auto arg = std::make_unique<Arg>(Arg{host_, gate});
  WaitFor(std::move(gate), "a wait for another queue");
  host_->timeline->when(
      other, value,
      [](void* p, const tw_status* why) {
        std::unique_ptr<Arg> a(static_cast<Arg*>(p));
        if (why)
          a->gate->Open("the queue that was waited for failed: " + Text(a->host, why), a->host->status->code(why));
        else
          a->gate->Open();
      },
      arg.release());
}

void Stream::BeginRecording() {
  if (recording_) throw tw::Error{TW_FAILED_PRECONDITION, device_.uid() + ": the queue is being recorded already"};
  recording_.emplace();
  part_ = 0;
}

void Stream::Mark(uint64_t part) {
  if (!recording_) throw tw::Error{TW_FAILED_PRECONDITION, device_.uid() + ": the queue is not being recorded, so nothing is marked"};
  part_ = part;
}

void Stream::EndUpdate(Recording* of, uint64_t part) {
  if (!recording_) throw tw::Error{TW_FAILED_PRECONDITION, device_.uid() + ": the queue is not being recorded"};
  const Recording now = std::exchange(*recording_, {});
  recording_.reset();
  auto next = now.begin();
  for (Recorded& r : *of) {
    if (r.part != part) continue;
    if (next == now.end() || next->command.what != r.command.what) break;
    r.command = (next++)->command;
  }
  const auto parts = std::count_if(of->begin(), of->end(), [part](const Recorded& r) { return r.part == part; });
  if (next != now.end() || size_t(parts) != now.size())
    throw tw::Error{TW_INVALID_ARGUMENT, device_.uid() + ": part " + std::to_string(part) + " of the recording is " +
                                             std::to_string(parts) + " commands, and others than the " + std::to_string(now.size()) +
                                             " that update it"};
  ++device_.counters().updates;
}

Recording Stream::EndRecording() {
  if (!recording_) throw tw::Error{TW_FAILED_PRECONDITION, device_.uid() + ": the queue is not being recorded"};
  Recording all = std::move(*recording_);
  recording_.reset();
  device_.EnterRecording();
  ++device_.counters().records;
  return all;
}

void Stream::RunLate(const Command& command) {
  if (failed_ && command.kind != Command::kEvent) return;
  if (device_.settings().delay_us && command.kind < Command::kWait) std::this_thread::sleep_for(std::chrono::microseconds(device_.Delay()));
  tw_status* why = tw::guard(host_, [&] { device_.Run(command); });
  if (!why) return;
  failed_ = true;
  host_->timeline->fail(line_, why);
  if (device_.lost()) host_->timeline->signal(line_, UINT64_MAX);
}

void Submit(Device& device, void* stream, Command command) {
  if (stream) return static_cast<Stream*>(stream)->Enqueue(std::move(command));
  size_t none = 0;
  for (const uint32_t* work : device.others().Since(&none)) Others::Await(work);
  device.Run(command);
}

namespace {

tw_status* Create(const tw_host* h, void* self, const tw_stream_config* c, void** out_stream) {
  return tw::guard(h, [&] { *out_stream = new Stream(*static_cast<Device*>(self), c->line); });
}
void Destroy(const tw_host*, void* stream) { delete static_cast<Stream*>(stream); }
tw_status* Signal(const tw_host* h, void* stream, uint64_t value) {
  return tw::guard(h, [&] { static_cast<Stream*>(stream)->Signal(value); });
}
tw_status* Wait(const tw_host* h, void* stream, tw_timeline* other, uint64_t value) {
  return tw::guard(h, [&] { static_cast<Stream*>(stream)->Wait(other, value); });
}

uint32_t Reaches(const tw_host*, void* self, void* other) { return self != other && static_cast<Device*>(self)->settings().peers; }
tw_status* CopyToPeer(const tw_host* h, void* self, void* other, const tw_copy* c) {
  return tw::guard(h, [&] {
    Device& d = *static_cast<Device*>(self);
    Submit(d, c->stream, d.Copy(*c, *static_cast<Device*>(other)));
  });
}

// An event is a gate that several owners may share.
using Event = std::shared_ptr<Gate>;
tw_status* WaitForEvent(const tw_host* h, void* stream, void* event) {
  return tw::guard(h, [&] { static_cast<Stream*>(stream)->WaitFor(*static_cast<Event*>(event), "a wait for an event"); });
}
tw_status* RecordEvent(const tw_host* h, void* stream, void** out_event) {
  return tw::guard(h, [&] {
    auto event = std::make_unique<Event>(std::make_shared<Gate>());
    static_cast<Stream*>(stream)->Enqueue({Command::kEvent, "an event", [gate = *event] { gate->Open(); }, nullptr, nullptr, 0, 0});
    *out_event = event.release();
  });
}
void ReleaseEvent(const tw_host*, void*, void* event) { delete static_cast<Event*>(event); }
void* NativeQueue(const tw_host*, void* stream) { return stream; }

tw_status* BeginCapture(const tw_host* h, const tw_capture_config* c) {
  return tw::guard(h, [&] { static_cast<Stream*>(c->stream)->BeginRecording(); });
}
tw_status* EndCapture(const tw_host* h, void* stream, void** out_recording) {
  return tw::guard(h, [&] { *out_recording = new Recording(static_cast<Stream*>(stream)->EndRecording()); });
}
tw_status* Replay(const tw_host* h, void* stream, void* recording) {
  return tw::guard(h, [&] {
    Stream& s = *static_cast<Stream*>(stream);
    ++s.device().counters().replays;
    for (const Recorded& r : *static_cast<Recording*>(recording)) s.Enqueue(r.command);
  });
}
void ReleaseRecording(const tw_host*, void*, void* recording) { delete static_cast<Recording*>(recording); }
tw_status* EndCaptureInto(const tw_host* h, void* stream, void* recording) {
  return tw::guard(h, [&] { *static_cast<Recording*>(recording) = static_cast<Stream*>(stream)->EndRecording(); });
}

tw_status* MarkCapture(const tw_host* h, void* stream, uint64_t part) {
  return tw::guard(h, [&] { static_cast<Stream*>(stream)->Mark(part); });
}
tw_status* BeginUpdate(const tw_host* h, void* stream, void*, uint64_t) {
  return tw::guard(h, [&] { static_cast<Stream*>(stream)->BeginRecording(); });
}
tw_status* EndUpdate(const tw_host* h, void* stream, void* recording, uint64_t part) {
  return tw::guard(h, [&] { static_cast<Stream*>(stream)->EndUpdate(static_cast<Recording*>(recording), part); });
}

}  // namespace

const tw_stream_set kStreams = {TW_SIZED(tw_stream_set), Create, Destroy, Signal, Wait};
const tw_stream_set kStreamsWithoutWait = {TW_SIZED(tw_stream_set), Create, Destroy, Signal, nullptr};
const tw_peer_set kPeer = {TW_SIZED(tw_peer_set), Reaches, CopyToPeer};
const tw_event_set kEvents = {TW_SIZED(tw_event_set), TW_S("fake"), WaitForEvent, RecordEvent, ReleaseEvent, NativeQueue};
const tw_capture_set kCapture = {TW_SIZED(tw_capture_set), BeginCapture, EndCapture,  Replay,   ReleaseRecording,
                                 EndCaptureInto,           MarkCapture,  BeginUpdate, EndUpdate};
const tw_capture_set kCaptureWithoutUpdates = {TW_SIZED(tw_capture_set), BeginCapture, EndCapture, Replay, ReleaseRecording,
                                               EndCaptureInto,           nullptr,      nullptr,    nullptr};

}  // namespace thalweg::fake
