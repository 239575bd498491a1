#include "thalweg/session.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "c_api/handles.h"
#include "c_api/shim.h"
#include "distributed/cluster_session.h"
#include "framework/runtime/cancel.h"
#include "framework/session/partial_run.h"
#include "framework/session/session.h"

using thalweg::CallableSpec;
using thalweg::Guard;
using thalweg::InvalidArgument;
using thalweg::Status;
using thalweg::StrCat;
using thalweg::Tensor;

struct tw_cancel_token {
  thalweg::CancelToken token;
};

namespace thalweg {
namespace {

// Of this process, or of a cluster: one of the two is there.
struct AnySession {
  std::shared_ptr<Session> local;
  std::shared_ptr<distributed::ClusterSession> cluster;

  Status StartAsync(std::function<void()> work) const {
    return cluster ? cluster->StartAsync(std::move(work)) : local->StartAsync(std::move(work));
  }
  void EndAsync() const { cluster ? cluster->EndAsync() : local->EndAsync(); }
  Status Close() const { return cluster ? cluster->Close() : local->Close(); }
  SessionReport Report() const { return cluster ? cluster->Report() : local->Report(); }
  Status Run(const CallableSpec& spec, const Tensor* feeds, const RunOptions& options, Tensor* fetches) const {
    if (local) return local->Run(spec, feeds, options, fetches);
    RETURN_IF_ERROR(CheckOnHost(spec, feeds));
    return cluster->Run(spec, feeds, options, fetches);
  }
  void Start(const CallableSpec& spec, const Tensor* feeds, const RunOptions& options, Tensor* fetches, StepDone done) const {
    if (local) return local->Start(spec, feeds, options, fetches, std::move(done));
    if (Status s = CheckOnHost(spec, feeds); !s.ok()) return done(std::move(s));
    // The program's callback may block, and end the session: not on a thread of the transport's. Nor stays a share of the session there.
    ThreadPool& pool = cluster->graph().runtime().pool();
    cluster->Start(spec, feeds, options, fetches, [&pool, done = std::move(done)](Status s) mutable {
      pool.Blocking([done = std::move(done), s = std::move(s)] { done(s); });
    });
  }
  // What a cluster is fed travels from host memory, and what it fetches arrives there.
  static Status CheckOnHost(const CallableSpec& spec, const Tensor* feeds) {
    for (const auto* devices : {&spec.feed_devices, &spec.fetch_devices}) {
      for (const Device* d : *devices) {
        if (d) return Unimplemented("a session with a target leaves nothing on ", d->name(), " yet; feed and fetch in host memory");
      }
    }
    for (size_t i = 0; i < spec.feeds.size(); ++i) {
      if (feeds[i] && !LiesOnHost(*feeds[i].get())) {
        return InvalidArgument("the feed of '", spec.feeds[i].text(), "' lies on a device; copy it with tw_tensor_to_host first");
      }
    }
    return Status();
  }
  StatusOr<std::unique_ptr<PartialRun>> StartInParts(const CallableSpec& whole) const {
    if (local) return PartialRun::Create(local, whole);
    PartialRun::Steps steps{cluster, &cluster->graph(),
                            [c = cluster.get()](const CallableSpec& spec) { return CheckSpec(c->graph(), spec); },
                            [any = *this](const CallableSpec& spec, const Tensor* feeds, const RunOptions& options, Tensor* fetches) {
                              return any.Run(spec, feeds, options, fetches);
                            }};
    return PartialRun::Create(std::move(steps), whole);
  }
  // Only a session of one process has it. UNIMPLEMENTED, naming what.
  Status NeedLocal(std::string_view what) const {
    return local ? Status() : Unimplemented("a session with a target has no ", what, " yet; leave out the option 'target'");
  }
};

}  // namespace
}  // namespace thalweg

struct tw_session {
  std::shared_ptr<thalweg::Graph> graph;
  thalweg::AnySession session;
};

struct tw_callable {
  thalweg::AnySession session;                  // first made, last gone
  std::unique_ptr<thalweg::Callable> callable;  // NULL: the session is a cluster's
  CallableSpec spec;                            // which then keeps what is prepared for it
  uint32_t n_feeds = 0, n_fetches = 0;
};

struct tw_partial_run {
  std::shared_ptr<thalweg::Graph> graph;
  std::unique_ptr<thalweg::PartialRun> run;
};

