// Evaluation and prediction over the batches of an iterator.
#include <algorithm>
#include <cstring>

#include "ops/library/trainer_parts.h"

using namespace thalweg::library;

namespace thalweg::library {

tw_status* ResetMetrics(tw_trainer& t) {
  std::vector<const tw_operation*> resets;
  for (const tw_metric& metric : t.metrics) resets.push_back(metric.reset);
  return RunTargets(t, resets);
}

tw_status* ReadValues(tw_trainer& t, double loss, double rows, std::vector<double>* out) {
  out->assign(1, loss / rows);
  if (t.metrics.empty()) return nullptr;
  std::vector<tw_output> fetches;
  for (const tw_metric& metric : t.metrics) fetches.push_back(metric.value);
  if (!t.values) {
    if (tw_status* failed = MakeCallable(t, 0, fetches, {}, &t.values)) return failed;
  }
  std::vector<tw_tensor*> got(fetches.size());
  if (tw_status* failed = tw_callable_run(t.values.get(), nullptr, nullptr, got.data())) return failed;
  for (tw_tensor* value : got) out->push_back(Number(OwnedTensor(value)));
  return nullptr;
}

tw_status* CheckData(const char* function, const tw_iterator* data, uint32_t n, bool exact) {
  if (tw_status* refused = CheckIterator(function, data)) return refused;
  if (exact ? data->n_tensors == n : data->n_tensors >= n) return nullptr;
  return Refusal(function, "the data gives " + std::to_string(data->n_tensors) + " tensors a batch; the model is fed " +
                               (exact ? "" : "at least ") + std::to_string(n));
}

tw_status* Rewind(tw_iterator* data) { return data->reset ? tw_iterator_reset(data, 0) : nullptr; }

tw_status* Evaluate(tw_trainer& t, const char* function, tw_iterator* data, tw_cancel_token* cancel, std::vector<double>* out) {
  const uint32_t n = t.model.n_feeds;
  if (tw_status* refused = CheckData(function, data, n, true)) return refused;
  if (!t.evaluate) {
    std::vector<const tw_operation*> updates;
    for (const tw_metric& metric : t.metrics) updates.push_back(metric.update);
    if (tw_status* failed = MakeCallable(t, n, {t.loss}, updates, &t.evaluate)) return failed;
  }
  if (tw_status* failed = Rewind(data)) return failed;
  if (tw_status* failed = ResetMetrics(t)) return failed;
  Batch batch(n);
  double loss = 0, rows = 0;
  for (uint32_t end = 0;;) {
    if (tw_status* failed = tw_iterator_next(data, batch.Room(), &end)) return failed;
    if (end) break;
    std::vector<OwnedTensor> fetched(1);
    if (tw_status* failed = RunOn(t, t.evaluate, batch, n, false, cancel, &fetched)) return failed;
    if (batch.Rows() == 0) continue;  // the mean over no rows is no number
    loss += Number(fetched[0]) * batch.Rows();
    rows += batch.Rows();
  }
  if (tw_status* failed = ReadValues(t, loss, rows, out)) return failed;
  return ResetMetrics(t);
}

}  // namespace thalweg::library

tw_status* tw_trainer_evaluate(tw_trainer* trainer, tw_iterator* data, tw_cancel_token* cancel, double* out_values) {
  static const char kFunction[] = "tw_trainer_evaluate";
  if (trainer && out_values) std::fill_n(out_values, trainer->names.size(), NAN);
  return Guard(kFunction, [&]() -> tw_status* {
    if (!trainer || !out_values) return Refusal(kFunction, !trainer ? "trainer is NULL" : "out_values is NULL");
    if (!trainer->loss) return Refusal(kFunction, "the model has no loss, so it can only predict");
    tw_trainer& t = *trainer;
    std::vector<const tw_operation*> swap;
    if (t.model.swap) swap.push_back(t.model.swap);
    if (tw_status* failed = RunTargets(t, swap)) return failed;
    std::vector<double> values;
    tw_status* failed = Evaluate(t, kFunction, data, cancel, &values);
    tw_status* back = RunTargets(t, swap);
    if (failed) {
      tw_status_release(back);
      return failed;
    }
    if (!back) std::copy(values.begin(), values.end(), out_values);
    return back;
  });
}

