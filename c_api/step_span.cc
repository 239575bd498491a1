#include "thalweg/step_span.h"

#include "c_api/handles.h"

uint32_t tw_step_stats_span_count(const tw_step_stats* stats) { return stats ? uint32_t(stats->stats.span_records().size()) : 0; }

const tw_step_span* tw_step_stats_span(const tw_step_stats* stats, uint32_t i) {
  return i < tw_step_stats_span_count(stats) ? &stats->stats.span_records()[i] : nullptr;
}

uint32_t tw_step_stats_counter_count(const tw_step_stats* stats) { return stats ? uint32_t(stats->stats.count_records().size()) : 0; }

const tw_step_count* tw_step_stats_counter(const tw_step_stats* stats, uint32_t i) {
  return i < tw_step_stats_counter_count(stats) ? &stats->stats.count_records()[i] : nullptr;
}

uint64_t tw_step_stats_trace_number(const tw_step_stats* stats) { return stats ? stats->stats.trace() : 0; }
