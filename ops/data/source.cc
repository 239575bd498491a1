// Datasets without an input: tensors, numbers, files.
#include "ops/data/dataset.h"

namespace thalweg::ops {

void register_source(tw::Plugin& p) {
  AddDataset(p, "TensorDataset", "components: Toutput_types", "Toutput_types: list(type) >= 1; output_shapes: list(shape) >= 1; ",
             "one element, which is the components");
  AddDataset(p, "TensorSliceDataset", "components: Toutput_types",
             "Toutput_types: list(type) >= 1; output_shapes: list(shape) >= 1; is_files: bool = false; ",
             "an element for each row of the components", "replicate_on_split: bool = false; ");
  AddDataset(p, "RangeDataset", "start: int64, stop: int64, step: int64", kElements, "the numbers from start to stop, without stop",
             "replicate_on_split: bool = false; ");
  AddDataset(p, "RandomDataset", "seed: int64, seed2: int64", kElements,
             "numbers from 0 to 2^32 - 1 that follow from the seeds, without end", "stateful; ");
  AddDataset(p, "GeneratorDataset",
             "init_func_other_args: Tinit_func_args, next_func_other_args: Tnext_func_args, finalize_func_other_args: Tfinalize_func_args",
             "init_func: func; next_func: func; finalize_func: func; Tinit_func_args: list(type) >= 0; Tnext_func_args: list(type) >= 0; "
             "Tfinalize_func_args: list(type) >= 0; " +
                 kElements,
             "what a function gives until it fails with OUT_OF_RANGE", "stateful; ");
  const std::string files = "stateful; touches files; ";
  AddDataset(p, "TFRecordDataset", "filenames: string, compression_type: string, buffer_size: int64", "",
             "the records of files, one file after the other", files);
  AddDataset(p, "TextLineDataset", "filenames: string, compression_type: string, buffer_size: int64", "",
             "the lines of files, one file after the other", files);
  AddDataset(
      p, "FixedLengthRecordDatasetV2",
      "filenames: string, header_bytes: int64, record_bytes: int64, footer_bytes: int64, buffer_size: int64, compression_type: string", "",
      "pieces of equal size of files, one file after the other", files);
  const std::string csv_types = "output_types: list({float, double, int32, int64, string}) >= 1; output_shapes: list(shape) >= 1; ";
  AddDataset(p, "CSVDatasetV2",
             "filenames: string, compression_type: string, buffer_size: int64, header: bool, field_delim: string, use_quote_delim: bool, "
             "na_value: string, select_cols: int64, record_defaults: output_types, exclude_cols: int64",
             csv_types, "the records of CSV files, one file after the other", files);
  AddDataset(
      p, "CsvColumnsDataset",
      "filenames: string, compression_type: string, buffer_size: int64, field_delim: string, use_quote_delim: bool, na_value: string, "
      "record_defaults: output_types",
      "columns: list(string) >= 1; " + csv_types, "columns of CSV files, chosen by the names in their headers", files);
  AddDataset(p, "JsonLinesDataset", "filenames: string, compression_type: string, buffer_size: int64, defaults: output_types",
             "keys: list(string) >= 1; required: list(string) = []; output_types: list({float, double, int32, int64, bool, string}) >= 1; "
             "output_shapes: list(shape) >= 1; ",
             "members of the JSON objects in the lines of files, one file after the other", files);
  AddDataset(p, "ArrayFilesDataset", "filenames: string, compression_type: string, buffer_size: int64",
             "format: {\"npy\", \"npz\", \"idx\"}; arrays: list(string) = []; " + kElements,
             "the rows of arrays in files, one file after the other", files);
}

}  // namespace thalweg::ops