namespace {

constexpr char kPredict[] = "tw_trainer_predict";

// The parts one after the other along their first axis.
tw_status* Join(const std::vector<OwnedTensor>& parts, uint32_t number, tw_tensor** out) {
  const tw_tensor* first = parts[0].get();
  const uint32_t rank = tw_tensor_rank(first), dtype = tw_tensor_dtype(first);
  const std::string name = "predictions[" + std::to_string(number) + "] ";
  if (rank < 1) return Refusal(kPredict, name + "is a scalar; it must have a row for each row of the batch");
  std::vector<int64_t> dims(tw_tensor_dims(first), tw_tensor_dims(first) + rank);
  dims[0] = 0;
  for (const OwnedTensor& part : parts) {
    const bool fits = tw_tensor_rank(part.get()) == rank && std::equal(dims.begin() + 1, dims.end(), tw_tensor_dims(part.get()) + 1);
    if (!fits) {
      const tw_shape a = {tw_tensor_dims(part.get()), int32_t(tw_tensor_rank(part.get())), 0}, b = {tw_tensor_dims(first), int32_t(rank), 0};
      return Refusal(kPredict, name + "is " + ShapeText(b) + " in one batch and " + ShapeText(a) + " in another; only rows may differ");
    }
    dims[0] += tw_tensor_dim(part.get(), 0);
  }
  tw_tensor* made = nullptr;
  if (tw_status* failed = tw_tensor_create(dtype, dims.data(), rank, &made)) return failed;
  OwnedTensor owned(made);
  uint64_t at = 0;  // elements of a string tensor, else bytes
  for (const OwnedTensor& part : parts) {
    if (dtype != TW_STRING) {
      const uint64_t bytes = tw_tensor_bytes(part.get());
      if (bytes > 0) std::memcpy(static_cast<char*>(tw_tensor_mutable_data(made)) + at, tw_tensor_data(part.get()), bytes);
      at += bytes;
      continue;
    }
    for (uint64_t i = 0; i < tw_tensor_count(part.get()); ++i) {
      const char* text = nullptr;
      uint64_t bytes = 0;
      if (tw_status* failed = tw_tensor_get_string(part.get(), i, &text, &bytes)) return failed;
      if (tw_status* failed = tw_tensor_set_string(made, at++, text, bytes)) return failed;
    }
  }
  *out = owned.release();
  return nullptr;
}

tw_status* Predict(tw_trainer& t, tw_iterator* data, tw_cancel_token* cancel, std::vector<OwnedTensor>* out) {
  const uint32_t n = t.model.n_inputs;
  if (tw_status* refused = CheckData(kPredict, data, n, false)) return refused;
  if (!t.predict) {
    if (tw_status* failed = MakeCallable(t, n, t.predictions, {}, &t.predict)) return failed;
  }
  if (tw_status* failed = Rewind(data)) return failed;
  Batch batch(data->n_tensors);
  std::vector<std::vector<OwnedTensor>> parts(t.predictions.size());
  for (uint32_t end = 0;;) {
    if (tw_status* failed = tw_iterator_next(data, batch.Room(), &end)) return failed;
    if (end) break;
    std::vector<OwnedTensor> fetched(t.predictions.size());
    if (tw_status* failed = RunOn(t, t.predict, batch, n, false, cancel, &fetched)) return failed;
    for (size_t i = 0; i < parts.size(); ++i) parts[i].push_back(std::move(fetched[i]));
  }
  if (parts[0].empty())
    return tw_status_create(TW_FAILED_PRECONDITION, "tw_trainer_predict: the data has no batch, so the shape of the result is not known");
  for (uint32_t i = 0; i < parts.size(); ++i) {
    tw_tensor* joined = nullptr;
    if (tw_status* failed = Join(parts[i], i, &joined)) return failed;
    out->emplace_back(joined);
  }
  return nullptr;
}

}  // namespace

tw_status* tw_trainer_predict(tw_trainer* trainer, tw_iterator* data, tw_cancel_token* cancel, tw_tensor** out_predictions) {
  if (trainer && out_predictions) std::fill_n(out_predictions, trainer->predictions.size(), nullptr);
  return Guard(kPredict, [&]() -> tw_status* {
    if (!trainer || !out_predictions) return Refusal(kPredict, !trainer ? "trainer is NULL" : "out_predictions is NULL");
    if (trainer->predictions.empty()) return Refusal(kPredict, "the model has no predictions");
    std::vector<const tw_operation*> swap;
    if (trainer->model.swap) swap.push_back(trainer->model.swap);
    if (tw_status* failed = RunTargets(*trainer, swap)) return failed;
    std::vector<OwnedTensor> made;
    tw_status* failed = Predict(*trainer, data, cancel, &made);
    tw_status* back = RunTargets(*trainer, swap);
    if (failed || back) {
      if (failed) tw_status_release(back);
      return failed ? failed : back;
    }
    for (size_t i = 0; i < made.size(); ++i) out_predictions[i] = made[i].release();
    return nullptr;
  });
}
