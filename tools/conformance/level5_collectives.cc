// Level 5: collectives; the members are threads of this process and meet through a store of the
// kit.
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>

#include "framework/base/dtype.h"
#include "tools/conformance/guarded.h"
#include "tools/conformance/levels.h"
#include "tools/conformance/numbers.h"
#include "tools/conformance/queue.h"

namespace thalweg::conformance {
namespace {

constexpr uint32_t kMembers = 3;
constexpr int64_t kMs = 1000000;

// ---- the store in which members meet ----

struct Store {
  std::mutex mu;
  std::condition_variable changed;
  std::map<std::string, std::string> values;
  const tw_host* host = nullptr;

  static tw_status* Put(void* self, const char* key, uint64_t key_len, const void* value, uint64_t bytes) {
    auto* s = static_cast<Store*>(self);
    std::lock_guard lock(s->mu);
    s->values[std::string(key, key_len)] = std::string(static_cast<const char*>(value), bytes);
    s->changed.notify_all();
    return nullptr;
  }
  static tw_status* Get(void* self, const char* key, uint64_t key_len, int64_t deadline, tw_sink* to) {
    auto* s = static_cast<Store*>(self);
    const std::string name(key, key_len);
    std::unique_lock lock(s->mu);
    while (s->values.find(name) == s->values.end()) {
      if (deadline && s->host->run->now(s->host) > deadline) return tw_fail(s->host, TW_DEADLINE_EXCEEDED, TW_S("the key did not come"));
      s->changed.wait_for(lock, std::chrono::milliseconds(10));
    }
    const std::string value = s->values[name];
    lock.unlock();
    return to->put(to, value.data(), value.size());
  }
};
const tw_key_value_api kStoreApi = {TW_SIZED(tw_key_value_api), Store::Put, Store::Get};

// ---- members ----

// One member: its group handle and its operations.
class Member {
 public:
  Member(const CollectiveRole& role, uint32_t rank) : role_(role), rank_(rank) {}
  ~Member() { Leave(); }
  Status Join(Store* store, const std::string& group, int64_t deadline) {
    Padded<tw_group_config> padded(RecordSize<tw_group_config>());
    tw_group_config& c = padded.c;
    c.name = group.data();
    c.name_len = group.size();
    c.rank = rank_;
    c.members = kMembers;
    c.store = &kStoreApi;
    c.store_self = store;
    c.native = "";
    c.deadline = deadline;
    return FromC(role_.def.create(role_.host, role_.def.user, &c, &group_));
  }
  void Leave() {
    if (group_) role_.def.destroy(role_.host, group_);
    group_ = nullptr;
  }
  using Entry = tw_status* (*)(const tw_host* h, void* group, const tw_collective_call* c);
  // Starts an operation, which is over when line_ reaches 1.
  Status Start(Entry entry, uint32_t reduce, uint32_t root, const Tensor& in, const Tensor& out, const uint32_t* sources = nullptr) {
    line_ = NewLine();
    Padded<tw_collective_call> padded(RoleRecordSize<tw_collective_call>("collective"));
    tw_collective_call& c = padded.c;
    c.reduce = reduce;
    c.root = root;
    c.in = &in.view();
    c.out = &out.view();
    c.line = line_.get();
    c.value = 1;
    c.sources = sources;
    c.n_sources = sources ? kMembers : 0;
    return FromC(entry(role_.host, group_, &c));
  }
  Status Finish() {
    if (!Reaches(line_.get(), 1, kSoon)) return Internal("member ", rank_, " waits on");
    return line_->failure();
  }
  void Abort(const Status& why) {
    tw_status* s = ToC(why);
    role_.def.abort(role_.host, group_, s);
    (void)FromC(s);
  }
  uint32_t rank() const { return rank_; }

