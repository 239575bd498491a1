// Calls that run steps, keep files or serve, and whose types are not enough.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/c_api/special.h"

namespace thalweg::fuzz {

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

// ---- Records, summaries, runtimes, plugins ----

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
inline bool IsShared(const tw_runtime* runtime) {
  tw_runtime* shared = nullptr;
  tw_status_release(tw_runtime_default(&shared));
  tw_runtime_release(shared);
  return !runtime || runtime == shared;
}

// Returns the file of one of the build's plugins by its name; the shared runtime takes no more
// devices.
inline std::string PluginFile(std::string_view name, bool shared) {
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
inline const char* const* DrawClusterOptions(Program& p, uint32_t* out_n) {
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
inline void Answer(void*, tw_host_call* call) {
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

// ---- Prepared and asynchronous runs ----

inline std::map<const tw_callable*, uint32_t> fetches_of;
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

}  // namespace thalweg::fuzz
