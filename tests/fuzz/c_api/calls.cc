// Calls every exported function: most by their types; a function whose types are not enough has a
// few lines here.
#include <cstdlib>
#include <cstring>

#include "tests/fuzz/c_api/draw.h"

namespace thalweg::fuzz {
namespace {

template <auto kFunction>
void Run(Program& p) {
  CallByTypes(p, kFunction);
}
#define SPECIAL(function) \
  template <>             \
  void Run<&function>(Program & p)

// ---- Endings ----

#define ENDS(function, type) \
  SPECIAL(function) { p.Finish(p.Handle<type>()); }
ENDS(tw_runtime_release, tw_runtime)
ENDS(tw_graph_destroy, tw_graph)
ENDS(tw_op_destroy, tw_op)
ENDS(tw_block_destroy, tw_block)
ENDS(tw_session_destroy, tw_session)
ENDS(tw_server_destroy, tw_server)
ENDS(tw_callable_destroy, tw_callable)
ENDS(tw_partial_run_destroy, tw_partial_run)
ENDS(tw_cancel_token_destroy, tw_cancel_token)
ENDS(tw_tensor_release, tw_tensor)
ENDS(tw_buffer_release, tw_buffer)
ENDS(tw_status_release, tw_status)
ENDS(tw_ops_destroy, tw_ops)
ENDS(tw_devices_destroy, tw_devices)
ENDS(tw_plugins_destroy, tw_plugins)
ENDS(tw_variables_destroy, tw_variables)
ENDS(tw_checkpoint_close, tw_checkpoint)
ENDS(tw_saver_destroy, tw_saver)
ENDS(tw_checkpointer_destroy, tw_checkpointer)
ENDS(tw_iterator_destroy, tw_iterator)
ENDS(tw_model_destroy, tw_model)
ENDS(tw_record_writer_destroy, tw_record_writer)
ENDS(tw_summary_writer_destroy, tw_summary_writer)
ENDS(tw_lbfgs_destroy, tw_lbfgs)
ENDS(tw_step_stats_destroy, tw_step_stats)
ENDS(tw_restore_report_destroy, tw_restore_report)
ENDS(tw_spread_destroy, tw_spread)
ENDS(tw_sync_destroy, tw_sync)
ENDS(tw_tape_destroy, tw_tape)
ENDS(tw_eager_destroy, tw_eager)
ENDS(tw_trainer_destroy, tw_trainer)

#define RETAINS(function, type) \
  SPECIAL(function) {           \
    type* t = p.Handle<type>(); \
    function(t);                \
    p.Keep(t);                  \
  }
RETAINS(tw_runtime_retain, tw_runtime)
RETAINS(tw_tensor_retain, tw_tensor)
RETAINS(tw_buffer_retain, tw_buffer)

SPECIAL(tw_scope_finish) { p.Note(tw_scope_finish(p.Taken(p.Handle<tw_scope>()))); }
SPECIAL(tw_scope_fail) {
  tw_scope* scope = p.Handle<tw_scope>();
  tw_scope_fail(scope, p.Taken(p.Handle<tw_status>()));
}
// A new operation belongs to its builder's graph, whatever scope finishes it.
SPECIAL(tw_op_finish) {
  tw_op* op = p.Taken(p.Handle<tw_op>());
  const tw_operation* made = nullptr;
  p.Note(tw_op_finish(op, p.Null() ? nullptr : &made));
  p.Keep(made, p.owner());
}
SPECIAL(tw_scope_end) {
  tw_op* op = p.Taken(p.Handle<tw_op>());
  p.Keep(tw_scope_end(p.Handle<tw_scope>(), op));
}
SPECIAL(tw_scope_end_operation) {
  tw_op* op = p.Taken(p.Handle<tw_op>());
  const void* owner = p.owner();
  p.Keep(tw_scope_end_operation(p.Handle<tw_scope>(), op), owner);
}
// These return existing handles, not new ones.
SPECIAL(tw_scope_graph) { tw_scope_graph(p.Handle<tw_scope>()); }
SPECIAL(tw_saver_graph) { tw_saver_graph(p.Handle<tw_saver>()); }
SPECIAL(tw_model_graph) { tw_model_graph(p.Handle<tw_model>()); }
SPECIAL(tw_model_session) { tw_model_session(p.Handle<tw_model>()); }
SPECIAL(tw_model_callable) {
  tw_model* model = p.Handle<tw_model>();
  tw_callable* borrowed = nullptr;
  p.Note(tw_model_callable(model, p.Text(), p.Null() ? nullptr : &borrowed));
}
SPECIAL(tw_status_create) {
  const uint32_t code = p.Draw<uint32_t>();
  tw_status* made = tw_status_create(code, p.Text());
  if (!made || tw_status_code(made) == TW_OK) Broken("tw_status_create made a success");
  p.Keep(made);
}

// Its lists of results have as many values as those of its arguments.
SPECIAL(tw_graph_flatten) {
  tw_graph* graph = p.Handle<tw_graph>();
  const auto draw = [&](uint32_t* n) {
    const auto* values = p.Draw<const tw_output*>();
    *n = uint32_t(std::min<uint64_t>(p.Number(), Program::kList));
    return values;
  };
  uint32_t n_inputs = 0, n_outputs = 0;
  const tw_output *inputs = draw(&n_inputs), *outputs = draw(&n_outputs);
  auto *in = p.Memory<tw_output>(Program::kList), *out = p.Memory<tw_output>(Program::kList);
  tw_graph* made = nullptr;
  p.Note(tw_graph_flatten(graph, inputs, n_inputs, outputs, n_outputs, &made, in, out));
  p.Keep(made);
}

// ---- Blocks: the function that uses a block ends it ----

SPECIAL(tw_block_scope) { tw_block_scope(p.Handle<tw_block>()); }
SPECIAL(tw_block_define) {
  tw_scope* scope = p.Handle<tw_scope>();
  tw_block* block = p.Taken(p.Handle<tw_block>());
  p.Read(tw_block_define(scope, block, p.Text()));
  p.NoteScope(tw_scope_code(scope));
}
SPECIAL(tw_cond) {
  tw_scope* scope = p.Handle<tw_scope>();
  const char* name = p.Text();
  const tw_output pred = p.Number();
  tw_block* then = p.Taken(p.Handle<tw_block>());
  tw_block* otherwise = p.Taken(p.Handle<tw_block>());
  auto* results = p.Memory<tw_output>(Program::kList);
  p.Keep(tw_cond(scope, name, pred, then, otherwise, results, uint32_t(std::min<uint64_t>(p.Number(), Program::kList))), p.owner());
  p.NoteScope(tw_scope_code(scope));
  p.Keep(results[0]);
}
SPECIAL(tw_switch_case) {
  tw_scope* scope = p.Handle<tw_scope>();
  const char* name = p.Text();
  const tw_output index = p.Number();
  tw_block* branches[] = {p.Taken(p.Handle<tw_block>()), p.Taken(p.Handle<tw_block>())};
  auto* results = p.Memory<tw_output>(Program::kList);
  p.Keep(tw_switch_case(scope, name, index, branches, 2, results, uint32_t(std::min<uint64_t>(p.Number(), Program::kList))), p.owner());
  p.NoteScope(tw_scope_code(scope));
  p.Keep(results[0]);
}
SPECIAL(tw_while_loop) {
  tw_scope* scope = p.Handle<tw_scope>();
  tw_block* cond = p.Taken(p.Handle<tw_block>());
  tw_block* body = p.Taken(p.Handle<tw_block>());
  const auto* first = p.Draw<const tw_output*>();
  const auto n = p.Draw<uint32_t>();
  tw_while_options options;
  tw_while_options_init(&options);
  options.name = p.Text();
  options.maximum_iterations = p.Number();
  auto* last = p.Memory<tw_output>(Program::kList);
  p.Keep(tw_while_loop(scope, cond, body, first, n, &options, last), p.owner());
  p.NoteScope(tw_scope_code(scope));
  p.Keep(last[0]);
}
SPECIAL(tw_each_end) {
  tw_scope* scope = p.Handle<tw_scope>();
  const char* name = p.Text();
  tw_block* block = p.Taken(p.Handle<tw_block>());
  const auto* states = p.Draw<const tw_output*>();
  const auto* results = p.Draw<const tw_output*>();
  const auto n = p.Draw<uint32_t>();
  auto *last = p.Memory<tw_output>(Program::kList), *all = p.Memory<tw_output>(Program::kList);
  tw_each_end(scope, name, block, states, results, n, last, all);
  p.NoteScope(tw_scope_code(scope));
  p.Keep(last[0]);
  p.Keep(all[0]);
}

// ---- Memory ----

SPECIAL(tw_tensor_create) {
  const uint32_t dtype = p.Draw<uint32_t>();
  const auto* dims = p.Draw<const int64_t*>();
  const uint32_t rank = p.Draw<uint32_t>();
  // Other tests exhaust the memory: draws a few elements, or more than any machine has.
  double count = 1;
  for (uint32_t i = 0; dims && i < rank && i < Program::kList; ++i) count *= std::max(0.0, double(dims[i]));
  if (count > 4096 && count < 1e17) return;
  tw_tensor* made = nullptr;
  p.Note(tw_tensor_create(dtype, dims, rank, p.Null() ? nullptr : &made));
  p.Keep(made);
}

template <auto kFunction>
void CreateFrom(Program& p) {
  const uint32_t dtype = p.Draw<uint32_t>();
  const auto* dims = p.Draw<const int64_t*>();
  const uint32_t rank = p.Draw<uint32_t>();
  const uint64_t bytes = std::min(p.Number(), Program::kBytes), offset = std::min<uint64_t>(p.Number(), 16);
  auto* memory = static_cast<char*>(std::calloc(1, Program::kBytes + 16));
  tw_tensor* made = nullptr;
  p.Note(kFunction(dtype, dims, rank, memory + offset, bytes, std::free, memory, &made));
  p.Keep(made);
}
SPECIAL(tw_tensor_create_from) { CreateFrom<&tw_tensor_create_from>(p); }
SPECIAL(tw_tensor_create_from_const) { CreateFrom<&tw_tensor_create_from_const>(p); }

SPECIAL(tw_tensor_data) {
  const tw_tensor* t = p.Handle<tw_tensor>();
  if (tw_tensor_dtype(t) == TW_RESOURCE || tw_tensor_dtype(t) == TW_VARIANT) return;
  p.Read(tw_tensor_data(t), tw_tensor_bytes(t));
}
SPECIAL(tw_tensor_dims) {
  const tw_tensor* t = p.Handle<tw_tensor>();
  p.Read(tw_tensor_dims(t), tw_tensor_rank(t) * sizeof(int64_t));
}
SPECIAL(tw_tensor_mutable_data) {
  tw_tensor* t = p.Handle<tw_tensor>();
  if (void* data = tw_tensor_mutable_data(t)) std::memset(data, 1, tw_tensor_bytes(t));
}
SPECIAL(tw_tensor_get_string) {
  const tw_tensor* t = p.Handle<tw_tensor>();
  const uint64_t i = p.Number();
  const char* data = nullptr;
  uint64_t bytes = 0;
  const char** out_data = p.Null() ? nullptr : &data;
  p.Note(tw_tensor_get_string(t, i, out_data, p.Null() ? nullptr : &bytes));
  p.Read(data, data ? bytes : 0);
}
SPECIAL(tw_operation_attr) {
  const tw_operation* operation = p.Operation();
  const char* attr = p.Text();
  uint32_t kind = 0, is_list = 0, count = 0;
  const void* values = nullptr;
  p.Note(tw_operation_attr(operation, attr, &kind, &is_list, &count, p.Null() ? nullptr : &values));
  const uint64_t sizes[] = {0, 8, 8, 1, sizeof(tw_string), 4, sizeof(tw_shape), sizeof(void*), sizeof(tw_string)};
  if (kind >= std::size(sizes)) Broken("an attribute is of no kind");
  p.Read(values, count * sizes[kind]);
}

// A text with its length, whose types are the same as those of a name and a value.
SPECIAL(tw_tensor_create_string) {
  const tw_string text = p.String();
  tw_tensor* made = nullptr;
  p.Note(tw_tensor_create_string(text.data, text.size, p.Null() ? nullptr : &made));
  p.Keep(made);
}
SPECIAL(tw_tensor_set_string) {
  tw_tensor* t = p.Handle<tw_tensor>();
  const uint64_t i = p.Number();
  const tw_string text = p.String();
  p.Note(tw_tensor_set_string(t, i, text.data, text.size));
}
SPECIAL(tw_op_set_string) {
  tw_op* op = p.Handle<tw_op>();
  const char* attr = p.Text();
  const tw_string text = p.String();
  tw_op_set_string(op, attr, text.data, text.size);
}

template <auto kTo, auto kFrom>
void ThroughDlpack(Program& p) {
  tw_tensor* t = p.Handle<tw_tensor>();
  void* managed = nullptr;
  p.Note(kTo(t, &managed));
  if ((managed == nullptr) != p.failed()) Broken("an export and its result disagree about its success");
  tw_tensor* made = nullptr;
  p.Note(kFrom(managed, p.Null() ? nullptr : &made));
  p.Keep(made);
}
SPECIAL(tw_tensor_to_dlpack) { ThroughDlpack<&tw_tensor_to_dlpack, &tw_tensor_from_dlpack>(p); }
SPECIAL(tw_tensor_from_dlpack) { ThroughDlpack<&tw_tensor_to_dlpack, &tw_tensor_from_dlpack>(p); }
SPECIAL(tw_tensor_to_dlpack_versioned) { ThroughDlpack<&tw_tensor_to_dlpack_versioned, &tw_tensor_from_dlpack_versioned>(p); }
SPECIAL(tw_tensor_from_dlpack_versioned) { ThroughDlpack<&tw_tensor_to_dlpack_versioned, &tw_tensor_from_dlpack_versioned>(p); }
tw_status* FromDlpackOn(void* managed, tw_tensor** out_tensor) {
  return tw_tensor_from_dlpack_on(nullptr, managed, 1, nullptr, out_tensor);
}
SPECIAL(tw_tensor_from_dlpack_on) { ThroughDlpack<&tw_tensor_to_dlpack_versioned, &FromDlpackOn>(p); }

// ---- Files ----

SPECIAL(tw_checkpoint_write) {
  const char* prefix = p.Path();
  const auto* names = p.Draw<const char* const*>();
  auto* const* tensors = p.Draw<tw_tensor* const*>();
  p.Note(tw_checkpoint_write(prefix, names, tensors, p.Draw<uint32_t>()));
}
SPECIAL(tw_checkpoint_write_sharded) {
  const char* prefix = p.Path();
  const auto* names = p.Draw<const char* const*>();
  auto* const* tensors = p.Draw<tw_tensor* const*>();
  const uint32_t n = p.Draw<uint32_t>();
  p.Note(tw_checkpoint_write_sharded(prefix, names, tensors, n, p.Draw<uint32_t>() % 16));
}
SPECIAL(tw_checkpoint_write_in) {
  tw_runtime* runtime = p.Handle<tw_runtime>();
  const char* prefix = p.Path();
  const auto* names = p.Draw<const char* const*>();
  auto* const* tensors = p.Draw<tw_tensor* const*>();
  const uint32_t n = p.Draw<uint32_t>();
  p.Note(tw_checkpoint_write_in(runtime, prefix, names, tensors, n, p.Draw<uint32_t>() % 16));
}
SPECIAL(tw_checkpoint_latest_in) {
  tw_runtime* runtime = p.Handle<tw_runtime>();
  const char* folder = p.Path();
  tw_buffer *prefix = nullptr, *skipped = nullptr;
  tw_buffer** out_prefix = p.Null() ? nullptr : &prefix;
  p.Note(tw_checkpoint_latest_in(runtime, folder, out_prefix, p.Null() ? nullptr : &skipped));
  p.Keep(prefix);
  p.Keep(skipped);
}
SPECIAL(tw_checkpoint_open_in) {
  tw_runtime* runtime = p.Handle<tw_runtime>();
  const char* prefix = p.Path();
  tw_checkpoint* made = nullptr;
  p.Note(tw_checkpoint_open_in(runtime, prefix, p.Null() ? nullptr : &made));
  p.Keep(made);
}
SPECIAL(tw_checkpoint_latest) {
  const char* folder = p.Path();
  tw_buffer *prefix = nullptr, *skipped = nullptr;
  tw_buffer** out_prefix = p.Null() ? nullptr : &prefix;
  p.Note(tw_checkpoint_latest(folder, out_prefix, p.Null() ? nullptr : &skipped));
  p.Keep(prefix);
  p.Keep(skipped);
}
SPECIAL(tw_checkpointer_create) {
  tw_saver* saver = p.Handle<tw_saver>();
  tw_session* session = p.Handle<tw_session>();
  const char* folder = p.Path();
  tw_checkpointer_options options;
  tw_checkpointer_options_init(&options);
  options.flags = p.Draw<uint32_t>();
  options.every_steps = p.Draw<int64_t>();
  options.keep_last = p.Draw<uint32_t>();
  options.keep_best = p.Draw<uint32_t>();
  options.shards = p.Draw<uint32_t>() % 16;
  tw_checkpointer* made = nullptr;
  const tw_checkpointer_options* given = p.Null() ? nullptr : &options;
  p.Note(tw_checkpointer_create(saver, session, folder, given, p.Null() ? nullptr : &made));
  p.Keep(made);
}
SPECIAL(tw_checkpoint_open) {
  const char* prefix = p.Path();
  tw_checkpoint* made = nullptr;
  p.Note(tw_checkpoint_open(prefix, p.Null() ? nullptr : &made));
  p.Keep(made);
}
template <auto kFunction>
void WithSaver(Program& p) {
  tw_saver* saver = p.Handle<tw_saver>();
  tw_session* session = p.Handle<tw_session>();
  p.Note(kFunction(saver, session, p.Path()));
}
SPECIAL(tw_saver_save) { WithSaver<&tw_saver_save>(p); }
SPECIAL(tw_saver_restore) { WithSaver<&tw_saver_restore>(p); }
SPECIAL(tw_saver_restore_task) {
  tw_saver* saver = p.Handle<tw_saver>();
  tw_session* session = p.Handle<tw_session>();
  const char* prefix = p.Path();
  p.Note(tw_saver_restore_task(saver, session, prefix, p.Draw<uint32_t>()));
}
SPECIAL(tw_saver_create_with) {
  tw_graph* graph = p.Handle<tw_graph>();
  const auto* variables = p.Draw<const tw_output*>();
  const uint32_t n = p.Draw<uint32_t>();
  tw_saver_options options = {};
  options.size = p.Size(sizeof options);
  options.flags = p.Draw<uint32_t>();
  tw_saver* made = nullptr;
  p.Note(tw_saver_create_with(graph, variables, n, p.Null() ? nullptr : &options, &made));
  p.Keep(made);
}
SPECIAL(tw_saver_restore_partial) {
  tw_saver* saver = p.Handle<tw_saver>();
  tw_session* session = p.Handle<tw_session>();
  const char* prefix = p.Path();
  tw_restore_report* report = nullptr;
  p.Note(tw_saver_restore_partial(saver, session, prefix, p.Null() ? nullptr : &report));
  p.Keep(report);
}
// Needs as many values as the saver has variables.
SPECIAL(tw_saver_values) {
  tw_saver* saver = p.Handle<tw_saver>();
  std::vector<tw_tensor*> values(tw_saver_count(saver) + 1);
  tw_session* session = p.Handle<tw_session>();
  p.Note(tw_saver_values(saver, session, p.Null() ? nullptr : values.data()));
  for (tw_tensor* t : values) p.Keep(t);
}
SPECIAL(tw_lbfgs_run) {
  tw_lbfgs* lbfgs = p.Handle<tw_lbfgs>();
  tw_session* session = p.Handle<tw_session>();
  const auto* feeds = p.Draw<const tw_output*>();
  auto* const* values = p.Draw<tw_tensor* const*>();
  const uint32_t n = p.Draw<uint32_t>();
  const uint32_t most = p.Draw<uint32_t>() % 8;
  p.Note(tw_lbfgs_run(lbfgs, session, feeds, values, n, most, p.Draw<tw_lbfgs_report*>()));
}

// ---- The training loop: records with lists, a few epochs, room for all values ----

// Bytes, or the present position.
SPECIAL(tw_iterator_restore) {
  tw_iterator* iterator = p.Handle<tw_iterator>();
  if (!p.Null()) {
    const void* position = p.Draw<const void*>();
    return p.Note(tw_iterator_restore(iterator, position, p.Draw<uint64_t>()));
  }
  tw_buffer* here = nullptr;
  tw_status_release(tw_iterator_save(iterator, &here));
  p.Note(tw_iterator_restore(iterator, tw_buffer_data(here), tw_buffer_bytes(here)));
  tw_buffer_release(here);
}
SPECIAL(tw_trainer_create) {
  tw_trainer_model model;
  tw_trainer_model_init(&model);
  model.graph = p.Handle<tw_graph>();
  model.session = p.Handle<tw_session>();
  model.feeds = p.Draw<const tw_output*>();
  model.n_feeds = p.Draw<uint32_t>();
  model.n_inputs = p.Draw<uint32_t>();
  model.loss = p.Number();
  model.step = p.Operation();
  model.predictions = p.Draw<const tw_output*>();
  model.n_predictions = p.Draw<uint32_t>();
  tw_trainer* made = nullptr;
  p.Note(tw_trainer_create(&model, p.Null() ? nullptr : &made));
  p.Keep(made);
}
SPECIAL(tw_trainer_fit) {
  tw_trainer* trainer = p.Handle<tw_trainer>();
  tw_iterator* data = p.Handle<tw_iterator>();
  tw_fit_options options;
  tw_fit_options_init(&options);
  options.epochs = p.Draw<int64_t>() % 3;
  options.flags = p.Draw<uint32_t>() & ~uint32_t(TW_FIT_PROGRESS | TW_FIT_TERMINAL);
  options.validation = p.Handle<tw_iterator>();
  options.patience = p.Draw<int64_t>();
  options.folder = p.Null() ? nullptr : p.Path();
  options.cancel = p.Handle<tw_cancel_token>();
  options.logdir = p.Null() ? nullptr : p.Path();
  options.log_every_steps = p.Draw<int64_t>();
  p.Note(tw_trainer_fit(trainer, data, &options, nullptr));
}
SPECIAL(tw_trainer_evaluate) {
  tw_trainer* trainer = p.Handle<tw_trainer>();
  tw_iterator* data = p.Handle<tw_iterator>();
  std::vector<double> values(tw_trainer_value_count(trainer) + 1);
  p.Note(tw_trainer_evaluate(trainer, data, nullptr, p.Null() ? nullptr : values.data()));
}
SPECIAL(tw_model_save) {
  tw_graph* graph = p.Handle<tw_graph>();
  tw_session* session = p.Handle<tw_session>();
  tw_saved_signature signature = {};
  signature.size = p.Size(sizeof signature);
  signature.name = p.Text();
  signature.input_names = p.Draw<const char* const*>();
  signature.inputs = p.Draw<const tw_output*>();
  signature.n_inputs = p.Draw<uint32_t>();
  signature.output_names = p.Draw<const char* const*>();
  signature.outputs = p.Draw<const tw_output*>();
  signature.n_outputs = p.Draw<uint32_t>();
  p.Note(tw_model_save(graph, session, &signature, p.Null() ? 0 : 1, p.Path()));
}

SPECIAL(tw_model_load) {
  tw_runtime* runtime = p.Handle<tw_runtime>();
  const char* path = p.Path();
  const auto* options = p.Draw<const tw_model_options*>();
  tw_model* made = nullptr;
  p.Note(tw_model_load(runtime, path, options, p.Null() ? nullptr : &made));
  p.Keep(made);
}
SPECIAL(tw_model_recognise) {
  tw_runtime* runtime = p.Handle<tw_runtime>();
  const char* path = p.Path();
  tw_buffer* made = nullptr;
  p.Note(tw_model_recognise(runtime, path, p.Null() ? nullptr : &made));
  p.Keep(made);
}

// ---- Datasets: blocks are taken, all components have room, and every dataset ends ----

SPECIAL(tw_dataset_range) {
  tw_scope* scope = p.Handle<tw_scope>();
  const int64_t start = p.Draw<int64_t>() % 1000, stop = p.Draw<int64_t>() % 1000;
  p.Keep(tw_dataset_range(scope, start, stop, p.Draw<int64_t>()));
  p.NoteScope(tw_scope_code(scope));
}
SPECIAL(tw_dataset_repeat) {
  tw_scope* scope = p.Handle<tw_scope>();
  const auto dataset = p.Draw<tw_output>();
  p.Keep(tw_dataset_repeat(scope, dataset, std::abs(p.Draw<int64_t>() % 4)));
  p.NoteScope(tw_scope_code(scope));
}
uint32_t ComponentsOf(tw_scope* scope, tw_output dataset) { return tw_dataset_component_count(tw_scope_graph(scope), dataset); }
SPECIAL(tw_dataset_block) {
  tw_scope* scope = p.Handle<tw_scope>();
  const auto dataset = p.Draw<tw_output>();
  const uint32_t n = ComponentsOf(scope, dataset);
  auto* arguments = p.Memory<tw_output>(n + 1);
  p.Keep(tw_dataset_block(scope, dataset, p.Null() ? nullptr : arguments));
  p.NoteScope(tw_scope_code(scope));
  for (uint32_t i = 0; i < n; ++i) p.Keep(arguments[i]);
}
SPECIAL(tw_dataset_next) {
  tw_scope* scope = p.Handle<tw_scope>();
  const auto dataset = p.Draw<tw_output>(), position = p.Draw<tw_output>();
  const uint32_t n = ComponentsOf(scope, dataset);
  auto* components = p.Memory<tw_output>(n + 1);
  tw_dataset_next(scope, dataset, position, p.Null() ? nullptr : components);
  p.NoteScope(tw_scope_code(scope));
  for (uint32_t i = 0; i < n; ++i) p.Keep(components[i]);
}
SPECIAL(tw_dataset_padded_batch) {
  tw_scope* scope = p.Handle<tw_scope>();
  const auto dataset = p.Draw<tw_output>();
  const auto size = p.Draw<int64_t>();
  const auto* shapes = p.Draw<const tw_shape*>();
  const auto* padding = p.Draw<const tw_output*>();
  if (ComponentsOf(scope, dataset) > Program::kList) shapes = nullptr, padding = nullptr;  // there are not as many
  p.Keep(tw_dataset_padded_batch(scope, dataset, size, shapes, padding, uint32_t(p.Number())));
  p.NoteScope(tw_scope_code(scope));
}
template <auto kFunction, class... More>
void OfBlock(Program& p) {
  tw_scope* scope = p.Handle<tw_scope>();
  const auto dataset = p.Draw<tw_output>();
  tw_block* block = p.Taken(p.Handle<tw_block>());
  const std::tuple<More...> more{p.Draw<More>()...};
  p.Keep(std::apply([&](More... m) { return kFunction(scope, dataset, block, m...); }, more));
  p.NoteScope(tw_scope_code(scope));
}
SPECIAL(tw_dataset_map) { OfBlock<&tw_dataset_map, int64_t>(p); }
SPECIAL(tw_dataset_filter) { OfBlock<&tw_dataset_filter>(p); }
SPECIAL(tw_dataset_take_while) { OfBlock<&tw_dataset_take_while>(p); }
SPECIAL(tw_dataset_flat_map) { OfBlock<&tw_dataset_flat_map>(p); }
SPECIAL(tw_dataset_interleave) { OfBlock<&tw_dataset_interleave, int64_t, int64_t>(p); }
SPECIAL(tw_record_writer_create) {
  tw_runtime* runtime = p.Handle<tw_runtime>();
  const char* path = p.Path();
  tw_record_writer* made = nullptr;
  p.Note(tw_record_writer_create(runtime, path, p.Null() ? nullptr : &made));
  p.Keep(made);
}

SPECIAL(tw_summary_writer_create) {
  const char* folder = p.Path();
  tw_summary_writer_options options;
  tw_summary_writer_options_init(&options);
  options.size = p.Size(sizeof options);
  options.queue_bytes = p.Number();
  options.file_bytes = p.Number();
  options.suffix = p.Text();
  tw_summary_writer* made = nullptr;
  const tw_summary_writer_options* given = p.Null() ? nullptr : &options;
  p.Note(tw_summary_writer_create(folder, given, p.Null() ? nullptr : &made));
  p.Keep(made);
}
SPECIAL(tw_summary_writer_hparams) {
  tw_summary_writer* writer = p.Handle<tw_summary_writer>();
  const auto* hparams = p.List<tw_hparam>([&] {
    tw_hparam h = {};
    h.name = p.Text();
    h.text = p.Text();
    h.number = double(p.Number());
    h.kind = uint32_t(p.Number());
    return h;
  });
  const auto n = p.Draw<uint32_t>();
  const auto* metrics = p.Draw<const char* const*>();
  p.Note(tw_summary_writer_hparams(writer, hparams, n, metrics, p.Draw<uint32_t>()));
}

SPECIAL(tw_runtime_create_with) {
  tw_runtime_config config = {};
  config.size = p.Size(sizeof config);
  config.options = p.Draw<const char* const*>();
  config.n_options = p.Draw<uint32_t>();
  config.log_level = p.Draw<uint32_t>();
  config.flags = p.Draw<uint32_t>();
  tw_runtime* made = nullptr;
  const tw_runtime_config* given = p.Null() ? nullptr : &config;
  p.Note(tw_runtime_create_with(given, p.Null() ? nullptr : &made));
  p.Keep(made);
}
// The default runtime, which later programs use, too.
bool IsShared(const tw_runtime* runtime) {
  tw_runtime* shared = nullptr;
  tw_status_release(tw_runtime_default(&shared));
  tw_runtime_release(shared);
  return !runtime || runtime == shared;
}

// Returns the file of one of the build's plugins by its name; the shared runtime takes no more
// devices.
std::string PluginFile(std::string_view name, bool shared) {
  const char* folder = std::getenv("THALWEG_PLUGIN_PATH");
  if (folder && name == "cpu") return std::string(folder) + "/libcpu.so";
  if (!shared && name == "socket_transport") return SOCKET_TRANSPORT;
  if (!shared && name == "fake") return FAKE;
  return "";
}
SPECIAL(tw_plugin_load) {
  tw_runtime* runtime = p.Handle<tw_runtime>();
  const char* path = p.Path();
  const std::string_view given = path ? path : "";
  const std::string file = PluginFile(given.substr(given.rfind('/') + 1), IsShared(runtime));
  p.Note(tw_plugin_load(runtime, file.empty() ? path : file.c_str()));
}

SPECIAL(tw_plugin_unload) {
  tw_runtime* runtime = p.Handle<tw_runtime>();
  const char* id = p.Draw<const char*>();
  p.Note(tw_plugin_unload(runtime, id && IsShared(runtime) ? "org.nobody" : id));
}

// ---- Servers ----

SPECIAL(tw_server_create) {
  tw_runtime* runtime = p.Handle<tw_runtime>();
  const char* cluster = p.Cluster();
  const char* job = p.Text();
  const auto task = p.Draw<uint32_t>();
  const auto* options = p.Draw<const char* const*>();
  const auto n = p.Draw<uint32_t>();
  tw_server* made = nullptr;
  p.Note(tw_server_create(runtime, cluster, job, task, options, n, p.Null() ? nullptr : &made));
  p.Keep(made);
}
// No program may wait for ever, since nothing else stops its servers.
SPECIAL(tw_server_join) {
  tw_server* server = p.Handle<tw_server>();
  p.Note(tw_server_join(server, std::clamp<int64_t>(p.Draw<int64_t>(), 1, 1'000'000)));
}

// Draws options, one of which may be a target. *out_n: their number.
const char* const* DrawClusterOptions(Program& p, uint32_t* out_n) {
  const auto* options = p.Draw<const char* const*>();
  *out_n = p.Draw<uint32_t>();
  for (uint32_t i = 0; options && i < *out_n; ++i) const_cast<const char**>(options)[i] = p.Target(options[i]);
  return options;
}
// Bounds every timeout, so that no call waits long.
int64_t DrawPatience(Program& p) { return std::clamp<int64_t>(p.Draw<int64_t>(), -1, 100'000'000); }

SPECIAL(tw_cluster_status) {
  tw_runtime* runtime = p.Handle<tw_runtime>();
  uint32_t n = 0;
  const auto* options = DrawClusterOptions(p, &n);
  const int64_t patience = DrawPatience(p);
  tw_buffer* made = nullptr;
  p.Note(tw_cluster_status(runtime, options, n, patience, p.Null() ? nullptr : &made));
  p.Keep(made);
}
SPECIAL(tw_cluster_reset) {
  tw_runtime* runtime = p.Handle<tw_runtime>();
  uint32_t n = 0;
  const auto* options = DrawClusterOptions(p, &n);
  const auto* container = p.Draw<const char*>();
  const int64_t patience = DrawPatience(p);
  uint64_t count = 0;
  p.Note(tw_cluster_reset(runtime, options, n, container, patience, p.Null() ? nullptr : &count));
}

// ---- Callbacks ----

SPECIAL(tw_log_set_sink) {
  tw_runtime* runtime = p.Handle<tw_runtime>();
  const tw_log_sink sink =
      p.Number() ? +[](void*, uint32_t, const char* text, uint64_t bytes) { (void)std::string(text, bytes); } : nullptr;
  p.Note(tw_log_set_sink(runtime, sink, nullptr, p.Draw<uint32_t>()));
}
// Gives its inputs back. It ends each call itself, so a program has no calls to end.
void Answer(void*, tw_host_call* call) {
  std::vector<tw_tensor*> outputs;
  for (uint32_t i = 0; i < tw_host_call_input_count(call); ++i) outputs.push_back(tw_host_call_input(call, i));
  if (!*tw_host_call_operation(call)) Broken("a call comes from no operation");
  if (outputs.empty() || tw_host_call_cancelled(call)) return tw_host_call_fail(call, TW_UNAVAILABLE, "no inputs, or nobody waits", 7);
  const bool gives = tw_host_call_output_count(call) > 0;
  if (gives != (tw_host_call_output_dtype(call, 0) != 0)) Broken("a call disagrees about its outputs");
  tw_host_call_finish(call, outputs.data(), uint32_t(outputs.size()));
}
SPECIAL(tw_host_function_register) {
  tw_runtime* runtime = p.Handle<tw_runtime>();
  const char* token = p.Text();
  p.Note(tw_host_function_register(runtime, token, p.Null() ? nullptr : Answer, nullptr));
}
SPECIAL(tw_host_call_input) {  // a borrowed tensor
  const tw_host_call* call = p.Handle<tw_host_call>();
  tw_host_call_input(call, p.Draw<uint32_t>());
}
SPECIAL(tw_log_to_stderr) {
  static bool once = (tw_log_to_stderr(nullptr, p.Draw<uint32_t>(), "a line of the log", 17), true);
  (void)once;
}

// The function reads the list before it writes to it.
SPECIAL(tw_accumulate_gradients) {
  tw_scope* scope = p.Handle<tw_scope>();
  const auto* name = p.Draw<const char*>();
  const auto* given = p.Draw<const tw_gradient*>();
  const uint32_t n = std::min<uint32_t>(p.Draw<uint32_t>(), Program::kList);
  std::vector<tw_gradient> gradients(given, given ? given + n : given);
  const tw_operation* add = tw_accumulate_gradients(scope, name, given ? gradients.data() : nullptr, n, p.Draw<uint32_t>());
  p.Keep(add, p.owner());
  for (const tw_gradient& g : gradients) p.Keep(g.values);
}
SPECIAL(tw_sync_begin) {
  tw_scope* scope = p.Handle<tw_scope>();
  tw_sync_options options = {};
  tw_sync_options_init(&options);
  options.replicas = std::min<uint32_t>(p.Draw<uint32_t>(), 8);
  options.required = p.Draw<uint32_t>();
  options.replica = p.Draw<uint32_t>();
  options.device = p.Draw<const char*>();
  const auto* variables = p.Draw<const tw_output*>();
  const auto* given = p.Draw<const tw_gradient*>();
  const uint32_t n = std::min<uint32_t>(p.Draw<uint32_t>(), Program::kList);
  std::vector<tw_gradient> gradients(given, given ? given + n : given);
  p.Keep(tw_sync_begin(scope, &options, variables, given ? gradients.data() : nullptr, n));
  for (const tw_gradient& g : gradients) p.Keep(g.values);
}
SPECIAL(tw_sync_end) {
  tw_scope* scope = p.Handle<tw_scope>();
  tw_sync* sync = p.Taken(p.Handle<tw_sync>());
  const tw_operation* apply = p.Operation();
  tw_sync_ops ops = {};
  ops.size = uint32_t(p.Null() ? 0 : sizeof ops);
  tw_sync_end(scope, sync, apply, &ops);
  for (const tw_output v : {ops.ticket, ops.current, ops.next, ops.dropped, ops.consistent}) p.Keep(v);
  for (const tw_operation* operation : {ops.update, ops.reset}) p.Keep(operation, p.owner());
}
// Draws a table as the list of its shards.
tw_sharded DrawTable(Program& p) {
  const auto* shards = p.Draw<const tw_output*>();
  const uint32_t n = std::min<uint32_t>(p.Draw<uint32_t>(), Program::kList);
  return {sizeof(tw_sharded), 0, shards, n, p.Draw<uint32_t>()};
}
SPECIAL(tw_sharded_lookup) {
  tw_scope* scope = p.Handle<tw_scope>();
  const tw_sharded table = DrawTable(p);
  p.Keep(tw_sharded_lookup(scope, &table, p.Draw<tw_output>()));
}
SPECIAL(tw_sharded_softmax) {
  tw_scope* scope = p.Handle<tw_scope>();
  const tw_sharded weights = DrawTable(p), biases = DrawTable(p);
  const tw_output labels = p.Draw<tw_output>(), inputs = p.Draw<tw_output>();
  p.Keep(tw_sharded_softmax(scope, &weights, biases.shards ? &biases : nullptr, labels, inputs));
}
SPECIAL(tw_sharded_sampled_softmax) {
  tw_scope* scope = p.Handle<tw_scope>();
  const tw_sharded weights = DrawTable(p), biases = DrawTable(p);
  const tw_output labels = p.Draw<tw_output>(), inputs = p.Draw<tw_output>();
  p.Keep(tw_sharded_sampled_softmax(scope, &weights, &biases, labels, inputs, nullptr));
}

// ---- Eager calls ----

// What a call may take is bounded.
SPECIAL(tw_eager_create) {
  tw_runtime* runtime = p.Handle<tw_runtime>();
  const char* options[] = {"memory_limit=16M", p.Text()};
  tw_eager* made = nullptr;
  p.Note(tw_eager_create(runtime, options, options[1] ? 2 : 1, p.Null() ? nullptr : &made));
  p.Keep(made);
}
// The op, its inputs, how many of them; then a bool, an int and a type, each with its name.
SPECIAL(tw_eager_run) {
  tw_eager* eager = p.Handle<tw_eager>();
  tw_eager_call call = {};
  call.size = uint32_t(sizeof call);
  call.op = p.Text();
  call.inputs = p.Draw<tw_tensor* const*>();
  call.n_inputs = std::min<uint32_t>(p.Draw<uint32_t>(), Program::kList);
  const char* names[] = {p.Text(), nullptr, nullptr};
  const uint8_t truth = p.Number() & 1;
  names[1] = p.Text();
  const auto number = p.Draw<int64_t>();
  names[2] = p.Text();
  const auto type = p.Draw<uint32_t>();
  tw_eager_attr attrs[] = {
      {names[0], &truth, TW_ATTR_BOOL, 0, 1, 0}, {names[1], &number, TW_ATTR_INT, 0, 1, 0}, {names[2], &type, TW_ATTR_TYPE, 0, 1, 0}};
  std::sort(std::begin(attrs), std::end(attrs), [](const auto& a, const auto& b) { return a.name && !b.name; });
  call.attrs = attrs;
  call.n_attrs = uint32_t(std::count_if(std::begin(attrs), std::end(attrs), [](const auto& a) { return a.name != nullptr; }));
  call.n_outputs = Program::kList;
  tw_tensor* outputs[Program::kList] = {};
  p.Note(tw_eager_run(eager, &call, p.Null() ? nullptr : outputs));
  for (tw_tensor* t : outputs) {
    if (t && p.failed()) Broken("an eager call that failed made something");
    p.Keep(t);
  }
}
SPECIAL(tw_tape_gradient) {
  tw_tape* tape = p.Handle<tw_tape>();
  auto* const* targets = p.Draw<tw_tensor* const*>();
  auto* const* dys = p.Draw<tw_tensor* const*>();
  const auto n_targets = p.Draw<uint32_t>();
  auto* const* sources = p.Draw<tw_tensor* const*>();
  const auto n_sources = p.Draw<uint32_t>();
  tw_tape_result results[Program::kList] = {};
  p.Note(tw_tape_gradient(tape, targets, dys, n_targets, sources, n_sources, p.Null() ? nullptr : results));
  for (const tw_tape_result& r : results) {
    if ((r.values || r.rows) && p.failed()) Broken("gradients that failed made something");
    p.Keep(r.values);
    p.Keep(r.rows);
  }
}
std::map<const tw_callable*, uint32_t> fetches_of;
SPECIAL(tw_callable_create) {
  tw_session* session = p.Handle<tw_session>();
  const tw_signature* what = p.Signature();
  tw_callable* made = nullptr;
  p.Note(tw_callable_create(session, what, p.Null() ? nullptr : &made));
  if (made) fetches_of[made] = what->n_fetches;
  p.Keep(made);
}
// start(done, user) returns the status; user is the number of fetches.
template <class F>
void Start(Program& p, uint32_t n_fetches, F&& start) {
  const tw_run_done done = p.Null() ? nullptr : Waiting::Ended;
  Waiting::Started();
  tw_status* refused = start(done, reinterpret_cast<void*>(uintptr_t{n_fetches}));
  if (refused) Waiting::Ended(nullptr, nullptr, nullptr);
  p.Note(refused);
}
SPECIAL(tw_session_run_async) {
  tw_session* session = p.Handle<tw_session>();
  const tw_signature* what = p.Signature();
  auto* const* feeds = p.Draw<tw_tensor* const*>();
  const tw_run_options* options = p.RunOptions();
  Start(p, what ? what->n_fetches : 0,
        [&](tw_run_done done, void* user) { return tw_session_run_async(session, what, feeds, options, done, user); });
}
SPECIAL(tw_callable_run_async) {
  tw_callable* callable = p.Handle<tw_callable>();
  auto* const* feeds = p.Draw<tw_tensor* const*>();
  const tw_run_options* options = p.RunOptions();
  Start(p, callable ? fetches_of[callable] : 0,
        [&](tw_run_done done, void* user) { return tw_callable_run_async(callable, feeds, options, done, user); });
}

}  // namespace

const std::map<std::string_view, Function>& Functions() {
  static const std::map<std::string_view, Function> functions = {
#define SYMBOL(name) {#name, Run<&name>},
#include "c_api_symbols.inc"
#undef SYMBOL
  };
  return functions;
}

}  // namespace thalweg::fuzz
