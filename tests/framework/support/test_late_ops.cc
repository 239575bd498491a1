// Ops of the test plugin that end on other threads, wait at the gate, run until they are
// interrupted, or throw where no kernel may.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include "framework/base/strings.h"
#include "tests/framework/support/test_kernels.h"
#include "tests/framework/support/test_ops.h"

namespace thalweg::testing_support {
namespace {

// Ends asynchronous kernels: two threads take calls from one queue, so that calls may end in
// another order than they began.
class Completer {
 public:
  Completer() {
    for (int i = 0; i < 2; ++i) threads_.emplace_back([this] { Work(); });
  }
  ~Completer() {
    {
      std::lock_guard lock(mu_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& t : threads_) t.join();
  }
  // Ends the call of `f` when `rest` returns; an exception of `rest` is the call's result.
  void Add(const tw_frame* f, std::function<void()> rest) {
    {
      std::lock_guard lock(mu_);
      todo_.push_back({f->host, f->token, std::move(rest)});
    }
    wake_.notify_one();
  }

 private:
  struct Call {
    const tw_host* host;
    tw_token token;
    std::function<void()> rest;
  };
  void Work() {
    std::unique_lock lock(mu_);
    for (;;) {
      wake_.wait(lock, [this] { return stop_ || !todo_.empty(); });
      if (todo_.empty()) return;
      const Call call = std::move(todo_.front());
      todo_.erase(todo_.begin());
      lock.unlock();
      call.host->run->complete(call.host, call.token, tw::guard(call.host, call.rest));
      lock.lock();
    }
  }
  std::mutex mu_;
  std::condition_variable wake_;
  std::vector<Call> todo_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};
Completer& TheCompleter() {
  static Completer completer;
  return completer;
}
void RefusingNext(const tw_frame* f) {
  if (f->in[0]->count) Refuse(CpuMemory::At(f->in[0])[0]);
  Next({f});
}
void Later(tw::Frame f) {
  TheCompleter().Add(f.f, [f] { RefusingNext(f.f); });
}
void Linger() { std::this_thread::sleep_for(std::chrono::milliseconds(2)); }
void LaterAside(tw::Frame f) {
  TheCompleter().Add(f.f, [f] {
    Linger();  // gives a caller that does not wait the chance to go on first
    RefusingNext(f.f);
  });
}
struct LaterTraced {
  int64_t tag;
  explicit LaterTraced(const tw::Node& n) : tag(n.i("tag")) {}
  void operator()(tw::Frame f) const {
    Write(tag);
    Later(f);
  }
};
void Gated(tw::Frame f) {
  PassGate();
  Pass(f);
}
void Opens(tw::Frame f) {
  AwaitGated(2);
  OpenGate();
  Pass(f);
}
struct {
  std::mutex mu;
  std::condition_variable changed;
  int begun = 0;
  bool thrown = false;
} late;
tw_status* ThrowLate(const tw_frame* f) {
  const tw_host* host = f->host;
  const tw_token token = f->token;
  std::unique_lock lock(late.mu);
  const bool first = ++late.begun % 2 == 1;
  late.changed.notify_all();
  if (first) {
    late.thrown = false;
    host->run->complete(host, token, nullptr);
    late.changed.wait(lock, [] { return late.begun % 2 == 0; });
    late.thrown = true;
    late.changed.notify_all();
    throw std::runtime_error("too late");
  }
  late.changed.wait(lock, [] { return late.thrown; });
  lock.unlock();
  Linger();  // until the exception is caught
  host->run->complete(host, token, nullptr);
  return nullptr;
}
void Stubborn(tw::Frame f) {
  Write(-5);
  tw_status* stop = nullptr;
  while (!(stop = f.f->host->run->cancelled(f.f))) std::this_thread::yield();
  throw tw::Raised{stop};
}

void Bump(tw::Frame f) {
  TheCompleter().Add(f.f, [f] {
    Linger();
    ++CpuMemory::At(f.f->in[0])[0];
  });
}

// ---- Kernels that throw where no kernel may ----

tw_status* Throw(const tw_frame*) { throw std::runtime_error("it was thrown"); }
tw_status* MakeAfter(const tw_node* n, void** out) {
  const std::vector<int64_t> tags = Journal();
  if (std::count(tags.begin(), tags.end(), tw::Node(n).i("tag")) == 0) throw std::runtime_error("it is too early");
  *out = new char;
  return nullptr;
}
tw_status* PassIfMade(const tw_frame* f) {
  if (!f->state) return tw_fail(f->host, TW_INTERNAL, TW_S("it has no state"));
  Pass({f});
  return nullptr;
}
void Unmake(const tw_host*, void* state) { delete static_cast<char*>(state); }

// Ends only when its step is cancelled or past its deadline, without a thread that waits for that.
struct Hang {
  const tw_host* host;
  tw_token token;
  uint64_t id;
  static void Stop(void* p) {
    const std::unique_ptr<Hang> h(static_cast<Hang*>(p));
    h->host->run->complete(h->host, h->token, tw_fail(h->host, TW_CANCELLED, TW_S("it was told to stop")));
  }
};
tw_status* StartHanging(const tw_frame* f) {
  auto* api = static_cast<const tw_callback_api*>(f->host->query(f->host, TW_S(TW_CALLBACK_SET), 1));
  auto hang = std::make_unique<Hang>(Hang{f->host, f->token, 0});
  tw_status* s = api->when_cancelled(f, Hang::Stop, hang.get(), &hang->id);
  if (!s) hang.release();
  return s;
}

}  // namespace

void RegisterLateOps(tw::Plugin& p) {
  for (const char* name :
       {"Later", "LaterAside", "Gated", "GatedAside", "Opens", "Stubborn", "Throws", "ThrowsAside", "ThrowsLater", "ThrowsLate"}) {
    p.op(StrCat(name, "(x: float[*s]) -> (y: float[*s])"));
  }
  for (const char* name : {"LaterTraced", "BornAfter"}) p.op(StrCat(name, "(x: float[*s]) -> (y: float[*s]); tag: int"));
  for (const char* name : {"Bump", "ThrowsHolding", "ThrowsHoldingLater"}) p.op(StrCat(name, "(v: resource) -> (); stateful"));

  constexpr const char* kMap = "(float -> float) @CPU";
  p.kernel<Later>(StrCat("Later", kMap, "; async"));
  p.kernel<LaterAside>(StrCat("LaterAside", kMap, "; async; may_block"));
  p.kernel<LaterTraced>(StrCat("LaterTraced", kMap, "; async"));
  p.kernel<Gated>(StrCat("Gated", kMap));
  p.kernel<Gated>(StrCat("GatedAside", kMap, "; may_block"));
  p.kernel<Opens>(StrCat("Opens", kMap));
  p.kernel<Stubborn>(StrCat("Stubborn", kMap));
  p.kernel<Bump>("Bump(resource) @CPU; async; update v");
  auto throwing = [&](const std::string& spec) { p.add(spec, nullptr, Throw, nullptr, nullptr); };
  throwing(StrCat("Throws", kMap));
  throwing(StrCat("ThrowsAside", kMap, "; may_block"));
  throwing(StrCat("ThrowsLater", kMap, "; async"));
  p.op("Hangs(x: float[*s]) -> (y: float[*s])");
  p.add("Hangs(float -> float) @CPU; async", nullptr, StartHanging, nullptr, nullptr);
  p.add(StrCat("ThrowsLate", kMap, "; async; may_block"), nullptr, ThrowLate, nullptr, nullptr);
  throwing("ThrowsHolding(resource) @CPU; update v");
  throwing("ThrowsHoldingLater(resource) @CPU; async; update v");
  p.add(StrCat("BornAfter", kMap), MakeAfter, PassIfMade, Unmake, nullptr);
}

}  // namespace thalweg::testing_support
