// Collective operations: the host's set "group" executes them. No thread waits for the other members.
#include <string>
#include <vector>

#include "kernels/common/element.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

class Collective {
 public:
  Collective(const tw::Node& n, uint32_t operation) {
    set_ = static_cast<const tw_group_api*>(n.host()->query(n.host(), TW_S(TW_GROUP_SET), 1));
    if (!set_) throw tw::Error{TW_UNIMPLEMENTED, "this runtime has no collective groups"};
    call_.size = sizeof call_;
    call_.operation = operation;
    if (n.find("timeout_seconds")) call_.timeout = int64_t(n.f("timeout_seconds") * 1e9);
    if (call_.timeout < 0) throw tw::Error{TW_INVALID_ARGUMENT, "timeout_seconds is " + std::to_string(n.f("timeout_seconds"))};
  }

 protected:
  // keys: the number of the input group_size, which the two keys follow.
  void Start(const tw_frame* f, uint32_t keys, tw_group_call c) const {
    const auto number = [&](uint32_t i) { return *static_cast<const int32_t*>(f->in[keys + i]->data); };
    if (number(0) < 1)
      throw tw::Error{TW_INVALID_ARGUMENT, "group_size is " + std::to_string(number(0)) + "; a group has at least one member"};
    const std::string key = std::to_string(number(1)) + "." + std::to_string(number(2));
    c.members = uint32_t(number(0));
    c.key = key.data();
    c.key_len = key.size();
    tw::check(set_->start(f, &c));
  }
  // Gives the output its dims if the shape rule could not: those of the input, the first of them
  // multiplied or divided by the number of members.
  static void Allocate(const tw_frame* f, int64_t times, int64_t part) {
    if (f->out[0]->rank >= 0) return;
    std::vector<int64_t> dims(f->in[0]->dims, f->in[0]->dims + f->in[0]->rank);
    if (!dims.empty()) dims[0] = dims[0] * times / part;
    tw::check(f->host->tensor->allocate(f, 0, dims.data(), uint32_t(dims.size())));
  }
  static int64_t Members(const tw_frame* f) { return *static_cast<const int32_t*>(f->in[1]->data); }

  const tw_group_api* set_;
  tw_group_call call_ = {};
};

uint32_t ReductionOf(const tw::Node& n) {
  const std::string_view merge = n.s("merge_op");
  if (n.s("final_op") == "Id")
    return merge == "Min" ? TW_REDUCE_MIN : merge == "Max" ? TW_REDUCE_MAX : merge == "Mul" ? TW_REDUCE_PROD : TW_REDUCE_SUM;
  const uint32_t type = n.type_in(0);
  if (merge == "Add" && type != TW_INT32 && type != TW_INT64) return TW_REDUCE_MEAN;
  throw tw::Error{TW_UNIMPLEMENTED,
                  "final_op 'Div' is for merge_op 'Add' of floats, not for '" + std::string(merge) + "' of " + tw::dtype_text(type)};
}

class Reduce : Collective {
 public:
  explicit Reduce(const tw::Node& n) : Collective(n, TW_GROUP_ALL_REDUCE) { call_.reduce = ReductionOf(n); }
  void operator()(tw::Frame f) const {
    Allocate(f.f, 1, 1);
    Start(f.f, 1, call_);
  }
};

class ReduceScatter : Collective {
 public:
  explicit ReduceScatter(const tw::Node& n) : Collective(n, TW_GROUP_REDUCE_SCATTER) { call_.reduce = ReductionOf(n); }
  void operator()(tw::Frame f) const {
    CheckDivisible(f.f);
    Allocate(f.f, 1, Members(f.f));
    Start(f.f, 1, call_);
  }
  static void CheckDivisible(const tw_frame* f) {
    const int64_t members = Members(f), rows = f->in[0]->rank ? f->in[0]->dims[0] : 0;
    if (members > 0 && f->in[0]->rank && rows % members == 0) return;
    throw tw::Error{TW_INVALID_ARGUMENT,
                    "the first axis of input, " + std::to_string(rows) + ", must be divisible by group_size, " + std::to_string(members)};
  }
};

