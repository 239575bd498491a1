#include "thalweg/session.h"

#include <algorithm>
#include <cstring>

#include "c_api/geometry.h"
#include "c_api/session_options.h"
#include "c_api/step_call.h"
#include "distributed/sandbox/session.h"
#include "framework/base/shown.h"
#include "framework/session/options.h"

using thalweg::CallableSpec;
using thalweg::Enter;
using thalweg::InvalidArgument;
using thalweg::kFirstSignature;
using thalweg::RunAsync;
using thalweg::RunStep;
using thalweg::Status;
using thalweg::StrCat;
using thalweg::Tensor;
using thalweg::ToSpec;

struct tw_session {
  std::shared_ptr<thalweg::Graph> graph;
  thalweg::AnySession session;
};

struct tw_callable {
  thalweg::AnySession session;                  // declared first, so destroyed last
  std::unique_ptr<thalweg::Callable> callable;  // NULL: a session of a cluster
  CallableSpec spec;                            // used for a cluster; also caches its prepared state
  uint32_t n_feeds = 0, n_fetches = 0;
};

struct tw_partial_run {
  std::shared_ptr<thalweg::Graph> graph;
  std::unique_ptr<thalweg::PartialRun> run;
};

tw_status* tw_session_create(tw_graph* graph, const char* const* options, uint32_t n_options, tw_session** out_session) {
  NEED(graph);
  NEED(out_session);
  NEED_ARRAY(options, n_options);
  return Enter([&]() -> Status {
    thalweg::SessionOptions parsed;
    RETURN_IF_ERROR(thalweg::ReadSessionOptions(options, n_options, &parsed));
    auto handle = std::make_unique<tw_session>();
    handle->graph = graph->graph;
    if (parsed.sandbox != "off") {
      std::vector<std::string> texts(options, options + n_options);
      ASSIGN_OR_RETURN(handle->session.cluster, thalweg::distributed::CreateSandboxed(graph->graph, parsed, std::move(texts)));
    } else if (parsed.target.empty()) {
      if (!parsed.lease.empty()) {
        return thalweg::InvalidArgument("session option 'lease' is '", thalweg::Shown(parsed.lease[0]),
                                        "', and there is no target; only tasks of a cluster lease containers, so leave it out");
      }
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
  return Enter([&]() -> Status {
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
  return Enter([&] { return session->session.Close(); });
}

tw_status* tw_session_reset(tw_session* session, const char* container, uint64_t* out_count) {
  NEED(session);
  if (out_count) *out_count = 0;
  return Enter([&]() -> Status {
    ASSIGN_OR_RETURN(const uint64_t count, session->session.Reset(thalweg::TextOrEmpty(container)));
    if (out_count) *out_count = count;
    return Status();
  });
}

void tw_session_destroy(tw_session* session) {
  if (!session) return;
  tw_status* status = tw_session_close(session);  // explicit, because callables may keep the session alive
  (void)thalweg::FromC(status);                   // there is no caller to report to
  delete session;
}

tw_status* tw_session_run(tw_session* session, const tw_signature* what, tw_tensor* const* feeds, const tw_run_options* options,
                          tw_tensor** out_fetches) {
  NEED(session);
  NEED(what);
  if (out_fetches && what->size >= kFirstSignature) std::fill(out_fetches, out_fetches + what->n_fetches, nullptr);
  CallableSpec spec;
  if (tw_status* failed = Enter([&] { return ToSpec(*session->graph, *what, &spec); })) return failed;
  return RunStep(what->n_feeds, feeds, options, what->n_fetches, out_fetches,
                 [&](const Tensor* in, const thalweg::RunOptions& run, Tensor* out) { return session->session.Run(spec, in, run, out); });
}

tw_status* tw_callable_create(tw_session* session, const tw_signature* what, tw_callable** out_callable) {
  NEED(session);
  NEED(what);
  NEED(out_callable);
  return Enter([&]() -> Status {
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
  return Enter([&]() -> Status {
    RETURN_IF_ERROR(callable->session.NeedLocal("plan"));
    std::vector<thalweg::Shape> shapes;
    for (uint32_t i = 0; feed_shapes && i < callable->n_feeds; ++i) {
      auto shape = thalweg::ToShape(feed_shapes[i].dims, feed_shapes[i].rank);
      if (!shape.ok()) return thalweg::Prefix(shape.status(), StrCat("feed_shapes[", i, "]:"));
      if (!shape->has_rank()) return InvalidArgument("feed_shapes[", i, "] has no rank; all sizes must be known");
      shapes.push_back(*std::move(shape));
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
  tw_status* failed = Enter([&] {
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
  return Enter([&]() -> Status {
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
  if (tw_status* failed = Enter([&] { return ToSpec(*run->graph, *part, &spec); })) return failed;
  return RunStep(part->n_feeds, feeds, options, part->n_fetches, out_fetches,
                 [&](const Tensor* in, const thalweg::RunOptions& how, Tensor* out) { return run->run->Run(spec, in, how, out); });
}

uint64_t tw_partial_run_left(const tw_partial_run* run) { return run ? run->run->left() : 0; }

void tw_partial_run_destroy(tw_partial_run* run) { delete run; }

tw_status* tw_cancel_token_create(tw_cancel_token** out_token) {
  NEED(out_token);
  return Enter([&] {
    *out_token = new tw_cancel_token;
    return Status();
  });
}

void tw_cancel_token_cancel(tw_cancel_token* token) {
  if (token) token->token.Cancel();
}

uint32_t tw_cancel_token_cancelled(const tw_cancel_token* token) { return token && token->token.cancelled() ? 1 : 0; }

void tw_cancel_token_destroy(tw_cancel_token* token) { delete token; }
