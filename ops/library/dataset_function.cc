// thalweg/dataset.h: functions of elements, and elements in the steps of a graph.
#include "ops/library/dataset_function.h"

#include <algorithm>

#include "thalweg/op.h"

namespace thalweg::library {

ElementFunction DefineFunction(tw_scope* scope, const char* function, tw_block* block, bool dataset_result) {
  const std::unique_ptr<tw_block> owned(block);
  ElementFunction f;
  f.captured = Finish(scope, function, {block});
  if (!Good(scope)) return f;
  if (block->results.empty()) Refuse(scope, function, "the block has no results; call tw_block_give");
  if (dataset_result && Good(scope)) {
    if (block->results.size() != 1 || !ComponentsOf(block->body, block->results[0], &f.results))
      Refuse(scope, function, "the block must give one dataset, from a tw_dataset function with the block's scope");
  }
  for (size_t k = 0; !dataset_result && Good(scope) && k < block->results.size(); ++k) {
    const ValueInfo info = Describe(scope, block->body, block->results[k]);
    f.results.Add(info.dtype, info.shape);
  }
  for (size_t k = 0; Good(scope) && k < f.captured.size(); ++k) f.captured_types.push_back(Describe(scope, f.captured[k]).dtype);
  if (Good(scope)) f.name = AddFunction(scope, *block, function + 3, f.captured);  // without "tw_"
  return f;
}

tw_output DatasetArgument(tw_block* block, const Components& elements) {
  const tw_output argument = tw_block_argument(block, TW_VARIANT, nullptr, 0);
  if (!Good(tw_block_scope(block))) return 0;
  OpenOp op(tw_block_scope(block), "OptionsDataset");
  tw_op_add_input(op, argument);
  tw_op_set_string(op, "serialized_options", "", 0);
  return EndDataset(&op, elements);
}

}  // namespace thalweg::library

using namespace thalweg::library;

namespace {

// Adds an op with inputs (dataset, captured values, numbers).
tw_output Apply(tw_scope* scope, const char* op, tw_output dataset, const ElementFunction& f, const char* attr, const Components& elements,
                const std::vector<int64_t>& numbers = {}) {
  std::vector<tw_output> inputs;
  for (const int64_t n : numbers) inputs.push_back(Long(scope, n));
  if (!Good(scope) || !f.name) return 0;
  OpenOp open(scope, op);
  tw_op_add_input(open, dataset);
  tw_op_add_inputs(open, f.captured.data(), uint32_t(f.captured.size()));
  tw_op_add_inputs(open, inputs.data(), uint32_t(inputs.size()));
  tw_op_set_func(open, attr, f.name);
  tw_op_set_types(open, "Targuments", f.captured_types.data(), uint32_t(f.captured_types.size()));
  return EndDataset(&open, elements);
}

void CheckPredicate(tw_scope* scope, const char* function, const ElementFunction& f) {
  if (Good(scope) && (f.results.types.size() != 1 || f.results.types[0] != TW_BOOL)) {
    Refuse(scope, function,
           "the block gives " + std::to_string(f.results.types.size()) + " results" +
               (f.results.types.size() == 1 ? std::string(" of type ") + tw_dtype_name(f.results.types[0]) : "") +
               "; it must give one scalar of type bool");
  }
}

tw_output Chosen(tw_scope* scope, const char* function, const char* op, tw_output dataset, tw_block* block) {
  return Protect(scope, [&] {
    const ElementFunction f = DefineFunction(scope, function, block);
    CheckPredicate(scope, function, f);
    const Components elements = Elements(scope, function, dataset);
    return Apply(scope, op, dataset, f, "predicate", elements);
  });
}

// The elements of the datasets that are the components of a WindowDataset; false for other datasets.
bool WindowOf(const tw_graph* graph, tw_output dataset, Components* out) {
  const tw_operation* made = nullptr;
  tw_status* failed = tw_graph_producer(graph, dataset, &made, nullptr);
  tw_status_release(failed);
  return !failed && std::string(tw_operation_type(made)) == "WindowDataset" && ComponentsOf(graph, tw_operation_input(made, 0), out);
}

}  // namespace

