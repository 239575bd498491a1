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

// Threads: the host serialises calls of Timed, Hold, Signal and Wait.
class Recording;

class Stream {
 public:
  Stream(const tw_host* host, Device& device, tw_timeline* line);
  ~Stream();  // waits for all work
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Device& device() { return device_; }
  CUstream queue() const { return queue_; }
  // Runs enqueue(), which puts work into the queue. what: a string literal for messages. If
  // profiling is on, two events with timing enclose the work.
  template <class Enqueue>
  void Timed(const char* what, Enqueue&& enqueue) {
    if (!recording_) device_.others().OrderBefore(queue_, &others_seen_);
    const bool timed = device_.profile().on() && !recording_;
    const CUevent begin = timed ? Now() : nullptr;
    enqueue();
    last_ = what;
    if (timed) timings_.push_back({what, begin, Now(), told_});
  }
  // Keeps the resources of the work just enqueued until it is complete; for recorded work, until
  // the recording is destroyed.
  void Hold(std::shared_ptr<const void> way) { (recording_ ? tape_.ways : ways_).push_back(std::move(way)); }
  // Work enqueued between the two calls is recorded, not run. EndRecording ends the recording even
  // if it fails.
  void BeginRecording();
  void EndRecording(Recording* to);
  // The timeline reaches `value` when all work enqueued so far is complete.
  void Signal(uint64_t value);
  // Work enqueued later starts when `other` has reached `value`. If `other` has failed by then,
  // this stream's timeline fails, too.
  void Wait(tw_timeline* other, uint64_t value);

 private:
  struct Mark {
    uint64_t value;
    CUevent event;
    const char* last;             // name of the work enqueued last before the mark
    std::vector<uint32_t*> open;  // flags that the queue has passed when the event is complete
    std::vector<Timing> timings;  // of the work before the mark
    std::vector<std::shared_ptr<const void>> ways;
  };
  struct Gate {
    Stream* stream;
    uint32_t* flag;  // NULL if the queue waits for an event
  };

  void Settle(Mark& mark);
  void Passed(Mark& mark);
  void CheckNotRecording(const char* what) const;
  CUevent Now();  // NULL if no event could be created
  uint32_t* TakeFlag();
  // Makes `waiting` wait for the event of the first mark that covers the value. Returns false if
  // there is no such mark yet.
  bool OrderBefore(CUstream waiting, uint64_t value);
  static void Open(void* gate, const tw_status* why);

  const tw_host* const host_;
  Device& device_;
  const Driver& driver_;
  tw_timeline* const line_;  // key by which other streams find this one
  CUstream queue_ = nullptr;
  const char* last_ = "nothing";
  std::vector<uint32_t*> open_;  // since the last mark
  std::vector<Timing> timings_;  // since the last mark
  std::vector<std::shared_ptr<const void>> ways_;
  uint64_t told_ = 0;  // the latest value passed to Signal
  uint64_t others_seen_ = 0;
  bool recording_ = false;
  Tape tape_;  // of the present recording

  std::mutex mutex_;              // guards the following members
  std::vector<uint32_t*> flags_;  // free ones
  std::vector<uint32_t*> pages_;  // memory that holds the flags

  common::Marks<Mark> marks_;
};

// Runs enqueue(queue) on the stream. Without a stream, runs it on the device's own and waits for
// it.
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
