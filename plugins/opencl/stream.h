// An asynchronous queue of a device. Waking a thread takes longer than short work, so Signal polls
// for a moment and signals finished work itself.
#ifndef THALWEG_PLUGINS_OPENCL_STREAM_H_
#define THALWEG_PLUGINS_OPENCL_STREAM_H_

#include <atomic>
#include <vector>

#include "common/marks.h"
#include "device.h"

namespace thalweg::opencl {

// Threads: the host serialises calls of Add, Signal, Wait, BeginTogether and EndTogether.
class Stream {
 public:
  Stream(const tw_host* host, Device& device, tw_timeline* line);
  ~Stream();  // waits for all commands
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Enqueues a command with enqueue(queue, n, after, out_event); the command starts after the n
  // events `after`. what: a string literal for messages.
  template <class Enqueue>
  void Add(const char* what, Enqueue&& enqueue) {
    if (device_.others().count() != others_seen_) WaitForOthers();
    cl_event event = nullptr;
    enqueue(queue_, cl_uint(before_.size()), before_.empty() ? nullptr : before_.data(), &event);
    Track(event, what);
  }
  // Commands enqueued until EndTogether need not wait for each other, only for earlier commands.
  // Later commands wait for all of them.
  void BeginTogether() { together_ = true; }
  void EndTogether();
  // The timeline reaches `value` when all commands enqueued so far are complete.
  void Signal(uint64_t value);
  // Later commands start when `other` has reached `value`. If `other` has failed by then, this
  // stream's timeline fails, too.
  void Wait(tw_timeline* other, uint64_t value);
  // Returns true if no command is pending and none waits.
  bool idle();

 private:
  struct Command {
    cl_event event;
    const char* what;
  };
  struct Mark {
    uint64_t value, after;          // after: the value of the previous mark
    std::vector<Command> commands;  // commands since the previous mark
  };
  // Later commands wait for a gate. Any thread may open it, possibly before it has an event.
  struct Gate {
    enum State { kNew, kOpened, kHasEvent };
    Stream* stream;
    cl_event event = nullptr;
    std::atomic<State> state{kNew};
  };

  void Settle(const Mark& mark);  // waits; fails the timeline if a command failed
  void Track(cl_event event, const char* what);
  void Prune();
  bool over(cl_event event) const;  // completed without error
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
  uint64_t signalled_ = 0;  // the latest value passed to Signal
  uint64_t others_seen_ = 0;
  // Events for which the next command waits, and those for which the commands after it will wait;
  // used by out-of-order queues. Owns a reference to each.
  std::vector<cl_event> before_, next_;
  bool together_ = false;
  uint32_t looks_ = 0, looks_after_failure_ = 1;  // looks_: number of marks to skip before OverSoon polls again

  common::Marks<Mark> marks_;
};

// Enqueues a command on the stream. Without a stream, enqueues it on the device's own queue and
// waits for it. enqueue: see Stream::Add.
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
