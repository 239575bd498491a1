#include "ops/library/fit_options.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "ops/library/options.h"

void tw_fit_options_init(tw_fit_options* options) {
  if (!options) return;
  *options = {};
  options->size = sizeof *options;
  options->epochs = 1;
  options->keep_last = 2;
}

namespace thalweg::library {

namespace {

constexpr uint32_t kFlags = 63;

tw_status* CheckNumbers(const tw_fit_options& o) {
  if (o.flags & ~kFlags) return RefuseFit("flags is " + std::to_string(o.flags) + "; known are 1 to " + std::to_string(kFlags));
  if (o.epochs < 0) return RefuseFit("epochs is " + std::to_string(o.epochs) + "; it must be 0 or more");
  if (o.patience < 0) return RefuseFit("patience is " + std::to_string(o.patience) + "; it must be 0 or more");
  if (!(o.least_change >= 0)) return RefuseFit("least_change is " + Text(o.least_change) + "; it must be 0 or more");
  if (o.every_steps < 0) return RefuseFit("every_steps is " + std::to_string(o.every_steps) + "; it must be 0 or more");
  if (!(o.every_seconds >= 0)) return RefuseFit("every_seconds is " + Text(o.every_seconds) + "; it must be 0 or more");
  if (!o.folder && (o.every_steps > 0 || o.every_seconds > 0)) return RefuseFit("every_steps and every_seconds need a folder");
  if (o.log_every_steps < 0) return RefuseFit("log_every_steps is " + std::to_string(o.log_every_steps) + "; it must be 0 or more");
  if (!o.logdir && o.log_every_steps > 0) return RefuseFit("log_every_steps needs a logdir");
  if (o.logdir && !*o.logdir) return RefuseFit("logdir is empty; name a folder, or give NULL");
  if (o.n_callbacks > 0 && !o.callbacks) return RefuseFit("callbacks is NULL");
  for (uint32_t i = 0; i < o.n_callbacks; ++i) {
    if (o.callbacks[i].size < sizeof(tw_fit_callback) || o.callbacks[i].flags != 0)
      return RefuseFit("set the size of callbacks[" + std::to_string(i) + "] to sizeof(tw_fit_callback) and its flags to 0");
  }
  return nullptr;
}

}  // namespace

tw_status* ReadFitOptions(const tw_trainer& t, const tw_fit_options* given, tw_fit_options* out, size_t* out_watch) {
  tw_fit_options_init(out);
  constexpr size_t kFirst = offsetof(tw_fit_options, logdir);  // the size of the first version
  if (given && given->size < kFirst) {
    return RefuseFit("fill the options with tw_fit_options_init first (their size is " + std::to_string(given->size) + ")");
  }
  if (given) std::memcpy(out, given, std::min<size_t>(given->size, sizeof *out));
  if (tw_status* refused = CheckNumbers(*out)) return refused;
  const std::string watch = out->watch ? out->watch : "loss";
  const auto found = std::find(t.names.begin(), t.names.end(), watch);
  *out_watch = size_t(found - t.names.begin());
  if (found != t.names.end()) return nullptr;
  std::string names;
  for (const std::string& name : t.names) names += (names.empty() ? "'" : ", '") + name + "'";
  return RefuseFit("watch is '" + watch + "'; the values are " + names);
}

namespace {

// Numbers as people read them: 4 significant digits.
std::string Short(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

}  // namespace

FitLines::FitLines(uint32_t flags) {
  const bool terminal = (flags & TW_FIT_TERMINAL) && isatty(STDERR_FILENO);
  lines_ = terminal || (flags & TW_FIT_PROGRESS);
  bar_ = terminal;
}

void FitLines::Write(const std::string& text) {
  const std::string whole = (open_ ? "\r\033[K" : "") + text;
  std::fwrite(whole.data(), 1, whole.size(), stderr);
  std::fflush(stderr);
  open_ = text.empty() || text.back() != '\n';
}

void FitLines::Step(const tw_fit_progress& at) {
  if (!bar_ || at.seconds - written_ < 0.1) return;
  written_ = at.seconds;
  std::string text = "epoch " + std::to_string(at.epoch + 1) + "/" + std::to_string(at.epochs) + "  batch " + std::to_string(at.batch);
  if (at.n_batches > 0) text += "/" + std::to_string(at.n_batches);
  Write(text + "  loss " + Short(at.values[0]));
}

void FitLines::EpochEnd(const tw_fit_progress& at) {
  if (!lines_) return;
  std::string text = "epoch " + std::to_string(at.epoch + 1) + "/" + std::to_string(at.epochs) + "  step " + std::to_string(at.step);
  for (uint32_t i = 0; i < at.n_values; ++i) text += std::string("  ") + at.names[i] + " " + Short(at.values[i]);
  for (uint32_t i = 0; at.validation && i < at.n_values; ++i)
    text += std::string("  validation ") + at.names[i] + " " + Short(at.validation[i]);
  Write(text + "  " + Short(at.seconds) + " s" + (at.improved ? "  best so far" : "") + "\n");
}

void FitLines::End() {
  if (open_) Write("\n");
}

}  // namespace thalweg::library
