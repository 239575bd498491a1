// The training loop.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>

#include "ops/library/fit_log.h"
#include "ops/library/fit_options.h"
#include "ops/library/options.h"
#include "thalweg/checkpointer.h"

using namespace thalweg::library;

namespace {

struct DestroyCheckpointer {
  void operator()(tw_checkpointer* c) const { tw_checkpointer_destroy(c); }
};

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// One call of tw_trainer_fit.
class Fit {
 public:
  Fit(tw_trainer& t, tw_iterator* data, const tw_fit_options& options, size_t watch)
      : t_(t),
        p_(t.place),
        data_(data),
        o_(options),
        watch_(watch),
        lines_(options.flags),
        begun_(Now()),
        saved_step_(t.place.step),
        saved_at_(begun_) {}

  tw_status* Run() {
    tw_status* failed = Loop();
    lines_.End();
    tw_status* unlogged = log_.Close();
    if (failed) tw_status_release(unlogged);
    if (!failed) failed = unlogged;
    if (!failed || !checkpointer_) return failed;
    tw_status_release(tw_checkpointer_wait(checkpointer_.get()));  // the first failure counts; the log has this one
    return failed;
  }

  void Report(tw_fit_report* out) const {
    *out = {out->size, 0, p_.epoch, p_.step, resumed_at_, p_.best_epoch, p_.best, uint32_t(p_.why), 0};
  }

 private:
  bool Watches() const { return o_.patience > 0 || (o_.flags & TW_FIT_KEEP_BEST); }

  tw_status* Loop() {
    if (tw_status* failed = Prepare()) return failed;
    if (tw_status* failed = Begin()) return failed;
    if (tw_status* failed = log_.Open(o_, t_.model.graph)) return failed;
    const int64_t epochs = o_.folder ? o_.epochs : p_.epoch + o_.epochs;
    while (p_.why == 0 && p_.epoch < epochs) {
      if (tw_status* failed = Epoch(epochs)) return failed;
    }
    if (p_.why == 0) p_.why = TW_FIT_COMPLETE;
    return End();
  }

  // Makes the callables of the model.
  tw_status* Prepare() {
    std::vector<const tw_operation*> targets;
    for (const tw_metric& metric : t_.metrics) targets.push_back(metric.update);
    targets.push_back(t_.model.accumulate ? t_.model.accumulate : t_.model.step);
    if (!t_.train) {
      if (tw_status* failed = MakeCallable(t_, t_.model.n_feeds, {t_.loss}, targets, &t_.train)) return failed;
    }
    if (!t_.model.accumulate || t_.update) return nullptr;
    return MakeCallable(t_, 0, {}, {t_.model.step}, &t_.update);
  }

  // Goes on from the folder, or starts anew after what the trainer has done before.
  tw_status* Begin() {
    const bool first = !std::exchange(t_.begun, true);
    p_.why = 0;
    if (!first || !o_.folder) {
      p_.batch = 0;
      p_.loss = p_.rows = 0;
      if (!first) {
        p_.best = NAN;
        p_.best_epoch = -1;
        p_.waited = 0;
      }
    }
    if (o_.folder) {
      if (tw_status* failed = OpenFolder()) return failed;
      if (first) {
        if (tw_status* failed = Resume()) return failed;
      }
    }
    return p_.batch == 0 ? ResetMetrics(t_) : nullptr;
  }

  tw_status* OpenFolder() {
    if (!t_.saver) {
      tw_saver* saver = nullptr;
      if (tw_status* failed = tw_saver_create(t_.model.graph, nullptr, 0, &saver)) return failed;
      t_.saver.reset(saver);
    }
    tw_checkpointer_options options;
    tw_checkpointer_options_init(&options);
    options.name = "fit";
    options.every_seconds = 0;  // this loop decides when
    options.keep_last = o_.keep_last;
    if (o_.flags & TW_FIT_BACKGROUND) options.flags |= TW_CHECKPOINTER_BACKGROUND;
    tw_checkpointer* made = nullptr;
    tw_status* failed = tw_checkpointer_create(t_.saver.get(), t_.model.session, o_.folder, &options, &made);
    checkpointer_.reset(made);
    return failed;
  }

  tw_status* Resume() {
    int64_t step = 0;
    if (tw_status* failed = tw_checkpointer_restore(checkpointer_.get(), TW_CHECKPOINT_LATEST, &step, nullptr)) {
      if (tw_status_code(failed) != TW_NOT_FOUND) return failed;
      tw_status_release(failed);
      return nullptr;
    }
    if (tw_status* failed = LoadPlace(t_, &position_)) return failed;
    resumed_at_ = p_.step;
    saved_step_ = p_.step;
    saved_ = p_.why != 0;
    if (p_.why != TW_FIT_PATIENCE) p_.why = 0;  // more epochs may be wanted now, or the callback may let it go on
    return nullptr;
  }

