// Staging areas. An area has a lock of its own, since its ops have no handle by which the host could open it.
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/common/element.h"
#include "kernels/register.h"
#include "kernels/tensor_list.h"
#include "thalweg/cpp/held_resource.hpp"

namespace thalweg::cpu {
namespace {

constexpr char kType[] = "org.thalweg.staging_area";
enum Condition : uint64_t { kRoom, kSomething, kPlaces };  // kPlaces + i: something at place i

using List = std::vector<Kept>;
uint64_t BytesOf(const List& list) {
  uint64_t bytes = 0;
  for (const Kept& t : list) bytes += t.view()->bytes;
  return bytes;
}

struct Area {
  const uint64_t capacity, memory_limit;  // 0: none
  std::mutex mu;
  std::deque<List> lists;
  uint64_t bytes = 0;

  Area(uint64_t most, uint64_t limit) : capacity(most), memory_limit(limit) {}
  bool HasRoom(uint64_t more) const {
    return (capacity == 0 || lists.size() < capacity) && (memory_limit == 0 || more <= memory_limit - bytes);
  }
};
using SharedArea = std::shared_ptr<Area>;  // what the resource holds

// What the ops of the family have in common: the area that their attributes name.
class OfArea {
 public:
  explicit OfArea(const tw::Node& n)
      : container_(n.s("container")),
        name_(n.s("shared_name").empty() ? n.name() : n.s("shared_name")),
        capacity_(uint64_t(n.i("capacity"))),
        memory_limit_(uint64_t(n.i("memory_limit"))) {}

 protected:
  struct At {
    tw::HeldResource held;
    uint64_t seen;
    SharedArea area;
  };
  At Find(tw::Frame f) const {
    const tw_resource_key key{TW_SIZED(tw_resource_key), TW_S(kType), container_.data(), container_.size(), name_.data(), name_.size()};
    tw::HeldResource held(f, key, [this] { return new SharedArea(std::make_shared<Area>(capacity_, memory_limit_)); });
    const uint64_t seen = held.touches();
    SharedArea area = held.copy<SharedArea>("the staging area");
    return {std::move(held), seen, std::move(area)};
  }
  std::string title() const { return "staging area '" + name_ + "'"; }

  // Throws unless the list can be these outputs.
  void Check(const List& list, const tw::ManyOut<tw::Any>& values) const {
    if (list.size() != values.size()) {
      Invalid(title() + " holds lists of " + std::to_string(list.size()) + " tensors, not " + std::to_string(values.size()));
    }
    for (uint32_t k = 0; k < values.size(); ++k) {
      const uint32_t is = list[k].view()->dtype, wanted = values[k].v()->dtype;
      if (is != wanted) Invalid("tensor " + std::to_string(k) + " in " + title() + " is " + TypeText(is) + ", not " + TypeText(wanted));
    }
  }
  static void Give(tw::Frame f, const List& list, const tw::ManyOut<tw::Any>& values) {
    for (uint32_t k = 0; k < values.size(); ++k) GiveTensor(f.f, values.first + k, list[k]);
  }

 private:
  std::string container_, name_;
  uint64_t capacity_, memory_limit_;
};

class Stage : OfArea {
 public:
  using OfArea::OfArea;
  void operator()(tw::Frame f, tw::Many<tw::Any> values) const {
    At at = Find(f);
    List list;
    for (uint32_t k = 0; k < values.size(); ++k) list.push_back(KeepInput(f.f, values.first + k));
    const uint64_t bytes = BytesOf(list);
    Area& area = *at.area;
    if (area.memory_limit > 0 && bytes > area.memory_limit) {
      throw tw::Error{TW_RESOURCE_EXHAUSTED, title() + " holds " + std::to_string(area.memory_limit) +
                                                 " bytes at most (memory_limit), and " + std::to_string(bytes) +
                                                 " are to be laid down at once"};
    }
    {
      std::lock_guard lock(area.mu);
      if (at.held.waiting(f, kRoom) > 0 || !area.HasRoom(bytes)) return at.held.wait(f, kRoom, 0, at.seen);
      area.lists.push_back(std::move(list));
      area.bytes += bytes;
    }
    at.held.touch(f);
    f.complete();
  }
};

class Unstage : OfArea {
 public:
  using OfArea::OfArea;
  void operator()(tw::Frame f, tw::ManyOut<tw::Any> values) const {
    At at = Find(f);
    Area& area = *at.area;
    {
      std::lock_guard lock(area.mu);
      if (at.held.waiting(f, kSomething) > 0 || area.lists.empty()) return at.held.wait(f, kSomething, 0, at.seen);
      Check(area.lists.front(), values);
      Give(f, area.lists.front(), values);
      area.bytes -= BytesOf(area.lists.front());
      area.lists.pop_front();
    }
    at.held.touch(f);
    f.complete();
  }
};

class Peek : OfArea {
 public:
  using OfArea::OfArea;
  void operator()(tw::Frame f, tw::In<int32_t> index, tw::ManyOut<tw::Any> values) const {
    if (index.size() != 1 || index[0] < 0) Invalid("index must be one number and at least 0");
    At at = Find(f);
    std::lock_guard lock(at.area->mu);
    const uint64_t place = uint64_t(index[0]);
    if (at.area->lists.size() <= place) return at.held.wait(f, kPlaces + place, 0, at.seen);
    Check(at.area->lists[place], values);
    Give(f, at.area->lists[place], values);
    f.complete();
  }
};

class Size : OfArea {
 public:
  using OfArea::OfArea;
  void operator()(tw::Frame f, tw::Out<int32_t> size) const {
    At at = Find(f);
    std::lock_guard lock(at.area->mu);
    size[0] = int32_t(at.area->lists.size());
  }
};

class Clear : OfArea {
 public:
  using OfArea::OfArea;
  void operator()(tw::Frame f) const {
    At at = Find(f);
    std::deque<List> gone;  // goes when the lock is let go
    {
      std::lock_guard lock(at.area->mu);
      gone.swap(at.area->lists);
      at.area->bytes = 0;
    }
    at.held.touch();
  }
};

}  // namespace

void register_staging(tw::Plugin& p) {
  p.resource({TW_SIZED(tw_resource_def), TW_S(kType), 1, nullptr, [](const tw_host*, void* a) { delete static_cast<SharedArea*>(a); },
              nullptr, nullptr});
  p.kernel<Stage>("Stage @CPU; async; keep values");
  p.kernel<Unstage>("Unstage @CPU; async; gives values; nondeterministic");
  p.kernel<Peek>("StagePeek @CPU; async; gives values; nondeterministic");
  p.kernel<Size>("StageSize @CPU");
  p.kernel<Clear>("StageClear @CPU");
}

}  // namespace thalweg::cpu
