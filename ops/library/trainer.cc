// Making trainers: checks of the model, the operations that a trainer adds, the callables that it runs.
#include "thalweg/trainer.h"

#include <algorithm>
#include <cstring>

#include "ops/library/signature.h"
#include "ops/library/trainer_parts.h"
#include "thalweg/op.h"
#include "thalweg/variable.h"

using namespace thalweg::library;

void tw_trainer_model_init(tw_trainer_model* model) {
  if (!model) return;
  *model = {};
  model->size = sizeof(tw_trainer_model);
}

namespace {

constexpr char kFunction[] = "tw_trainer_create";

tw_status* Refuse(const std::string& text) { return Refusal(kFunction, text); }

// The facts about a value of the graph, or why there are none.
tw_status* CheckScalar(const tw_trainer_model& m, const std::string& what, tw_output value, bool real) {
  uint32_t dtype = 0;
  tw_shape shape = {nullptr, -1, 0};
  if (tw_status* failed = tw_graph_describe(m.graph, value, &dtype, &shape)) return failed;
  if (shape.rank <= 0 && (real ? IsReal(dtype) : dtype == TW_BOOL)) return nullptr;
  return Refuse(what + " is " + tw_dtype_name(dtype) + " of shape " + ShapeText(shape) + "; it must be a " +
                (real ? "scalar of half, bfloat16, float or double" : "bool scalar"));
}

tw_status* CheckLists(const tw_trainer_model& m) {
  if (m.size < sizeof m || m.flags != 0) {
    return Refuse("fill the model with tw_trainer_model_init first (its size is " + std::to_string(m.size) + ", its flags " +
                  std::to_string(m.flags) + ")");
  }
  if (!m.graph || !m.session) return Refuse(std::string(m.graph ? "session" : "graph") + " is NULL");
  if (m.n_feeds < 1 || !m.feeds) return Refuse("there are no feeds; tensors of a batch need values to be fed to");
  if (m.n_inputs > m.n_feeds)
    return Refuse("n_inputs is " + std::to_string(m.n_inputs) + ", and there are " + std::to_string(m.n_feeds) + " feeds");
  if (m.n_metrics > 0 && (!m.metrics || !m.metric_names)) return Refuse("metrics or metric_names is NULL");
  if (m.n_predictions > 0 && !m.predictions) return Refuse("predictions is NULL");
  if (m.n_weights > 0 && !m.weights) return Refuse("weights is NULL");
  if (!m.loss && m.n_predictions < 1) return Refuse("there is neither a loss nor a prediction");
  if (m.step && !m.loss) return Refuse("there is a step and no loss");
  if (m.accumulate && (!m.step || m.sub_batches < 1)) return Refuse("accumulate needs a step and sub_batches above 0");
  if (!m.accumulate && m.sub_batches > 1)
    return Refuse("sub_batches is " + std::to_string(m.sub_batches) + " and accumulate NULL; give the operation that accumulates");
  return nullptr;
}

tw_status* CheckMetrics(const tw_trainer_model& m) {
  for (uint32_t i = 0; i < m.n_metrics; ++i) {
    const std::string number = "metrics[" + std::to_string(i) + "]";
    const char* name = m.metric_names[i];
    if (!name || !*name) return Refuse(number + " has no name");
    bool taken = std::strcmp(name, "loss") == 0;
    for (uint32_t k = 0; k < i; ++k) taken = taken || std::strcmp(name, m.metric_names[k]) == 0;
    if (taken) return Refuse(number + " is named '" + name + "', as another value is");
    const tw_metric& metric = m.metrics[i];
    if (metric.size < sizeof metric || !metric.value || !metric.update || !metric.reset)
      return Refuse(number + ", '" + name + "', is not filled; fill it with a function of metric.h");
    if (tw_status* refused = CheckScalar(m, "metric '" + std::string(name) + "'", metric.value, true)) return refused;
  }
  return nullptr;
}

tw_status* CheckModel(const tw_trainer_model& m) {
  if (tw_status* refused = CheckLists(m)) return refused;
  if (m.loss) {
    if (tw_status* refused = CheckScalar(m, "the loss", m.loss, true)) return refused;
  }
  if (m.training) {
    if (tw_status* refused = CheckScalar(m, "training", m.training, false)) return refused;
  }
  return CheckMetrics(m);
}

tw_status* MakeBool(uint8_t value, OwnedTensor* out) {
  tw_tensor* made = nullptr;
  if (tw_status* failed = tw_tensor_create(TW_BOOL, nullptr, 0, &made)) return failed;
  *static_cast<uint8_t*>(tw_tensor_mutable_data(made)) = value;
  out->reset(made);
  return nullptr;
}

// The variables of the graph that hold real numbers.
tw_status* AllWeights(tw_graph* graph, std::vector<tw_output>* out) {
  tw_variables* all = nullptr;
  if (tw_status* failed = tw_variables_create(graph, &all)) return failed;
  tw_status* failed = nullptr;
  for (uint32_t i = 0; i < tw_variables_count(all) && !failed; ++i) {
    uint32_t dtype = 0;
    failed = tw_variables_describe(all, i, &dtype, nullptr);
    if (!failed && IsReal(dtype)) out->push_back(tw_variables_handle(all, i));
  }
  tw_variables_destroy(all);
  return failed;
}

void Copy(const tw_trainer_model& m, tw_trainer* t) {
  t->model = m;
  t->feeds.assign(m.feeds, m.feeds + m.n_feeds);
  if (m.n_predictions > 0) t->predictions.assign(m.predictions, m.predictions + m.n_predictions);
  if (m.n_weights > 0) t->weights.assign(m.weights, m.weights + m.n_weights);
  if (m.n_metrics > 0) t->metrics.assign(m.metrics, m.metrics + m.n_metrics);
  if (m.loss) t->names.emplace_back("loss");
  for (uint32_t i = 0; i < m.n_metrics; ++i) t->names.emplace_back(m.metric_names[i]);
  for (const std::string& name : t->names) t->name_texts.push_back(name.c_str());
  t->model.feeds = t->feeds.data();
  t->model.predictions = t->predictions.data();
  t->model.metrics = t->metrics.data();
  t->model.metric_names = nullptr;
  t->model.weights = nullptr;
  if (m.n_inputs == 0) t->model.n_inputs = m.n_feeds;
}

}  // namespace

