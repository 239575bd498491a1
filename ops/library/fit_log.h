// The summaries of tw_trainer_fit: a run for training and one for validation, in a folder for
// TensorBoard.
#pragma once
#include <cstdint>
#include <memory>

#include "ops/library/trainer_parts.h"
#include "thalweg/summary.h"

namespace thalweg::library {

class FitLog {
 public:
  // Begins the runs and writes the graph. No effect if the options name no folder; neither have the
  // other functions then.
  tw_status* Open(const tw_fit_options& options, const tw_graph* graph);
  tw_status* Step(const tw_fit_progress& at);
  tw_status* EpochEnd(const tw_fit_progress& at);
  tw_status* Close();

 private:
  struct Destroy {
    void operator()(tw_summary_writer* w) const { tw_summary_writer_destroy(w); }
  };
  std::unique_ptr<tw_summary_writer, Destroy> train_, validation_;
  int64_t every_steps_ = 1;
  int64_t last_step_ = -1;  // whose loss is written
};

}  // namespace thalweg::library
