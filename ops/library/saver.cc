// Savers: one SaveV2 over all variables, one RestoreV2, and per variable a check and, once all have
// passed, an assignment, under the names that TensorFlow's savers use. Resources of plugins use
// SaveResource and, all at once, RestoreResources. If each task saves its own variables, there is
// one of each of these for each task, and a merge.
#include "thalweg/saver.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>

#include "ops/library/build.h"
#include "ops/library/saver_collect.h"
#include "ops/library/saver_names.h"
#include "ops/library/saver_parts.h"
#include "ops/library/saver_tables.h"
#include "ops/library/signature.h"
#include "ops/library/task.h"
#include "thalweg/checkpoint.h"
#include "thalweg/op.h"
#include "thalweg/status.h"
#include "thalweg/tensor.h"

using namespace thalweg::library;

namespace {

// Adds a string vector constant.
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

// Adds the prefix to save under; "model" unless it is fed.
tw_output Prefix(tw_scope* scope) {
  tw_tensor* model = nullptr;
  tw_scope_fail(scope, tw_tensor_create_string("model", 5, &model));
  OpenOp op(scope, "Const", "filename");
  tw_op_set_type(op, "dtype", TW_STRING);
  tw_op_set_tensor(op, "value", model);
  const tw_output filename = op.End();
  tw_tensor_release(model);
  OpenOp prefix(scope, "PlaceholderWithDefault", "Const");
  tw_op_add_input(prefix, filename);
  tw_op_set_shape(prefix, "shape", nullptr, 0);
  return prefix.End();
}

// "SaveV2" for the first task (the only one unless saves are by task), then generated names.
const char* NameAt(size_t k, const char* name) { return k == 0 ? name : nullptr; }

template <class T>
std::vector<T> Of(const SaverTask& task, const std::vector<T>& all) {
  std::vector<T> some;
  for (const size_t i : task.members) some.push_back(all[i]);
  return some;
}

struct Columns {
  tw_output names, slices;
};
Columns ColumnsOf(tw_scope* scope, const SaverTask& task, const tw_saver& t) {
  return {Strings(scope, Of(task, t.names)), Strings(scope, std::vector<std::string>(task.members.size()))};
}

const tw_operation* SaveTask(tw_scope* scope, const tw_saver& t, size_t k, tw_output prefix) {
  const Columns columns = ColumnsOf(scope, t.tasks[k], t);
  OpenOp save(scope, "SaveV2", NameAt(k, "SaveV2"));
  tw_op_add_input(save, prefix);
  tw_op_add_input(save, columns.names);
  tw_op_add_input(save, columns.slices);
  for (const tw_output value : Of(t.tasks[k], t.values)) tw_op_add_input(save, value);
  return save.EndOperation();
}

// Each task writes a part, and the parts are merged into one checkpoint.
const tw_operation* SaveParts(tw_scope* scope, const tw_saver& t) {
  Operations saved;
  std::vector<tw_output> parts;
  for (size_t k = 0; k < t.tasks.size() && Good(scope); ++k) {
    const On on(scope, t.tasks[k].device);
    const std::string end = ".part" + std::to_string(k) + "of" + std::to_string(t.tasks.size());
    tw_tensor* text = nullptr;
    tw_scope_fail(scope, tw_tensor_create_string(end.data(), end.size(), &text));
    const tw_output both[] = {t.prefix, text ? tw_scope_constant(scope, text) : 0};
    tw_tensor_release(text);
    parts.push_back(tw_scope_op(scope, "StringJoin", both, 2));
    saved.push_back(SaveTask(scope, t, k, parts.back()));
  }
  const On on(scope, t.tasks[0].device);
  OpenOp merge(scope, "MergeV2Checkpoints", "MergeV2Checkpoints");
  tw_op_add_input(merge, tw_scope_op(scope, "Pack", parts.data(), uint32_t(parts.size())));
  tw_op_add_input(merge, t.prefix);
  tw_op_set_bool(merge, "delete_old_dirs", 0);
  for (const tw_operation* s : saved) {
    if (s) tw_op_add_control(merge, s);
  }
  return merge.EndOperation();
}

const tw_operation* AddSave(tw_scope* scope, tw_saver* t) {
  for (size_t i = 0; i < t->handles.size(); ++i) {
    const bool variable = t->infos[i].resource.empty();
    t->values.push_back(variable ? tw_variable_read(scope, t->handles[i]) : tw_scope_op1(scope, "SaveResource", t->handles[i]));
  }
  const tw_operation* saved = t->by_task ? SaveParts(scope, *t) : SaveTask(scope, *t, 0, t->prefix);
  const On on(scope, t->tasks[0].device);
  OpenOp after(scope, "Identity", "control_dependency");
  tw_op_add_input(after, t->prefix);
  tw_op_add_control(after, saved);
  return after.EndOperation();
}

// Values that a task has read and not assigned yet.
struct Loaded {
  std::vector<tw_output> variables, values;    // handles and their values
  std::vector<VariableInfo> infos;             // of the variables
  std::vector<tw_output> resources, contents;  // the same for plugins' resources
  const tw_operation* checked = nullptr;       // checks that the values fit
};

Loaded Load(tw_scope* scope, const tw_saver& t, size_t k) {
  const SaverTask& task = t.tasks[k];
  const On on(scope, task.device);
  const Columns columns = ColumnsOf(scope, task, t);
  std::vector<uint32_t> dtypes;
  for (const VariableInfo& info : Of(task, t.infos)) dtypes.push_back(info.dtype);
  OpenOp restore(scope, "RestoreV2", NameAt(k, "RestoreV2"));
  tw_op_add_input(restore, t.prefix);
  tw_op_add_input(restore, columns.names);
  tw_op_add_input(restore, columns.slices);
  tw_op_set_types(restore, "dtypes", dtypes.data(), uint32_t(dtypes.size()));
  const tw_output first = restore.End();
  Loaded loaded;
  Operations checks;
  for (size_t m = 0; m < task.members.size() && Good(scope); ++m) {
    const size_t i = task.members[m];
    const VariableInfo& info = t.infos[i];
    const tw_output value = tw_scope_output(scope, first, uint32_t(m));
    if (!info.resource.empty()) {
      loaded.resources.push_back(t.handles[i]);
      loaded.contents.push_back(value);
      continue;
    }
    // An assignment may change a variable's shape, but a file must not. The error message contains
    // the name of the check.
    OpenOp ensure(scope, "EnsureShape", ("check/" + info.operation).c_str());
    tw_op_add_input(ensure, value);
    tw_op_set_shape(ensure, "shape", info.dims.data(), info.known_rank ? int32_t(info.dims.size()) : -1);
    checks.push_back(ensure.EndOperation());
    loaded.variables.push_back(t.handles[i]);
    loaded.infos.push_back(info);
    loaded.values.push_back(First(checks.back()));
  }
  loaded.checked = tw_scope_group(scope, NameAt(k, "checked"), checks.data(), uint32_t(checks.size()));
  return loaded;
}

// Resources of plugins are restored before the first assignment.
const tw_operation* Set(tw_scope* scope, const Loaded& loaded, const tw_operation* checked, const char* name) {
  Operations updates;
  if (!loaded.resources.empty()) updates.push_back(checked = AddRestoreResources(scope, loaded.resources, loaded.contents, {checked}));
  for (size_t i = 0; i < loaded.variables.size() && Good(scope); ++i) {
    updates.push_back(Assign(scope, loaded.variables[i], loaded.infos[i], loaded.values[i], {checked}));
  }
  return tw_scope_group(scope, name, updates.data(), uint32_t(updates.size()));
}

// Adds a restore that changes all or none.
const tw_operation* AddRestore(tw_scope* scope, tw_saver* t) {
  std::vector<Loaded> loaded;
  for (size_t k = 0; k < t->tasks.size() && Good(scope); ++k) loaded.push_back(Load(scope, *t, k));
  if (!Good(scope)) return nullptr;
  if (!t->by_task) return Set(scope, loaded[0], loaded[0].checked, "restore_all");
  Operations checks, all;
  for (const Loaded& l : loaded) checks.push_back(l.checked);
  const On on(scope, t->tasks[0].device);
  const tw_operation* checked = tw_scope_group(scope, nullptr, checks.data(), uint32_t(checks.size()));
  for (size_t k = 0; k < loaded.size() && Good(scope); ++k) {
    const On there(scope, t->tasks[k].device);
    all.push_back(Set(scope, loaded[k], checked, nullptr));
    t->tasks[k].restore = Set(scope, loaded[k], loaded[k].checked, ("restore_task" + std::to_string(k)).c_str());
  }
  return tw_scope_group(scope, "restore_all", all.data(), uint32_t(all.size()));
}

// Divides the handles among the tasks.
void Divide(tw_scope* scope, tw_saver* t) {
  for (size_t i = 0; i < t->handles.size(); ++i) {
    const std::string device = t->by_task ? TaskOf(scope, t->handles[i]) : "";
    auto task = std::find_if(t->tasks.begin(), t->tasks.end(), [&](const SaverTask& s) { return s.device == device; });
    if (task == t->tasks.end()) task = t->tasks.insert(task, SaverTask{device, {}, nullptr});
    task->members.push_back(i);
  }
}

// Returns "save", or the first of save_1, save_2, ... without nodes under it in the graph.
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
  const tw_signature what = SignatureOf({&saver.prefix, 1}, {}, {&target, 1});
  tw_status* status = tw_session_run(session, &what, &text, nullptr, nullptr);
  tw_tensor_release(text);
  return status;
}

