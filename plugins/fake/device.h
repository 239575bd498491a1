// One device: its memory, what it counts, what is to go wrong on it. Work reaches it as commands, which run on the thread of a stream or,
// where there is none, on the caller's. Threads: any; errors are thrown.
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

// Counts the calls that may be made to fail, over all devices of a runtime.
struct Faults {
  std::atomic<uint64_t> allocates{0}, enqueues{0}, copies{0}, transfers{0}, kernels{0}, commands{0}, records{0};
  // Whether this call is the one, or one of the `times` from it on.
  static bool Hits(std::atomic<uint64_t>& calls, uint64_t which, uint64_t times = 1) {
    const uint64_t n = calls.fetch_add(1) + 1;
    return which && n >= which && n - which < times;
  }
};

// What a device counts; the names of its statistics.
struct Counters {
  std::atomic<int64_t> kernels{0}, copies_in{0}, copies_out{0}, copies_inside{0}, copies_peer{0}, bytes_in{0}, bytes_out{0}, waits{0},
      streams{0}, pinned{0}, simulated_ns{0}, records{0}, replays{0};
};

struct Command {
  enum Kind { kKernel, kCopyIn, kCopyOut, kCopyInside, kCopyPeer, kWait, kEvent };
  Kind kind;
  std::string what;  // for messages
  std::function<void()> run;
  std::shared_ptr<Gate> gate;    // of kWait
  const void* stream = nullptr;  // that it was enqueued in, and the latest value that this was to signal then
  uint64_t after = 0;
  uint64_t size = 0;  // of a kernel: elements of its largest array; of a copy: bytes
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
  // Memory of this device that somebody else uses too, and what they have under way with it; NULL: nothing.
  void Take(const void* memory, uint64_t offset, uint64_t bytes, const uint32_t* work);
  // to: the device that c.to belongs to, unless it is the host's. What is wrong with the addresses is said now, not when it runs.
  Command Copy(const tw_copy& c, Device& to);
  // Before a kernel is enqueued.
  void Enter(const std::string& what);
  // Before a queue is recorded.
  void EnterRecording();
  void Run(const Command& command);
  uint64_t Delay();  // of the next command, in microseconds

  void Profile(tw_span_list* to);  // NULL: no more

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

// The sets that a device has beside streams; see stream.h.
extern const tw_pinned_set kPinned;
extern const tw_peer_set kPeer;
extern const tw_statistics_set kStatistics;
extern const tw_profile_set kProfile;
extern const tw_dlpack_set kDlpack;

}  // namespace thalweg::fake

#endif  // THALWEG_PLUGINS_FAKE_DEVICE_H_
