/* tw::Session, tw::Callable, tw::PartialRun and tw::StepStats (session.h, step_stats.h). Threads: as the C objects. Since 0.1. */
#ifndef THALWEG_CPP_SESSION_HPP
#define THALWEG_CPP_SESSION_HPP
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "thalweg/cpp/graph.hpp"
#include "thalweg/cpp/handle.hpp"
#include "thalweg/cpp/signature.hpp"
#include "thalweg/cpp/tensor.hpp"
#include "thalweg/session.h"
#include "thalweg/step_stats.h"

namespace tw {

/* Statistics of a run: pass `c()` in tw_run_options.stats. */
class StepStats : public Owned<tw_step_stats, tw_step_stats_destroy> {
 public:
  StepStats() {
    tw_step_stats* made = nullptr;
    raise(tw_step_stats_create(&made));
    own(made);
  }
  const tw_step_total& total() const { return *tw_step_stats_total(c()); }
  /* Texts live until the next run with the object. */
  std::vector<tw_step_node> nodes() const { return all<tw_step_node>(tw_step_stats_node_count(c()), tw_step_stats_node); }
  std::vector<tw_step_op> ops() const { return all<tw_step_op>(tw_step_stats_op_count(c()), tw_step_stats_op); }
  std::vector<tw_step_wait> waits() const { return all<tw_step_wait>(tw_step_stats_wait_count(c()), tw_step_stats_wait); }
  void set_limit(uint32_t records) { tw_step_stats_set_limit(c(), records); }
  std::string json() const {
    tw_buffer* text = nullptr;
    raise(tw_step_stats_json(c(), &text));
    return take_text(text);
  }
  /* Several runs in one trace. */
  static std::string trace(const std::vector<const tw_step_stats*>& steps) {
    tw_buffer* text = nullptr;
    raise(tw_step_stats_trace(steps.data(), uint32_t(steps.size()), &text));
    return take_text(text);
  }

 private:
  template <class T>
  std::vector<T> all(uint32_t n, const T* (*get)(const tw_step_stats*, uint32_t)) const {
    std::vector<T> list;
    for (uint32_t i = 0; i < n; ++i) list.push_back(*get(c(), i));
    return list;
  }
};

using Feeds = std::vector<std::pair<tw_output, Tensor>>;

namespace detail {

/* Feeds in the form of the C API: the values that they replace, and borrowed tensors. */
struct Fed {
  explicit Fed(const Feeds& feeds) {
    for (const auto& [output, tensor] : feeds) {
      outputs.push_back(output);
      tensors.push_back(tensor.c());
    }
  }
  std::vector<tw_output> outputs;
  std::vector<tw_tensor*> tensors;
};

inline std::vector<Tensor> adopt_all(const std::vector<tw_tensor*>& fetched) {
  std::vector<Tensor> results;
  for (tw_tensor* t : fetched) results.push_back(Tensor::adopt(t));
  return results;
}

}  // namespace detail

/* Restrictions for the operations of imported graphs, and limits for steps: the options of these
 * names (session.h). An unset field means the option's default. */
struct Limits {
  std::vector<std::string> allow_ops, deny_ops;
  std::string allow_files;
  uint64_t memory_limit = 0;
  uint32_t step_timeout_ms = 0;
  bool trust_imported = false;
  std::vector<std::string> options() const {
    std::vector<std::string> texts;
    for (const std::string& op : allow_ops) texts.push_back("allow_ops=" + op);
    for (const std::string& op : deny_ops) texts.push_back("deny_ops=" + op);
    if (!allow_files.empty()) texts.push_back("allow_files=" + allow_files);
    if (memory_limit) texts.push_back("memory_limit=" + std::to_string(memory_limit));
    if (step_timeout_ms) texts.push_back("step_timeout_ms=" + std::to_string(step_timeout_ms));
    if (trust_imported) texts.push_back("trust_imported=true");
    return texts;
  }
};

class Session : public Owned<tw_session, tw_session_destroy> {
 public:
  explicit Session(const Graph& graph, const std::vector<const char*>& options = {}) { create(graph, options); }
  Session(const Graph& graph, std::vector<const char*> options, const Limits& limits) {
    const std::vector<std::string> texts = limits.options();
    for (const std::string& text : texts) options.push_back(text.c_str());
    create(graph, options);
  }
  std::vector<Tensor> run(const Feeds& feeds, const std::vector<tw_output>& fetches, const std::vector<const tw_operation*>& targets = {},
                          const tw_run_options* options = nullptr) {
    const detail::Fed fed(feeds);
    std::vector<tw_tensor*> out(fetches.size());
    const tw_signature what = signature_of(fed.outputs, fetches, targets);
    raise(tw_session_run(c(), &what, fed.tensors.data(), options, out.data()));
    return detail::adopt_all(out);
  }
  void close() { raise(tw_session_close(c())); }
  /* Empties a container of state; "" means the session's own. Returns how many resources it held. */
  uint64_t reset(const std::string& container = "") {
    uint64_t count = 0;
    raise(tw_session_reset(c(), container.c_str(), &count));
    return count;
  }
  tw_session_info report() const {
    tw_session_info info = {};
    info.size = sizeof(info);
    raise(tw_session_report(c(), &info));
    return info;
  }