namespace {

constexpr size_t kFirstSignature = offsetof(tw_signature, feed_devices);

// names: n of them, or NULL for none. What they name is there, or NOT_FOUND listing what is.
Status ToDevices(const thalweg::Graph& graph, const char* const* names, uint32_t n, std::vector<thalweg::Device*>* devices) {
  for (uint32_t i = 0; names && i < n; ++i) {
    devices->push_back(nullptr);
    if (!names[i]) continue;
    ASSIGN_OR_RETURN(devices->back(), thalweg::FindDevice(graph.runtime(), names[i]));
    if (devices->back()->host_memory()) devices->back() = nullptr;
  }
  return Status();
}

Status ToSpec(const thalweg::Graph& graph, const tw_signature& what, CallableSpec* spec) {
  RETURN_IF_ERROR(thalweg::CheckRecord("tw_signature", what.size, what.flags, kFirstSignature));
  if ((what.n_feeds > 0 && !what.feeds) || (what.n_fetches > 0 && !what.fetches) || (what.n_targets > 0 && !what.targets)) {
    return InvalidArgument("tw_signature: a list of ", what.n_feeds, " feeds, ", what.n_fetches, " fetches or ", what.n_targets,
                           " targets is NULL");
  }
  for (uint32_t i = 0; i < what.n_feeds; ++i) {
    ASSIGN_OR_RETURN(const thalweg::Edge e, thalweg::DecodeOutput(graph, what.feeds[i], StrCat("feed ", i)));
    spec->feeds.push_back(e);
  }
  for (uint32_t i = 0; i < what.n_fetches; ++i) {
    ASSIGN_OR_RETURN(const thalweg::Edge e, thalweg::DecodeOutput(graph, what.fetches[i], StrCat("fetch ", i)));
    spec->fetches.push_back(e);
  }
  for (uint32_t i = 0; i < what.n_targets; ++i) {
    ASSIGN_OR_RETURN(const thalweg::Node* n, thalweg::DecodeOperation(graph, what.targets[i], StrCat("target ", i)));
    spec->targets.push_back(n);
  }
  if (HAS_FIELD(what, feed_devices)) RETURN_IF_ERROR(ToDevices(graph, what.feed_devices, what.n_feeds, &spec->feed_devices));
  if (HAS_FIELD(what, fetch_devices)) RETURN_IF_ERROR(ToDevices(graph, what.fetch_devices, what.n_fetches, &spec->fetch_devices));
  return Status();
}

Status ToRunOptions(const tw_run_options* options, thalweg::RunOptions* run) {
  if (!options) return Status();
  RETURN_IF_ERROR(thalweg::CheckRecord("tw_run_options", options->size, options->flags, offsetof(tw_run_options, stats)));
  if (options->timeout_ns < 0) return InvalidArgument("tw_run_options: timeout_ns is ", options->timeout_ns, "; use 0 for none");
  run->deadline_ns = options->timeout_ns;
  run->cancel = options->cancel ? &options->cancel->token : nullptr;
  if (HAS_FIELD(*options, stats) && options->stats) run->stats = &options->stats->stats;
  return Status();
}

// As many tensors as a step feeds or fetches. Most steps find room on the stack, larger ones in what earlier steps of the thread left.
class Tensors {
 public:
  explicit Tensors(uint32_t n) {
    if (n <= kInline) return;
    spare.reserve(kMostSpare);  // so that ends need no memory
    if (!spare.empty()) {
      heap_ = std::move(spare.back());
      spare.pop_back();
    }
    heap_.resize(n);
  }
  ~Tensors() {
    if (heap_.capacity() == 0 || spare.size() >= spare.capacity()) return;
    heap_.clear();
    spare.push_back(std::move(heap_));
  }
  Tensors(const Tensors&) = delete;
  Tensor* data() { return heap_.empty() ? inline_.data() : heap_.data(); }
  Tensor& operator[](uint32_t i) { return data()[i]; }

