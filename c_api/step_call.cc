#include "c_api/step_call.h"

#include "framework/runtime/devices/device.h"
#include "framework/runtime/runtime.h"
#include "framework/runtime/runtime_of.h"
#include "framework/runtime/trace/step_trace.h"

namespace thalweg {

// Finds the devices that `names` lists (n of them, or NULL for none). NOT_FOUND lists the existing
// ones.
static Status ToDevices(const Graph& graph, const char* const* names, uint32_t n, std::vector<Device*>* devices) {
  for (uint32_t i = 0; names && i < n; ++i) {
    devices->push_back(nullptr);
    if (!names[i]) continue;
    ASSIGN_OR_RETURN(devices->back(), FindDevice(RuntimeOf(graph), names[i]));
    if (devices->back()->host_memory()) devices->back() = nullptr;
  }
  return Status();
}

Status ToSpec(const Graph& graph, const tw_signature& what, CallableSpec* spec) {
  RETURN_IF_ERROR(CheckRecord("tw_signature", what.size, what.flags, kFirstSignature));
  if ((what.n_feeds > 0 && !what.feeds) || (what.n_fetches > 0 && !what.fetches) || (what.n_targets > 0 && !what.targets)) {
    return InvalidArgument("tw_signature: a list of ", what.n_feeds, " feeds, ", what.n_fetches, " fetches or ", what.n_targets,
                           " targets is NULL");
  }
  for (uint32_t i = 0; i < what.n_feeds; ++i) {
    ASSIGN_OR_RETURN(const Edge e, DecodeOutput(graph, what.feeds[i], StrCat("feed ", i)));
    spec->feeds.push_back(e);
  }
  for (uint32_t i = 0; i < what.n_fetches; ++i) {
    ASSIGN_OR_RETURN(const Edge e, DecodeOutput(graph, what.fetches[i], StrCat("fetch ", i)));
    spec->fetches.push_back(e);
  }
  for (uint32_t i = 0; i < what.n_targets; ++i) {
    ASSIGN_OR_RETURN(const Node* n, DecodeOperation(graph, what.targets[i], StrCat("target ", i)));
    spec->targets.push_back(n);
  }
  if (HAS_FIELD(what, feed_devices)) RETURN_IF_ERROR(ToDevices(graph, what.feed_devices, what.n_feeds, &spec->feed_devices));
  if (HAS_FIELD(what, fetch_devices)) RETURN_IF_ERROR(ToDevices(graph, what.fetch_devices, what.n_fetches, &spec->fetch_devices));
  return Status();
}

Status ToRunOptions(const tw_run_options* options, RunOptions* run) {
  if (!options) return Status();
  RETURN_IF_ERROR(CheckRecord("tw_run_options", options->size, options->flags, offsetof(tw_run_options, stats)));
  if (options->timeout_ns < 0) return InvalidArgument("tw_run_options: timeout_ns is ", options->timeout_ns, "; use 0 for none");
  run->deadline_ns = options->timeout_ns;
  run->cancel = options->cancel ? &options->cancel->token : nullptr;
  if (HAS_FIELD(*options, stats) && options->stats) run->stats = &options->stats->stats;
  return Status();
}

thread_local std::vector<std::vector<Tensor>> Tensors::spare;

Status AsyncRun::Begin() {
  if (!options.deadline_ns) return Status();
  const int64_t waited = MonotonicNs() - accepted_ns;
  if (waited >= options.deadline_ns) {
    if (options.stats) RETURN_IF_ERROR(StepTrace::Begin(options.stats).status());  // clears the record of an earlier run
    return Error(absl::StatusCode::kDeadlineExceeded, "the time of the run was over before it began");
  }
  options.deadline_ns -= waited;
  return Status();
}

void AsyncRun::End(Status s) noexcept {
  feeds.clear();
  for (size_t k = 0; k < fetches.size() && s.ok(); ++k) out[k] = fetches[k].release();
  fetches.clear();
  session.EndAsync();
  const ThreadPool::MayBlock may_block;
  done(user, ToC(std::move(s)), out.data());
}

}  // namespace thalweg
