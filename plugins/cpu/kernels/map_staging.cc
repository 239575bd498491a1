// Staging areas by key: lists of tensors that are staged under a key, all tensors at once or some
// at a time. Incomplete lists are kept apart until they are complete.
#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "kernels/register.h"
#include "kernels/staging.h"

namespace thalweg::cpu {
namespace {

// A call that stages a whole list waits for a place and for bytes. A call that stages a part waits
// only for bytes, so parts never wait for a place that only the complete list can free. Each call
// for a key has its own condition, kKeys + n; after any change all of these calls check again.
enum Condition : uint64_t { kRoom, kBytes, kSomething, kKeys };

using List = std::vector<Kept>;  // an empty entry was taken, or has not been staged yet
uint64_t BytesOf(const List& list) {
  uint64_t bytes = 0;
  for (const Kept& t : list) bytes += t ? t.view()->bytes : 0;
  return bytes;
}

struct Area {
  const StagingRoom room;
  std::mutex mu;
  std::vector<uint32_t> types;  // of a complete list; the first call that stages one sets them
  std::map<int64_t, List> whole, incomplete;
  uint64_t bytes = 0;
  uint64_t next_condition = kKeys;
  tw::Holding held;  // the bytes apart from the tensors

  // Pays for `more` additional lists. Called before they are staged, and, with 0, after lists were
  // taken.
  void Hold(tw::Payer payer, uint64_t more) {
    const uint64_t each = sizeof(std::pair<const int64_t, List>) + 32 + 2 * tw::kHeapBlock + types.size() * sizeof(Kept);
    held.set(payer, (whole.size() + incomplete.size() + more) * each);
  }
  explicit Area(const StagingRoom& r) : room(r) {}
};
struct MapArea : Area {
  using Area::Area;
  static constexpr char kType[] = "org.thalweg.map_staging_area", kTitle[] = "map staging area";
};
struct OrderedMapArea : Area {
  using Area::Area;
  static constexpr char kType[] = "org.thalweg.ordered_map_staging_area", kTitle[] = "ordered map staging area";
};

int64_t KeyOf(tw::In<int64_t> key) {
  if (key.size() != 1) Invalid("key must be one number, but has shape " + DimsText(key.v));
  return key[0];
}

// Throws unless there are as many indices as tensors, in rising order.
void CheckIndices(tw::In<int32_t> indices, uint32_t tensors) {
  if (indices.size() != tensors) {
    Invalid("there are " + std::to_string(indices.size()) + " indices for " + std::to_string(tensors) + " tensors");
  }
  for (uint64_t k = 1; k < indices.size(); ++k) {
    if (indices[k] <= indices[k - 1])
      Invalid("indices must go up, but " + std::to_string(indices[k]) + " comes behind " + std::to_string(indices[k - 1]));
  }
}

template <class A>
class Stage : OfStaging<A> {
 public:
  explicit Stage(const tw::Node& n) : OfStaging<A>(n) {
    const tw_attr& given = n.at("dtypes");
    for (uint32_t i = 0; i < given.count; ++i) types_.push_back(static_cast<const uint32_t*>(given.data)[i]);
  }
  void operator()(tw::Frame f, tw::In<int64_t> key_tensor, tw::In<int32_t> indices, tw::Many<tw::Any> values) const {
    const int64_t key = KeyOf(key_tensor);
    auto at = this->Find(f);
    Area& area = *at.area;
    List list(types_.size());
    CheckParts(indices, values);
    for (uint32_t k = 0; k < values.size(); ++k) list[size_t(indices[k])] = KeepInput(f.f, values.first + k);
    const uint64_t bytes = BytesOf(list);
    this->CheckLimit(area.room, bytes);
    {
      std::lock_guard lock(area.mu);
      CheckTypes(area);
      const bool all = values.size() == types_.size();
      if (!all) CheckMissing(area, key, indices);
      const bool room = area.room.ForBytes(area.bytes, bytes) && (!all || area.room.ForLists(area.whole.size()));
      const uint64_t line = all ? kRoom : kBytes;
      if (at.held.waiting(f, line) > 0 || !room) return at.held.wait(f, line, 0, at.seen);
      area.Hold(f, 1);
      area.bytes += bytes;
      all ? PutWhole(&area, key, std::move(list)) : PutPart(&area, key, std::move(list));
      area.Hold(f, 0);
    }
    at.held.touch(f);
    f.complete();
  }