 private:
  static constexpr uint32_t kInline = 16;
  static constexpr size_t kMostSpare = 2;  // feeds and fetches
  static thread_local std::vector<std::vector<Tensor>> spare;
  std::array<Tensor, kInline> inline_;
  std::vector<Tensor> heap_;
};
thread_local std::vector<std::vector<Tensor>> Tensors::spare;

// run(feeds, options, fetches) answers a Status.
template <class F>
tw_status* RunStep(uint32_t n_feeds, tw_tensor* const* feeds, const tw_run_options* options, uint32_t n_fetches, tw_tensor** out_fetches,
                   F&& run) {
  if (out_fetches) std::fill(out_fetches, out_fetches + n_fetches, nullptr);
  return Guard([&]() -> Status {
    if (n_feeds > 0 && !feeds) return InvalidArgument("feeds is NULL, but the signature has ", n_feeds);
    if (n_fetches > 0 && !out_fetches) return InvalidArgument("out_fetches is NULL, but the signature has ", n_fetches, " fetches");
    thalweg::RunOptions run_options;
    RETURN_IF_ERROR(ToRunOptions(options, &run_options));
    Tensors in(n_feeds), out(n_fetches);
    for (uint32_t i = 0; i < n_feeds; ++i) {
      if (!feeds[i]) return InvalidArgument("feed ", i, " is NULL");
      in[i] = Tensor::Share(feeds[i]);
    }
    RETURN_IF_ERROR(run(in.data(), run_options, out.data()));
    for (uint32_t i = 0; i < n_fetches; ++i) out_fetches[i] = out[i].release();
    return Status();
  });
}

// A run that was accepted, until its callback returns. It keeps the session.
struct AsyncRun {
  thalweg::AnySession session;
  std::vector<Tensor> feeds, fetches;
  std::vector<tw_tensor*> out;  // for the callback
  thalweg::RunOptions options;
  int64_t accepted_ns = 0;
  tw_run_done done = nullptr;
  void* user = nullptr;

  // start(feeds, options, fetches, done)
  template <class F>
  static void Start(const std::shared_ptr<AsyncRun>& r, F&& start) {
    Status s;
    try {
      s = r->Begin();
      if (s.ok()) return start(r->feeds.data(), r->options, r->fetches.data(), [r](Status over) { r->End(std::move(over)); });
    } catch (...) {
      s = thalweg::Thrown();
    }
    r->End(std::move(s));
  }

  Status Begin() {
    if (!options.deadline_ns) return Status();
    const int64_t waited = thalweg::MonotonicNs() - accepted_ns;
    if (waited >= options.deadline_ns) {
      if (options.stats) RETURN_IF_ERROR(thalweg::StepTrace::Begin(options.stats).status());  // which hold no earlier run then
      return thalweg::Error(absl::StatusCode::kDeadlineExceeded, "the time of the run was over before it began");
    }
    options.deadline_ns -= waited;
    return Status();
  }

  void End(Status s) noexcept {
    feeds.clear();
    for (size_t k = 0; k < fetches.size() && s.ok(); ++k) out[k] = fetches[k].release();
    fetches.clear();
    session.EndAsync();
    const thalweg::ThreadPool::MayBlock may_block;
    done(user, thalweg::ToC(std::move(s)), out.data());
  }
};

// start(feeds, options, fetches, done), on a thread for tasks.
template <class F>
tw_status* RunAsync(const thalweg::AnySession& session, uint32_t n_feeds, tw_tensor* const* feeds, const tw_run_options* options,
                    uint32_t n_fetches, tw_run_done done, void* user, F start) {
  return Guard([&]() -> Status {
    if (n_feeds > 0 && !feeds) return InvalidArgument("feeds is NULL, but the signature has ", n_feeds);
    auto r = std::make_shared<AsyncRun>();
    RETURN_IF_ERROR(ToRunOptions(options, &r->options));
    for (uint32_t i = 0; i < n_feeds; ++i) {
      if (!feeds[i]) return InvalidArgument("feed ", i, " is NULL");
      r->feeds.push_back(Tensor::Share(feeds[i]));
    }
    r->session = session;
    r->fetches.resize(n_fetches);
    r->out.resize(n_fetches);
    r->done = done;
    r->user = user;
    r->accepted_ns = thalweg::MonotonicNs();
    r->options.accepted = true;
    return session.StartAsync([r, start] { AsyncRun::Start(r, start); });
  });
}

}  // namespace

tw_status* tw_session_create(tw_graph* graph, const char* const* options, uint32_t n_options, tw_session** out_session) {
  NEED(graph);
  NEED(out_session);
  NEED_ARRAY(options, n_options);
  return Guard([&]() -> Status {
    thalweg::SessionOptions parsed;
    for (uint32_t i = 0; i < n_options; ++i) {
      std::string_view key, value;
      RETURN_IF_ERROR(thalweg::SplitOption(options[i], &key, &value));
      RETURN_IF_ERROR(thalweg::SetSessionOption(&parsed, key, value));
    }
    auto handle = std::make_unique<tw_session>();
    handle->graph = graph->graph;
    if (parsed.target.empty()) {
      ASSIGN_OR_RETURN(handle->session.local, thalweg::Session::Create(graph->graph, parsed));
    } else {
      std::vector<std::string> texts(options, options + n_options);
      ASSIGN_OR_RETURN(handle->session.cluster, thalweg::distributed::ClusterSession::Create(graph->graph, parsed, std::move(texts)));
    }
    *out_session = handle.release();
    return Status();
  });
}

