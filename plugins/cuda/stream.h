// An asynchronous queue of a device and the thread that tells its timeline how far it got.
// Why a thread, and not cuLaunchHostFunc: a host function does not run behind work that failed, and then the host would wait for ever; and
// whatever a timeline sets off would run on a driver's thread, where calls to the driver are not allowed.
#ifndef THALWEG_PLUGINS_CUDA_STREAM_H_
#define THALWEG_PLUGINS_CUDA_STREAM_H_

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "device.h"

namespace thalweg::cuda {

// Threads: Enqueued, Signal and Wait are serialised by the host.
class Recording;

class Stream {
 public:
  Stream(const tw_host* host, Device& device, tw_timeline* line);
  ~Stream();  // drains
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Device& device() { return device_; }
  CUstream queue() const { return queue_; }
  // Work that enqueue() puts into the queue; what: for messages, a literal. Between two events that keep times, if somebody asks for them.
  template <class Enqueue>
  void Timed(const char* what, Enqueue&& enqueue) {
    const bool timed = device_.profile().on() && !recording_;
    const CUevent begin = timed ? Now() : nullptr;
    enqueue();
    last_ = what;
    if (timed) timings_.push_back({what, begin, Now(), told_});
  }
  // What is enqueued from here to the end is not run but kept. The end leaves recording whatever happens.
  void BeginRecording();
  void EndRecording(Recording* to);
  // The timeline reaches `value` when everything enqueued so far is over.
  void Signal(uint64_t value);
  // What is enqueued from now on starts when `other` has reached `value`. If `other` has failed by then, so has this stream's timeline.
  void Wait(tw_timeline* other, uint64_t value);

 private:
  struct Mark {
    uint64_t value;
    CUevent event;
    const char* last;             // what was enqueued right before
    std::vector<uint32_t*> open;  // flags that the queue is past when the event is
    std::vector<Timing> timings;  // of work before it
  };
  struct Gate {
    Stream* stream;
    uint32_t* flag;  // NULL: the queue waits for an event
  };

  void Report();                  // the thread
  bool Settle(const Mark& mark);  // whether all went well
  void CheckNotRecording(const char* what) const;
  CUevent Now();  // NULL: no event was to be had
  uint32_t* TakeFlag();
  // Makes `waiting` wait for the event of the first mark that covers the value; false: there is none yet.
  bool OrderBefore(CUstream waiting, uint64_t value);
  static void Open(void* gate, const tw_status* why);

  const tw_host* const host_;
  Device& device_;
  const Driver& driver_;
  tw_timeline* const line_;
  CUstream queue_ = nullptr;
  const char* last_ = "nothing";
  std::vector<uint32_t*> open_;  // since the last mark
  std::vector<Timing> timings_;  // likewise
  uint64_t told_ = 0;            // the latest value that it was to signal
  bool recording_ = false;
  std::vector<CUdeviceptr> tape_;  // what calls took for themselves meanwhile

  std::mutex mutex_;  // for what follows
  std::condition_variable changed_;
  std::deque<Mark> marks_;
  uint64_t signalled_ = 0;
  uint64_t gates_ = 0;  // opened by others, and not yet
  bool closing_ = false;
  std::vector<uint32_t*> flags_;  // free ones
  std::vector<uint32_t*> pages_;  // that they are in

  std::thread thread_;
};

// Runs enqueue(queue) on the stream or, where there is none, on the device's own, and then waits for it.
template <class Enqueue>
void Submit(Device& device, void* stream, const char* what, Enqueue&& enqueue) {
  device.Enter();
  if (stream) {
    Stream& s = *static_cast<Stream*>(stream);
    return s.Timed(what, [&] { enqueue(s.queue()); });
  }
  enqueue(device.stream());
  Check(device.driver(), device.driver().cuStreamSynchronize(device.stream()), what);
}

extern const tw_stream_set kStreams;

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_STREAM_H_