 private:
  void CheckParts(tw::In<int32_t> indices, const tw::Many<tw::Any>& values) const {
    CheckIndices(indices, values.size());
    for (uint32_t k = 0; k < values.size(); ++k) {
      if (indices[k] < 0 || size_t(indices[k]) >= types_.size()) {
        Invalid("index " + std::to_string(indices[k]) + " is out of range: dtypes says " + std::to_string(types_.size()) + " tensors");
      }
      this->CheckType(uint64_t(indices[k]), types_[size_t(indices[k])], values[k].v->dtype);
    }
  }
  void CheckTypes(Area& area) const {
    if (area.types.empty()) area.types = types_;
    if (area.types != types_)
      Invalid(this->title() + " holds lists of " + TypesText(area.types) + ", but dtypes says " + TypesText(types_));
  }
  void CheckMissing(const Area& area, int64_t key, tw::In<int32_t> indices) const {
    auto it = area.incomplete.find(key);
    for (uint64_t k = 0; it != area.incomplete.end() && k < indices.size(); ++k) {
      if (!it->second[size_t(indices[k])]) continue;
      Invalid("key " + std::to_string(key) + " of " + this->title() + " has tensor " + std::to_string(indices[k]) + " already");
    }
  }
  // If the key has a list already, that list stays, and the new one is dropped.
  static void PutWhole(Area* area, int64_t key, List list) {
    const uint64_t bytes = BytesOf(list);
    if (!area->whole.try_emplace(key, std::move(list)).second) area->bytes -= bytes;
  }
  static void PutPart(Area* area, int64_t key, List part) {
    List& list = area->incomplete.try_emplace(key, part.size()).first->second;
    for (size_t k = 0; k < part.size(); ++k) {
      if (part[k]) list[k] = std::move(part[k]);
    }
    if (!std::all_of(list.begin(), list.end(), [](const Kept& t) { return bool(t); })) return;
    List all = std::move(list);
    area->incomplete.erase(key);
    PutWhole(area, key, std::move(all));
  }

  std::vector<uint32_t> types_;
};

// The tensors of a list that leaves the area.
template <class A>
class OfTaken : protected OfStaging<A> {
 public:
  using OfStaging<A>::OfStaging;

