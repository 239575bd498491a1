// Kernels that call functions one after the other. With `async_calls` a kernel holds no thread
// while a function waits.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_CALLS_H_
#define THALWEG_PLUGINS_CPU_KERNELS_CALLS_H_

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "thalweg/cpp/function.hpp"

namespace thalweg::cpu {

// Returns a status with the code of `s` and the text `where`, with `s` as its cause.
inline tw_status* Behind(const tw_host* h, const std::string& where, tw_status* s) {
  return h->status->make(h, h->status->code(s), where.data(), where.size(), s);
}

// The next call of a kernel; fn is NULL if no call is left.
struct Turn {
  const tw::Function* fn = nullptr;
  tw::Values args;
  bool anywhere = true;  // results may stay on the device where they are made
};

// The calls of one kernel; they may end on another thread than they began on. Turns provides `Turn
// Next()`, `void Took(tw::Values results)` for the results of each call, and at the end `tw::Values
// Given()`. An exception from one of these ends the kernel with that error. `std::string Where()`
// is optional: it names the call that failed.
template <class Turns>
class Calls {
 public:
  // Makes all calls before it returns if the frame has no token. Else the kernel continues on the
  // thread on which each call ends. Throws only errors that occur before the first call.
  static void Run(tw::Frame f, tw::ManyOut<tw::Any> output, Turns turns) {
    if (f.f->token) return Begin(std::unique_ptr<Calls>(new Calls(f, output, std::move(turns))));
    for (Turn turn = turns.Next(); turn.fn; turn = turns.Next()) {
      tw::Values results;
      tw_status* failed = tw::guard(f.f->host, [&] { results = (*turn.fn)(f, std::move(turn.args), turn.anywhere); });
      if (failed) throw tw::Raised{Told(f.f->host, turns, failed)};
      turns.Took(std::move(results));
    }
    tw::give(output, turns.Given());
  }

 private:
  Calls(tw::Frame f, tw::ManyOut<tw::Any> output, Turns turns) : f_(f), output_(output), turns_(std::move(turns)) {}

  // Returns the error of a failed call, with the call's name if Turns has Where().
  static tw_status* Told(const tw_host* h, const Turns& turns, tw_status* s) {
    if constexpr (requires { turns.Where(); }) return Behind(h, turns.Where(), s);
    return s;
  }

  static void Begin(std::unique_ptr<Calls> calls) { calls.release()->Go(); }

  // Makes calls until one goes on elsewhere or the kernel ends. In the first case the end of that
  // call continues the kernel.
  void Go() {
    while (Start()) {
    }
  }

  // Starts the next call. Returns false if this object must not be used any more.
  bool Start() {
    bool more = false;
    tw_status* failed = tw::guard(f_.f->host, [&] {
      Turn turn = turns_.Next();
      more = turn.fn != nullptr;
      if (!more) return tw::give(output_, turns_.Given());
      phase_.store(kStarting);
      turn.fn->start(f_, std::move(turn.args), turn.anywhere, [this](tw_status* s, tw::Values results) { Over(s, std::move(results)); });
    });
    if (!more || failed) return End(failed);
    if (phase_.exchange(kLeft) == kStarting) return false;
    return Take();
  }

  // Receives the end of a call, either before Start continues or on another thread.
  void Over(tw_status* s, tw::Values results) {
    status_ = s;
    results_ = std::move(results);
    if (phase_.exchange(kOver) == kStarting) return;  // Start continues the kernel
    if (Take()) Go();
  }

  bool Take() {
    if (status_) return End(Told(f_.f->host, turns_, status_));
    tw_status* failed = tw::guard(f_.f->host, [&] { turns_.Took(std::move(results_)); });
    return failed ? End(failed) : true;
  }

  bool End(tw_status* s) {
    const tw_host* host = f_.f->host;
    const tw_token token = f_.f->token;
    delete this;
    host->run->complete(host, token, s);
    return false;
  }

  enum Phase { kStarting, kLeft, kOver };
  const tw::Frame f_;
  const tw::ManyOut<tw::Any> output_;
  Turns turns_;
  std::atomic<Phase> phase_{kStarting};
  tw_status* status_ = nullptr;
  tw::Values results_;
};

// A Turns with one call.
class OneCall {
 public:
  OneCall(const tw::Function& fn, tw::Values args) : turn_{&fn, std::move(args)} {}
  Turn Next() { return std::exchange(turn_, Turn()); }
  void Took(tw::Values results) { results_ = std::move(results); }
  tw::Values Given() { return std::move(results_); }

 private:
  Turn turn_;
  tw::Values results_;
};

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_CALLS_H_