  // Puts the data where the epoch was interrupted, or before its first batch.
  tw_status* Place() {
    const OwnedBuffer position = std::move(position_);
    if (p_.batch > 0 && position && data_->restore)
      return tw_iterator_restore(data_, tw_buffer_data(position.get()), tw_buffer_bytes(position.get()));
    if (data_->reset || p_.epoch > 0) {
      if (tw_status* failed = tw_iterator_reset(data_, p_.epoch)) return failed;
    }
    Batch batch(data_->n_tensors);
    for (int64_t i = 0; i < p_.batch; ++i) {
      uint32_t end = 0;
      if (tw_status* failed = tw_iterator_next(data_, batch.Room(), &end)) return failed;
      if (end)
        return RefuseFit("the data has " + std::to_string(i) + " batches in epoch " + std::to_string(p_.epoch) +
                         ", and the checkpoint was made after " + std::to_string(p_.batch) + "; resume with the data of the saved run");
    }
    return nullptr;
  }

  tw_status* Epoch(int64_t epochs) {
    epochs_ = epochs;
    saved_ = false;
    if (tw_status* failed = Place()) return failed;
    Batch batch(t_.model.n_feeds);
    bool stop = false;
    for (uint32_t end = 0; !stop;) {
      tw_fit_progress at = Here(nullptr, 0);
      for (uint32_t i = 0; i < o_.n_callbacks; ++i) {
        const tw_fit_callback& c = o_.callbacks[i];
        if (!c.before_step) continue;
        if (tw_status* failed = c.before_step(c.user, &at)) return failed;
      }
      if (tw_status* failed = tw_iterator_next(data_, batch.Room(), &end)) return failed;
      if (end) break;
      if (tw_status* failed = Step(batch, &stop)) return failed;
    }
    if (stop) p_.why = TW_FIT_STOPPED;
    return EpochEnd(stop);
  }

  // One batch.
  tw_status* Step(const Batch& batch, bool* stop) {
    std::vector<OwnedTensor> fetched(1);
    if (tw_status* failed = RunOn(t_, t_.train, batch, t_.model.n_feeds, true, o_.cancel, &fetched)) return failed;
    const double loss = Number(fetched[0]), rows = batch.Rows();
    if (!std::isfinite(loss) && !(o_.flags & TW_FIT_ANY_LOSS)) {
      const std::string where =
          " at step " + std::to_string(p_.step) + " (epoch " + std::to_string(p_.epoch) + ", batch " + std::to_string(p_.batch) + ")";
      return tw_status_create(TW_FAILED_PRECONDITION,
                              (std::string(kFit) + ": the loss is " + (std::isnan(loss) ? "nan" : Text(loss)) + where +
                               "; lower the learning rate, clip the gradients, look at the data, or set TW_FIT_ANY_LOSS")
                                  .c_str());
    }
    p_.loss += loss * rows;
    p_.rows += rows;
    ++p_.batch;
    bool updated = true;
    if (t_.model.accumulate) {
      updated = ++t_.pending >= int64_t{t_.model.sub_batches};
      if (updated) {
        t_.pending = 0;
        tw_run_options options = {};
        options.size = sizeof options;
        options.cancel = o_.cancel;
        if (tw_status* failed = tw_callable_run(t_.update.get(), nullptr, &options, nullptr)) return failed;
      }
    }
    if (updated) ++p_.step;
    saved_ = false;
    const tw_fit_progress at = Here(&loss, 1);
    lines_.Step(at);
    if (tw_status* failed = updated ? log_.Step(at) : nullptr) return failed;
    if (tw_status* failed = Call(&tw_fit_callback::after_step, at, stop)) return failed;
    return updated && Due() ? Save() : nullptr;
  }

  template <class F>
  tw_status* Call(F function, const tw_fit_progress& at, bool* stop) const {
    for (uint32_t i = 0; i < o_.n_callbacks; ++i) {
      const tw_fit_callback& c = o_.callbacks[i];
      uint32_t asked = 0;
      if (!(c.*function)) continue;
      if (tw_status* failed = (c.*function)(c.user, &at, &asked)) return failed;
      *stop = *stop || asked;
    }
    return nullptr;
  }

  tw_status* EpochEnd(bool stopped) {
    std::vector<double> values, validation;
    if (tw_status* failed = ReadValues(t_, p_.loss, p_.rows, &values)) return failed;
    if (tw_status* failed = ResetMetrics(t_)) return failed;
    std::vector<const tw_operation*> swap;
    if (t_.model.swap && (o_.validation || (o_.flags & TW_FIT_KEEP_BEST))) swap.push_back(t_.model.swap);
    if (tw_status* failed = RunTargets(t_, swap)) return failed;
    bool improved = false;
    tw_status* failed = Judge(values, &validation, &improved);
    tw_status* back = RunTargets(t_, swap);
    if (failed || back) {
      if (failed) tw_status_release(back);
      return failed ? failed : back;
    }
    tw_fit_progress at = Here(values.data(), uint32_t(values.size()));
    at.validation = o_.validation ? validation.data() : nullptr;
    at.improved = improved;
    lines_.EpochEnd(at);
    if (tw_status* unlogged = log_.EpochEnd(at)) return unlogged;
    p_.epoch += 1;
    p_.batch = 0;
    p_.loss = p_.rows = 0;
    bool stop = false;
    if (tw_status* refused = Call(&tw_fit_callback::epoch_end, at, &stop)) return refused;
    if (stop || stopped) p_.why = TW_FIT_STOPPED;
    if (p_.why == 0 && o_.patience > 0 && p_.waited >= o_.patience) p_.why = TW_FIT_PATIENCE;
    return o_.folder && o_.every_steps == 0 && o_.every_seconds == 0 && t_.pending == 0 ? Save() : nullptr;
  }

