// LaterCalls: callbacks of plugins that are called at a time, or when a step is cancelled or its
// deadline passes. Each is called once, or forgotten.
// Locks: mu_ is not held during callbacks. Threads: any; times are kept by a thread that exists only
// while a call has a time.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

namespace thalweg {

class CancelToken;
struct StepBase;

class LaterCalls {
 public:
  using Function = void (*)(void* arg);
  static LaterCalls& Get();

  // pin: keeps the code of the function loaded until the call has ended. Throws if there is no memory
  // or no thread; the call does not exist then.
  uint64_t At(int64_t time, Function f, void* arg, std::shared_ptr<const void> pin);
  // *id is written before the function is called. REQUIRES: the step does not end before the call has
  // ended or is forgotten.
  void WhenInterrupted(const StepBase& step, Function f, void* arg, std::shared_ptr<const void> pin, uint64_t* id);
  // Returns true if the function was not called and will not be. Else the call has ended, unless this
  // is inside of it.
  bool Forget(uint64_t id);
  // Calls the functions of all steps with the token.
  void Cancelled(const CancelToken* token);

 private:
  struct Call {
    Function function;
    void* arg;
    std::shared_ptr<const void> pin;
    int64_t time = 0;                    // 0: none
    const CancelToken* token = nullptr;  // NULL: none
  };
  // REQUIRES for all: mu_ is held.
  uint64_t Add(Call call);
  Call Take(uint64_t id);
  void Run(uint64_t id, std::unique_lock<std::mutex>* lock);
  void DropParents();
  void KeepTimes();

  std::mutex mu_;
  std::map<uint64_t, Call> calls_;
  std::map<uint64_t, std::thread::id> running_;
  std::set<std::pair<int64_t, uint64_t>> by_time_;
  std::set<std::pair<const CancelToken*, uint64_t>> by_token_;
  uint64_t last_ = 0;
  std::condition_variable alarm_, ended_;
  bool keeper_ = false;  // there is a thread that keeps the times
  int64_t process_ = 0;  // the process of the calls and of that thread
};

}  // namespace thalweg
