// thalweg/dataset.h: windows of elements with one key, and batches of elements of similar lengths.
#include "ops/library/dataset_function.h"
#include "ops/library/options.h"
#include "thalweg/op.h"

using namespace thalweg::library;

namespace {

using OwnedBlock = std::unique_ptr<tw_block>;

void CheckNumber(tw_scope* scope, const char* function, const ElementFunction& f) {
  if (!Good(scope) || (f.results.types.size() == 1 && f.results.types[0] == TW_INT64)) return;
  Refuse(scope, function,
         "the block of the key gives " + std::to_string(f.results.types.size()) + " results" +
             (f.results.types.size() == 1 ? std::string(" of type ") + tw_dtype_name(f.results.types[0]) : "") +
             "; it must give one scalar of type int64");
}

tw_block* WindowBlock(tw_scope* scope, const char* function, tw_output dataset, tw_output* out_key, tw_output* out_window) {
  const Components elements = Elements(scope, function, dataset);
  if (!Good(scope)) return nullptr;
  OwnedBlock block(tw_block_begin(scope));
  if (!block) return nullptr;
  *out_key = tw_block_argument(block.get(), TW_INT64, nullptr, 0);
  *out_window = DatasetArgument(block.get(), elements);
  return block.release();
}

// Makes a block whose argument is a key, and calls write(scope, key) for its result.
template <class Write>
OwnedBlock KeyBlock(tw_scope* scope, Write&& write) {
  OwnedBlock block(tw_block_begin(scope));
  if (!block) return block;
  const tw_output key = tw_block_argument(block.get(), TW_INT64, nullptr, 0);
  const tw_output result = write(tw_block_scope(block.get()), key);
  tw_block_give(block.get(), &result, 1);
  return block;
}

tw_output Group(tw_scope* scope, const char* function, tw_output dataset, OwnedBlock key, OwnedBlock size, OwnedBlock reduce) {
  const ElementFunction of_key = DefineFunction(scope, function, key.release());
  CheckNumber(scope, function, of_key);
  const ElementFunction of_size = DefineFunction(scope, function, size.release());
  const ElementFunction made = DefineFunction(scope, function, reduce.release(), true);
  (void)Elements(scope, function, dataset);
  if (!Good(scope)) return 0;
  OpenOp op(scope, "GroupByWindowDataset");
  tw_op_add_input(op, dataset);
  const auto add = [&](const ElementFunction& f, const char* attr, const char* types) {
    tw_op_add_inputs(op, f.captured.data(), uint32_t(f.captured.size()));
    tw_op_set_func(op, attr, f.name);
    tw_op_set_types(op, types, f.captured_types.data(), uint32_t(f.captured_types.size()));
  };
  add(of_key, "key_func", "Tkey_func_other_arguments");
  add(made, "reduce_func", "Treduce_func_other_arguments");
  add(of_size, "window_size_func", "Twindow_size_func_other_arguments");
  return EndDataset(&op, made.results);
}

// Returns numbers[key], in the key's scope.
tw_output ChosenNumber(tw_scope* scope, const std::vector<int64_t>& numbers, tw_output key) {
  return tw_scope_op3(scope, "GatherV2", Longs(scope, numbers), key, tw_scope_scalar(scope, TW_INT32, 0));
}

// Returns `value`, after a check that it is below `limit`.
tw_output CheckedBelow(tw_scope* scope, tw_output value, int64_t limit) {
  const tw_output holds = tw_scope_op2(scope, "Less", value, Long(scope, limit));
  const tw_output said[] = {
      String(scope, "bucket_by_length: with to_boundary a length must be below " + std::to_string(limit) + ", the last boundary; it is"),
      value};
  if (!Good(scope)) return 0;
  OpenOp check(scope, "Assert");
  tw_op_add_input(check, holds);
  tw_op_add_inputs(check, said, 2);
  const tw_operation* checked = check.EndOperation();
  if (!Good(scope)) return 0;
  OpenOp same(scope, "Identity");
  tw_op_add_input(same, value);
  tw_op_add_control(same, checked);
  return same.End();
}

}  // namespace

tw_block* tw_dataset_window_block(tw_scope* scope, tw_output dataset, tw_output* out_key, tw_output* out_window) {
  return Protect(scope, [&]() -> tw_block* {
    const char* function = "tw_dataset_window_block";
    if (!out_key || !out_window) Refuse(scope, function, "out_key or out_window is NULL");
    return Good(scope) ? WindowBlock(scope, function, dataset, out_key, out_window) : nullptr;
  });
}

