/* tw::Lbfgs (lbfgs.h). Threads: one run at a time. Since 0.1. */
#ifndef THALWEG_CPP_LBFGS_HPP
#define THALWEG_CPP_LBFGS_HPP
#include <cstdint>
#include <vector>

#include "thalweg/cpp/graph.hpp"
#include "thalweg/cpp/handle.hpp"
#include "thalweg/cpp/session.hpp"
#include "thalweg/lbfgs.h"

namespace tw {

/* Minimises a loss over all of its data at once; see lbfgs.h. The graph must outlive it. */
class Lbfgs : public Owned<tw_lbfgs, tw_lbfgs_destroy> {
 public:
  static tw_lbfgs_options defaults() {
    tw_lbfgs_options options;
    tw_lbfgs_options_init(&options);
    return options;
  }
  Lbfgs(const Graph& graph, tw_output loss, const std::vector<tw_output>& variables, const tw_lbfgs_options& options = defaults()) {
    tw_lbfgs* made = nullptr;
    raise(tw_lbfgs_create(graph.c(), loss, variables.data(), uint32_t(variables.size()), &options, &made));
    own(made);
  }
  tw_lbfgs_report run(Session& session, const Feeds& feeds = {}, uint32_t max_iterations = 100) {
    const detail::Fed fed(feeds);
    tw_lbfgs_report report = {};
    report.size = sizeof(report);
    raise(tw_lbfgs_run(c(), session.c(), fed.outputs.data(), fed.tensors.data(), uint32_t(fed.outputs.size()), max_iterations, &report));
    return report;
  }
  void reset() { tw_lbfgs_reset(c()); }
};

}  // namespace tw
#endif
