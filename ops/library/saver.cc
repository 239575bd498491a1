// Savers: one SaveV2 over all variables, one RestoreV2, and a check and, once all have passed, an assignment each, under the names that
// TensorFlow's savers use. Resources of plugins go through SaveResource and, all at once, RestoreResources.
#include "thalweg/saver.h"

#include <memory>
#include <string>

#include "ops/library/build.h"
#include "ops/library/saver_collect.h"
#include "ops/library/saver_names.h"
#include "ops/library/saver_parts.h"
#include "thalweg/checkpoint.h"
#include "thalweg/op.h"
#include "thalweg/status.h"
#include "thalweg/tensor.h"

using namespace thalweg::library;

namespace {

// A string vector constant.
tw_output Strings(tw_scope* scope, const std::vector<std::string>& texts) {
  const int64_t n = int64_t(texts.size());
  tw_tensor* tensor = nullptr;
  tw_scope_fail(scope, tw_tensor_create(TW_STRING, &n, 1, &tensor));
  for (size_t i = 0; i < texts.size() && tensor; ++i) {
    tw_scope_fail(scope, tw_tensor_set_string(tensor, i, texts[i].data(), texts[i].size()));
  }
  const tw_output constant = Good(scope) ? tw_scope_constant(scope, tensor) : 0;
  tw_tensor_release(tensor);
  return constant;
}

// The prefix to save under: "model" unless it is fed.
tw_output Prefix(tw_scope* scope) {
  tw_tensor* model = nullptr;
  tw_scope_fail(scope, tw_tensor_create_string("model", 5, &model));
  tw_op* op = tw_scope_begin(scope, "Const", "filename");
  tw_op_set_type(op, "dtype", TW_STRING);
  tw_op_set_tensor(op, "value", model);
  const tw_output filename = tw_scope_end(scope, op);
  tw_tensor_release(model);
  tw_op* prefix = tw_scope_begin(scope, "PlaceholderWithDefault", "Const");
  tw_op_add_input(prefix, filename);
  tw_op_set_shape(prefix, "shape", nullptr, 0);
  return tw_scope_end(scope, prefix);
}

const tw_operation* AddSave(tw_scope* scope, tw_output names, tw_output slices, tw_saver* t) {
  const tw_output prefix = t->prefix;
  tw_op* save = tw_scope_begin(scope, "SaveV2", "SaveV2");
  tw_op_add_input(save, prefix);
  tw_op_add_input(save, names);
  tw_op_add_input(save, slices);
  for (size_t i = 0; i < t->handles.size(); ++i) {
    const bool variable = t->infos[i].resource.empty();
    t->values.push_back(variable ? tw_variable_read(scope, t->handles[i]) : tw_scope_op1(scope, "SaveResource", t->handles[i]));
  }
  for (const tw_output value : t->values) tw_op_add_input(save, value);
  const tw_operation* saved = tw_scope_end_operation(scope, save);
  tw_op* after = tw_scope_begin(scope, "Identity", "control_dependency");
  tw_op_add_input(after, prefix);
  tw_op_add_control(after, saved);
  return tw_scope_end_operation(scope, after);
}

const tw_operation* AddRestore(tw_scope* scope, tw_output names, tw_output slices, const tw_saver& t) {
  std::vector<uint32_t> dtypes;
  for (const VariableInfo& info : t.infos) dtypes.push_back(info.dtype);
  tw_op* restore = tw_scope_begin(scope, "RestoreV2", "RestoreV2");
  tw_op_add_input(restore, t.prefix);
  tw_op_add_input(restore, names);
  tw_op_add_input(restore, slices);
  tw_op_set_types(restore, "dtypes", dtypes.data(), uint32_t(dtypes.size()));
  const tw_output first = tw_scope_end(scope, restore);
  std::vector<tw_output> values, resources, saved;
  std::vector<size_t> variables;
  std::vector<const tw_operation*> checks, updates;
  for (size_t i = 0; i < t.handles.size() && Good(scope); ++i) {
    const VariableInfo& info = t.infos[i];
    const tw_output value = tw_scope_output(scope, first, uint32_t(i));
    if (!info.resource.empty()) {
      resources.push_back(t.handles[i]);
      saved.push_back(value);
      continue;
    }
    // An assignment may change a variable's shape; what comes from a file may not. The name of the check stands in its error.
    tw_op* ensure = tw_scope_begin(scope, "EnsureShape", ("check/" + info.operation).c_str());
    tw_op_add_input(ensure, value);
    tw_op_set_shape(ensure, "shape", info.dims.data(), info.known_rank ? int32_t(info.dims.size()) : -1);
    checks.push_back(tw_scope_end_operation(scope, ensure));
    variables.push_back(i);
    values.push_back(tw_operation_output(checks.back(), 0));
  }
  // All change, or none: plugins are asked before the first assignment.
  const tw_operation* checked = tw_scope_group(scope, "checked", checks.data(), uint32_t(checks.size()));
  if (!resources.empty()) updates.push_back(checked = AddRestoreResources(scope, std::move(resources), saved, {checked}));
  for (size_t i = 0; i < variables.size() && Good(scope); ++i) {
    updates.push_back(Assign(scope, t.handles[variables[i]], t.infos[variables[i]], values[i], {checked}));
  }
  return tw_scope_group(scope, "restore_all", updates.data(), uint32_t(updates.size()));
}

// "save", or the first of save_1, save_2, ... that the graph has no nodes under.
std::string FreePrefix(const tw_graph* graph) {
  std::string prefix = "save";
  for (int i = 1;; ++i) {
    if (!tw_graph_has(graph, (prefix + "/filename").c_str()) && !tw_graph_has(graph, (prefix + "/Const").c_str())) return prefix;
    prefix = "save_" + std::to_string(i);
  }
}

tw_status* Run(tw_session* session, const tw_saver& saver, const tw_operation* target, const char* prefix) {
  tw_tensor* text = nullptr;
  if (tw_status* failed = tw_tensor_create_string(prefix, std::char_traits<char>::length(prefix), &text)) return failed;
  tw_signature what = {};
  what.size = sizeof(what);
  what.feeds = &saver.prefix;
  what.n_feeds = 1;
  what.targets = &target;
  what.n_targets = 1;
  tw_status* status = tw_session_run(session, &what, &text, nullptr, nullptr);
  tw_tensor_release(text);
  return status;
}

// Several data files: the operation of the graph writes one.
tw_status* SaveSharded(tw_session* session, tw_saver* saver, const char* prefix) {
  std::vector<tw_tensor*> values(saver->names.size());
  if (tw_status* failed = tw_saver_values(saver, session, values.data())) return failed;
  std::vector<const char*> names;
  for (const std::string& name : saver->names) names.push_back(name.c_str());
  tw_status* status = tw_checkpoint_write_sharded(prefix, names.data(), values.data(), uint32_t(names.size()), saver->shards);
  for (tw_tensor* value : values) tw_tensor_release(value);
  return status;
}

void Build(tw_scope* scope, const tw_output* variables, uint32_t n, const tw_saver_options* options, tw_saver* saver) {
  Collect(scope, variables, n, saver);
  if (Good(scope)) saver->names = NamesInFiles(scope, saver->infos, options);
  if (!Good(scope)) return;
  saver->prefix = Prefix(scope);
  const tw_output names = Strings(scope, saver->names), slices = Strings(scope, std::vector<std::string>(saver->names.size()));
  saver->save = AddSave(scope, names, slices, saver);
  saver->restore = AddRestore(scope, names, slices, *saver);
}

}  // namespace

