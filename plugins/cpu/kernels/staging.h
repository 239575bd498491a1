// Code shared by the ops of staging areas. An area has a lock of its own, and no handle by which
// the host could open it. Each op therefore finds the area by the name in its attributes.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_STAGING_H_
#define THALWEG_PLUGINS_CPU_KERNELS_STAGING_H_

#include <memory>
#include <string>
#include <utility>

#include "kernels/same_resource.h"
#include "kernels/tensor_list.h"
#include "thalweg/cpp/memory.hpp"

namespace thalweg::cpu {

// The limits of an area; 0 means no limit.
struct StagingRoom {
  uint64_t capacity, memory_limit;
  bool ForLists(uint64_t there) const { return capacity == 0 || there < capacity; }
  // REQUIRES: the area holds at most memory_limit bytes (`there`).
  bool ForBytes(uint64_t there, uint64_t more) const { return memory_limit == 0 || more <= memory_limit - there; }
};

// Area: a class constructed from a StagingRoom, with a static kType and kTitle. The resource holds
// a shared_ptr to the area.
template <class Area>
class OfStaging {
 public:
  explicit OfStaging(const tw::Node& n)
      : container_(n.s("container")),
        name_(n.s("shared_name").empty() ? n.name() : n.s("shared_name")),
        room_{uint64_t(n.i("capacity")), uint64_t(n.i("memory_limit"))} {}

 protected:
  struct At {
    tw::HeldResource held;
    uint64_t seen;
    std::shared_ptr<Area> area;
  };
  At Find(tw::Frame f) const {
    tw::HeldResource held(f, ResourceKey(Area::kType, container_, name_),
                          [this] { return new std::shared_ptr<Area>(std::make_shared<Area>(room_)); });
    const uint64_t seen = held.touches();
    std::shared_ptr<Area> area = held.copy<std::shared_ptr<Area>>("the staging area");
    return {std::move(held), seen, std::move(area)};
  }
  std::string title() const { return std::string(Area::kTitle) + " '" + name_ + "'"; }

  // Throws if the bytes alone exceed the area's limit.
  void CheckLimit(const StagingRoom& room, uint64_t bytes) const {
    if (room.memory_limit == 0 || bytes <= room.memory_limit) return;
    throw tw::Error{TW_RESOURCE_EXHAUSTED, title() + " holds " + std::to_string(room.memory_limit) + " bytes at most (memory_limit), and " +
                                               std::to_string(bytes) + " are to be laid down at once"};
  }
  // Throws unless tensor `k` of the area, or the tensor to be added as `k`, has type `wanted`.
  void CheckType(uint64_t k, uint32_t is, uint32_t wanted) const {
    if (is != wanted) Invalid("tensor " + std::to_string(k) + " in " + title() + " is " + TypeText(is) + ", not " + TypeText(wanted));
  }

 private:
  std::string container_, name_;
  StagingRoom room_;
};

template <class Area>
void RegisterStagingArea(tw::Plugin& p) {
  p.resource({TW_SIZED(tw_resource_def), TW_S(Area::kType), 1, nullptr,
              [](const tw_host*, void* a) { delete static_cast<std::shared_ptr<Area>*>(a); }, nullptr, nullptr});
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_STAGING_H_
