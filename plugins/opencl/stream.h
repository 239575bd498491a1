// An asynchronous queue of a device and the thread that tells its timeline how far it got.
// Why a thread, and not clSetEventCallback: drivers (PoCL 3.1 is one) do not call back for a command that failed, and then the host would
// wait for ever; and whatever a timeline sets off would run on a driver's thread, where blocking calls are not allowed.
#ifndef THALWEG_PLUGINS_OPENCL_STREAM_H_
#define THALWEG_PLUGINS_OPENCL_STREAM_H_

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "device.h"

namespace thalweg::opencl {

// Threads: Track, Signal and Wait are serialised by the host.
class Stream {
 public:
  Stream(const tw_host* host, Device& device, tw_timeline* line);
  ~Stream();  // drains
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  cl_command_queue queue() const { return queue_; }
  // Takes the event of a command just put into the queue. what: for messages, a literal.
  void Track(cl_event event, const char* what);
  // The timeline reaches `value` when everything tracked so far is over.
  void Signal(uint64_t value);
  // Commands after this one start when `other` has reached `value`. If `other` has failed by then, so has this stream's timeline.
  void Wait(tw_timeline* other, uint64_t value);

 private:
  struct Command {
    cl_event event;
    const char* what;
  };
  struct Mark {
    uint64_t value, after;          // after: of the mark before
    std::vector<Command> commands;  // everything since then
  };
  struct Gate {
    Stream* stream;
    cl_event open;
  };

  void Report();                  // the thread
  void Settle(const Mark& mark);  // waits, fails the timeline if one command did
  void Fail(uint32_t code, const std::string& why);
  void Prune();
  static void Open(void* gate, const tw_status* why);

  const tw_host* const host_;
  Device& device_;
  const Api& cl_;
  tw_timeline* const line_;
  cl_command_queue queue_ = nullptr;

  std::vector<Command> commands_;  // since the last mark
  size_t prune_at_;
  uint64_t signalled_ = 0;  // the latest value that it was told to signal

  std::mutex mutex_;  // for what follows
  std::condition_variable changed_;
  std::deque<Mark> marks_;
  uint64_t gates_ = 0;  // opened by others, and not yet
  bool closing_ = false;

  std::thread thread_;
};

// Runs enqueue(queue, out_event) on the stream or, where there is none, on the device's own queue, and then waits for it.
template <class Enqueue>
void Submit(Device& device, void* stream, const char* what, Enqueue&& enqueue) {
  cl_event event = nullptr;
  if (stream) {
    Stream& s = *static_cast<Stream*>(stream);
    enqueue(s.queue(), &event);
    s.Track(event, what);
    return;
  }
  enqueue(device.queue(), &event);
  const cl_int error = device.cl().clWaitForEvents(1, &event);
  device.cl().clReleaseEvent(event);
  Check(error, what);
}

extern const tw_stream_set kStreams;

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_STREAM_H_
