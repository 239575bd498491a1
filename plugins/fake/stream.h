// Queues. The commands of each queue run in order, later, on the device's only thread, which takes
// them from any queue that is ready. After the first failed command of a queue, none of its later
// commands runs, but every value is still signalled. With the setting queue_threads each queue has a
// thread of its own. Threads: the host serialises the calls about one stream.
#ifndef THALWEG_PLUGINS_FAKE_STREAM_H_
#define THALWEG_PLUGINS_FAKE_STREAM_H_

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device.h"
#include "worker.h"

namespace thalweg::fake {

// Recorded commands, each with the part of the recording that it belongs to; 0: none.
struct Recorded {
  uint64_t part;
  Command command;
};
using Recording = std::vector<Recorded>;

class Stream {
 public:
  Stream(Device& device, tw_timeline* line);
  ~Stream();  // drains
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Device& device() { return device_; }
  void Enqueue(Command command);
  void Signal(uint64_t value);
  void Wait(tw_timeline* other, uint64_t value);
  void WaitFor(std::shared_ptr<Gate> gate, const char* what);
  void BeginRecording();
  Recording EndRecording();
  void Mark(uint64_t part);
  // Ends the recording of work that replaces the part.
  void EndUpdate(Recording* of, uint64_t part);

 private:
  void Put(Queue::Item item);
  void PutCommand(Command command);
  void RunLate(const Command& command);  // on the device's thread

  Device& device_;
  const tw_host* const host_;
  tw_timeline* const line_;
  const std::shared_ptr<Worker> worker_;
  bool failed_ = false;  // only the thread uses it
  uint64_t last_ = 0;    // the latest value that it was told to signal
  size_t others_seen_ = 0;
  std::optional<Recording> recording_;
  uint64_t part_ = 0;  // of the commands that are being recorded
  Queue queue_;
};

// Enqueues the command in the stream, or runs it at once if there is no stream.
void Submit(Device& device, void* stream, Command command);

extern const tw_stream_set kStreams, kStreamsWithoutWait;
extern const tw_event_set kEvents;
extern const tw_capture_set kCapture, kCaptureWithoutUpdates;

}  // namespace thalweg::fake

#endif  // THALWEG_PLUGINS_FAKE_STREAM_H_