  // Validates, and keeps the weights if they are the best so far.
  tw_status* Judge(const std::vector<double>& values, std::vector<double>* validation, bool* improved) {
    if (o_.validation) {
      if (tw_status* failed = Evaluate(t_, kFit, o_.validation, o_.cancel, validation)) return failed;
    }
    if (!Watches()) return nullptr;
    const double now = (o_.validation ? *validation : values)[watch_];
    const double gain = o_.flags & TW_FIT_LARGER_IS_BETTER ? now - p_.best : p_.best - now;
    *improved = !std::isnan(now) && (std::isnan(p_.best) || gain > o_.least_change);
    ++p_.waited;
    if (!*improved) return nullptr;
    p_.best = now;
    p_.best_epoch = p_.epoch;
    p_.waited = 0;
    return o_.flags & TW_FIT_KEEP_BEST ? KeepBest(t_, o_.folder) : nullptr;
  }

  bool Due() const {
    if (!o_.folder) return false;
    if (o_.every_steps > 0 && p_.step - saved_step_ >= o_.every_steps) return true;
    return o_.every_seconds > 0 && Now() - saved_at_ >= o_.every_seconds;
  }

  tw_status* Save() {
    OwnedBuffer position;
    if (p_.batch > 0 && data_->save) {
      tw_buffer* raw = nullptr;
      if (tw_status* failed = tw_iterator_save(data_, &raw)) return failed;
      position.reset(raw);
    }
    if (tw_status* failed = StorePlace(t_, position.get())) return failed;
    saved_step_ = p_.step;
    saved_at_ = Now();
    saved_ = true;
    return tw_checkpointer_save(checkpointer_.get(), p_.step, nullptr);
  }

  tw_status* End() {
    if (o_.folder) {
      if (!saved_) {
        if (tw_status* failed = Save()) return failed;
      }
      if (tw_status* failed = tw_checkpointer_wait(checkpointer_.get())) return failed;
    }
    if (!(o_.flags & TW_FIT_KEEP_BEST) || p_.best_epoch < 0) return nullptr;
    return TakeBest(t_, o_.folder);
  }

  tw_fit_progress Here(const double* values, uint32_t n) const {
    tw_fit_progress at = {};
    at.size = sizeof at;
    at.epoch = p_.epoch;
    at.epochs = epochs_;
    at.step = p_.step;
    at.batch = p_.batch;
    at.n_batches = data_->n_batches;
    at.names = t_.name_texts.data();
    at.values = values;
    at.n_values = n;
    at.seconds = Now() - begun_;
    return at;
  }

  tw_trainer& t_;
  LoopPlace& p_;
  tw_iterator* const data_;
  const tw_fit_options& o_;
  const size_t watch_;
  FitLines lines_;
  FitLog log_;
  const double begun_;
  std::unique_ptr<tw_checkpointer, DestroyCheckpointer> checkpointer_;
  OwnedBuffer position_;  // of the data, from a checkpoint
  int64_t epochs_ = 0, resumed_at_ = -1, saved_step_;
  double saved_at_;
  bool saved_ = false;  // the place is that of the latest checkpoint
};

}  // namespace

tw_status* tw_trainer_fit(tw_trainer* trainer, tw_iterator* data, const tw_fit_options* options, tw_fit_report* out_report) {
  return Guard(kFit, [&]() -> tw_status* {
    if (!trainer) return RefuseFit("trainer is NULL");
    if (out_report && out_report->size < sizeof(tw_fit_report)) return RefuseFit("set the size of the report to sizeof(tw_fit_report)");
    if (!trainer->model.step) return RefuseFit("the model has no step, so it cannot be trained");
    tw_fit_options o;
    size_t watch = 0;
    if (tw_status* refused = ReadFitOptions(*trainer, options, &o, &watch)) return refused;
    if (tw_status* refused = CheckData(kFit, data, trainer->model.n_feeds, true)) return refused;
    if (o.validation) {
      if (tw_status* refused = CheckData("tw_trainer_fit: validation", o.validation, trainer->model.n_feeds, true)) return refused;
    }
    Fit fit(*trainer, data, o, watch);
    tw_status* failed = fit.Run();
    if (out_report) fit.Report(out_report);
    return failed;
  });
}