 private:
  void create(const Graph& graph, const std::vector<const char*>& options) {
    tw_session* made = nullptr;
    raise(tw_session_create(graph.c(), options.data(), uint32_t(options.size()), &made));
    own(made);
  }
};

/* A prepared run, for a step that runs many times: `Callable step(session, {x, y}, {loss},
 * {train}); step({one, two})`. The session must live while it runs. */
class Callable : public Owned<tw_callable, tw_callable_destroy> {
 public:
  Callable(const Session& session, const std::vector<tw_output>& feeds, const std::vector<tw_output>& fetches,
           const std::vector<const tw_operation*>& targets = {})
      : n_feeds_(feeds.size()), n_fetches_(fetches.size()) {
    tw_callable* made = nullptr;
    const tw_signature what = signature_of(feeds, fetches, targets);
    raise(tw_callable_create(session.c(), &what, &made));
    own(made);
  }
  /* feeds: a tensor for each value that is fed, in the same order. */
  std::vector<Tensor> operator()(const std::vector<Tensor>& feeds, const tw_run_options* options = nullptr) const {
    if (feeds.size() != n_feeds_) {
      throw StatusError(TW_INVALID_ARGUMENT,
                        "the callable takes " + std::to_string(n_feeds_) + " feeds, not " + std::to_string(feeds.size()));
    }
    std::vector<tw_tensor*> in, out(n_fetches_);
    for (const Tensor& feed : feeds) in.push_back(feed.c());
    raise(tw_callable_run(c(), in.data(), options, out.data()));
    return detail::adopt_all(out);
  }

 private:
  size_t n_feeds_, n_fetches_;
};

/* One step in parts: `PartialRun run(session, {x, y}, {a, b}); run({{x, one}}, {a}); run({{y, two}}, {b})`; see session.h. */
class PartialRun : public Owned<tw_partial_run, tw_partial_run_destroy> {
 public:
  PartialRun(Session& session, const std::vector<tw_output>& feeds, const std::vector<tw_output>& fetches,
             const std::vector<const tw_operation*>& targets = {}) {
    tw_partial_run* made = nullptr;
    const tw_signature what = signature_of(feeds, fetches, targets);
    raise(tw_partial_run_create(session.c(), &what, &made));
    own(made);
  }
  std::vector<Tensor> operator()(const Feeds& feeds, const std::vector<tw_output>& fetches,
                                 const std::vector<const tw_operation*>& targets = {}, const tw_run_options* options = nullptr) {
    const detail::Fed fed(feeds);
    std::vector<tw_tensor*> out(fetches.size());
    const tw_signature part = signature_of(fed.outputs, fetches, targets);
    raise(tw_partial_run_run(c(), &part, fed.tensors.data(), options, out.data()));
    return detail::adopt_all(out);
  }
  uint64_t left() const { return tw_partial_run_left(c()); }
};

}  // namespace tw
#endif
