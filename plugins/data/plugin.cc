// The plugin's registration: the kernels of every file in alphabetical order.
#include "thalweg/cpp/plugin.hpp"

#include "register.h"

TW_CPP_PLUGIN("org.thalweg.data", "0.1.0", p) {
  using namespace thalweg::data;
  register_array_rows(p);
  register_batch(p);
  register_cache(p);
  register_csv(p);
  register_csv_dataset(p);
  register_dataset_info(p);
  register_example(p);
  register_filter(p);
  register_flat_map(p);
  register_generator(p);
  register_group(p);
  register_ignore_errors(p);
  register_iterator(p);
  register_json_lines(p);
  register_lines(p);
  register_map(p);
  register_padded_batch(p);
  register_range(p);
  register_records(p);
  register_repeat(p);
  register_sequence_example(p);
  register_serialize(p);
  register_shuffle(p);
  register_take(p);
  register_tensors(p);
  register_wav(p);
  register_window(p);
  register_zip(p);
}
