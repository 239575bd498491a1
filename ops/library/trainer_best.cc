// The weights of the best epoch: in a folder, or in memory.
#include "ops/library/signature.h"
#include "ops/library/trainer_parts.h"
#include "thalweg/graph.h"
#include "thalweg/variable.h"

namespace thalweg::library {

namespace {

std::string BestPath(const char* folder) { return std::string(folder) + "/best"; }

tw_status* NeedSaver(tw_trainer& t) {
  if (t.best.saver) return nullptr;
  if (t.weights.empty()) return Refusal("tw_trainer_fit", "there are no weights to keep");
  tw_saver* made = nullptr;
  tw_status* failed = tw_saver_create(t.model.graph, t.weights.data(), uint32_t(t.weights.size()), &made);
  t.best.saver.reset(made);
  return failed;
}

// Adds a placeholder and an assignment for each weight, once.
tw_status* NeedAssigns(tw_trainer& t) {
  if (!t.best.assigns.empty()) return nullptr;
  tw_scope* scope = tw_scope_create(t.model.graph, "trainer");
  std::vector<tw_output> feeds;
  std::vector<const tw_operation*> assigns;
  Protect(scope, [&] {
    for (uint32_t i = 0; i < tw_saver_count(t.best.saver.get()); ++i) {
      tw_output variable = 0;
      VariableInfo info;
      tw_scope_fail(scope, tw_graph_find_output(t.model.graph, tw_saver_variable(t.best.saver.get(), i), &variable));
      if (!Good(scope) || !Inspect(scope, variable, &info)) break;
      const tw_shape shape = info.shape();
      feeds.push_back(tw_scope_placeholder(scope, FreeName(scope, "best").c_str(), info.dtype, shape.dims, shape.rank));
      assigns.push_back(Assign(scope, variable, info, feeds.back()));
    }
    return 0;
  });
  if (tw_status* failed = tw_scope_finish(scope)) return failed;
  t.best.feeds = std::move(feeds);
  t.best.assigns = std::move(assigns);
  return nullptr;
}

}  // namespace

tw_status* KeepBest(tw_trainer& t, const char* folder) {
  if (tw_status* failed = NeedSaver(t)) return failed;
  if (folder) return tw_saver_save(t.best.saver.get(), t.model.session, BestPath(folder).c_str());
  std::vector<tw_tensor*> values(tw_saver_count(t.best.saver.get()));
  if (tw_status* failed = tw_saver_values(t.best.saver.get(), t.model.session, values.data())) return failed;
  t.best.values.clear();
  for (tw_tensor* value : values) t.best.values.emplace_back(value);
  return nullptr;
}

tw_status* TakeBest(tw_trainer& t, const char* folder) {
  if (tw_status* failed = NeedSaver(t)) return failed;
  if (folder) return tw_saver_restore(t.best.saver.get(), t.model.session, BestPath(folder).c_str());
  if (t.best.values.empty()) return nullptr;
  if (tw_status* failed = NeedAssigns(t)) return failed;
  std::vector<tw_tensor*> values;
  for (const OwnedTensor& value : t.best.values) values.push_back(value.get());
  const tw_signature what = SignatureOf({t.best.feeds.data(), values.size()}, {}, t.best.assigns);
  return tw_session_run(t.model.session, &what, values.data(), nullptr, nullptr);
}

}  // namespace thalweg::library
