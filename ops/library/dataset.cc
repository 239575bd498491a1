// thalweg/dataset.h: sources in memory, and the same elements, fewer, in another order, stacked or taken apart.
#include <algorithm>

#include "ops/library/dataset_parts.h"
#include "thalweg/op.h"

using namespace thalweg::library;

namespace {

// Adds an op that passes elements on, with int64 parameters behind the dataset.
tw_output Pass(tw_scope* scope, const char* function, const char* op, tw_output dataset, const std::vector<int64_t>& numbers) {
  const Components elements = Elements(scope, function, dataset);
  std::vector<tw_output> inputs = {dataset};
  for (const int64_t n : numbers) inputs.push_back(Long(scope, n));
  return AddDataset(scope, op, inputs, elements);
}

}  // namespace

tw_output tw_dataset_rows(tw_scope* scope, const tw_output* components, uint32_t n) {
  return Protect(scope, [&]() -> tw_output {
    if (n < 1 || !components) Refuse(scope, "tw_dataset_rows", "there are no components");
    Components elements;
    for (uint32_t k = 0; Good(scope) && k < n; ++k) {
      const ValueInfo info = Describe(scope, components[k]);
      if (Good(scope)) elements.Add(info.dtype, info.shape);
    }
    if (!Good(scope)) return 0;
    OpenOp op(scope, "TensorSliceDataset");
    tw_op_add_inputs(op, components, n);
    return EndDataset(&op, elements.Rows(), "Toutput_types");
  });
}

tw_output tw_dataset_range(tw_scope* scope, int64_t start, int64_t stop, int64_t step) {
  return Protect(scope, [&]() -> tw_output {
    if (step == 0) Refuse(scope, "tw_dataset_range", "step is 0");
    Components elements;
    elements.Add(TW_INT64, {nullptr, 0, 0});
    return AddDataset(scope, "RangeDataset", {Long(scope, start), Long(scope, stop), Long(scope, step)}, elements);
  });
}

tw_output tw_dataset_take(tw_scope* scope, tw_output dataset, int64_t count) {
  return Protect(scope, [&] {
    CheckLeast(scope, "tw_dataset_take", "count", count, 0, true);
    return Pass(scope, "tw_dataset_take", "TakeDataset", dataset, {count});
  });
}

tw_output tw_dataset_skip(tw_scope* scope, tw_output dataset, int64_t count) {
  return Protect(scope, [&] {
    CheckLeast(scope, "tw_dataset_skip", "count", count, 0, true);
    return Pass(scope, "tw_dataset_skip", "SkipDataset", dataset, {count});
  });
}

tw_output tw_dataset_shard(tw_scope* scope, tw_output dataset, int64_t shards, int64_t index) {
  return Protect(scope, [&] {
    CheckLeast(scope, "tw_dataset_shard", "shards", shards, 1);
    if (index < 0 || index >= shards)
      Refuse(scope, "tw_dataset_shard",
             "index is " + std::to_string(index) + "; it must be at least 0 and below shards, which is " + std::to_string(shards));
    return Pass(scope, "tw_dataset_shard", "ShardDataset", dataset, {shards, index});
  });
}

tw_output tw_dataset_repeat(tw_scope* scope, tw_output dataset, int64_t count) {
  return Protect(scope, [&] {
    CheckLeast(scope, "tw_dataset_repeat", "count", count, 0, true);
    return Pass(scope, "tw_dataset_repeat", "RepeatDataset", dataset, {count});
  });
}

tw_output tw_dataset_concatenate(tw_scope* scope, tw_output first, tw_output second) {
  return Protect(scope, [&]() -> tw_output {
    Components a = Elements(scope, "tw_dataset_concatenate", first);
    const Components b = Elements(scope, "tw_dataset_concatenate", second);
    if (!Good(scope)) return 0;
    if (a.types != b.types) Refuse(scope, "tw_dataset_concatenate", "the datasets have elements of different types");
    for (size_t k = 0; Good(scope) && k < a.shapes.size(); ++k) {
      Components::Shape& s = a.shapes[k];
      const Components::Shape& t = b.shapes[k];
      if (!s.known_rank || !t.known_rank || s.dims.size() != t.dims.size()) {
        s = {{}, false};
        continue;
      }
      for (size_t d = 0; d < s.dims.size(); ++d)
        if (s.dims[d] != t.dims[d]) s.dims[d] = -1;
    }
    return AddDataset(scope, "ConcatenateDataset", {first, second}, a);
  });
}

