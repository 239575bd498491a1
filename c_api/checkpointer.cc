#include "thalweg/checkpointer.h"

#include <cstring>

#include "c_api/handles.h"
#include "c_api/shim.h"
#include "framework/io/checkpoint.h"
#include "framework/io/checkpointer.h"
#include "framework/runtime/runtime_of.h"
#include "ops/library/saver_behind.h"
#include "thalweg/log.h"

using thalweg::Checkpointer;
using thalweg::FromC;
using thalweg::InvalidArgument;
using thalweg::NamedTensors;
using thalweg::Status;
using thalweg::StatusOr;
using thalweg::Tensor;

struct tw_checkpointer {
  tw_saver* saver;
  tw_session* session;
  std::shared_ptr<thalweg::Graph> graph;  // of the saver; keeps alive the runtime whose log the writer thread uses
  bool smaller_is_better, background;
  std::unique_ptr<Checkpointer> checkpointer;
};

namespace {

constexpr uint32_t kFlags = TW_CHECKPOINTER_BACKGROUND | TW_CHECKPOINTER_SKIP | TW_CHECKPOINTER_SMALLER_IS_BETTER;

StatusOr<thalweg::CheckpointerOptions> ToOptions(const tw_checkpointer_options& o) {
  if (o.shards > thalweg::kMostDataFiles) {
    return InvalidArgument("tw_checkpointer_options: shards is ", o.shards, "; at most ", thalweg::kMostDataFiles, " are possible");
  }
  if (o.reserved != 0) return InvalidArgument("tw_checkpointer_options: reserved is ", o.reserved, "; set what is not used to 0");
  thalweg::CheckpointerOptions options;
  options.keep = {o.keep_last, o.keep_best, (o.flags & TW_CHECKPOINTER_SMALLER_IS_BETTER) != 0, o.keep_every_seconds};
  options.shards = o.shards ? int32_t(o.shards) : 1;
  options.every_steps = o.every_steps;
  options.every_seconds = o.every_seconds;
  options.background = (o.flags & TW_CHECKPOINTER_BACKGROUND) != 0;
  options.skip_if_busy = (o.flags & TW_CHECKPOINTER_SKIP) != 0;
  return options;
}

// Copies the caller's record over the defaults.
StatusOr<tw_checkpointer_options> ReadOptions(const tw_checkpointer_options* given) {
  tw_checkpointer_options options;
  tw_checkpointer_options_init(&options);
  if (!given) return options;
  RETURN_IF_ERROR(thalweg::CheckRecord("tw_checkpointer_options", given->size, 0, sizeof(options)));
  if (given->flags & ~kFlags) return InvalidArgument("tw_checkpointer_options: flags is ", given->flags, "; known are 1, 2 and 4");
  std::memcpy(&options, given, sizeof(options));
  return options;
}

StatusOr<NamedTensors> ReadValues(const tw_checkpointer& c) {
  const uint32_t n = tw_saver_count(c.saver);
  std::vector<tw_tensor*> values(n);
  RETURN_IF_ERROR(FromC(tw_saver_values(c.saver, c.session, values.data())));
  NamedTensors named;
  for (uint32_t i = 0; i < n; ++i) named.emplace_back(tw_saver_name(c.saver, i), Tensor::Adopt(values[i]));
  return named;
}

// For savers with TW_SAVER_BY_TASK: the values stay on their tasks. taken: called when all are read.
StatusOr<uint64_t> SaveTasks(const tw_checkpointer& c, const std::string& prefix, const std::function<void()>& taken) {
  RETURN_IF_ERROR(FromC(c.background ? thalweg::library::SaveBehind(c.saver, c.session, prefix, taken)
                                     : tw_saver_save(c.saver, c.session, prefix.c_str())));
  ASSIGN_OR_RETURN(const auto reader, thalweg::CheckpointReader::Open(prefix, RuntimeOf(*c.graph).files()));
  uint64_t bytes = 0;
  for (const thalweg::CheckpointEntry* e : reader->entries()) bytes += e->size;
  return bytes;
}

std::optional<double> ToMetric(const double* metric) { return metric ? std::optional<double>(*metric) : std::nullopt; }

// *whole: false if the checkpoint is damaged or missing; true if it does not fit or cannot be read
// now.
Status TryRestore(const tw_checkpointer& c, const std::string& prefix, bool* whole) {
  Status s = thalweg::CheckpointReader::Open(prefix, RuntimeOf(*c.graph).files()).status();
  *whole = !thalweg::IsNoWholeCheckpoint(s);
  if (!s.ok()) return s;
  s = FromC(tw_saver_restore(c.saver, c.session, prefix.c_str()));
  *whole = !absl::IsDataLoss(s);
  // NOT_FOUND is reserved for a missing checkpoint, so a missing tensor of a variable gets another
  // code.
  return absl::IsNotFound(s) ? thalweg::FailedPrecondition(thalweg::Message(s)) : s;
}

// Restores the first complete checkpoint of `candidates`; reports the skipped ones to `skipped` and
// to the log.
StatusOr<std::string> RestoreFirst(const tw_checkpointer& c, const std::vector<std::string>& candidates,
                                   std::vector<std::string>* skipped) {
  const auto log = [&](const std::string& line) { c.graph->host().Log(TW_LOG_WARNING, line); };
  for (const std::string& line : *skipped) log(line);
  for (const std::string& prefix : candidates) {
    bool whole;
    const Status s = TryRestore(c, prefix, &whole);
    if (s.ok()) return prefix;
    if (whole) return s;
    skipped->push_back(thalweg::StrCat("passed over: ", thalweg::Message(s)));
    log(skipped->back());
  }
  std::string lines;
  for (const std::string& line : *skipped) lines += "\n  " + line;
  const std::string where = thalweg::StrCat("folder '", c.checkpointer->folder().folder(), "' has no ");
  if (candidates.empty()) return thalweg::NotFound(where, "checkpoint", lines);
  return thalweg::DataLoss(where, "whole checkpoint; remove what is damaged to start anew", lines);
}

StatusOr<std::string> Restore(const tw_checkpointer& c, uint32_t which, std::vector<std::string>* skipped) {
  const thalweg::CheckpointFolder& folder = c.checkpointer->folder();
  if (which == TW_CHECKPOINT_BEST) {
    ASSIGN_OR_RETURN(const std::string best,
                     thalweg::BestCheckpoint(folder.folder(), folder.name(), c.smaller_is_better, RuntimeOf(*c.graph).files()));
    bool whole;
    RETURN_IF_ERROR(TryRestore(c, best, &whole));
    return best;
  }
  if (which != TW_CHECKPOINT_LATEST) return InvalidArgument("tw_checkpointer_restore: which is ", which, "; it is 0, latest, or 1, best");
  ASSIGN_OR_RETURN(const std::vector<std::string> candidates,
                   thalweg::FindCheckpoints(folder.folder(), folder.name(), RuntimeOf(*c.graph).files(), skipped));
  return RestoreFirst(c, candidates, skipped);
}

}  // namespace

