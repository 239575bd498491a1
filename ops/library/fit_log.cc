#include "ops/library/fit_log.h"

#include <algorithm>
#include <string>

#include "thalweg/status.h"

namespace thalweg::library {

tw_status* FitLog::Open(const tw_fit_options& options, const tw_graph* graph) {
  if (!options.logdir) return nullptr;
  every_steps_ = std::max<int64_t>(options.log_every_steps, 1);
  tw_summary_writer* made = nullptr;
  if (tw_status* failed = tw_summary_writer_create((std::string(options.logdir) + "/train").c_str(), nullptr, &made)) return failed;
  train_.reset(made);
  if (tw_status* failed = tw_summary_writer_graph(train_.get(), graph)) return failed;
  if (!options.validation) return nullptr;
  if (tw_status* failed = tw_summary_writer_create((std::string(options.logdir) + "/validation").c_str(), nullptr, &made)) return failed;
  validation_.reset(made);
  return nullptr;
}

tw_status* FitLog::Step(const tw_fit_progress& at) {
  if (!train_ || at.step == last_step_ || at.step % every_steps_ != 0) return nullptr;
  last_step_ = at.step;
  return tw_summary_writer_scalar(train_.get(), "step/loss", at.step, at.values[0]);
}

tw_status* FitLog::EpochEnd(const tw_fit_progress& at) {
  for (uint32_t i = 0; train_ && i < at.n_values; ++i) {
    const std::string tag = std::string("epoch/") + at.names[i];
    if (tw_status* failed = tw_summary_writer_scalar(train_.get(), tag.c_str(), at.step, at.values[i])) return failed;
    if (!at.validation) continue;
    if (tw_status* failed = tw_summary_writer_scalar(validation_.get(), tag.c_str(), at.step, at.validation[i])) return failed;
  }
  return nullptr;
}

tw_status* FitLog::Close() {
  tw_status* first = nullptr;
  for (auto* writer : {&train_, &validation_}) {
    if (!*writer) continue;
    tw_status* failed = tw_summary_writer_close(writer->get());
    writer->reset();
    if (first) tw_status_release(failed);
    if (!first) first = failed;
  }
  return first;
}

}  // namespace thalweg::library