tw_output tw_dataset_zip(tw_scope* scope, const tw_output* datasets, uint32_t n) {
  return Protect(scope, [&]() -> tw_output {
    if (n < 1 || !datasets) Refuse(scope, "tw_dataset_zip", "there are no datasets");
    Components all;
    for (uint32_t i = 0; Good(scope) && i < n; ++i) {
      const Components one = Elements(scope, "tw_dataset_zip", datasets[i]);
      all.types.insert(all.types.end(), one.types.begin(), one.types.end());
      all.shapes.insert(all.shapes.end(), one.shapes.begin(), one.shapes.end());
    }
    if (!Good(scope)) return 0;
    return AddDataset(scope, "ZipDataset", {datasets, datasets + n}, all);
  });
}

tw_output tw_dataset_shuffle(tw_scope* scope, tw_output dataset, int64_t buffer, int64_t seed, uint32_t each_pass) {
  return Protect(scope, [&]() -> tw_output {
    CheckLeast(scope, "tw_dataset_shuffle", "buffer", buffer, 1, true);
    const Components elements = Elements(scope, "tw_dataset_shuffle", dataset);
    const tw_output none = tw_scope_op(scope, "DummySeedGenerator", nullptr, 0);
    const tw_output inputs[] = {dataset, Long(scope, buffer), Long(scope, seed), Long(scope, 0), none};
    if (!Good(scope)) return 0;
    OpenOp op(scope, "ShuffleDatasetV3");
    tw_op_add_inputs(op, inputs, 5);
    tw_op_set_bool(op, "reshuffle_each_iteration", each_pass != 0);
    return EndDataset(&op, elements);
  });
}

tw_output tw_dataset_cache(tw_scope* scope, tw_output dataset) {
  return Protect(scope, [&] {
    const Components elements = Elements(scope, "tw_dataset_cache", dataset);
    const tw_output none = tw_scope_op(scope, "DummyMemoryCache", nullptr, 0);
    return AddDataset(scope, "CacheDatasetV2", {dataset, String(scope, ""), none}, elements);
  });
}

tw_output tw_dataset_prefetch(tw_scope* scope, tw_output dataset, int64_t count) {
  return Protect(scope, [&] {
    CheckLeast(scope, "tw_dataset_prefetch", "count", count, 1, true);
    return Pass(scope, "tw_dataset_prefetch", "PrefetchDataset", dataset, {count});
  });
}

tw_output tw_dataset_ignore_errors(tw_scope* scope, tw_output dataset, uint32_t log) {
  return Protect(scope, [&]() -> tw_output {
    const Components elements = Elements(scope, "tw_dataset_ignore_errors", dataset);
    if (!Good(scope)) return 0;
    OpenOp op(scope, "IgnoreErrorsDataset");
    tw_op_add_input(op, dataset);
    tw_op_set_bool(op, "log_warning", log != 0);
    return EndDataset(&op, elements);
  });
}

tw_output tw_dataset_batch(tw_scope* scope, tw_output dataset, int64_t size, uint32_t whole) {
  return Protect(scope, [&] {
    CheckLeast(scope, "tw_dataset_batch", "size", size, 1);
    const Components elements = Elements(scope, "tw_dataset_batch", dataset).Stacked(whole ? size : -1);
    return AddDataset(scope, "BatchDatasetV2", {dataset, Long(scope, size), Flag(scope, whole)}, elements);
  });
}

tw_output tw_dataset_padded_batch(tw_scope* scope, tw_output dataset, int64_t size, const tw_shape* shapes, const tw_output* padding,
                                  uint32_t whole) {
  return Protect(scope, [&]() -> tw_output {
    CheckLeast(scope, "tw_dataset_padded_batch", "size", size, 1);
    return PaddedBatch(scope, "tw_dataset_padded_batch", dataset, {Long(scope, size), whole ? size : -1, shapes, padding, whole, 0});
  });
}

tw_output tw_dataset_unbatch(tw_scope* scope, tw_output dataset) {
  return Protect(scope,
                 [&] { return AddDataset(scope, "UnbatchDataset", {dataset}, Elements(scope, "tw_dataset_unbatch", dataset).Rows()); });
}

tw_output tw_dataset_window(tw_scope* scope, tw_output dataset, int64_t size, int64_t shift, int64_t stride, uint32_t whole) {
  return Protect(scope, [&] {
    CheckLeast(scope, "tw_dataset_window", "size", size, 1);
    CheckLeast(scope, "tw_dataset_window", "shift", shift, 1);
    CheckLeast(scope, "tw_dataset_window", "stride", stride, 1);
    Components windows;
    for (size_t k = Elements(scope, "tw_dataset_window", dataset).types.size(); k > 0; --k) windows.Add(TW_VARIANT, {nullptr, 0, 0});
    return AddDataset(scope, "WindowDataset", {dataset, Long(scope, size), Long(scope, shift), Long(scope, stride), Flag(scope, whole)},
                      windows);
  });
}
