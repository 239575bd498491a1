#include "framework/runtime/state/groups.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>
#include <vector>

#include "framework/base/shown.h"
#include "framework/base/strings.h"
#include "framework/runtime/devices/device.h"
#include "framework/runtime/devices/timeline.h"
#include "framework/runtime/later_calls.h"
#include "framework/runtime/runtime.h"
#include "framework/runtime/state/folder_store.h"
#include "framework/runtime/step/async_calls.h"

namespace thalweg {
namespace {

constexpr uint32_t kNoInput = UINT32_MAX;
constexpr std::string_view kUsualEngine = "shm";  // most groups are on one host, where it is the fastest

// The sessions of a runtime that have begun to use groups, by store and rank.
struct SessionCounts {
  std::mutex mu;
  std::map<std::string, uint64_t> counts;
};

using Entry = tw_status* (*)(const tw_host* h, void* group, const tw_collective_call* c);
Entry EntryOf(const tw_collective_def& d, uint32_t operation) {
  switch (operation) {
    case TW_GROUP_ALL_REDUCE: return d.all_reduce;
    case TW_GROUP_BROADCAST: return d.broadcast;
    case TW_GROUP_ALL_GATHER: return d.all_gather;
    case TW_GROUP_REDUCE_SCATTER: return d.reduce_scatter;
    case TW_GROUP_ALL_TO_ALL: return d.all_to_all;
    case TW_GROUP_PERMUTE: return d.permute ? d.permute : d.all_to_all;
    default: return nullptr;
  }
}

}  // namespace

struct Groups::Group {
  Group(std::string k, const std::string& folder) : key(std::move(k)), store(folder, [this] { return stopped.load(); }) {}
  const std::string key;
  std::atomic<bool> stopped{false};  // the members are no longer waited for
  FolderStore store;
  uint32_t members = 0;
  std::shared_ptr<const CollectiveRole> engine;
  void* handle = nullptr;  // the engine's; NULL until the group is made
  uint32_t root = 0;       // of a broadcast
  bool busy = false;       // a call is under way
  Status failure;
};

struct Groups::Call {
  Groups* groups;
  Group* group;
  KernelFrame* f;
  tw_group_call c;
  std::vector<uint32_t> sources;
  bool by_parts = false;                 // a permutation of an engine that has none
  Tensor parts, received;                // of these: one for each member
  uint64_t later = 0;                    // the call of Interrupted
  std::atomic<bool> interrupted{false};  // the step is
  bool running = false;                  // the engine has it; guarded by mu_
};

Groups::Groups(Runtime* runtime, GroupOptions options) : runtime_(runtime), options_(std::move(options)) {}

Groups::~Groups() { Leave(); }

void Groups::Leave() {
  std::map<std::string, std::unique_ptr<Group>, std::less<>> left;
  {
    std::lock_guard lock(mu_);
    left.swap(groups_);
  }
  for (auto& [key, g] : left) {
    if (g && g->handle) g->engine->def.destroy(g->engine->host, g->handle);
  }
}

// All members make their sessions in the same order, so that equal numbers meet. The number keeps the
// keys of a session apart from those of an earlier one.
uint64_t Groups::Session() {
  if (session_) return session_;
  const auto all = runtime_->Common<SessionCounts>();
  std::lock_guard lock(all->mu);
  return session_ = ++all->counts[StrCat(options_.rank, " ", options_.store)];
}

StatusOr<std::shared_ptr<const CollectiveRole>> Groups::EngineFor(const Device& device) const {
  auto found = runtime_->registry().RolesOf<CollectiveRole>(options_.engine, device.kind());
  if (found.empty()) {
    return NotFound("no collective engine ", options_.engine.empty() ? std::string() : StrCat("'", Shown(options_.engine), "' "),
                    "for devices of kind ", device.kind(), " is registered; load the plugin that provides it");
  }
  return *std::min_element(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::pair(a->name != kUsualEngine, std::string_view(a->name)) < std::pair(b->name != kUsualEngine, std::string_view(b->name));
  });
}

Status Groups::CheckCall(const KernelFrame& f, const tw_group_call& c, uint32_t members) const {
  if (members > options_.members) {
    return InvalidArgument("the group has ", members, " members, but the session has only ", options_.members, " (collective_members)");
  }
  if (options_.rank >= members) {
    return InvalidArgument("the group has ", members, " members, and this one has rank ", options_.rank, "; leave out its call");
  }
  const bool receives = c.operation == TW_GROUP_BROADCAST && c.in == kNoInput;
  if ((!receives && c.in >= f.c.n_in) || c.out >= f.c.n_out) return InvalidArgument("there is no input ", c.in, " or no output ", c.out);
  if (c.operation == TW_GROUP_PERMUTE && c.n_sources != members) {
    return InvalidArgument("there are ", c.n_sources, " sources for ", members, " members");
  }
  if (f.c.out[c.out]->rank < 0) return FailedPrecondition("output ", c.out, " has no memory yet");
  if (!f.run->device->host_memory()) return Unimplemented("groups work on host memory, not on that of ", f.run->device->name());
  if (!f.c.token) return FailedPrecondition("the call has no token: operations of groups are for asynchronous kernels");
  return Status();
}