 private:
  const CollectiveRole& role_;
  const uint32_t rank_;
  void* group_ = nullptr;
  Line line_;
};

// Runs all members, each on its own thread, and returns the first failure.
class Group {
 public:
  explicit Group(const CollectiveRole& role) : role_(role) { store_.host = role.host; }
  Status Join(int64_t deadline = 0) {
    static std::atomic<int> groups{0};
    const std::string name = StrCat("conformance-", ++groups);
    for (uint32_t r = 0; r < kMembers; ++r) members_.push_back(std::make_unique<Member>(role_, r));
    return ForAll([&](Member* m) { return m->Join(&store_, name, deadline); });
  }
  Status ForAll(const std::function<Status(Member*)>& f) {
    std::vector<Status> said(kMembers);
    std::vector<std::thread> threads;
    for (uint32_t r = 0; r < kMembers; ++r) threads.emplace_back([&, r] { said[r] = f(members_[r].get()); });
    for (std::thread& t : threads) t.join();
    for (uint32_t r = 0; r < kMembers; ++r) RETURN_IF_ERROR(Prefix(said[r], StrCat("member ", r, ":")));
    return Status();
  }
  // Runs the operation on all members and returns the outputs by rank.
  // sources: of permute.
  StatusOr<std::vector<Tensor>> Do(Member::Entry entry, uint32_t reduce, uint32_t root, const std::vector<Tensor>& in, const Shape& out,
                                   const uint32_t* sources = nullptr) {
    std::vector<Tensor> outputs;
    for (const Tensor& t : in) {
      ASSIGN_OR_RETURN(Tensor o, Tensor::Make(t.dtype(), out));
      outputs.push_back(std::move(o));
    }
    Status all = ForAll([&](Member* m) -> Status {
      RETURN_IF_ERROR(m->Start(entry, reduce, root, in[m->rank()], outputs[m->rank()], sources));
      return m->Finish();
    });
    RETURN_IF_ERROR(all);
    return outputs;
  }
  Member& operator[](uint32_t r) { return *members_[r]; }