// Saves several data files; the operation of the graph writes only one.
tw_status* SaveSharded(tw_session* session, tw_saver* saver, const char* prefix) {
  std::vector<const char*> names;
  for (const std::string& name : saver->names) names.push_back(name.c_str());
  std::vector<tw_tensor*> values(names.size());
  if (tw_status* failed = tw_saver_values(saver, session, values.data())) return failed;
  tw_status* status = tw_checkpoint_write_sharded(prefix, names.data(), values.data(), uint32_t(names.size()), saver->shards);
  for (tw_tensor* value : values) tw_tensor_release(value);
  return status;
}

void Build(tw_scope* scope, const tw_output* variables, uint32_t n, const tw_saver_options* options, tw_saver* saver) {
  Collect(scope, variables, n, saver);
  if (Good(scope)) saver->names = NamesInFiles(scope, saver->infos, options);
  if (Good(scope)) NameTables(scope, options, saver);
  if (!Good(scope)) return;
  saver->by_task = options && (options->flags & TW_SAVER_BY_TASK) != 0;
  Divide(scope, saver);
  saver->prefix = Prefix(scope);
  saver->save = AddSave(scope, saver);
  saver->restore = AddRestore(scope, saver);
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
    saver->shards = options && options->size >= offsetof(tw_saver_options, table_names) && options->shards ? options->shards : 1;
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
    return saver->shards > 1 && !saver->by_task ? SaveSharded(session, saver, prefix) : Run(session, *saver, saver->save, prefix);
  } catch (const std::bad_alloc&) {
    return tw_status_create(TW_RESOURCE_EXHAUSTED, "out of host memory for a save");
  }
}