Status Groups::Start(KernelFrame* f, const tw_group_call& c) {
  const std::string key(c.key, size_t(c.key_len));
  const uint32_t members = c.members ? c.members : options_.members;
  RETURN_IF_ERROR(CheckCall(*f, c, members));
  auto call = std::make_unique<Call>();
  call->groups = this;
  call->f = f;
  call->c = c;
  if (c.sources) call->sources.assign(c.sources, c.sources + c.n_sources);
  bool made = false;
  {
    std::lock_guard lock(mu_);
    RETURN_IF_ERROR(stop_);
    auto& g = groups_[key];
    if (!g) {
      ASSIGN_OR_RETURN(auto engine, EngineFor(*f->run->device));
      g = std::make_unique<Group>(key, options_.store);
      g->members = members;
      g->engine = std::move(engine);
    }
    if (!g->failure.ok()) return Prefix(g->failure, StrCat("group '", Shown(key), "' has failed before:"));
    if (g->members != members) return InvalidArgument("group '", Shown(key), "' has ", g->members, " members, not ", members);
    if (g->busy) {
      return FailedPrecondition("a call of group '", Shown(key), "' is under way; run steps with collectives one after another, and give ",
                                "each operation its own key");
    }
    g->busy = true;
    call->group = g.get();
    made = g->handle != nullptr;
  }
  Call* started = call.release();
  LaterCalls::Get().WhenInterrupted(*f->step, Interrupted, started, nullptr, &started->later);
  if (made) {
    Launch(started);
  } else {
    runtime_->pool().Blocking([this, started] { Make(started); });
  }
  return Status();
}

void Groups::Interrupted(void* arg) {
  auto* call = static_cast<Call*>(arg);
  Groups* groups = call->groups;
  call->interrupted = true;
  {
    std::lock_guard lock(groups->mu_);
    call->group->stopped = true;
    if (!call->running) return;  // Launch looks at `interrupted`
  }
  groups->Abort(*call->group, StepInterrupted(*call->f->step));
}

void Groups::Abort(const Group& group, const Status& why) {
  tw_status* s = ToC(why.ok() ? Error(absl::StatusCode::kCancelled, "the step was cancelled") : why);
  group.engine->def.abort(group.engine->host, group.handle, s);
  (void)FromC(s);
}

void Groups::Make(Call* call) {
  Status s;
  try {
    s = Join(call);
    if (s.ok() && call->c.operation == TW_GROUP_BROADCAST) s = FindRoot(call);
  } catch (...) {
    s = Thrown();
  }
  if (s.ok()) return Launch(call);
  const Status why = call->interrupted ? StepInterrupted(*call->f->step) : Status();
  Done(call, why.ok() ? std::move(s) : why);
}

Status Groups::Join(Call* call) {
  Group* g = call->group;
  std::string name;
  {
    std::lock_guard lock(mu_);
    name = StrCat(Session(), "/", g->key);
  }
  tw_group_config c = {TW_SIZED(tw_group_config)};
  c.name = name.data();
  c.name_len = name.size();
  c.rank = options_.rank;
  c.members = g->members;
  c.store = FolderStore::Api();
  c.store_self = &g->store;
  c.native = "";
  c.deadline = call->c.timeout > 0 ? call->c.timeout : options_.timeout;
  void* handle = nullptr;
  RETURN_IF_ERROR(FromC(g->engine->def.create(g->engine->host, g->engine->def.user, &c, &handle)));
  std::lock_guard lock(mu_);
  g->handle = handle;
  return Status();
}

