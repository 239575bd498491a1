#include "thalweg/step_stats.h"

#include <vector>

#include "c_api/handles.h"
#include "c_api/shim.h"

tw_status* tw_step_stats_create(tw_step_stats** out_stats) {
  NEED(out_stats);
  return thalweg::Enter([&] {
    *out_stats = new tw_step_stats;
    return thalweg::Status();
  });
}

void tw_step_stats_destroy(tw_step_stats* stats) { delete stats; }

const tw_step_total* tw_step_stats_total(const tw_step_stats* stats) { return stats ? &stats->stats.total() : nullptr; }

uint32_t tw_step_stats_node_count(const tw_step_stats* stats) { return stats ? uint32_t(stats->stats.nodes().size()) : 0; }

const tw_step_node* tw_step_stats_node(const tw_step_stats* stats, uint32_t i) {
  return i < tw_step_stats_node_count(stats) ? &stats->stats.nodes()[i] : nullptr;
}

uint32_t tw_step_stats_op_count(const tw_step_stats* stats) { return stats ? uint32_t(stats->stats.ops().size()) : 0; }

const tw_step_op* tw_step_stats_op(const tw_step_stats* stats, uint32_t i) {
  return i < tw_step_stats_op_count(stats) ? &stats->stats.ops()[i] : nullptr;
}

uint32_t tw_step_stats_wait_count(const tw_step_stats* stats) { return stats ? uint32_t(stats->stats.waits().size()) : 0; }

const tw_step_wait* tw_step_stats_wait(const tw_step_stats* stats, uint32_t i) {
  return i < tw_step_stats_wait_count(stats) ? &stats->stats.waits()[i] : nullptr;
}

void tw_step_stats_set_limit(tw_step_stats* stats, uint32_t records) {
  if (stats) stats->stats.set_limit(records);
}

tw_status* tw_step_stats_json(const tw_step_stats* stats, tw_buffer** out_json) {
  NEED(stats);
  return tw_step_stats_trace(&stats, 1, out_json);
}

tw_status* tw_step_stats_trace(const tw_step_stats* const* steps, uint32_t n, tw_buffer** out_json) {
  NEED_ARRAY(steps, n);
  NEED(out_json);
  return thalweg::Enter([&]() -> thalweg::Status {
    std::vector<const thalweg::StepStats*> all;
    for (uint32_t i = 0; i < n; ++i) {
      if (!steps[i]) return thalweg::InvalidArgument("tw_step_stats_trace: steps[", i, "] is NULL");
      all.push_back(&steps[i]->stats);
    }
    *out_json = thalweg::MakeBuffer(thalweg::TraceJson(all));
    return thalweg::Status();
  });
}