const tw_option* tw_session_option(uint32_t i) {
  const auto rows = thalweg::SessionOptionRows();
  return i < rows.size() ? &rows[i].about : nullptr;
}

tw_status* tw_session_report(tw_session* session, tw_session_info* out_info) {
  NEED(session);
  NEED(out_info);
  return Guard([&]() -> Status {
    RETURN_IF_ERROR(thalweg::CheckRecord("tw_session_info", out_info->size, out_info->flags, offsetof(tw_session_info, steps)));
    const thalweg::SessionReport r = session->session.Report();
    tw_session_info info = {};
    info.steps = r.steps;
    info.signatures = r.signatures;
    info.plans = r.plans.plans;
    info.shapes = r.plans.shapes;
    info.hits = r.plans.hits;
    info.shape_hits = r.plans.shape_hits;
    info.misses = r.plans.misses;
    info.evictions = r.plans.evictions;
    info.block_bytes = r.block_bytes;
    info.peak_bytes = r.peak_bytes;
    info.swapped_out_bytes = r.swapped_out_bytes;
    info.swapped_in_bytes = r.swapped_in_bytes;
    info.size = out_info->size;
    std::memcpy(out_info, &info, std::min<size_t>(out_info->size, sizeof info));
    return Status();
  });
}

tw_status* tw_session_close(tw_session* session) {
  NEED(session);
  return Guard([&] { return session->session.Close(); });
}

void tw_session_destroy(tw_session* session) {
  if (!session) return;
  tw_status* status = tw_session_close(session);  // callables may hold the session on
  (void)thalweg::FromC(status);                   // nobody is left who could be told
  delete session;
}

tw_status* tw_session_run(tw_session* session, const tw_signature* what, tw_tensor* const* feeds, const tw_run_options* options,
                          tw_tensor** out_fetches) {
  NEED(session);
  NEED(what);
  if (out_fetches && what->size >= kFirstSignature) std::fill(out_fetches, out_fetches + what->n_fetches, nullptr);
  CallableSpec spec;
  if (tw_status* failed = Guard([&] { return ToSpec(*session->graph, *what, &spec); })) return failed;
  return RunStep(what->n_feeds, feeds, options, what->n_fetches, out_fetches,
                 [&](const Tensor* in, const thalweg::RunOptions& run, Tensor* out) { return session->session.Run(spec, in, run, out); });
}

tw_status* tw_callable_create(tw_session* session, const tw_signature* what, tw_callable** out_callable) {
  NEED(session);
  NEED(what);
  NEED(out_callable);
  return Guard([&]() -> Status {
    CallableSpec spec;
    RETURN_IF_ERROR(ToSpec(*session->graph, *what, &spec));
    auto handle = std::make_unique<tw_callable>();
    handle->session = session->session;
    if (handle->session.local) {
      ASSIGN_OR_RETURN(handle->callable, handle->session.local->MakeCallable(spec));
    } else {
      RETURN_IF_ERROR(CheckSpec(handle->session.cluster->graph(), spec));
      handle->spec = std::move(spec);
    }
    handle->n_feeds = what->n_feeds;
    handle->n_fetches = what->n_fetches;
    *out_callable = handle.release();
    return Status();
  });
}

tw_status* tw_callable_run(tw_callable* callable, tw_tensor* const* feeds, const tw_run_options* options, tw_tensor** out_fetches) {
  NEED(callable);
  return RunStep(callable->n_feeds, feeds, options, callable->n_fetches, out_fetches,
                 [&](const Tensor* in, const thalweg::RunOptions& run, Tensor* out) {
                   return callable->callable ? callable->callable->Run(in, run, out)
                                             : callable->session.cluster->Run(callable->spec, in, run, out);
                 });
}

