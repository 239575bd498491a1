// Shows tests what ran: the journal, the gate, and the number of threads that were in a kernel at
// once.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "framework/base/strings.h"
#include "tests/framework/support/test_kernels.h"
#include "tests/framework/support/test_ops.h"

namespace thalweg::testing_support {
namespace {

struct {
  std::mutex mu;
  std::vector<int64_t> tags;
} journal;

struct {
  std::mutex mu;
  std::condition_variable changed;
  bool open = true;
  int waiting = 0;
} gate;

struct Crowd {
  std::atomic<int> inside{0}, most{0};
} crowds[4];
// Counts a thread in a crowd, once however often it enters.
class InCrowd {
 public:
  explicit InCrowd(Crowd* crowd) : crowd_(crowd) {
    if (depth++ > 0) return;
    const int now = ++crowd_->inside;
    for (int most = crowd_->most; most < now && !crowd_->most.compare_exchange_weak(most, now);) {
    }
  }
  ~InCrowd() {
    if (--depth == 0) --crowd_->inside;
  }

 private:
  static thread_local int depth;
  Crowd* crowd_;
};
thread_local int InCrowd::depth = 0;

struct Crowded {
  int64_t tag;
  explicit Crowded(const tw::Node& n) : tag(n.i("tag")) {}
  void operator()(tw::Frame f) const {
    Crowd* crowd = &crowds[tag];
    InCrowd in(crowd);
    auto part = [](void* arg, uint64_t, uint64_t) {
      InCrowd also(static_cast<Crowd*>(arg));
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    };
    f.f->host->run->parallel(f.f, 8, 1, part, crowd);
    Pass(f);
  }
};

}  // namespace

void Write(int64_t tag) {
  std::lock_guard lock(journal.mu);
  journal.tags.push_back(tag);
}

void PassGate() {
  std::unique_lock lock(gate.mu);
  ++gate.waiting;
  gate.changed.notify_all();
  gate.changed.wait(lock, [] { return gate.open; });
  --gate.waiting;
}

std::vector<int64_t> Journal() {
  std::lock_guard lock(journal.mu);
  return journal.tags;
}
void ClearJournal() {
  std::lock_guard lock(journal.mu);
  journal.tags.clear();
}

void CloseGate() {
  std::lock_guard lock(gate.mu);
  gate.open = false;
}
void OpenGate() {
  std::lock_guard lock(gate.mu);
  gate.open = true;
  gate.changed.notify_all();
}
void AwaitGated(int n) {
  std::unique_lock lock(gate.mu);
  gate.changed.wait(lock, [n] { return gate.waiting >= n; });
}

int MostInCrowd(int64_t tag) { return crowds[tag].most.exchange(0); }

void RegisterCrowds(tw::Plugin& p) {
  for (const char* name : {"Crowd", "CrowdAside"}) p.op(StrCat(name, "(x: float[*s]) -> (y: float[*s]); tag: int"));
  p.kernel<Crowded>("Crowd(float -> float) @CPU");
  p.kernel<Crowded>("CrowdAside(float -> float) @CPU; may_block");
}

}  // namespace thalweg::testing_support
