// Mutexes. A separate flag says whether a mutex is held, because the lock is released wherever the
// last value that refers to it is destroyed.
#include <atomic>
#include <memory>
#include <string>

#include "kernels/common/element.h"
#include "kernels/register.h"
#include "thalweg/cpp/held_resource.hpp"
#include "thalweg/cpp/variant.hpp"

namespace thalweg::cpu {
namespace {

constexpr char kType[] = "org.thalweg.mutex";
using Taken = std::shared_ptr<std::atomic<bool>>;  // the object of the resource

class Handle {
 public:
  explicit Handle(const tw::Node& n) : container_(n.s("container")), name_(n.s("shared_name").empty() ? n.name() : n.s("shared_name")) {}
  void operator()(tw::Frame f, tw::Out<tw::Any> resource) const {
    const tw_resource_key key{TW_SIZED(tw_resource_key), TW_S(kType), container_.data(), container_.size(), name_.data(), name_.size()};
    const auto make = [](const tw_host* h, void*, void** out) {
      return tw::guard(h, [&] { *out = new Taken(std::make_shared<std::atomic<bool>>(false)); });
    };
    tw::check(f.f->host->resource->open(f.f, &key, make, nullptr, resource.o));
  }

 private:
  std::string container_, name_;
};

// The object of a variant that holds a mutex.
struct Lock {
  Taken taken;
  tw::HeldResource mutex;
  bool holds = false;

  Lock(Taken t, tw::HeldResource m) : taken(std::move(t)), mutex(std::move(m)) {}
  ~Lock() {
    if (!holds) return;
    taken->store(false);
    mutex.touch();
  }
  static constexpr std::string_view variant_name = "org.thalweg.mutex_lock";
  uint64_t bytes() const { return sizeof *this; }
};

void MutexLock(tw::Frame f, tw::Handle handle, tw::Out<tw::Any> lock) {
  tw::HeldResource mutex(f, handle.i);
  const uint64_t seen = mutex.touches();
  Taken taken = mutex.copy<Taken>("the mutex");
  auto made = std::make_unique<Lock>(std::move(taken), std::move(mutex));  // allocated first, because this may fail for lack of memory
  if (made->mutex.waiting(f, 0) > 0 || made->taken->exchange(true)) return made->mutex.wait(f, 0, 0, seen);
  made->holds = true;
  tw::put(f.f, lock.v(), 0, std::move(made));
  f.complete();
}

void ConsumeMutexLock(tw::Frame f, tw::In<tw::Any> lock) {
  if (lock.size() != 1) Invalid("mutex_lock must be one lock, but has shape " + DimsText(lock.v));
  (void)tw::get<Lock>(f.f, lock.v);
}

}  // namespace

void register_mutex(tw::Plugin& p) {
  p.resource({TW_SIZED(tw_resource_def), TW_S(kType), 1, nullptr, [](const tw_host*, void* t) { delete static_cast<Taken*>(t); }, nullptr,
              nullptr});
  p.kernel<Handle>("MutexV2 @CPU");
  p.kernel<MutexLock>("MutexLock @CPU; async; nondeterministic");
  p.kernel<ConsumeMutexLock>("ConsumeMutexLock @CPU");
}

}  // namespace thalweg::cpu