tw_output tw_dataset_group_by_window(tw_scope* scope, tw_output dataset, tw_block* key, tw_block* reduce, int64_t size) {
  OwnedBlock of_key(key), made(reduce == key ? nullptr : reduce);
  return Protect(scope, [&]() -> tw_output {
    const char* function = "tw_dataset_group_by_window";
    CheckLeast(scope, function, "size", size, 1);
    OwnedBlock of_size = KeyBlock(scope, [&](tw_scope* in, tw_output) { return Long(in, size); });
    return Group(scope, function, dataset, std::move(of_key), std::move(of_size), std::move(made));
  });
}

void tw_dataset_bucket_options_init(tw_dataset_bucket_options* options) {
  if (options) *options = {sizeof(tw_dataset_bucket_options), 0, nullptr, nullptr, 0, 0, 0, 0};
}

tw_output tw_dataset_bucket_by_length(tw_scope* scope, tw_output dataset, tw_block* length, const int64_t* boundaries, const int64_t* sizes,
                                      uint32_t n, const tw_dataset_bucket_options* options) {
  OwnedBlock of_length(length);
  return Protect(scope, [&]() -> tw_output {
    const char* function = "tw_dataset_bucket_by_length";
    const auto o = ReadOptions(scope, "tw_dataset_bucket_options", options, tw_dataset_bucket_options_init);
    if (n == 0 || !boundaries || !sizes) Refuse(scope, function, "there are no boundaries, or no sizes");
    for (uint32_t k = 0; Good(scope) && k <= n; ++k) CheckLeast(scope, function, "a size", sizes[k], 1);
    for (uint32_t k = 1; Good(scope) && k < n; ++k)
      if (boundaries[k] <= boundaries[k - 1])
        Refuse(scope, function,
               "boundary " + std::to_string(k) + " is " + std::to_string(boundaries[k]) + ", behind " + std::to_string(boundaries[k - 1]) +
                   "; the boundaries must grow");
    if (Good(scope) && o.stacked && (o.shapes || o.padding || o.to_boundary))
      Refuse(scope, function, "`stacked` is set, so shapes, padding and to_boundary have no meaning; leave them out");
    if (Good(scope) && (!length || length->results.size() != 1))
      Refuse(scope, function, "the block of the length must give one scalar, a whole number");
    if (!Good(scope)) return 0;

    // The key of an element is the number of boundaries that its length has reached.
    const std::vector<int64_t> edges(boundaries, boundaries + n), all_sizes(sizes, sizes + n + 1);
    tw_scope* in = tw_block_scope(length);
    tw_output value = CastTo(in, length->results[0], TW_INT64);
    if (o.to_boundary) value = CheckedBelow(in, value, edges.back());
    const tw_output reached = CastTo(in, tw_scope_op2(in, "LessEqual", Longs(in, edges), value), TW_INT64);
    const int32_t first = 0;
    length->results = {tw_scope_op2(in, "Sum", reached, tw_scope_ints(in, &first, 1))};
    OwnedBlock of_size = KeyBlock(scope, [&](tw_scope* s, tw_output key) { return ChosenNumber(s, all_sizes, key); });

    tw_output key = 0, window = 0;
    OwnedBlock made(WindowBlock(scope, function, dataset, &key, &window));
    if (!made) return 0;
    tw_scope* s = tw_block_scope(made.get());
    const tw_output size = ChosenNumber(s, all_sizes, key);
    tw_output batch = 0;
    if (o.stacked) {
      batch = AddDataset(s, "BatchDatasetV2", {window, size, Flag(s, o.whole)}, Elements(s, function, window).Stacked(-1));
    } else {
      std::vector<int64_t> largest;
      for (const int64_t edge : edges) largest.push_back(edge > 0 ? edge - 1 : 0);
      largest.push_back(0);
      const tw_output filler = o.to_boundary ? ChosenNumber(s, largest, key) : 0;
      batch = PaddedBatch(s, function, window, {size, -1, o.shapes, o.padding, o.whole, filler});
    }
    tw_block_give(made.get(), &batch, 1);
    return Group(scope, function, dataset, std::move(of_length), std::move(of_size), std::move(made));
  });
}
