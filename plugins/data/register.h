// One function per source file; each adds the file's kernels to the plugin.
#ifndef THALWEG_PLUGINS_DATA_REGISTER_H_
#define THALWEG_PLUGINS_DATA_REGISTER_H_

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::data {

void register_array_rows(tw::Plugin& p);
void register_batch(tw::Plugin& p);
void register_cache(tw::Plugin& p);
void register_csv(tw::Plugin& p);
void register_csv_dataset(tw::Plugin& p);
void register_dataset_info(tw::Plugin& p);
void register_example(tw::Plugin& p);
void register_filter(tw::Plugin& p);
void register_flat_map(tw::Plugin& p);
void register_generator(tw::Plugin& p);
void register_group(tw::Plugin& p);
void register_ignore_errors(tw::Plugin& p);
void register_iterator(tw::Plugin& p);
void register_json_lines(tw::Plugin& p);
void register_lines(tw::Plugin& p);
void register_map(tw::Plugin& p);
void register_padded_batch(tw::Plugin& p);
void register_range(tw::Plugin& p);
void register_records(tw::Plugin& p);
void register_repeat(tw::Plugin& p);
void register_sequence_example(tw::Plugin& p);
void register_serialize(tw::Plugin& p);
void register_shuffle(tw::Plugin& p);
void register_take(tw::Plugin& p);
void register_tensors(tw::Plugin& p);
void register_wav(tw::Plugin& p);
void register_window(tw::Plugin& p);
void register_zip(tw::Plugin& p);

}  // namespace thalweg::data

#endif  // THALWEG_PLUGINS_DATA_REGISTER_H_