tw_status* tw_callable_plan_json(tw_callable* callable, const tw_shape* feed_shapes, tw_buffer** out_json) {
  NEED(callable);
  NEED(out_json);
  *out_json = nullptr;
  return Guard([&]() -> Status {
    RETURN_IF_ERROR(callable->session.NeedLocal("plan"));
    std::vector<thalweg::Shape> shapes;
    for (uint32_t i = 0; feed_shapes && i < callable->n_feeds; ++i) {
      const tw_shape& s = feed_shapes[i];
      if (s.rank < 0 || s.rank > thalweg::kMaxRank || (s.rank > 0 && !s.dims)) {
        return InvalidArgument("feed_shapes[", i, "] has rank ", s.rank,
                               s.rank > 0 && !s.dims ? " and no dims" : "; all sizes must be known");
      }
      shapes.emplace_back(s);
    }
    ASSIGN_OR_RETURN(std::string text, callable->callable->PlanText(feed_shapes ? &shapes : nullptr));
    *out_json = thalweg::MakeBuffer(std::move(text));
    return Status();
  });
}

void tw_callable_destroy(tw_callable* callable) { delete callable; }

tw_status* tw_session_run_async(tw_session* session, const tw_signature* what, tw_tensor* const* feeds, const tw_run_options* options,
                                tw_run_done done, void* user) {
  NEED(session);
  NEED(what);
  NEED(done);
  std::shared_ptr<CallableSpec> spec;
  tw_status* failed = Guard([&] {
    spec = std::make_shared<CallableSpec>();
    return ToSpec(*session->graph, *what, spec.get());
  });
  if (failed) return failed;
  return RunAsync(session->session, what->n_feeds, feeds, options, what->n_fetches, done, user,
                  [session = session->session, spec](const Tensor* in, const thalweg::RunOptions& run, Tensor* out,
                                                     thalweg::StepDone over) { session.Start(*spec, in, run, out, std::move(over)); });
}

tw_status* tw_callable_run_async(tw_callable* callable, tw_tensor* const* feeds, const tw_run_options* options, tw_run_done done,
                                 void* user) {
  NEED(callable);
  NEED(done);
  return RunAsync(callable->session, callable->n_feeds, feeds, options, callable->n_fetches, done, user,
                  [callable](const Tensor* in, const thalweg::RunOptions& run, Tensor* out, thalweg::StepDone over) {
                    if (callable->callable) return callable->callable->Start(in, run, out, std::move(over));
                    callable->session.Start(callable->spec, in, run, out, std::move(over));
                  });
}

tw_status* tw_partial_run_create(tw_session* session, const tw_signature* whole, tw_partial_run** out_run) {
  NEED(session);
  NEED(whole);
  NEED(out_run);
  *out_run = nullptr;
  return Guard([&]() -> Status {
    CallableSpec spec;
    RETURN_IF_ERROR(ToSpec(*session->graph, *whole, &spec));
    auto handle = std::make_unique<tw_partial_run>();
    handle->graph = session->graph;
    ASSIGN_OR_RETURN(handle->run, session->session.StartInParts(spec));
    *out_run = handle.release();
    return Status();
  });
}

tw_status* tw_partial_run_run(tw_partial_run* run, const tw_signature* part, tw_tensor* const* feeds, const tw_run_options* options,
                              tw_tensor** out_fetches) {
  NEED(run);
  NEED(part);
  if (out_fetches && part->size >= kFirstSignature) std::fill(out_fetches, out_fetches + part->n_fetches, nullptr);
  CallableSpec spec;
  if (tw_status* failed = Guard([&] { return ToSpec(*run->graph, *part, &spec); })) return failed;
  return RunStep(part->n_feeds, feeds, options, part->n_fetches, out_fetches,
                 [&](const Tensor* in, const thalweg::RunOptions& how, Tensor* out) { return run->run->Run(spec, in, how, out); });
}

uint64_t tw_partial_run_left(const tw_partial_run* run) { return run ? run->run->left() : 0; }

void tw_partial_run_destroy(tw_partial_run* run) { delete run; }

tw_status* tw_cancel_token_create(tw_cancel_token** out_token) {
  NEED(out_token);
  return Guard([&] {
    *out_token = new tw_cancel_token;
    return Status();
  });
}

void tw_cancel_token_cancel(tw_cancel_token* token) {
  if (token) token->token.Cancel();
}

uint32_t tw_cancel_token_cancelled(const tw_cancel_token* token) { return token && token->token.cancelled() ? 1 : 0; }

void tw_cancel_token_destroy(tw_cancel_token* token) { delete token; }
