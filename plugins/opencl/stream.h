// An asynchronous queue of a device. What is short is over before anybody could be woken: its end is told by whoever asks for it.
#ifndef THALWEG_PLUGINS_OPENCL_STREAM_H_
#define THALWEG_PLUGINS_OPENCL_STREAM_H_

#include <atomic>
#include <vector>

#include "common/marks.h"
#include "device.h"

namespace thalweg::opencl {

// Threads: Add, Signal, Wait and Together are serialised by the host.
class Stream {
 public:
  Stream(const tw_host* host, Device& device, tw_timeline* line);
  ~Stream();  // drains
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Puts a command into the queue: enqueue(queue, n, after, out_event), where it starts after those n events. what: for messages, a
  // literal.
  template <class Enqueue>
  void Add(const char* what, Enqueue&& enqueue) {
    if (device_.others().count() != others_seen_) WaitForOthers();
    cl_event event = nullptr;
    enqueue(queue_, cl_uint(before_.size()), before_.empty() ? nullptr : before_.data(), &event);
    Track(event, what);
  }
  // The commands from here to the end need not wait for each other, only for those before; later ones wait for them all.
  void BeginTogether() { together_ = true; }
  void EndTogether();
  // The timeline reaches `value` when everything tracked so far is over.
  void Signal(uint64_t value);
  // Commands after this one start when `other` has reached `value`. If `other` has failed by then, so has this stream's timeline.
  void Wait(tw_timeline* other, uint64_t value);
  // Nothing is under way, nor waited for.
  bool idle();

 private:
  struct Command {
    cl_event event;
    const char* what;
  };
  struct Mark {
    uint64_t value, after;          // after: of the mark before
    std::vector<Command> commands;  // everything since then
  };
  // What commands behind it wait for. It opens on any thread, maybe before there is an event for it.
  struct Gate {
    enum State { kNew, kOpened, kHasEvent };
    Stream* stream;
    cl_event event = nullptr;
    std::atomic<State> state{kNew};
  };

  void Settle(const Mark& mark);  // waits, fails the timeline if one command did
  void Track(cl_event event, const char* what);
  void Prune();
  bool over(cl_event event) const;  // and went well
  bool OverSoon();
  void Told(const std::vector<Command>& commands, uint64_t after);
  void Close(Gate* gate);
  void WaitForOthers();
  void OpenEvent(Gate* gate);
  static void Open(void* gate, const tw_status* why);

  const tw_host* const host_;
  Device& device_;
  const Api& cl_;
  cl_command_queue queue_ = nullptr;

  std::vector<Command> commands_;  // since the last mark
  size_t prune_at_;
  uint64_t signalled_ = 0;  // the latest value that it was told to signal
  uint64_t others_seen_ = 0;
  // What the next command waits for, and what those after it will: of a queue that keeps no order itself. References.
  std::vector<cl_event> before_, next_;
  bool together_ = false;
  uint32_t looks_ = 0, looks_after_failure_ = 1;  // marks that are not waited for, until the next one is

  common::Marks<Mark> marks_;
};

// Adds a command to the stream or, where there is none, to the device's own queue, and then waits for it. enqueue: see Stream::Add.
template <class Enqueue>
void Submit(Device& device, void* stream, const char* what, Enqueue&& enqueue) {
  if (stream) return static_cast<Stream*>(stream)->Add(what, enqueue);
  uint64_t none = 0;
  const Events others = device.others().Since(&none);
  cl_event event = nullptr;
  enqueue(device.queue(), others.size(), others.data(), &event);
  const cl_int error = device.cl().clWaitForEvents(1, &event);
  device.cl().clReleaseEvent(event);
  Check(error, what);
}

extern const tw_stream_set kStreams;

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_STREAM_H_
