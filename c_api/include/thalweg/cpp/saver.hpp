/* tw::Saver and tw::Checkpointer (saver.h, checkpointer.h). Threads: as the C objects. Since 0.1. */
#ifndef THALWEG_CPP_SAVER_HPP
#define THALWEG_CPP_SAVER_HPP
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "thalweg/checkpointer.h"
#include "thalweg/cpp/graph.hpp"
#include "thalweg/cpp/handle.hpp"
#include "thalweg/cpp/session.hpp"
#include "thalweg/saver.h"

namespace tw {

/* Saves and restores variables; see saver.h. The graph must outlive it. */
class Saver : public Owned<tw_saver, tw_saver_destroy> {
 public:
  /* Pairs of a variable and its name in files, or of name prefixes that end in `*`. */
  using Names = std::vector<std::pair<std::string, std::string>>;
  struct Restored {
    uint32_t outcome; /* TW_RESTORE_... */
    std::string variable, name, text;
  };

  /* flags: TW_SAVER_... */
  explicit Saver(const Graph& graph, const std::vector<tw_output>& variables = {}, const Names& names = {}, uint32_t shards = 1,
                 uint32_t flags = 0) {
    std::vector<const char*> from, to;
    for (const auto& [variable, name] : names) {
      from.push_back(variable.c_str());
      to.push_back(name.c_str());
    }
    tw_saver_options options = {};
    options.size = sizeof(options);
    options.flags = flags;
    options.variables = from.data();
    options.names = to.data();
    options.n_names = uint32_t(names.size());
    options.shards = shards;
    tw_saver* made = nullptr;
    raise(tw_saver_create_with(graph.c(), variables.data(), uint32_t(variables.size()), &options, &made));
    own(made);
  }
  void save(Session& session, const std::string& prefix) { raise(tw_saver_save(c(), session.c(), prefix.c_str())); }
  void restore(Session& session, const std::string& prefix) { raise(tw_saver_restore(c(), session.c(), prefix.c_str())); }
  /* With TW_SAVER_BY_TASK: the tasks that save their own variables, and the restore of one of
   * them. */
  std::vector<std::string> tasks() const {
    std::vector<std::string> all;
    for (uint32_t k = 0; k < tw_saver_task_count(c()); ++k) all.emplace_back(tw_saver_task(c(), k));
    return all;
  }
  void restore_task(Session& session, const std::string& prefix, uint32_t k) {
    raise(tw_saver_restore_task(c(), session.c(), prefix.c_str(), k));
  }
  std::vector<Restored> restore_partial(Session& session, const std::string& prefix) {
    tw_restore_report* made = nullptr;
    raise(tw_saver_restore_partial(c(), session.c(), prefix.c_str(), &made));
    const std::unique_ptr<tw_restore_report, void (*)(tw_restore_report*)> report(made, tw_restore_report_destroy);
    std::vector<Restored> all;
    for (uint32_t i = 0; i < tw_restore_report_count(made); ++i) {
      const char* variable = tw_restore_report_variable(made, i);
      all.push_back(
          {tw_restore_report_outcome(made, i), variable ? variable : "", tw_restore_report_name(made, i), tw_restore_report_text(made, i)});
    }
    return all;
  }
};

/* Keeps checkpoints of a session in a folder; see checkpointer.h. Saver and session must outlive it. */
class Checkpointer : public Owned<tw_checkpointer, tw_checkpointer_destroy> {
 public:
  static tw_checkpointer_options defaults() {
    tw_checkpointer_options options;
    tw_checkpointer_options_init(&options);
    return options;
  }
  Checkpointer(const Saver& saver, const Session& session, const std::string& folder, const tw_checkpointer_options& options = defaults()) {
    tw_checkpointer* made = nullptr;
    raise(tw_checkpointer_create(saver.c(), session.c(), folder.c_str(), &options, &made));
    own(made);
  }
  bool step(int64_t step, const double* metric = nullptr) {
    uint32_t saved = 0;
    raise(tw_checkpointer_step(c(), step, metric, &saved));
    return saved != 0;
  }
  void save(int64_t step, const double* metric = nullptr) { raise(tw_checkpointer_save(c(), step, metric)); }
  void wait() { raise(tw_checkpointer_wait(c())); }
  /* Restores and returns the step of the checkpoint; throws TW_NOT_FOUND for a folder without
   * checkpoints. */
  int64_t restore(uint32_t which = TW_CHECKPOINT_LATEST) {
    int64_t step = 0;
    raise(tw_checkpointer_restore(c(), which, &step, nullptr));
    return step;
  }
  /* The same, but returns `none` for a folder without checkpoints. */
  int64_t restore_or(int64_t none) {
    try {
      return restore();
    } catch (const StatusError& e) {
      if (e.code() != TW_NOT_FOUND) throw;
      return none;
    }
  }
  tw_checkpointer_stats report() const {
    tw_checkpointer_stats stats = {};
    stats.size = sizeof(stats);
    raise(tw_checkpointer_report(c(), &stats));
    return stats;
  }
};

}  // namespace tw
#endif