 private:
  const CollectiveRole& role_;
  Store store_;
  std::vector<std::unique_ptr<Member>> members_;
};

// ---- values ----

double Value(uint64_t i, uint32_t rank) { return 1 + double((i * 3 + rank * 5) % 4); }

StatusOr<Tensor> InputOf(uint32_t dtype, int64_t n, uint32_t rank) {
  static double (*const kFills[kMembers])(uint64_t) = {[](uint64_t i) { return Value(i, 0); }, [](uint64_t i) { return Value(i, 1); },
                                                       [](uint64_t i) { return Value(i, 2); }};
  return TensorOf(dtype, Shape{n}, kFills[rank]);
}
StatusOr<std::vector<Tensor>> Inputs(uint32_t dtype, int64_t n) {
  std::vector<Tensor> in;
  for (uint32_t r = 0; r < kMembers; ++r) {
    ASSIGN_OR_RETURN(Tensor t, InputOf(dtype, n, r));
    in.push_back(std::move(t));
  }
  return in;
}

double Reduced(uint32_t how, uint64_t i) {
  double all = Value(i, 0);
  for (uint32_t r = 1; r < kMembers; ++r) {
    const double v = Value(i, r);
    all = how == TW_REDUCE_PROD ? all * v : how == TW_REDUCE_MIN ? std::min(all, v) : how == TW_REDUCE_MAX ? std::max(all, v) : all + v;
  }
  return how == TW_REDUCE_MEAN ? all / kMembers : all;
}

template <class F>
std::string Unlike(const Tensor& got, F&& want) {
  const std::vector<double> numbers = NumbersOf(got);
  for (uint64_t i = 0; i < numbers.size(); ++i) {
    const double w = want(i);
    if (std::abs(numbers[i] - w) > 1e-5 * (1 + std::abs(w))) return StrCat("element ", i, " is ", numbers[i], " instead of ", w);
  }
  return "";
}

constexpr int64_t kCounts[] = {1, 0, 7, 999};

// ---- rules ----

Outcome ReducesAll(const CollectiveRole& role) {
  Group group(role);
  RETURN_IF_ERROR(group.Join());
  for (uint32_t dtype : {TW_FLOAT, TW_DOUBLE, TW_INT32, TW_INT64}) {
    for (uint32_t how : {TW_REDUCE_SUM, TW_REDUCE_PROD, TW_REDUCE_MIN, TW_REDUCE_MAX, TW_REDUCE_MEAN}) {
      if (how == TW_REDUCE_MEAN && dtype != TW_FLOAT && dtype != TW_DOUBLE) continue;
      for (int64_t n : kCounts) {
        const std::string what = StrCat("operation ", how, " of ", n, " ", DTypeName(dtype), " values");
        At(what);
        ASSIGN_OR_RETURN(std::vector<Tensor> in, Inputs(dtype, n));
        auto out = group.Do(role.def.all_reduce, how, 0, in, Shape{n});
        if (!out.ok()) return Fail(what, ": ", Message(out.status()));
        for (uint32_t r = 0; r < kMembers; ++r) {
          std::string s = Unlike((*out)[r], [&](uint64_t i) { return Reduced(how, i); });
          if (!s.empty()) return Fail(what, ", member ", r, ": ", s);
          if (!SameBits((*out)[r], (*out)[0])) return Fail(what, ": members 0 and ", r, " got different bits");
        }
      }
    }
  }
  return {};
}

Outcome Broadcasts(const CollectiveRole& role) {
  Group group(role);
  RETURN_IF_ERROR(group.Join());
  for (uint32_t root = 0; root < kMembers; ++root) {
    for (int64_t n : kCounts) {
      ASSIGN_OR_RETURN(std::vector<Tensor> in, Inputs(TW_FLOAT, n));
      ASSIGN_OR_RETURN(std::vector<Tensor> out, group.Do(role.def.broadcast, 0, root, in, Shape{n}));
      for (uint32_t r = 0; r < kMembers; ++r) {
        if (!SameBits(out[r], in[root])) return Fail(n, " values of root ", root, " came to member ", r, " changed");
      }
    }
  }
  return {};
}

// Returns true if the entry reports a capability that the plugin lacks.
bool Lacks(const Status& s) { return s.code() == absl::StatusCode::kUnimplemented; }

// An engine may leave permute to the host.
Outcome Permutes(const CollectiveRole& role, Group* group) {
  if (!role.def.permute) return {};
  constexpr uint32_t kNobody = UINT32_MAX;
  static constexpr uint32_t kSources[][kMembers] = {{2, 0, 1}, {0, 2, 2}, {kNobody, 0, kNobody}};
  for (const auto& sources : kSources) {
    for (int64_t n : kCounts) {
      ASSIGN_OR_RETURN(std::vector<Tensor> in, Inputs(TW_FLOAT, n));
      ASSIGN_OR_RETURN(std::vector<Tensor> out, group->Do(role.def.permute, 0, 0, in, Shape{n}, sources));
      for (uint32_t r = 0; r < kMembers; ++r) {
        std::string s = Unlike(out[r], [&](uint64_t i) { return sources[r] == kNobody ? 0 : Value(i, sources[r]); });
        if (!s.empty()) return Fail("permute of ", n, " values, member ", r, ": ", s);
      }
    }
  }
  return {};
}

Outcome OrdersByRank(const CollectiveRole& role) {
  Group group(role);
  RETURN_IF_ERROR(group.Join());
  for (int64_t n : kCounts) {
    ASSIGN_OR_RETURN(std::vector<Tensor> in, Inputs(TW_FLOAT, n));
    ASSIGN_OR_RETURN(std::vector<Tensor> out, group.Do(role.def.all_gather, 0, 0, in, Shape{n * kMembers}));
    for (uint32_t r = 0; r < kMembers; ++r) {
      std::string s = Unlike(out[r], [&](uint64_t i) { return Value(i % uint64_t(n), uint32_t(i / uint64_t(n))); });
      if (!s.empty()) return Fail("all_gather of ", n, " values, member ", r, ": ", s);
    }
    ASSIGN_OR_RETURN(in, Inputs(TW_FLOAT, n * kMembers));
    auto all = group.Do(role.def.all_to_all, 0, 0, in, Shape{n * kMembers});
    if (Lacks(all.status())) continue;
    RETURN_IF_ERROR(all.status());
    for (uint32_t r = 0; r < kMembers; ++r) {
      const auto part = uint64_t(n);
      std::string s = Unlike((*all)[r], [&](uint64_t i) { return Value(r * part + i % part, uint32_t(i / part)); });
      if (!s.empty()) return Fail("all_to_all of ", n, " values each, member ", r, ": ", s);
    }
  }
  return Permutes(role, &group);
}

Outcome ScattersParts(const CollectiveRole& role) {
  Group group(role);
  RETURN_IF_ERROR(group.Join());
  for (int64_t n : kCounts) {
    ASSIGN_OR_RETURN(std::vector<Tensor> in, Inputs(TW_FLOAT, n * kMembers));
    auto out = group.Do(role.def.reduce_scatter, TW_REDUCE_SUM, 0, in, Shape{n});
    if (Lacks(out.status())) return None("it has no reduce_scatter");
    RETURN_IF_ERROR(out.status());
    for (uint32_t r = 0; r < kMembers; ++r) {
      std::string s = Unlike((*out)[r], [&](uint64_t i) { return Reduced(TW_REDUCE_SUM, r * uint64_t(n) + i); });
      if (!s.empty()) return Fail(n, " values each, member ", r, ": ", s);
    }
  }
  return {};
}

Outcome Aborts(const CollectiveRole& role) {
  Group group(role);
  RETURN_IF_ERROR(group.Join());
  ASSIGN_OR_RETURN(std::vector<Tensor> in, Inputs(TW_FLOAT, 100));
  ASSIGN_OR_RETURN(Tensor out, Tensor::Make(TW_FLOAT, Shape{100}));
  RETURN_IF_ERROR(group[0].Start(role.def.all_reduce, TW_REDUCE_SUM, 0, in[0], out));
  group[0].Abort(Error(absl::StatusCode::kAborted, "the kit aborts"));
  Status s = group[0].Finish();
  return s.code() == absl::StatusCode::kAborted ? Outcome() : Fail("what ran ended with ", s.ToString());
}

Outcome NoticesLoss(const CollectiveRole& role) {
  Group group(role);
  RETURN_IF_ERROR(group.Join(300 * kMs));
  ASSIGN_OR_RETURN(std::vector<Tensor> in, Inputs(TW_FLOAT, 100));
  Status s = group.ForAll([&](Member* m) -> Status {
    if (m->rank() == 2) {
      m->Leave();
      return Status();
    }
    ASSIGN_OR_RETURN(Tensor out, Tensor::Make(TW_FLOAT, Shape{100}));
    if (!m->Start(role.def.all_reduce, TW_REDUCE_SUM, 0, in[m->rank()], out).ok()) return Status();
    Status how = m->Finish();
    if (how.ok()) return Internal("its operation went well, without the others");
    return how.code() == absl::StatusCode::kInternal ? how : Status();
  });
  return s;
}

}  // namespace

void CheckCollectives(Run& run, World& world) {
  if (!world.play().name.empty() && !run.options().full) return;
  for (const auto& role : world.registry().RolesOf<CollectiveRole>()) {
    if (role->plugin != world.id()) continue;
    const Device* device = world.DeviceOf(role->kind);
    auto check = [&](int rule, Outcome (*body)(const CollectiveRole&)) {
      run.Check(rule, role->name, [&] {
        if (!device || !device->host_memory()) return Skip("it works on memory of ", role->kind, ", which the kit cannot fill");
        return body(*role);
      });
    };
    check(541, ReducesAll);
    check(542, Broadcasts);
    check(543, OrdersByRank);
    check(544, ScattersParts);
    check(545, Aborts);
    check(546, NoticesLoss);
  }
}

}  // namespace thalweg::conformance
