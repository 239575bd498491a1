// An asynchronous queue of a device.
#ifndef THALWEG_PLUGINS_CUDA_STREAM_H_
#define THALWEG_PLUGINS_CUDA_STREAM_H_

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "common/marks.h"
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
    if (!recording_) device_.others().OrderBefore(queue_, &others_seen_);
    const bool timed = device_.profile().on() && !recording_;
    const CUevent begin = timed ? Now() : nullptr;
    enqueue();
    last_ = what;
    if (timed) timings_.push_back({what, begin, Now(), told_});
  }
  // Holds what work that was just enqueued is made of until it is over; of what is recorded, until the recording goes.
  void Hold(std::shared_ptr<const void> way) { (recording_ ? tape_.ways : ways_).push_back(std::move(way)); }
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
    std::vector<std::shared_ptr<const void>> ways;
  };
  struct Gate {
    Stream* stream;
    uint32_t* flag;  // NULL: the queue waits for an event
  };

  void Settle(Mark& mark);
  void Passed(Mark& mark);
  void CheckNotRecording(const char* what) const;
  CUevent Now();  // NULL: no event was to be had
  uint32_t* TakeFlag();
  // Makes `waiting` wait for the event of the first mark that covers the value; false: there is none yet.
  bool OrderBefore(CUstream waiting, uint64_t value);
  static void Open(void* gate, const tw_status* why);

  const tw_host* const host_;
  Device& device_;
  const Driver& driver_;
  tw_timeline* const line_;  // by which others find the stream
  CUstream queue_ = nullptr;
  const char* last_ = "nothing";
  std::vector<uint32_t*> open_;  // since the last mark
  std::vector<Timing> timings_;  // likewise
  std::vector<std::shared_ptr<const void>> ways_;
  uint64_t told_ = 0;  // the latest value that it was to signal
  uint64_t others_seen_ = 0;
  bool recording_ = false;
  Tape tape_;  // of it

  std::mutex mutex_;              // for what follows
  std::vector<uint32_t*> flags_;  // free ones
  std::vector<uint32_t*> pages_;  // that they are in

  common::Marks<Mark> marks_;
};

// Runs enqueue(queue) on the stream or, where there is none, on the device's own, and then waits for it.
template <class Enqueue>
void Submit(Device& device, void* stream, const char* what, Enqueue&& enqueue) {
  device.Enter();
  if (stream) {
    Stream& s = *static_cast<Stream*>(stream);
    return s.Timed(what, [&] { enqueue(s.queue()); });
  }
  uint64_t none = 0;
  device.others().OrderBefore(device.stream(), &none);
  enqueue(device.stream());
  Check(device.driver(), device.driver().cuStreamSynchronize(device.stream()), what);
}

extern const tw_stream_set kStreams;

}  // namespace thalweg::cuda

#endif  // THALWEG_PLUGINS_CUDA_STREAM_H_