void tw_checkpointer_options_init(tw_checkpointer_options* options) {
  if (!options) return;
  *options = {};
  options->size = sizeof(*options);
  options->every_seconds = 600;
  options->keep_last = 5;
}

tw_status* tw_checkpointer_create(tw_saver* saver, tw_session* session, const char* folder, const tw_checkpointer_options* given,
                                  tw_checkpointer** out_checkpointer) {
  NEED(saver);
  NEED(session);
  NEED(folder);
  NEED(out_checkpointer);
  return thalweg::Enter([&]() -> Status {
    ASSIGN_OR_RETURN(const tw_checkpointer_options o, ReadOptions(given));
    ASSIGN_OR_RETURN(const thalweg::CheckpointerOptions options, ToOptions(o));
    const std::shared_ptr<thalweg::Graph> graph = tw_saver_graph(saver)->graph;
    auto log = [graph](uint32_t level, std::string_view text) { graph->host().Log(level, text); };
    auto made = std::make_unique<tw_checkpointer>(
        tw_checkpointer{saver, session, graph, options.keep.smaller_is_better, options.background, nullptr});
    ASSIGN_OR_RETURN(made->checkpointer,
                     Checkpointer::Open(folder, o.name ? o.name : "model.ckpt", options, log, RuntimeOf(*graph).files()));
    *out_checkpointer = made.release();
    return Status();
  });
}

