// Datasets that read other datasets.
#include "ops/data/dataset.h"

namespace thalweg::ops {
namespace {

// A dataset op that passes elements through a function, with captured values.
void AddMap(tw::Plugin& p, const std::string& name, const std::string& inputs, const std::string& function, const std::string& attrs,
            const std::string& doc) {
  AddDataset(p, name, "input_dataset: variant, other_arguments: Targuments" + inputs,
             function + ": func; Targuments: list(type) >= 0; " + kElements + attrs, doc);
}

}  // namespace

void register_transform(tw::Plugin& p) {
  const std::string in = "input_dataset: variant";
  AddDataset(p, "TakeDataset", in + ", count: int64", kElements, "the first elements");
  AddDataset(p, "SkipDataset", in + ", count: int64", kElements, "the elements without the first ones");
  AddDataset(p, "ShardDataset", in + ", num_shards: int64, index: int64", "require_non_empty: bool = false; " + kElements,
             "every num_shards-th element, from number index on");
  AddDataset(p, "RepeatDataset", in + ", count: int64", kElements, "the elements count times; -1 is without end");
  AddDataset(p, "ConcatenateDataset", in + ", another_dataset: variant", kElements, "the elements of two datasets, one after the other");
  AddDataset(p, "ZipDataset", "input_datasets: variant * N", kElements + "N: int >= 1; ", "elements of several datasets side by side");
  AddDataset(p, "ShuffleDatasetV3", in + ", buffer_size: int64, seed: int64, seed2: int64, seed_generator: resource",
             "reshuffle_each_iteration: bool = true; " + kElements, "the elements in a random order that follows from the seeds");
  AddDataset(p, "CacheDatasetV2", in + ", filename: string, cache: resource", kElements,
             "the elements, which the first whole pass keeps in memory", "resource cache org.thalweg.dataset_cache; unopened cache; ");
  AddDataset(p, "PrefetchDataset", in + ", buffer_size: int64",
             kElements + "slack_period: int = 0; legacy_autotune: bool = true; buffer_size_min: int = 0; ",
             "the elements, of which a program may compute some before they are needed");
  AddDataset(p, "OptionsDataset", in, "serialized_options: string; " + kElements, "the elements; the options change none of them");

  AddDataset(p, "IgnoreErrorsDataset", in, "log_warning: bool = false; " + kElements, "the elements without those that fail");

  AddDataset(p, "BatchDatasetV2", in + ", batch_size: int64, drop_remainder: bool", "parallel_copy: bool = false; " + kElements,
             "batch_size elements stacked along a new first axis");
  AddDataset(p, "ParallelBatchDataset", in + ", batch_size: int64, num_parallel_calls: int64, drop_remainder: bool",
             "parallel_copy: bool = false; " + kElements + "deterministic: string = \"default\"; ", "the same as BatchDatasetV2");
  AddDataset(p, "PaddedBatchDatasetV2",
             in + ", batch_size: int64, padded_shapes: int64 * N, padding_values: Toutput_types, drop_remainder: bool",
             "parallel_copy: bool = false; Toutput_types: list(type) >= 1; output_shapes: list(shape) >= 1; N: int >= 1; ",
             "batch_size elements, padded to one shape and stacked along a new first axis");
  AddDataset(p, "UnbatchDataset", in, kElements, "an element for each row of an element");
  AddDataset(p, "WindowDataset", in + ", size: int64, shift: int64, stride: int64, drop_remainder: bool", kElements,
             "datasets of size consecutive elements, one for each component");

  AddDataset(p, "GroupByWindowDataset",
             in + ", key_func_other_arguments: Tkey_func_other_arguments, reduce_func_other_arguments: Treduce_func_other_arguments, "
                  "window_size_func_other_arguments: Twindow_size_func_other_arguments",
             "key_func: func; reduce_func: func; window_size_func: func; Tkey_func_other_arguments: list(type) >= 0; "
             "Treduce_func_other_arguments: list(type) >= 0; Twindow_size_func_other_arguments: list(type) >= 0; " +
                 kElements,
             "what a function makes of windows of elements with one key");

  AddMap(p, "MapDataset", "", "f",
         "use_inter_op_parallelism: bool = true; preserve_cardinality: bool = false; force_synchronous: bool = false; ",
         "what a function makes of each element");
  AddMap(p, "ParallelMapDatasetV2", ", num_parallel_calls: int64", "f",
         "use_inter_op_parallelism: bool = true; deterministic: string = \"default\"; preserve_cardinality: bool = false; "
         "use_unbounded_threadpool: bool = false; ",
         "what a function makes of each element, of several at once");
  AddMap(p, "FilterDataset", "", "predicate", "", "the elements for which a function is true");
  AddMap(p, "TakeWhileDataset", "", "predicate", "", "the elements before the first for which a function is false");
  AddMap(p, "FlatMapDataset", "", "f", "",
         "the elements of the datasets that a function makes of each element, one dataset after the other");
  AddMap(p, "InterleaveDataset", ", cycle_length: int64, block_length: int64", "f", "",
         "the elements of the datasets that a function makes of each element, of cycle_length datasets in turn");
  AddMap(p, "ParallelInterleaveDatasetV4",
         ", cycle_length: int64, block_length: int64, buffer_output_elements: int64, prefetch_input_elements: int64, num_parallel_calls: "
         "int64",
         "f", "deterministic: string = \"default\"; ", "the same as InterleaveDataset");
  AddDataset(p, "ScanDataset", "input_dataset: variant, initial_state: Tstate, other_arguments: Targuments",
             "f: func; Tstate: list(type) >= 1; Targuments: list(type) >= 0; " + kElements +
                 "preserve_cardinality: bool = false; use_default_device: bool = true; ",
             "what a function makes of a state and each element, next to the next state");
}

}  // namespace thalweg::ops
