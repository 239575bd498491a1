// One device: its memory, its counters and its injected faults. Work reaches it as commands. A
// command runs on the device's thread if it has a stream, else on the caller's. Threads: any;
// errors are thrown.
#ifndef THALWEG_PLUGINS_FAKE_DEVICE_H_
#define THALWEG_PLUGINS_FAKE_DEVICE_H_

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>

#include "memory.h"
#include "others.h"
#include "settings.h"
#include "worker.h"

namespace thalweg::fake {

// Counts the calls that can be made to fail, over all devices of a runtime.
struct Faults {
  std::atomic<uint64_t> allocates{0}, enqueues{0}, copies{0}, transfers{0}, kernels{0}, commands{0}, records{0};
  // Returns true if this call is call number `which` or one of the `times` calls from it on.
  static bool Hits(std::atomic<uint64_t>& calls, uint64_t which, uint64_t times = 1) {
    const uint64_t n = calls.fetch_add(1) + 1;
    return which && n >= which && n - which < times;
  }
};

// The counters of a device, which are the names of its statistics.
struct Counters {
  std::atomic<int64_t> kernels{0}, copies_in{0}, copies_out{0}, copies_inside{0}, copies_peer{0}, bytes_in{0}, bytes_out{0}, waits{0},
      streams{0}, pinned{0}, simulated_ns{0}, records{0}, replays{0}, updates{0};
};

struct Command {
  enum Kind { kKernel, kCopyIn, kCopyOut, kCopyInside, kCopyPeer, kWait, kEvent };
  Kind kind;
  std::string what;  // for messages
  std::function<void()> run;
  std::shared_ptr<Gate> gate;    // only for kWait
  const void* stream = nullptr;  // the stream that holds the command, and the latest value that it was to signal then
  uint64_t after = 0;
  uint64_t size = 0;  // of a kernel: the elements of its largest array; of a copy: bytes
};

class Device {
 public:
  Device(const tw_host* host, const Settings& settings, Faults& faults, uint64_t index);
  ~Device() { worker_->Stop(); }

  const tw_host* host() const { return host_; }
  const Settings& settings() const { return settings_; }
  const std::string& uid() const { return uid_; }
  int32_t number() const { return number_; }
  bool lost() const { return lost_.load(); }
  Counters& counters() { return counters_; }
  const Memory& memory() const { return memory_; }
  const std::shared_ptr<Worker>& worker() { return worker_; }
  const Others& others() const { return others_; }

  void* Allocate(uint64_t bytes);
  void Release(void* memory) { memory_.Release(memory); }
  // Takes memory of this device that another library uses too. `work` is that library's pending
  // work on it; NULL: none.
  void Take(const void* memory, uint64_t offset, uint64_t bytes, const uint32_t* work);
  // to: the device that owns c.to; this device if c.to is host memory. Wrong addresses are an error
  // now, not when the command runs.
  Command Copy(const tw_copy& c, Device& to);
  // Called before a kernel is enqueued.
  void Enter(const std::string& what);
  // Called before a queue is recorded.
  void EnterRecording();
  void Run(const Command& command);
  uint64_t Delay();  // the delay before the next command, in microseconds

  void Profile(tw_span_list* to);  // NULL ends profiling

 private:
  void CheckLost() const;
  void Simulate(const Command& command, uint64_t rate, int64_t begin);
  void Count(Command::Kind kind);

  const tw_host* const host_;
  const Settings& settings_;
  Faults& faults_;
  const int32_t number_;
  const std::string uid_;
  const uint64_t speed_;  // percent
  Memory memory_;
  Counters counters_;
  Others others_;
  std::atomic<bool> lost_{false};
  std::mutex random_mutex_;
  std::mt19937 random_;
  const std::shared_ptr<Worker> worker_ = std::make_shared<Worker>();
  std::mutex spans_mutex_;
  tw_span_list* spans_ = nullptr;
};

// The optional sets of a device apart from streams; see stream.h.
extern const tw_pinned_set kPinned;
extern const tw_peer_set kPeer;
extern const tw_statistics_set kStatistics;
extern const tw_profile_set kProfile;
extern const tw_dlpack_set kDlpack;

}  // namespace thalweg::fake

#endif  // THALWEG_PLUGINS_FAKE_DEVICE_H_
