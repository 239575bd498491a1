/* C++17 sugar over the set "held_resource" (thalweg/plugin/held_resource.h). Header only; nothing here crosses the boundary.
 *
 *   tw::HeldResource door(f, 0);                       // behind input 0
 *   const uint64_t seen = door.touches();
 *   if (door.waiting(f, 0) > 0 || !opened()) return door.wait(f, 0, f.memo(), seen);
 *
 * Errors: thrown, as in plugin.hpp. Threads: as the C API. */
#ifndef THALWEG_CPP_HELD_RESOURCE_HPP
#define THALWEG_CPP_HELD_RESOURCE_HPP
#include <type_traits>
#include <utility>

#include "thalweg/cpp/plugin.hpp"
#include "thalweg/plugin/held_resource.h"

namespace tw {
inline namespace TW_CAT(TW_CAT(m, TW_MINOR), TW_CAT(t, THALWEG_TARGET_MINOR)) {

class HeldResource {
 public:
  /* Holds the resource of flat input i, or the one of a key, which is created if there is none. */
  HeldResource(Frame f, uint32_t i) : api_(of(f.f->host)) { check(api_->hold(f.f, i, &r_)); }
  template <class Make>
  HeldResource(Frame f, const tw_resource_key& key, Make&& make) : api_(of(f.f->host)) {
    using Body = std::remove_reference_t<Make>; /* returns the object, which the host owns from then on */
    const auto call = [](const tw_host* h, void* arg, void** out) { return guard(h, [&] { *out = (*static_cast<Body*>(arg))(); }); };
    check(api_->open(f.f, &key, call, const_cast<void*>(static_cast<const void*>(&make)), &r_));
  }
  HeldResource(HeldResource&& o) noexcept : api_(o.api_), r_(std::exchange(o.r_, nullptr)) {}
  HeldResource& operator=(HeldResource&&) = delete;
  ~HeldResource() {
    if (r_) api_->release(r_);
  }
  /* Calls visit(object) under the read lock; NULL: there is no object. visit must not throw. */
  template <class Visit>
  void look(Visit&& visit) const {
    using Body = std::remove_reference_t<Visit>;
    api_->look(
        r_, [](void* arg, void* object) { (*static_cast<Body*>(arg))(object); }, const_cast<void*>(static_cast<const void*>(&visit)));
  }
  /* Returns a copy of the object, a T whose copy does not throw; throws if there is no object. */
  template <class T>
  T copy(const char* what) const {
    T value{};
    bool found = false;
    look([&](void* object) {
      if ((found = object != nullptr)) value = *static_cast<const T*>(object);
    });
    if (!found) throw Error{TW_FAILED_PRECONDITION, std::string(what) + " is gone"};
    return value;
  }
  uint64_t touches() const { return api_->touches(r_); }
  void touch() const noexcept { api_->touch(nullptr, r_); }    /* anywhere */
  void touch(Frame f) const noexcept { api_->touch(f.f, r_); } /* inside execute */
  void wait(Frame f, uint64_t condition, uint64_t memo, uint64_t seen) const { check(api_->wait(f.f, r_, condition, memo, seen)); }
  uint64_t waiting(Frame f, uint64_t condition) const { return api_->waiting(f.f, r_, condition); }

 private:
  static const tw_held_resource_api* of(const tw_host* h) {
    auto* api = static_cast<const tw_held_resource_api*>(h->query(h, TW_S(TW_HELD_RESOURCE_SET), 1));
    if (!api) throw Error{TW_UNIMPLEMENTED, "this runtime offers no held resources"};
    return api;
  }
  const tw_held_resource_api* api_;
  tw_held_resource* r_ = nullptr;
};

/* clang-format off */
}  // the inline namespace
/* clang-format on */
}  // namespace tw
#endif