tw_status* tw_saver_create(tw_graph* graph, const tw_output* variables, uint32_t n, tw_saver** out_saver) {
  return tw_saver_create_with(graph, variables, n, nullptr, out_saver);
}

tw_status* tw_saver_create_with(tw_graph* graph, const tw_output* variables, uint32_t n, const tw_saver_options* options,
                                tw_saver** out_saver) {
  if (!graph || !out_saver || (n > 0 && !variables)) {
    return tw_status_create(TW_INVALID_ARGUMENT, "tw_saver_create: graph, variables or out_saver is NULL");
  }
  tw_scope* scope = nullptr;
  try {
    auto saver = std::make_unique<tw_saver>();
    saver->graph = graph;
    saver->scope = FreePrefix(graph);
    saver->shards = options && options->size >= sizeof(*options) && options->shards ? options->shards : 1;
    scope = tw_scope_create(graph, saver->scope.c_str());
    Build(scope, variables, n, options, saver.get());
    tw_status* status = tw_scope_finish(scope);
    if (!status) *out_saver = saver.release();
    return status;
  } catch (const std::bad_alloc&) {
    tw_status_release(tw_scope_finish(scope));
    return tw_status_create(TW_RESOURCE_EXHAUSTED, "out of host memory for a saver");
  }
}

void tw_saver_destroy(tw_saver* saver) { delete saver; }

tw_graph* tw_saver_graph(const tw_saver* saver) { return saver ? saver->graph : nullptr; }

uint32_t tw_saver_count(const tw_saver* saver) { return saver ? uint32_t(saver->names.size()) : 0; }

const char* tw_saver_variable(const tw_saver* saver, uint32_t i) {
  return i < tw_saver_count(saver) ? saver->infos[i].name.c_str() : nullptr;
}

const char* tw_saver_name(const tw_saver* saver, uint32_t i) { return i < tw_saver_count(saver) ? saver->names[i].c_str() : nullptr; }

tw_status* tw_saver_save(tw_saver* saver, tw_session* session, const char* prefix) {
  if (!saver || !prefix) return tw_status_create(TW_INVALID_ARGUMENT, "tw_saver_save: saver or prefix is NULL");
  try {
    return saver->shards > 1 ? SaveSharded(session, saver, prefix) : Run(session, *saver, saver->save, prefix);
  } catch (const std::bad_alloc&) {
    return tw_status_create(TW_RESOURCE_EXHAUSTED, "out of host memory for a save");
  }
}

tw_status* tw_saver_restore(tw_saver* saver, tw_session* session, const char* prefix) {
  if (!saver || !prefix) return tw_status_create(TW_INVALID_ARGUMENT, "tw_saver_restore: saver or prefix is NULL");
  return Run(session, *saver, saver->restore, prefix);
}

tw_status* tw_saver_values(tw_saver* saver, tw_session* session, tw_tensor** out_values) {
  if (!saver || !out_values) return tw_status_create(TW_INVALID_ARGUMENT, "tw_saver_values: saver or out_values is NULL");
  for (size_t i = 0; i < saver->values.size(); ++i) out_values[i] = nullptr;
  tw_signature what = {};
  what.size = sizeof(what);
  what.fetches = saver->values.data();
  what.n_fetches = uint32_t(saver->values.size());
  return tw_session_run(session, &what, nullptr, nullptr, out_values);
}