tw_block* tw_dataset_block(tw_scope* scope, tw_output dataset, tw_output* out_arguments) {
  return Protect(scope, [&]() -> tw_block* {
    const char* function = "tw_dataset_block";
    const Components elements = Elements(scope, function, dataset);
    if (Good(scope) && !out_arguments) Refuse(scope, function, "out_arguments is NULL");
    if (!Good(scope)) return nullptr;
    tw_block* block = tw_block_begin(scope);
    Components windows;
    const bool of_windows = block && WindowOf(tw_scope_graph(scope), dataset, &windows);
    for (size_t k = 0; block && k < elements.types.size(); ++k) {
      if (of_windows) {
        Components one;
        one.Add(windows.types[k], windows.shapes[k].c());
        out_arguments[k] = DatasetArgument(block, one);
        continue;
      }
      const tw_shape shape = elements.shapes[k].c();
      out_arguments[k] = tw_block_argument(block, elements.types[k], shape.dims, shape.rank);
    }
    return block;
  });
}

tw_output tw_dataset_map(tw_scope* scope, tw_output dataset, tw_block* block, int64_t parallel) {
  return Protect(scope, [&]() -> tw_output {
    const char* function = "tw_dataset_map";
    const ElementFunction f = DefineFunction(scope, function, block);
    if (parallel < 1 && parallel != TW_DATASET_AUTO)
      Refuse(scope, function, "parallel is " + std::to_string(parallel) + "; it must be at least 1, or TW_DATASET_AUTO");
    (void)Elements(scope, function, dataset);
    if (parallel == 1) return Apply(scope, "MapDataset", dataset, f, "f", f.results);
    return Apply(scope, "ParallelMapDatasetV2", dataset, f, "f", f.results, {parallel});
  });
}

tw_output tw_dataset_filter(tw_scope* scope, tw_output dataset, tw_block* block) {
  return Chosen(scope, "tw_dataset_filter", "FilterDataset", dataset, block);
}
tw_output tw_dataset_take_while(tw_scope* scope, tw_output dataset, tw_block* block) {
  return Chosen(scope, "tw_dataset_take_while", "TakeWhileDataset", dataset, block);
}

tw_output tw_dataset_flat_map(tw_scope* scope, tw_output dataset, tw_block* block) {
  return Protect(scope, [&] {
    const ElementFunction f = DefineFunction(scope, "tw_dataset_flat_map", block, true);
    (void)Elements(scope, "tw_dataset_flat_map", dataset);
    return Apply(scope, "FlatMapDataset", dataset, f, "f", f.results);
  });
}

tw_output tw_dataset_interleave(tw_scope* scope, tw_output dataset, tw_block* block, int64_t cycle, int64_t block_length) {
  return Protect(scope, [&] {
    const char* function = "tw_dataset_interleave";
    const ElementFunction f = DefineFunction(scope, function, block, true);
    if (cycle < 1 || block_length < 1) {
      Refuse(scope, function,
             "cycle is " + std::to_string(cycle) + " and block_length is " + std::to_string(block_length) + "; both must be above 0");
    }
    (void)Elements(scope, function, dataset);
    return Apply(scope, "InterleaveDataset", dataset, f, "f", f.results, {cycle, block_length});
  });
}

tw_output tw_dataset_position(tw_scope* scope, const char* name, tw_output dataset) {
  return Protect(scope, [&]() -> tw_output {
    const Components elements = Elements(scope, "tw_dataset_position", dataset);
    if (!Good(scope)) return 0;
    OpenOp op(scope, "IteratorV2", name);
    tw_op_set_string(op, "shared_name", "", 0);
    tw_op_set_string(op, "container", tw_scope_container(scope), std::char_traits<char>::length(tw_scope_container(scope)));
    return EndDataset(&op, elements);
  });
}

const tw_operation* tw_dataset_start(tw_scope* scope, tw_output dataset, tw_output position) {
  return Protect(scope, [&]() -> const tw_operation* {
    (void)Elements(scope, "tw_dataset_start", dataset);
    return Good(scope) ? Update(scope, "MakeIterator", {dataset, position}) : nullptr;
  });
}

void tw_dataset_next(tw_scope* scope, tw_output dataset, tw_output position, tw_output* out_components) {
  Protect(scope, [&] {
    const Components elements = Elements(scope, "tw_dataset_next", dataset);
    if (Good(scope) && !out_components) Refuse(scope, "tw_dataset_next", "out_components is NULL");
    for (size_t k = 0; out_components && k < elements.types.size(); ++k) out_components[k] = 0;
    if (!Good(scope)) return 0;
    const tw_output first = AddDataset(scope, "IteratorGetNext", {position}, elements);
    for (uint32_t k = 0; Good(scope) && k < elements.types.size(); ++k) out_components[k] = tw_scope_output(scope, first, k);
    return 0;
  });
}
