#include "framework/io/checkpointer.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <memory>
#include <utility>

#include "framework/base/signals.h"
#include "framework/base/thread_reserve.h"
#include "thalweg/log.h"

namespace thalweg {
namespace {

template <class Clock>
double Now() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

uint64_t Nanoseconds(double seconds) { return uint64_t(std::llround(std::max(seconds, 0.0) * 1e9)); }

// Converts exceptions of callbacks and allocations to a status: a background thread has no caller
// to throw to.
template <class F>
Status Caught(F&& body) {
  try {
    return body();
  } catch (...) {
    return Thrown();
  }
}

}  // namespace

CheckpointClock SystemCheckpointClock() { return {Now<std::chrono::system_clock>, Now<std::chrono::steady_clock>}; }

StatusOr<std::unique_ptr<Checkpointer>> Checkpointer::Open(const std::string& folder, const std::string& name,
                                                           const CheckpointerOptions& options, Log log, FileSystem& files,
                                                           CheckpointClock clock) {
  if (options.every_steps < 0 || !(options.every_seconds >= 0) || !(options.keep.every_seconds >= 0)) {
    return InvalidArgument("checkpoints in '", folder, "': every_steps ", options.every_steps, ", every_seconds ", options.every_seconds,
                           " and keep_every_seconds ", options.keep.every_seconds, " must not be negative; 0 is never");
  }
  ASSIGN_OR_RETURN(auto opened, CheckpointFolder::Open(folder, name, options.keep, files));
  return std::unique_ptr<Checkpointer>(new Checkpointer(std::move(opened), options, std::move(log), std::move(clock)));
}

Checkpointer::~Checkpointer() { Join(); }

void Checkpointer::Join() {
  if (!writing_.joinable()) return;
  if (getpid() == process_) return writing_.join();
  // In a forked child that thread does not exist, and joining it would never end, so its handle is
  // leaked.
  static_cast<void>(new std::thread(std::move(writing_)));
}

Status Checkpointer::TakeFailure() {
  std::lock_guard<std::mutex> lock(mu_);
  return std::exchange(failure_, Status());
}

void Checkpointer::StartFrom(int64_t step) {
  last_step_ = step;
  last_time_ = clock_.steady();
}

Status Checkpointer::CheckStep(int64_t step) const {
  if (step >= 0) return Status();
  return InvalidArgument("checkpoints in '", folder_->folder(), "': step is ", step, "; it must not be negative");
}

// Returns whether a save is due, and can be made now. Returns a failure of the background first.
StatusOr<bool> Checkpointer::Due(int64_t step) {
  RETURN_IF_ERROR(TakeFailure());
  RETURN_IF_ERROR(CheckStep(step));
  const bool by_steps = options_.every_steps > 0 && step - last_step_ >= options_.every_steps;
  if (!by_steps && !(options_.every_seconds > 0 && clock_.steady() - last_time_ >= options_.every_seconds)) return false;
  if (!options_.skip_if_busy || !busy_) return true;
  {
    std::lock_guard<std::mutex> lock(mu_);
    ++report_.skipped;
  }
  log_(TW_LOG_WARNING, StrCat("checkpoint '", folder_->name(), "-", step, "' skipped: the one before is still being written"));
  StartFrom(step);
  return false;
}

StatusOr<bool> Checkpointer::Step(int64_t step, std::optional<double> metric, const Values& values) {
  ASSIGN_OR_RETURN(const bool due, Due(step));
  if (due) RETURN_IF_ERROR(Save(step, metric, values));
  return due;
}

StatusOr<bool> Checkpointer::StepBy(int64_t step, std::optional<double> metric, const Writer& write) {
  ASSIGN_OR_RETURN(const bool due, Due(step));
  if (due) RETURN_IF_ERROR(SaveBy(step, metric, write));
  return due;
}

Status Checkpointer::SaveBy(int64_t step, std::optional<double> metric, const Writer& write) {
  RETURN_IF_ERROR(CheckStep(step));
  const double start = clock_.steady();
  const Status before = Wait();
  StartFrom(step);
  CheckpointReport report;
  report.step = step;
  Status s;
  if (options_.background) {
    s = Caught([&] { return SaveBehind(step, metric, write, start); });
  } else {
    const auto make = [&](const std::string& prefix) { return write(prefix, [] {}); };
    s = Write(&report, [&](double now) { return folder_->SaveBy(step, metric, now, make); });
    report.stall_ns = Nanoseconds(clock_.steady() - start);
    Finish(report, s);
  }
  return s.ok() ? before : s;
}

// Starts a save on the writing thread, and waits until the thread has taken the values or has ended.
// start: when the caller came.
Status Checkpointer::SaveBehind(int64_t step, std::optional<double> metric, const Writer& write, double start) {
  struct Held {
    std::mutex mu;
    std::condition_variable changed;
    bool taken = false, over = false;
    void Become(bool Held::* state) {
      std::lock_guard<std::mutex> lock(mu);
      this->*state = true;
      changed.notify_all();
    }
  };
  const auto values = std::make_shared<Held>();
  const auto body = [this, step, metric, write, start, values](CheckpointReport* report) {
    const auto stalled = [&] { report->stall_ns = Nanoseconds(clock_.steady() - start); };
    const auto taken = [&] {
      stalled();
      values->Become(&Held::taken);
    };
    const auto make = [&](const std::string& prefix) { return write(prefix, taken); };
    const Status s = Caught([&] { return Write(report, [&](double now) { return folder_->SaveBy(step, metric, now, make); }); });
    if (!values->taken) stalled();  // only this thread changes it
    values->Become(&Held::over);
    return s;
  };
  CheckpointReport report;
  report.step = step;
  const Status started = Caught([&] { return Start(body, report), Status(); });
  if (!started.ok()) {
    Finish(report, started);
    return started;
  }
  std::unique_lock<std::mutex> lock(values->mu);
  values->changed.wait(lock, [&] { return values->taken || values->over; });
  return values->taken ? Status() : Wait();
}

Status Checkpointer::Save(int64_t step, std::optional<double> metric, const Values& values) {
  RETURN_IF_ERROR(CheckStep(step));
  const double start = clock_.steady();
  const Status before = Wait();  // returned at the end: the current values are worth saving all the same
  StartFrom(step);
  CheckpointReport report;
  report.step = step;
  auto taken = values();
  if (!taken.ok()) {
    Finish(report, taken.status());
    return taken.status();
  }
  if (!options_.background) {
    const Status s = Write(&report, [&](double now) { return folder_->Save(step, metric, now, *taken, options_.shards); });
    report.stall_ns = Nanoseconds(clock_.steady() - start);
    Finish(report, s);
    return s.ok() ? before : s;
  }
  report.stall_ns = Nanoseconds(clock_.steady() - start);
  auto body = [this, step, metric, held = *std::move(taken)](CheckpointReport* done) {
    return Write(done, [&](double now) { return folder_->Save(step, metric, now, held, options_.shards); });
  };
  const Status started = Caught([&] { return Start(std::move(body), report), Status(); });
  if (!started.ok()) Finish(report, started);
  return started.ok() ? before : started;
}

// Starts the writing thread, on which `write` makes the files and completes the report.
void Checkpointer::Start(std::function<Status(CheckpointReport*)> write, CheckpointReport report) {
  process_ = getpid();
  busy_ = true;
  try {
    writing_ = StartThread([this, report, write = std::move(write)]() mutable {
      LeaveSignalsToTheProgram();
      const Status s = Caught([&] { return write(&report); });
      write = nullptr;  // values that it holds may be modified again before the caller learns of the end
      Caught([&] { return Finish(report, s), Status(); }).IgnoreError();
      std::lock_guard<std::mutex> lock(mu_);
      failure_ = s;
      busy_ = false;
    });
  } catch (...) {
    busy_ = false;
    throw;
  }
}

Status Checkpointer::Write(CheckpointReport* report, const std::function<StatusOr<uint64_t>(double now)>& save) {
  const double start = clock_.steady();
  ASSIGN_OR_RETURN(report->bytes, save(clock_.wall()));
  report->write_ns = Nanoseconds(clock_.steady() - start);
  return Status();
}

void Checkpointer::Finish(const CheckpointReport& done, const Status& status) {
  const std::string what = StrCat("checkpoint '", folder_->folder(), "/", folder_->name(), "-", done.step, "'");
  if (status.ok()) {
    log_(TW_LOG_INFO, StrCat(what, " saved: ", done.bytes, " bytes in ", double(done.write_ns) * 1e-6, " ms, which held the caller for ",
                             double(done.stall_ns) * 1e-6, " ms"));
  } else {
    log_(TW_LOG_ERROR, StrCat(what, " not saved: ", Message(status)));
  }
  std::lock_guard<std::mutex> lock(mu_);
  if (!status.ok()) {
    ++report_.failed;
    return;
  }
  const CheckpointReport before = std::exchange(report_, done);
  report_.saves = before.saves + 1;
  report_.skipped = before.skipped;
  report_.failed = before.failed;
}

Status Checkpointer::Wait() {
  Join();
  return TakeFailure();
}

CheckpointReport Checkpointer::report() const {
  std::lock_guard<std::mutex> lock(mu_);
  return report_;
}

}  // namespace thalweg
