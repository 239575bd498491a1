// The part of LevelGroup that executes operations of several hosts: the steps within hosts and
// between leaders. Every member of a host takes the same steps within it, and every leader the same
// ones between leaders.
#include <algorithm>
#include <cstring>
#include <memory>

#include "../common/fold.h"
#include "level_group.h"

namespace thalweg::ring {
namespace {

// Memory for values, filled with zeros, which are sent where a host has fewer members than another one.
std::unique_ptr<char[]> RoomFor(uint64_t bytes) { return std::make_unique<char[]>(size_t(std::max<uint64_t>(bytes, 1))); }

float* FloatsIn(const std::unique_ptr<char[]>& room) { return reinterpret_cast<float*>(room.get()); }

void CopyValues(char* to, const char* from, uint64_t bytes) {
  if (to != from && bytes > 0) std::memcpy(to, from, bytes);
}

// Sums of the hosts are added; the last sum is divided.
uint32_t OnEachLevel(uint32_t reduce) { return reduce == TW_REDUCE_MEAN ? uint32_t{TW_REDUCE_SUM} : reduce; }

// The least and the largest value need no more precision than the values have.
bool FoldsInFloat(const common::Task& task) {
  return common::IsShort(task.dtype) && task.reduce != TW_REDUCE_MIN && task.reduce != TW_REDUCE_MAX;
}

}  // namespace

void LevelGroup::Execute(const Call& w) {
  switch (common::Operation(w.task.operation)) {
    case common::Operation::kAllReduce: return FoldsInFloat(w.task) ? ReduceInFloat(w) : Reduce(w);
    case common::Operation::kReduceScatter: return ReduceScatter(w);
    case common::Operation::kBroadcast: return Broadcast(w);
    case common::Operation::kAllGather: return Gather(w);
    case common::Operation::kAllToAll:
    case common::Operation::kPermute: break;  // operations of the group of all
  }
}

void LevelGroup::Reduce(const Call& w) {
  const uint32_t dtype = w.task.dtype, how = OnEachLevel(w.task.reduce);
  const uint64_t count = w.task.count;
  const char* values = w.in;
  if (local_) {
    OnHost({common::Operation::kAllReduce, dtype, w.element, count, values, w.out, how});
    values = w.out;
  }
  if (leads()) {
    BetweenLeaders({common::Operation::kAllReduce, dtype, w.element, count, values, w.out, how});
    if (w.task.reduce == TW_REDUCE_MEAN) common::DivideBy(dtype, members_, count, w.out);
  }
  Spread(dtype, w.element, count, w.out);
}

// Each leader gets its share of the sums in float, and gathers the shares after they have been rounded.
void LevelGroup::ReduceInFloat(const Call& w) {
  const uint32_t dtype = w.task.dtype, how = OnEachLevel(w.task.reduce);
  const uint64_t count = w.task.count, leaders = hosts_.ranks.size(), share = (count + leaders - 1) / leaders, all = share * leaders;
  const auto sums = RoomFor(all * sizeof(float));
  common::ToFloats(dtype, w.in, count, FloatsIn(sums));
  if (local_) OnHost({common::Operation::kAllReduce, TW_FLOAT, sizeof(float), count, sums.get(), sums.get(), how});
  if (leads()) {
    const auto part = RoomFor(share * sizeof(float)), rounded = RoomFor(share * w.element), gathered = RoomFor(all * w.element);
    BetweenLeaders({common::Operation::kReduceScatter, TW_FLOAT, sizeof(float), all, sums.get(), part.get(), how});
    if (w.task.reduce == TW_REDUCE_MEAN) common::DivideBy(TW_FLOAT, members_, share, part.get());
    common::FromFloats(dtype, FloatsIn(part), share, rounded.get());
    BetweenLeaders({common::Operation::kAllGather, dtype, w.element, share, rounded.get(), gathered.get()});
    CopyValues(w.out, gathered.get(), w.bytes);
  }
  Spread(dtype, w.element, count, w.out);
}

// The leaders exchange one share for each host, with a place for each member of the largest one.
void LevelGroup::ReduceScatter(const Call& w) {
  const bool in_float = FoldsInFloat(w.task);
  const uint32_t dtype = in_float ? uint32_t{TW_FLOAT} : w.task.dtype, how = OnEachLevel(w.task.reduce);
  const uint64_t element = in_float ? sizeof(float) : w.element, count = w.task.count, part = count / members_, bytes = part * element;
  const char* values = w.in;
  std::unique_ptr<char[]> sums;
  if (in_float || local_) sums = RoomFor(count * element);
  if (in_float) {
    common::ToFloats(w.task.dtype, w.in, count, FloatsIn(sums));
    values = sums.get();
  }
  if (local_) {
    OnHost({common::Operation::kAllReduce, dtype, element, count, values, sums.get(), how});
    values = sums.get();
  }
  const uint64_t share = hosts_.most * part;
  const auto own = RoomFor(share * element);
  if (leads()) {
    const auto shares = RoomFor(hosts_.ranks.size() * share * element);
    for (uint32_t r = 0; r < members_; ++r) {
      CopyValues(shares.get() + (hosts_.host[r] * hosts_.most + hosts_.place[r]) * bytes, values + r * bytes, bytes);
    }
    BetweenLeaders({common::Operation::kReduceScatter, dtype, element, hosts_.ranks.size() * share, shares.get(), own.get(), how});
    if (w.task.reduce == TW_REDUCE_MEAN) common::DivideBy(dtype, members_, share, own.get());
  }
  Spread(dtype, element, own_host().size() * part, own.get());
  const char* result = own.get() + place() * bytes;
  if (in_float) {
    common::FromFloats(w.task.dtype, reinterpret_cast<const float*>(result), part, w.out);
  } else {
    CopyValues(w.out, result, bytes);
  }
}

void LevelGroup::Broadcast(const Call& w) {
  const uint32_t dtype = w.task.dtype, root = w.task.root, from = hosts_.host[root];
  const uint64_t count = w.task.count;
  const bool on_own = from == hosts_.host[rank_];
  if (on_own) {
    if (local_) {
      OnHost({common::Operation::kBroadcast, dtype, w.element, count, w.in, w.out, 0, hosts_.place[root]});
    } else {
      CopyValues(w.out, w.in, w.bytes);
    }
  }
  if (leads()) BetweenLeaders({common::Operation::kBroadcast, dtype, w.element, count, w.out, w.out, 0, from});
  if (!on_own) Spread(dtype, w.element, count, w.out);
}

// The leaders gather one share of each host, with a place for each member of the largest one.
void LevelGroup::Gather(const Call& w) {
  const uint32_t dtype = w.task.dtype;
  const uint64_t count = w.task.count, share = hosts_.most * w.bytes;
  if (leads()) {
    const auto own = RoomFor(share), shares = RoomFor(hosts_.ranks.size() * share);
    if (local_) {
      OnHost({common::Operation::kAllGather, dtype, w.element, count, w.in, own.get()});
    } else {
      CopyValues(own.get(), w.in, w.bytes);
    }
    BetweenLeaders({common::Operation::kAllGather, dtype, w.element, hosts_.most * count, own.get(), shares.get()});
    for (uint32_t r = 0; r < members_; ++r) {
      CopyValues(w.out + r * w.bytes, shares.get() + (hosts_.host[r] * hosts_.most + hosts_.place[r]) * w.bytes, w.bytes);
    }
  } else {
    // The values of the host come into the output first, and then those of all members over them.
    OnHost({common::Operation::kAllGather, dtype, w.element, count, w.in, w.out});
  }
  Spread(dtype, w.element, members_ * count, w.out);
}

// ---- Steps ----

common::CollectiveCall LevelGroup::CallOf(const Step& s) {
  Call c;
  c.task = {uint32_t(s.operation), s.reduce, s.root, s.dtype, s.count};
  c.in = s.in;
  c.out = s.out;
  c.element = s.element;
  c.bytes = s.count * s.element;
  return c;
}

// A member that waits in a later step waits for one that may wait in an earlier step, so it names that
// one later.
void LevelGroup::OnHost(const Step& s, int64_t late) {
  Call c = CallOf(s);
  c.deadline = patience_ ? deadline_ + late : deadline_;
  c.number = told_;
  const Failed how = local_->Run(c);
  if (how.code) common::Fail(how.code, how.text);
}

void LevelGroup::BetweenLeaders(const Step& s) {
  Call c = CallOf(s);
  c.deadline = patience_ ? deadline_ + kStepPatience : deadline_;
  c.number = told_;
  const Failed how = RunOn(leaders_.get(), std::move(c));
  if (how.code) common::Fail(how.code, how.text);
}

void LevelGroup::Spread(uint32_t dtype, uint64_t element, uint64_t count, char* values) {
  if (local_) OnHost({common::Operation::kBroadcast, dtype, element, count, values, values}, 2 * kStepPatience);
}

}  // namespace thalweg::ring