tw_status* tw_trainer_create(const tw_trainer_model* model, tw_trainer** out_trainer) {
  if (!model || !out_trainer) return Refuse(!model ? "model is NULL" : "out_trainer is NULL");
  *out_trainer = nullptr;
  return Guard(kFunction, [&]() -> tw_status* {
    if (tw_status* refused = CheckModel(*model)) return refused;
    auto made = std::make_unique<tw_trainer>();
    Copy(*model, made.get());
    if (model->n_weights == 0) {
      if (tw_status* failed = AllWeights(model->graph, &made->weights)) return failed;
    }
    if (tw_status* failed = MakeBool(1, &made->yes)) return failed;
    if (tw_status* failed = MakeBool(0, &made->no)) return failed;
    tw_scope* scope = tw_scope_create(model->graph, "trainer");
    Protect(scope, [&] {
      if (model->loss) made->loss = CastTo(scope, model->loss, TW_DOUBLE);
      for (tw_metric& metric : made->metrics) metric.value = CastTo(scope, metric.value, TW_DOUBLE);
      if (model->step) AddPlaceVariables(scope, made.get());
      return 0;
    });
    if (tw_status* failed = tw_scope_finish(scope)) return failed;
    if (model->step) {  // so that a saver of all variables can save at any time
      if (tw_status* failed = StorePlace(*made, nullptr)) return failed;
    }
    *out_trainer = made.release();
    return nullptr;
  });
}

void tw_trainer_destroy(tw_trainer* trainer) { delete trainer; }

uint32_t tw_trainer_value_count(const tw_trainer* trainer) { return trainer ? uint32_t(trainer->names.size()) : 0; }

const char* tw_trainer_value_name(const tw_trainer* trainer, uint32_t i) {
  return trainer && i < trainer->names.size() ? trainer->name_texts[i] : nullptr;
}

namespace thalweg::library {

tw_status* MakeCallable(tw_trainer& t, uint32_t n_feeds, const std::vector<tw_output>& fetches,
                        const std::vector<const tw_operation*>& targets, OwnedCallable* out) {
  std::vector<tw_output> feeds(t.feeds.begin(), t.feeds.begin() + n_feeds);
  if (t.model.training && n_feeds > 0) feeds.push_back(t.model.training);
  const tw_signature what = SignatureOf(feeds, fetches, targets);
  tw_callable* made = nullptr;
  tw_status* failed = tw_callable_create(t.model.session, &what, &made);
  out->reset(made);
  return failed;
}

tw_status* RunTargets(tw_trainer& t, const std::vector<const tw_operation*>& targets) {
  if (targets.empty()) return nullptr;
  const tw_signature what = SignatureOf({}, {}, targets);
  return tw_session_run(t.model.session, &what, nullptr, nullptr, nullptr);
}

tw_status* RunOn(tw_trainer& t, const OwnedCallable& callable, const Batch& batch, uint32_t n, bool training, tw_cancel_token* cancel,
                 std::vector<OwnedTensor>* fetched) {
  std::vector<tw_tensor*> given(n + 1), got(fetched->size());
  for (uint32_t i = 0; i < n; ++i) given[i] = batch[i];
  given[n] = (training ? t.yes : t.no).get();  // not looked at unless the model has a flag
  tw_run_options options = {};
  options.size = sizeof options;
  options.cancel = cancel;
  if (tw_status* failed = tw_callable_run(callable.get(), given.data(), &options, got.data())) return failed;
  for (size_t i = 0; i < got.size(); ++i) (*fetched)[i].reset(got[i]);
  return nullptr;
}

}  // namespace thalweg::library
