// Checkpointer: saves from time to time during a run. It decides when a save is due and which
// thread writes it, and measures its cost. A save takes the values at once, and writes them before
// the call returns or, in the background, on a thread of its own. Threads: one caller at a time;
// report() by any. `values` and `log` are called by the caller's thread and the writing one, and a
// Writer by the one that writes.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <sys/types.h>

#include "framework/io/checkpoint_folder.h"

namespace thalweg {

struct CheckpointerOptions {
  CheckpointKeep keep;
  int32_t shards = 1;
  int64_t every_steps = 0;   // 0: not by steps
  double every_seconds = 0;  // 0: not by time
  bool background = false;
  bool skip_if_busy = false;  // in the background: if a save is due while another is being written, skip it instead of waiting
};

// Seconds: wall since 1970; steady on a clock that nobody sets.
struct CheckpointClock {
  std::function<double()> wall, steady;
};
CheckpointClock SystemCheckpointClock();

struct CheckpointReport {
  int64_t step = -1;      // of the last save that was written; -1 if none yet
  uint64_t stall_ns = 0;  // time that this save blocked its caller: waiting, taking the values and, in the foreground, writing
  uint64_t write_ns = 0;  // time that writing took
  uint64_t bytes = 0;     // of data
  uint64_t saves = 0, skipped = 0, failed = 0;  // since the start
};

class Checkpointer {
 public:
  using Values = std::function<StatusOr<NamedTensors>()>;
  // Makes the files of a save, as CheckpointFolder::Writer, and calls `taken` once when later updates
  // can no longer change what it writes.
  using Writer = std::function<StatusOr<uint64_t>(const std::string& prefix, const std::function<void()>& taken)>;
  using Log = std::function<void(uint32_t level, std::string_view text)>;

  // Errors: INVALID_ARGUMENT for negative options; those of CheckpointFolder::Open.
  static StatusOr<std::unique_ptr<Checkpointer>> Open(const std::string& folder, const std::string& name,
                                                      const CheckpointerOptions& options, Log log, FileSystem& files = LocalFiles(),
                                                      CheckpointClock clock = SystemCheckpointClock());
  // Waits for the writing thread. A background failure that no call has returned only goes to the
  // log.
  ~Checkpointer();

  // Saves if a save is due: at least every_steps, or every_seconds, after the last one. Returns
  // whether it saved. The next call, whichever it is, returns a failure of the background. A failed
  // save counts as no save when the next one becomes due.
  StatusOr<bool> Step(int64_t step, std::optional<double> metric, const Values& values);
  // Saves, due or not, after the save that is being written, if any; saves even if the call then
  // returns a failure of the background.
  Status Save(int64_t step, std::optional<double> metric, const Values& values);
  // The same, but `write` makes the files. In the background the call returns once `write` has taken
  // the values; if `write` fails before that, the call returns the failure.
  StatusOr<bool> StepBy(int64_t step, std::optional<double> metric, const Writer& write);
  Status SaveBy(int64_t step, std::optional<double> metric, const Writer& write);
  // Waits until no save is being written.
  Status Wait();
  // Counts the steps to the next save from `step` on, for use after restoring.
  void StartFrom(int64_t step);
  CheckpointReport report() const;
  const CheckpointFolder& folder() const { return *folder_; }  // REQUIRES: no save is being written

 private:
  Checkpointer(std::unique_ptr<CheckpointFolder> folder, const CheckpointerOptions& options, Log log, CheckpointClock clock)
      : folder_(std::move(folder)), options_(options), log_(std::move(log)), clock_(std::move(clock)), last_time_(clock_.steady()) {}
  StatusOr<bool> Due(int64_t step);
  Status CheckStep(int64_t step) const;
  void Join();
  Status TakeFailure();
  Status SaveBehind(int64_t step, std::optional<double> metric, const Writer& write, double start);
  void Start(std::function<Status(CheckpointReport*)> write, CheckpointReport report);
  Status Write(CheckpointReport* report, const std::function<StatusOr<uint64_t>(double now)>& save);
  void Finish(const CheckpointReport& done, const Status& status);

  const std::unique_ptr<CheckpointFolder> folder_;
  const CheckpointerOptions options_;
  const Log log_;
  const CheckpointClock clock_;
  int64_t last_step_ = 0;
  double last_time_;
  std::thread writing_;
  pid_t process_ = 0;  // the process of that thread
  std::atomic<bool> busy_ = false;
  mutable std::mutex mu_;
  // Guarded by mu_.
  Status failure_;  // of the background, not yet returned
  CheckpointReport report_;
};

}  // namespace thalweg
