// Kernels that call functions, one after the other, and hold no thread where one of these has to wait (`async_calls`).
#ifndef THALWEG_PLUGINS_CPU_KERNELS_CALLS_H_
#define THALWEG_PLUGINS_CPU_KERNELS_CALLS_H_

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "thalweg/cpp/function.hpp"

namespace thalweg::cpu {

// The failure behind where it was.
inline tw_status* Behind(const tw_host* h, const std::string& where, tw_status* s) {
  return h->status->make(h, h->status->code(s), where.data(), where.size(), s);
}

// What a kernel calls next. fn NULL: nothing more.
struct Turn {
  const tw::Function* fn = nullptr;
  tw::Values args;
  bool anywhere = true;  // results may stay where they are made
};

// The calls of one kernel, begun elsewhere than they end. Turns says what is called: `Turn Next()`, then `void Took(tw::Values results)`
// for each, and in the end `tw::Values Given()`; what they throw ends the kernel. `std::string Where()`, if they have it: which of the
// calls it is that failed.
template <class Turns>
class Calls {
 public:
  // All of it where the frame has no token; else the kernel goes on wherever its calls end. Throws only what happens before the first.
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

  // What a call that failed says, behind which one it was.
  static tw_status* Told(const tw_host* h, const Turns& turns, tw_status* s) {
    if constexpr (requires { turns.Where(); }) return Behind(h, turns.Where(), s);
    return s;
  }

  static void Begin(std::unique_ptr<Calls> calls) { calls.release()->Go(); }

  // Calls until one is under way elsewhere, whose end goes on from there, or all is over.
  void Go() {
    while (Start()) {
    }
  }

  // The next call; false: nothing of this may be looked at any more.
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

  // A call has ended, before Start went on or on another thread.
  void Over(tw_status* s, tw::Values results) {
    status_ = s;
    results_ = std::move(results);
    if (phase_.exchange(kOver) == kStarting) return;  // Start goes on
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

// One call.
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