// The receivers of a broadcast do not know who sends: each member adds its rank if it does.
Status Groups::FindRoot(Call* call) {
  Group* g = call->group;
  ASSIGN_OR_RETURN(Tensor in, Tensor::Make(TW_INT64, Shape{2}));
  ASSIGN_OR_RETURN(Tensor out, Tensor::Make(TW_INT64, Shape{2}));
  auto* numbers = static_cast<int64_t*>(in.view().data);
  numbers[0] = call->c.sends;
  numbers[1] = call->c.sends ? options_.rank : 0;
  auto* line = new tw_timeline;
  tw_collective_call c = {TW_SIZED(tw_collective_call)};
  c.reduce = TW_REDUCE_SUM;
  c.in = &in.view();
  c.out = &out.view();
  c.line = line;
  c.value = 1;
  Status s = FromC(g->engine->def.all_reduce(g->engine->host, g->handle, &c));
  if (s.ok()) s = line->Wait(1);
  line->Release();
  RETURN_IF_ERROR(s);
  const auto* sums = static_cast<const int64_t*>(out.view().data);
  if (sums[0] != 1) return InvalidArgument(sums[0], " members send, and one must");
  g->root = uint32_t(sums[1]);
  return Status();
}

// For an engine without permute, a permutation is an all_to_all in which each member has a value for
// few others, and zeros for the rest.
Status Groups::MakeParts(Call* call) {
  const tw_view& in = *call->f->c.in[call->c.in];
  const Shape shape{int64_t(call->sources.size()), int64_t(in.count)};
  ASSIGN_OR_RETURN(call->parts, Tensor::Make(in.dtype, shape));
  ASSIGN_OR_RETURN(call->received, Tensor::Make(in.dtype, shape));
  auto* parts = static_cast<char*>(call->parts.view().data);
  std::fill_n(parts, call->parts.view().bytes, 0);
  for (size_t r = 0; r < call->sources.size(); ++r) {
    if (call->sources[r] == options_.rank && in.bytes > 0) std::memcpy(parts + r * in.bytes, in.data, in.bytes);
  }
  return Status();
}

void Groups::TakePart(const Call& call) {
  const tw_view& out = *call.f->c.out[call.c.out];
  const uint32_t source = call.sources[call.groups->options_.rank];
  if (out.bytes == 0) return;
  if (source == UINT32_MAX) {
    std::memset(out.data, 0, out.bytes);
  } else {
    std::memcpy(out.data, static_cast<const char*>(call.received.view().data) + source * out.bytes, out.bytes);
  }
}

void Groups::Launch(Call* call) {
  Group* g = call->group;
  const tw_group_call& c = call->c;
  const tw_frame& f = call->f->c;
  tw_collective_call cc = {TW_SIZED(tw_collective_call)};
  cc.reduce = c.reduce;
  cc.root = g->root;
  cc.out = f.out[c.out];
  cc.in = c.in == kNoInput ? cc.out : f.in[c.in];
  cc.value = 1;
  if (c.operation == TW_GROUP_PERMUTE) {
    cc.sources = call->sources.data();
    cc.n_sources = call->sources.size();
    call->by_parts = g->engine->def.permute == nullptr;
  }
  Status s;
  if (call->by_parts) {
    s = MakeParts(call);
    cc.in = &call->parts.view();
    cc.out = &call->received.view();
  }
  if (s.ok()) {
    std::lock_guard lock(mu_);
    s = call->interrupted ? StepInterrupted(*call->f->step) : stop_;
    call->running = s.ok();
  }
  if (!s.ok()) {
    Abort(*g, s);  // the other members may be waiting for this one
    return Done(call, std::move(s));
  }
  auto* line = new tw_timeline;
  cc.line = line;
  s = FromC(EntryOf(g->engine->def, c.operation)(g->engine->host, g->handle, &cc));
  if (!s.ok()) {
    line->Release();
    Abort(*g, s);
    return Done(call, std::move(s));
  }
  line->When(
      1,
      [](void* arg, const tw_status* why) {
        auto* ended = static_cast<Call*>(arg);
        if (!why && ended->by_parts) TakePart(*ended);
        ended->groups->Done(ended, why ? why->status : Status());
      },
      call);
  line->Release();
}

void Groups::Done(Call* call, Status s) {
  LaterCalls::Get().Forget(call->later);
  if (!s.ok()) {
    s = Prefix(s, StrCat("collective '", Shown(call->group->key), "' of ", call->group->members, " members, member ", options_.rank, ":"));
  }
  {
    std::lock_guard lock(mu_);
    call->group->busy = false;
    if (!s.ok()) call->group->failure = s;
  }
  const tw_token token = call->f->c.token;
  delete call;
  AsyncCalls::Get().Complete(token, std::move(s));
}

void Groups::Stop(const Status& why) {
  std::vector<Group*> running;
  {
    std::lock_guard lock(mu_);
    if (!stop_.ok()) return;
    stop_ = why;
    for (auto& [key, g] : groups_) {
      if (!g) continue;
      g->stopped = true;
      if (g->busy && g->handle) running.push_back(g.get());
    }
  }
  for (Group* g : running) Abort(*g, why);
}

}  // namespace thalweg
