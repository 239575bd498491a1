// Staging areas: lists of tensors, first in, first out.
#include "kernels/staging.h"

#include <deque>
#include <mutex>
#include <vector>

#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

enum Condition : uint64_t { kRoom, kSomething, kPlaces };  // kPlaces + i: an element is at place i

using List = std::vector<Kept>;
uint64_t BytesOf(const List& list) {
  uint64_t bytes = 0;
  for (const Kept& t : list) bytes += t.view()->bytes;
  return bytes;
}

struct Area {
  static constexpr char kType[] = "org.thalweg.staging_area", kTitle[] = "staging area";
  const StagingRoom room;
  std::mutex mu;
  std::deque<List> lists;
  uint64_t bytes = 0;
  tw::Holding held;  // the bytes apart from the tensors

  explicit Area(const StagingRoom& r) : room(r) {}
  static uint64_t Each(const List& list) { return sizeof(List) + tw::kHeapBlock + list.capacity() * sizeof(Kept); }
  bool HasRoom(uint64_t more) const { return room.ForLists(lists.size()) && room.ForBytes(bytes, more); }
};

class OfArea : protected OfStaging<Area> {
 public:
  using OfStaging::OfStaging;

 protected:
  // Throws unless the list fits these outputs.
  void Check(const List& list, const tw::ManyOut<tw::Any>& values) const {
    if (list.size() != values.size()) {
      Invalid(title() + " holds lists of " + std::to_string(list.size()) + " tensors, not " + std::to_string(values.size()));
    }
    for (uint32_t k = 0; k < values.size(); ++k) CheckType(k, list[k].view()->dtype, values[k].v()->dtype);
  }
  static void Give(tw::Frame f, const List& list, const tw::ManyOut<tw::Any>& values) {
    for (uint32_t k = 0; k < values.size(); ++k) GiveTensor(f.f, values.first + k, list[k]);
  }
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
    CheckLimit(area.room, bytes);
    {
      std::lock_guard lock(area.mu);
      if (at.held.waiting(f, kRoom) > 0 || !area.HasRoom(bytes)) return at.held.wait(f, kRoom, 0, at.seen);
      area.held.add(f, Area::Each(list));
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
      area.held.sub(Area::Each(area.lists.front()));
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
    if (index.size() != 1) Invalid("index must be one number, but has shape " + DimsText(index.v));
    if (index[0] < 0) Invalid("index is " + std::to_string(index[0]) + ", but must be at least 0");
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
    std::deque<List> gone;  // destroyed after the lock is released
    {
      std::lock_guard lock(at.area->mu);
      gone.swap(at.area->lists);
      at.area->bytes = 0;
      at.area->held.sub(at.area->held.bytes());
    }
    at.held.touch();
  }
};

}  // namespace

void register_staging(tw::Plugin& p) {
  RegisterStagingArea<Area>(p);
  p.kernel<Stage>("Stage @CPU; async; keep values");
  p.kernel<Unstage>("Unstage @CPU; async; gives values; nondeterministic");
  p.kernel<Peek>("StagePeek @CPU; async; gives values; nondeterministic");
  p.kernel<Size>("StageSize @CPU");
  p.kernel<Clear>("StageClear @CPU");
}

}  // namespace thalweg::cpu