tw_status* tw_saver_restore(tw_saver* saver, tw_session* session, const char* prefix) {
  if (!saver || !prefix) return tw_status_create(TW_INVALID_ARGUMENT, "tw_saver_restore: saver or prefix is NULL");
  try {
    bool other = false;
    if (tw_status* failed = FindOtherTables(*saver, prefix, &other)) return failed;
    return other ? RestoreTables(saver, session, prefix) : Run(session, *saver, saver->restore, prefix);
  } catch (const std::bad_alloc&) {
    return tw_status_create(TW_RESOURCE_EXHAUSTED, "out of host memory for a restore");
  }
}

uint32_t tw_saver_task_count(const tw_saver* saver) { return saver && saver->by_task ? uint32_t(saver->tasks.size()) : 0; }

const char* tw_saver_task(const tw_saver* saver, uint32_t k) {
  return k < tw_saver_task_count(saver) ? saver->tasks[k].device.c_str() : nullptr;
}

tw_status* tw_saver_restore_task(tw_saver* saver, tw_session* session, const char* prefix, uint32_t k) {
  if (!saver || !prefix) return tw_status_create(TW_INVALID_ARGUMENT, "tw_saver_restore_task: saver or prefix is NULL");
  if (k >= tw_saver_task_count(saver)) return tw_status_create(TW_OUT_OF_RANGE, "tw_saver_restore_task: past the last task");
  try {
    bool other = false;
    if (tw_status* failed = FindOtherTables(*saver, prefix, &other)) return failed;
    if (!other) return Run(session, *saver, saver->tasks[k].restore, prefix);
    return tw_status_create(
        TW_FAILED_PRECONDITION,
        ("checkpoint '" + std::string(prefix) + "': a table was saved in another number of shards; restore all tasks").c_str());
  } catch (const std::bad_alloc&) {
    return tw_status_create(TW_RESOURCE_EXHAUSTED, "out of host memory for a restore");
  }
}

tw_status* tw_saver_values(tw_saver* saver, tw_session* session, tw_tensor** out_values) {
  if (!saver || !out_values) return tw_status_create(TW_INVALID_ARGUMENT, "tw_saver_values: saver or out_values is NULL");
  for (size_t i = 0; i < saver->values.size(); ++i) out_values[i] = nullptr;
  const tw_signature what = SignatureOf({}, saver->values);
  return tw_session_run(session, &what, nullptr, nullptr, out_values);
}
