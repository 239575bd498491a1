// Marks: the progress of an asynchronous device's queue, as its stream's timeline reports it: marks
// in the queue, a thread that waits for one after the other, and the gates that others have yet to
// open. A stream owns one; the device defines what a mark is, and how to wait for it.
//
// A thread is used rather than a driver's callback: drivers make no callbacks after work that
// failed, and the host would then wait for ever; and code triggered by a timeline would run on a
// driver's thread, where driver calls are not allowed.
#ifndef THALWEG_PLUGINS_COMMON_MARKS_H_
#define THALWEG_PLUGINS_COMMON_MARKS_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "thalweg/cpp/plugin.hpp"
#include "thread.h"

namespace thalweg::common {

// Mark: an entry in the queue; its member `value` is the timeline value that it stands for.
// Threads: all methods from any but Start and Finish.
template <class Mark>
class Marks {
 public:
  // uid: of the device, for messages.
  Marks(const tw_host* host, tw_timeline* line, std::string uid) : host_(host), line_(line), uid_(std::move(uid)) {
    host_->timeline->retain(line_);
  }
  // REQUIRES: Finish was called, or Start was not.
  ~Marks() { host_->timeline->release(line_); }
  Marks(const Marks&) = delete;
  Marks& operator=(const Marks&) = delete;

  // Starts the thread. settle(mark) returns when all work before the mark has ended, and fails the
  // timeline if some of it failed. Then passed(mark) is called, while nobody can find the mark;
  // then the value is signalled. Neither may throw.
  void Start(std::function<void(Mark&)> settle, std::function<void(Mark&)> passed) {
    settle_ = std::move(settle);
    passed_ = std::move(passed);
    thread_ = common::StartThread([this] { Tell(); });
  }
  // Waits until every gate is open and every mark has been signalled.
  void Finish() {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return gates_ == 0; });
      closing_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }

  void Add(Mark mark) {
    std::lock_guard lock(mutex_);
    marks_.push_back(std::move(mark));
    changed_.notify_all();
  }
  // Returns true if every mark has been signalled.
  bool told() {
    std::lock_guard lock(mutex_);
    return marks_.empty() && !telling_;
  }
  // Returns true if, in addition, every gate is open.
  bool idle() {
    std::lock_guard lock(mutex_);
    return marks_.empty() && !telling_ && gates_ == 0;
  }
  // Calls use(mark) for the first mark that covers the value; the mark exists meanwhile. Also
  // returns true if all work before the value has ended; returns false if the value has no mark
  // yet.
  template <class Use>
  bool Find(uint64_t value, Use&& use) {
    std::lock_guard lock(mutex_);
    if (value <= passed_value_) return true;
    for (const Mark& m : marks_) {
      if (m.value < value) continue;
      use(m);
      return true;
    }
    return false;
  }

  // Signals the value of work that has ended without a mark. REQUIRES: told(), and no Add
  // meanwhile.
  void Signal(uint64_t value) {
    {
      std::lock_guard lock(mutex_);
      passed_value_ = value;
    }
    host_->timeline->signal(line_, value);
  }
  void Fail(tw_status* why) { host_->timeline->fail(line_, why); }  // takes ownership of why
  // Fails this timeline if the timeline that the stream waits for has failed.
  void FailLike(const tw_status* other) {
    if (!other) return;
    if (tw_status* why = tw::guard(
            host_, [&] { throw tw::Error{host_->status->code(other), "the stream that '" + uid_ + "' waits for failed: " + Text(other)}; }))
      Fail(why);
  }
  // From AddGate until Opened, from any thread, somebody else will use the stream.
  void AddGate() {
    std::lock_guard lock(mutex_);
    ++gates_;
  }
  void Opened() {
    std::lock_guard lock(mutex_);
    --gates_;
    changed_.notify_all();
  }

 private:
  std::string Text(const tw_status* status) const {
    std::string text;
    tw_sink sink{TW_SIZED(tw_sink), &text, [](tw_sink* s, const void* bytes, uint64_t len) -> tw_status* {
                   static_cast<std::string*>(s->user)->append(static_cast<const char*>(bytes), len);
                   return nullptr;
                 }};
    host_->status->release(host_->status->text(status, &sink));
    return text;
  }

  // A mark stays in the list until its work has ended: other streams may look it up.
  void Tell() {
    for (;;) {
      Mark* mark = nullptr;
      {
        std::unique_lock lock(mutex_);
        telling_ = false;
        changed_.wait(lock, [&] { return closing_ || !marks_.empty(); });
        if (marks_.empty()) return;
        mark = &marks_.front();  // stays in place: the deque grows only at its other end
      }
      settle_(*mark);
      const uint64_t value = mark->value;
      {
        std::lock_guard lock(mutex_);
        passed_(*mark);
        passed_value_ = value;
        marks_.pop_front();
        telling_ = true;
      }
      host_->timeline->signal(line_, value);
    }
  }

  const tw_host* const host_;
  tw_timeline* const line_;
  const std::string uid_;
  std::function<void(Mark&)> settle_, passed_;

  std::mutex mutex_;  // guards the members that follow
  std::condition_variable changed_;
  std::deque<Mark> marks_;
  bool telling_ = false;  // signals a mark that is no longer in the list
  uint64_t passed_value_ = 0;
  uint64_t gates_ = 0;  // gates that are not open yet
  bool closing_ = false;

  std::thread thread_;
};

}  // namespace thalweg::common

#endif  // THALWEG_PLUGINS_COMMON_MARKS_H_
