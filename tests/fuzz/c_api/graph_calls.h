// Calls that build graphs and whose types are not enough: operations, blocks, gradients, tables, datasets.
#pragma once
#include <algorithm>
#include <tuple>
#include <vector>

#include "tests/fuzz/c_api/special.h"

namespace thalweg::fuzz {

// ---- Operations and scopes ----

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

// ---- Gradients, tables ----

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
inline tw_sharded DrawTable(Program& p) {
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
// Two columns; n of them are given.
template <class Call>
void OfColumns(Program& p, Call&& call) {
  tw_scope* scope = p.Handle<tw_scope>();
  const auto files = p.Draw<tw_output>();
  tw_dataset_column columns[2];
  const tw_dataset_column* list[2];
  for (int k = 0; k < 2; ++k) {
    tw_dataset_column_init(&columns[k]);
    columns[k].name = p.Draw<const char*>();
    columns[k].dtype = uint32_t(p.Number());
    columns[k].dims = p.Draw<const int64_t*>();
    columns[k].rank = p.Draw<int32_t>();
    columns[k].missing = p.Draw<tw_output>();
    list[k] = &columns[k];
  }
  const auto n = uint32_t(p.Number() % 3);
  p.Keep(call(scope, files, p.Null() ? nullptr : list, n));
  p.NoteScope(tw_scope_code(scope));
}
SPECIAL(tw_dataset_csv) {
  OfColumns(p, [&](auto... a) { return tw_dataset_csv(a..., p.Draw<const tw_dataset_csv_options*>()); });
}
SPECIAL(tw_dataset_json_lines) {
  OfColumns(p, [&](auto... a) { return tw_dataset_json_lines(a..., p.Draw<const char*>()); });
}
SPECIAL(tw_dataset_npz) {
  OfColumns(p, [](auto... a) { return tw_dataset_npz(a...); });
}
SPECIAL(tw_dataset_group_by_window) {
  tw_scope* scope = p.Handle<tw_scope>();
  const auto dataset = p.Draw<tw_output>();
  tw_block* key = p.Taken(p.Handle<tw_block>());
  tw_block* reduce = p.Taken(p.Handle<tw_block>());
  p.Keep(tw_dataset_group_by_window(scope, dataset, key, reduce, p.Draw<int64_t>()));
  p.NoteScope(tw_scope_code(scope));
}
SPECIAL(tw_dataset_bucket_by_length) {
  tw_scope* scope = p.Handle<tw_scope>();
  const auto dataset = p.Draw<tw_output>();
  tw_block* length = p.Taken(p.Handle<tw_block>());
  const auto* boundaries = p.Draw<const int64_t*>();
  const auto* sizes = p.Draw<const int64_t*>();
  const auto n = uint32_t(p.Number() % Program::kList);  // there is one size more
  p.Keep(tw_dataset_bucket_by_length(scope, dataset, length, boundaries, sizes, n, p.Draw<const tw_dataset_bucket_options*>()));
  p.NoteScope(tw_scope_code(scope));
}
SPECIAL(tw_dataset_map) { OfBlock<&tw_dataset_map, int64_t>(p); }
SPECIAL(tw_dataset_filter) { OfBlock<&tw_dataset_filter>(p); }
SPECIAL(tw_dataset_take_while) { OfBlock<&tw_dataset_take_while>(p); }
SPECIAL(tw_dataset_flat_map) { OfBlock<&tw_dataset_flat_map>(p); }
SPECIAL(tw_dataset_interleave) { OfBlock<&tw_dataset_interleave, int64_t, int64_t>(p); }

}  // namespace thalweg::fuzz