void tw_checkpointer_destroy(tw_checkpointer* checkpointer) { delete checkpointer; }

tw_status* tw_checkpointer_step(tw_checkpointer* c, int64_t step, const double* metric, uint32_t* out_saved) {
  if (out_saved) *out_saved = 0;
  if (!c) return thalweg::NullArgument(__func__, "checkpointer");
  return thalweg::Enter([&]() -> Status {
    const auto by_task = [&] {
      return c->checkpointer->StepBy(step, ToMetric(metric), [c](auto& prefix, auto& taken) { return SaveTasks(*c, prefix, taken); });
    };
    const auto by_values = [&] { return c->checkpointer->Step(step, ToMetric(metric), [c] { return ReadValues(*c); }); };
    ASSIGN_OR_RETURN(const bool saved, tw_saver_task_count(c->saver) ? by_task() : by_values());
    if (out_saved) *out_saved = saved;
    return Status();
  });
}

tw_status* tw_checkpointer_save(tw_checkpointer* c, int64_t step, const double* metric) {
  if (!c) return thalweg::NullArgument(__func__, "checkpointer");
  return thalweg::Enter([&] {
    if (tw_saver_task_count(c->saver) == 0) return c->checkpointer->Save(step, ToMetric(metric), [c] { return ReadValues(*c); });
    return c->checkpointer->SaveBy(step, ToMetric(metric), [c](auto& prefix, auto& taken) { return SaveTasks(*c, prefix, taken); });
  });
}

tw_status* tw_checkpointer_wait(tw_checkpointer* c) {
  if (!c) return thalweg::NullArgument(__func__, "checkpointer");
  return thalweg::Enter([&] { return c->checkpointer->Wait(); });
}

tw_status* tw_checkpointer_restore(tw_checkpointer* c, uint32_t which, int64_t* out_step, tw_buffer** out_skipped) {
  if (out_skipped) *out_skipped = nullptr;
  if (!c) return thalweg::NullArgument(__func__, "checkpointer");
  return thalweg::Enter([&]() -> Status {
    RETURN_IF_ERROR(c->checkpointer->Wait());
    std::vector<std::string> skipped;
    ASSIGN_OR_RETURN(const std::string prefix, Restore(*c, which, &skipped));
    const int64_t step = std::max<int64_t>(thalweg::StepOfCheckpoint(prefix), 0);
    c->checkpointer->StartFrom(step);
    if (out_step) *out_step = step;
    std::string lines;
    for (const std::string& line : skipped) lines += line + "\n";
    if (out_skipped) *out_skipped = thalweg::MakeBuffer(lines);
    return Status();
  });
}

tw_status* tw_checkpointer_report(const tw_checkpointer* c, tw_checkpointer_stats* out_stats) {
  if (!c) return thalweg::NullArgument(__func__, "checkpointer");
  NEED(out_stats);
  return thalweg::Enter([&]() -> Status {
    const uint32_t size = out_stats->size;
    RETURN_IF_ERROR(thalweg::CheckRecord("tw_checkpointer_stats", size, out_stats->flags, sizeof(tw_checkpointer_stats)));
    const thalweg::CheckpointReport r = c->checkpointer->report();
    *out_stats = {size, 0, r.step, r.stall_ns, r.write_ns, r.bytes, r.saves, r.skipped, r.failed};
    return Status();
  });
}