class Gather : Collective {
 public:
  explicit Gather(const tw::Node& n) : Collective(n, TW_GROUP_ALL_GATHER) {}
  void operator()(tw::Frame f) const {
    Allocate(f.f, Members(f.f), 1);
    Start(f.f, 1, call_);
  }
};

class AllToAll : Collective {
 public:
  explicit AllToAll(const tw::Node& n) : Collective(n, TW_GROUP_ALL_TO_ALL) {}
  void operator()(tw::Frame f) const {
    ReduceScatter::CheckDivisible(f.f);
    Allocate(f.f, 1, 1);
    Start(f.f, 1, call_);
  }
};

class BcastSend : Collective {
 public:
  explicit BcastSend(const tw::Node& n) : Collective(n, TW_GROUP_BROADCAST) { call_.sends = 1; }
  void operator()(tw::Frame f) const {
    Allocate(f.f, 1, 1);
    Start(f.f, 1, call_);
  }
};

class BcastRecv : Collective {
 public:
  explicit BcastRecv(const tw::Node& n) : Collective(n, TW_GROUP_BROADCAST) { call_.in = UINT32_MAX; }
  void operator()(tw::Frame f) const {
    if (f.f->out[0]->rank < 0) {
      const tw::In<tw::Any> shape{{f.f->in[3]}};
      std::vector<int64_t> dims;
      tw::integers(shape.v, &dims);
      tw::check(f.f->host->tensor->allocate(f.f, 0, dims.data(), uint32_t(dims.size())));
    }
    Start(f.f, 0, call_);
  }
};

// The group has all members of the session. The node's name is the key: it is equal in all programs
// that build the same graph.
class Permute : Collective {
 public:
  explicit Permute(const tw::Node& n) : Collective(n, TW_GROUP_PERMUTE), key_("permute " + std::string(n.name())) {}
  void operator()(tw::Frame f) const {
    uint32_t members = 0, rank = 0;
    tw::check(set_->members(f.f, &members, &rank));
    const tw_view& pairs = *f.f->in[1];
    const auto* pair = static_cast<const int32_t*>(pairs.data);
    std::vector<uint32_t> sources(members, UINT32_MAX);
    for (uint64_t i = 0; i + 1 < pairs.count; i += 2) {
      const int64_t from = pair[i], to = pair[i + 1];
      if (from < 0 || to < 0 || from >= members || to >= members) Refuse(from, to, "there are " + std::to_string(members) + " members");
      if (sources[size_t(to)] != UINT32_MAX) Refuse(from, to, "the target has another source, " + std::to_string(sources[size_t(to)]));
      sources[size_t(to)] = uint32_t(from);
    }
    Allocate(f.f, 1, 1);
    tw_group_call c = call_;
    c.key = key_.data();
    c.key_len = key_.size();
    c.sources = sources.data();
    c.n_sources = members;
    tw::check(set_->start(f.f, &c));
  }

 private:
  [[noreturn]] static void Refuse(int64_t from, int64_t to, const std::string& why) {
    throw tw::Error{TW_INVALID_ARGUMENT, "source_target_pairs: from " + std::to_string(from) + " to " + std::to_string(to) + ": " + why};
  }
  const std::string key_;
};

}  // namespace

void register_collectives(tw::Plugin& p) {
  p.kernel<Reduce>("CollectiveReduceV2(_, int32, int32, int32, _ -> _) @CPU; async; inplace data=input");
  p.kernel<ReduceScatter>("CollectiveReduceScatterV2(_, int32, int32, int32, _ -> _) @CPU; async");
  p.kernel<Gather>("CollectiveGatherV2(_, int32, int32, int32, _ -> _) @CPU; async");
  p.kernel<AllToAll>("CollectiveAllToAllV2(_, int32, int32, int32, _ -> _) @CPU; async");
  p.kernel<BcastSend>("CollectiveBcastSendV2(_, int32, int32, int32 -> _) @CPU; async; inplace data=input");
  p.kernel<BcastRecv>("CollectiveBcastRecvV2(int32, int32, int32, _ -> _) @CPU; async");
  p.kernel<Permute>("CollectivePermute(_, int32 -> _) @CPU; async");
}

}  // namespace thalweg::cpu