 protected:
  void Give(tw::Frame f, int64_t key, const List& list, tw::In<int32_t> indices, const tw::ManyOut<tw::Any>& values) const {
    for (uint32_t k = 0; k < values.size(); ++k) {
      const int32_t i = indices[k];
      if (i < 0 || size_t(i) >= list.size()) {
        Invalid("index " + std::to_string(i) + " is out of range: " + this->title() + " holds lists of " + std::to_string(list.size()) +
                " tensors");
      }
      if (!list[size_t(i)])
        Invalid("tensor " + std::to_string(i) + " under key " + std::to_string(key) + " of " + this->title() + " was taken already");
      this->CheckType(uint64_t(i), list[size_t(i)].view()->dtype, values[k].v()->dtype);
    }
    for (uint32_t k = 0; k < values.size(); ++k) GiveTensor(f.f, values.first + k, list[size_t(indices[k])]);
  }
  // Outputs the tensors and removes them from the list. The list is erased with its last tensor.
  void Take(tw::Frame f, Area* area, std::map<int64_t, List>::iterator it, tw::In<int32_t> indices,
            const tw::ManyOut<tw::Any>& values) const {
    List& list = it->second;
    Give(f, it->first, list, indices, values);
    area->bytes -= BytesOf(list);
    for (uint64_t k = 0; k < indices.size(); ++k) list[size_t(indices[k])] = Kept();
    area->bytes += BytesOf(list);
    if (std::none_of(list.begin(), list.end(), [](const Kept& t) { return bool(t); })) area->whole.erase(it);
    area->Hold(f, 0);
  }
};

// The memo is the condition at which the call waits.
template <class A, bool kPeek>
class ByKey : OfTaken<A> {
 public:
  using OfTaken<A>::OfTaken;
  void operator()(tw::Frame f, tw::In<int64_t> key_tensor, tw::In<int32_t> indices, tw::ManyOut<tw::Any> values) const {
    const int64_t key = KeyOf(key_tensor);
    CheckIndices(indices, values.size());
    auto at = this->Find(f);
    Area& area = *at.area;
    {
      std::lock_guard lock(area.mu);
      const auto it = area.whole.find(key);
      if (it == area.whole.end()) {
        const uint64_t line = f.memo() > 0 ? f.memo() : area.next_condition++;
        return at.held.wait(f, line, line, at.seen);
      }
      kPeek ? this->Give(f, key, it->second, indices, values) : this->Take(f, &area, it, indices, values);
    }
    if (!kPeek) at.held.touch(f);
    f.complete();
  }
};

template <class A>
class UnstageNoKey : OfTaken<A> {
 public:
  using OfTaken<A>::OfTaken;
  void operator()(tw::Frame f, tw::In<int32_t> indices, tw::Out<int64_t> key, tw::ManyOut<tw::Any> values) const {
    CheckIndices(indices, values.size());
    auto at = this->Find(f);
    Area& area = *at.area;
    {
      std::lock_guard lock(area.mu);
      if (at.held.waiting(f, kSomething) > 0 || area.whole.empty()) return at.held.wait(f, kSomething, 0, at.seen);
      const Kept number = NewTensor(f.f, TW_INT64, nullptr, 0);
      *reinterpret_cast<int64_t*>(Bytes(number.view())) = area.whole.begin()->first;
      this->Take(f, &area, area.whole.begin(), indices, values);
      GiveTensor(f.f, key.o, number);
    }
    at.held.touch(f);
    f.complete();
  }
};

template <class A, auto kLists>
class Size : OfStaging<A> {
 public:
  using OfStaging<A>::OfStaging;
  void operator()(tw::Frame f, tw::Out<int32_t> size) const {
    auto at = this->Find(f);
    std::lock_guard lock(at.area->mu);
    size[0] = int32_t(((*at.area).*kLists).size());
  }
};

template <class A>
class Clear : OfStaging<A> {
 public:
  using OfStaging<A>::OfStaging;
  void operator()(tw::Frame f) const {
    auto at = this->Find(f);
    std::map<int64_t, List> whole, incomplete;  // destroyed after the lock is released
    {
      std::lock_guard lock(at.area->mu);
      whole.swap(at.area->whole);
      incomplete.swap(at.area->incomplete);
      at.area->bytes = 0;
      at.area->held.sub(at.area->held.bytes());
    }
    at.held.touch();
  }
};

template <class A>
void AddFamily(tw::Plugin& p, const std::string& prefix) {
  RegisterStagingArea<A>(p);
  p.kernel<Stage<A>>(prefix + "Stage @CPU; async; keep values");
  p.kernel<ByKey<A, false>>(prefix + "Unstage @CPU; async; gives values; nondeterministic");
  p.kernel<ByKey<A, true>>(prefix + "Peek @CPU; async; gives values; nondeterministic");
  p.kernel<UnstageNoKey<A>>(prefix + "UnstageNoKey @CPU; async; gives key values; nondeterministic");
  p.kernel<Size<A, &Area::whole>>(prefix + "Size @CPU");
  p.kernel<Size<A, &Area::incomplete>>(prefix + "IncompleteSize @CPU");
  p.kernel<Clear<A>>(prefix + "Clear @CPU");
}

}  // namespace

void register_map_staging(tw::Plugin& p) {
  AddFamily<MapArea>(p, "Map");
  AddFamily<OrderedMapArea>(p, "OrderedMap");
}

}  // namespace thalweg::cpu
