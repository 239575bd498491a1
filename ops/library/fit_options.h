// The options of tw_trainer_fit, checked, and what a call of it says on standard error.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ops/library/trainer_parts.h"

namespace thalweg::library {

constexpr char kFit[] = "tw_trainer_fit";

inline tw_status* RefuseFit(const std::string& text) { return Refusal(kFit, text); }

// Copies the caller's record over the defaults and checks it. *out_watch: the number of the watched value.
tw_status* ReadFitOptions(const tw_trainer& t, const tw_fit_options* given, tw_fit_options* out, size_t* out_watch);

// Lines about a training on standard error, if the flags of the options ask for them.
class FitLines {
 public:
  explicit FitLines(uint32_t flags);
  void Step(const tw_fit_progress& at);
  void EpochEnd(const tw_fit_progress& at);
  void End();

 private:
  void Write(const std::string& text);
  bool lines_, bar_;     // lines_: one for each epoch; bar_: also one for the running epoch
  bool open_ = false;    // the line of the running epoch is there
  double written_ = -1;  // when, in the seconds of the call
};

}  // namespace thalweg::library
