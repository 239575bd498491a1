#include "session.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

namespace thalweg::ort {
namespace {

constexpr size_t kMostCallables = 64;       // sets of outputs whose prepared runs are kept
constexpr size_t kMostProfiledRuns = 1000;  // as ONNX Runtime's profiles, which end after a number of events

// Throws if the value does not fit what the model declares.
void CheckInput(const Port& port, const OrtValue& value) {
  const OrtTypeInfo& type = port.type;
  if (type.kind != ONNX_TYPE_TENSOR) return;  // Lists checks these
  if (value.kind != ONNX_TYPE_TENSOR || value.type != type.tensor.type) {
    Fail(ORT_INVALID_ARGUMENT, "unexpected input data type of '", port.name, "': actual ", NameOf(TypeOf(value)), ", expected ",
         NameOf(type));
  }
  if (!type.tensor.has_shape) return;
  const auto& dims = type.tensor.dims;
  if (value.dims.size() != dims.size()) {
    Fail(ORT_INVALID_ARGUMENT, "invalid rank for input '", port.name, "': got ", std::to_string(value.dims.size()), ", expected ",
         std::to_string(dims.size()));
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] >= 0 && dims[i] != value.dims[i]) {
      Fail(ORT_INVALID_ARGUMENT, "got invalid dimensions for input '", port.name, "': index ", std::to_string(i), ": got ",
           std::to_string(value.dims[i]), ", expected ", std::to_string(dims[i]));
    }
  }
}

std::string NamesOf(const std::vector<Port>& ports) {
  std::string text;
  for (const Port& port : ports) text += (text.empty() ? "'" : ", '") + port.name + "'";
  return text.empty() ? "none" : text;
}

std::string ProfileName(const std::string& prefix) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "_%Y-%m-%d_%H-%M-%S.json", &parts);
  return prefix + text;
}

void WriteFile(const std::string& path, std::string_view bytes) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  bool written = file && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  written = file && std::fclose(file) == 0 && written;
  if (!written) Fail(ORT_FAIL, "the profile cannot be written to '", path, "'");
}

const Port& At(const std::vector<Port>& ports, size_t index) {
  if (index < ports.size()) return ports[index];
  Fail(ORT_FAIL, "index ", std::to_string(index), " is out of range: there are ", std::to_string(ports.size()));
}

}  // namespace

void CheckRun(tw_status* status) {
  if (!status) return;
  const uint32_t code = tw_status_code(status);
  Error error{CodeOf(code), tw_status_message(status)};
  tw_status_release(status);
  if (code == TW_CANCELLED) error.message = "Exiting due to terminate flag being set to true: " + error.message;
  if (code == TW_NOT_FOUND) error.code = ORT_FAIL;
  throw error;
}

Step::~Step() {
  for (tw_tensor* t : fed_) tw_tensor_release(t);
}

void Step::Feed(const std::string& name, const OrtValue* value) {
  fed_.resize(session_.feeds.size());
  if (name.empty()) Fail(ORT_INVALID_ARGUMENT, "input name cannot be empty");
  const auto found = session_.input_index.find(name);
  if (found == session_.input_index.end()) {
    for (const Port& port : session_.file.initialized) {
      if (port.name == name) Fail(ORT_NOT_IMPLEMENTED, "input '", name, "' has a value in the model, which a run cannot replace");
    }
    Fail(ORT_INVALID_ARGUMENT, "Invalid input name: '", name, "'; the model has ", NamesOf(session_.file.inputs));
  }
  if (!value) Fail(ORT_INVALID_ARGUMENT, "the value of input '", name, "' is NULL");
  if (fed_[found->second]) Fail(ORT_INVALID_ARGUMENT, "input '", name, "' is given twice");
  const Port& port = session_.file.inputs[found->second];
  CheckInput(port, *value);
  try {
    fed_[found->second] = session_.lists.ToThalweg(*value, port.type).release();
  } catch (Error& e) {
    e.message = Text("input '", name, "': ", e.message);
    throw;
  }
}

void Step::Fetch(const std::string& name) {
  if (name.empty()) Fail(ORT_INVALID_ARGUMENT, "output name cannot be empty");
  const auto found = session_.output_index.find(name);
  if (found == session_.output_index.end()) {
    Fail(ORT_INVALID_ARGUMENT, "Invalid output name: '", name, "'; the model has ", NamesOf(session_.file.outputs));
  }
  outputs_.push_back(found->second);
}

void Step::Prepare() {
  if (outputs_.empty()) Fail(ORT_INVALID_ARGUMENT, "at least one output should be requested");
  fed_.resize(session_.feeds.size());
  for (size_t i = 0; i < fed_.size(); ++i) {
    if (!fed_[i]) Fail(ORT_INVALID_ARGUMENT, "Missing Input: '", session_.file.inputs[i].name, "'");
  }
  run_.size = sizeof run_;
  if (options_) {
    cancel_ = options_->terminate.token();
    run_.cancel = cancel_.get();
  }
  if (session_.profile.on) {
    tw_step_stats* made = nullptr;
    Check(tw_step_stats_create(&made));
    stats_.reset(made);
    run_.stats = made;
  }
  const std::lock_guard lock(session_.mu);
  std::shared_ptr<tw_callable>& kept = session_.callables[outputs_];
  if (!kept) {
    std::vector<tw_output> fetches;
    for (const uint32_t i : outputs_) fetches.push_back(session_.fetches[i]);
    tw_signature signature{};
    signature.size = sizeof signature;
    signature.feeds = session_.feeds.data();
    signature.n_feeds = static_cast<uint32_t>(session_.feeds.size());
    signature.fetches = fetches.data();
    signature.n_fetches = static_cast<uint32_t>(fetches.size());
    tw_callable* made = nullptr;
    tw_status* failed = tw_callable_create(tw_model_session(session_.model.get()), &signature, &made);
    if (failed) session_.callables.erase(outputs_);
    Check(failed);
    kept = std::shared_ptr<tw_callable>(made, tw_callable_destroy);
  }
  callable_ = kept;
  if (session_.callables.size() > kMostCallables) session_.callables.clear();  // running ones stay until they end
}

std::vector<ValueRef> Step::Results(OrtValue* const* given, tw_tensor** fetched) {
  std::vector<TensorRef> tensors;
  for (size_t i = 0; i < outputs_.size(); ++i) tensors.emplace_back(std::exchange(fetched[i], nullptr));
  std::vector<ValueRef> values(outputs_.size());
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Port& port = session_.file.outputs[outputs_[i]];
    if (!given || !given[i]) {
      values[i] = session_.lists.FromThalweg(std::move(tensors[i]), port.type);
    } else if (port.type.kind == ONNX_TYPE_TENSOR) {
      WriteTensor(std::move(tensors[i]), port.name, given[i]);
    } else {
      *given[i] = *session_.lists.FromThalweg(std::move(tensors[i]), port.type);
    }
  }
  if (stats_) {
    const std::lock_guard lock(session_.profile.mu);
    if (session_.profile.steps.size() < kMostProfiledRuns) session_.profile.steps.push_back(std::move(stats_));
  }
  return values;
}

std::vector<ValueRef> Step::Run(OrtValue* const* given) {
  Prepare();
  std::vector<tw_tensor*> fetched(outputs_.size());
  CheckRun(tw_callable_run(callable_.get(), fed_.data(), &run_, fetched.data()));
  return Results(given, fetched.data());
}

void Step::Start(tw_run_done done, void* user) {
  Prepare();
  CheckRun(tw_callable_run_async(callable_.get(), fed_.data(), &run_, done, user));
}

namespace {

void FillStep(const char* const* input_names, const OrtValue* const* inputs, size_t n_inputs, const char* const* output_names,
              size_t n_outputs, Step* step) {
  for (size_t i = 0; i < n_inputs; ++i) {
    step->Feed(Need(Need(input_names, "input_names")[i], "input_names[i]"), Need(inputs, "inputs")[i]);
  }
  for (size_t i = 0; i < n_outputs; ++i) step->Fetch(Need(Need(output_names, "output_names")[i], "output_names[i]"));
}

// A run that RunAsync started. Ends with its callback.
struct AsyncRun {
  AsyncRun(OrtSession* session, const OrtRunOptions* options) : step(session, options) {}
  Step step;
  OrtValue** outputs = nullptr;
  RunAsyncCallbackFn callback = nullptr;
  void* user = nullptr;
};

void EndAsync(void* user, tw_status* status, tw_tensor** fetched) {
  const std::unique_ptr<AsyncRun> run(static_cast<AsyncRun*>(user));
  OrtStatus* failed = Guard("RunAsync", [&] {
    CheckRun(status);
    std::vector<ValueRef> values = run->step.Results(run->outputs, fetched);
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i]) run->outputs[i] = values[i].release();
    }
  });
  run->callback(run->user, failed ? nullptr : run->outputs, failed ? 0 : run->step.outputs(), failed);
}

}  // namespace

void RunNamed(OrtSession* session, const OrtRunOptions* options, const char* const* input_names, const OrtValue* const* inputs,
              size_t n_inputs, const char* const* output_names, size_t n_outputs, OrtValue** outputs) {
  Step step(Need(session, "session"), options);
  FillStep(input_names, inputs, n_inputs, output_names, n_outputs, &step);
  if (n_outputs > 0) Need(outputs, "outputs");
  std::vector<ValueRef> values = step.Run(outputs);
  for (size_t i = 0; i < n_outputs; ++i) {
    if (values[i]) outputs[i] = values[i].release();
  }
}

namespace api {

OrtStatus* Run(OrtSession* session, const OrtRunOptions* options, const char* const* input_names, const OrtValue* const* inputs,
               size_t n_inputs, const char* const* output_names, size_t n_outputs, OrtValue** outputs) {
  return Guard(__func__, [&] { RunNamed(session, options, input_names, inputs, n_inputs, output_names, n_outputs, outputs); });
}

OrtStatus* RunAsync(OrtSession* session, const OrtRunOptions* options, const char* const* input_names, const OrtValue* const* inputs,
                    size_t n_inputs, const char* const* output_names, size_t n_outputs, OrtValue** outputs, RunAsyncCallbackFn callback,
                    void* user) {
  return Guard(__func__, [&] {
    auto run = std::make_unique<AsyncRun>(Need(session, "session"), options);
    if (!callback) Fail(ORT_INVALID_ARGUMENT, "'run_async_callback' is NULL");
    if (n_outputs > 0) Need(outputs, "outputs");
    FillStep(input_names, inputs, n_inputs, output_names, n_outputs, &run->step);
    run->outputs = outputs;
    run->callback = callback;
    run->user = user;
    AsyncRun* const started = run.release();
    try {
      started->step.Start(EndAsync, started);
    } catch (...) {
      delete started;  // done is not called after a failure
      throw;
    }
  });
}

// ---- Looking ----

OrtStatus* SessionGetInputCount(const OrtSession* session, size_t* out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = Need(session, "session")->file.inputs.size();
  });
}
OrtStatus* SessionGetOutputCount(const OrtSession* session, size_t* out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = Need(session, "session")->file.outputs.size();
  });
}
OrtStatus* SessionGetOverridableInitializerCount(const OrtSession* session, size_t* out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = Need(session, "session")->file.initialized.size();
  });
}
OrtStatus* SessionGetInputTypeInfo(const OrtSession* session, size_t index, OrtTypeInfo** out) {
  return Guard(__func__, [&] {
    auto& result = Result(out, "type_info");
    result = new OrtTypeInfo(At(Need(session, "session")->file.inputs, index).type);
  });
}
OrtStatus* SessionGetOutputTypeInfo(const OrtSession* session, size_t index, OrtTypeInfo** out) {
  return Guard(__func__, [&] {
    auto& result = Result(out, "type_info");
    result = new OrtTypeInfo(At(Need(session, "session")->file.outputs, index).type);
  });
}
OrtStatus* SessionGetOverridableInitializerTypeInfo(const OrtSession* session, size_t index, OrtTypeInfo** out) {
  return Guard(__func__, [&] {
    auto& result = Result(out, "type_info");
    result = new OrtTypeInfo(At(Need(session, "session")->file.initialized, index).type);
  });
}
OrtStatus* SessionGetInputName(const OrtSession* session, size_t index, OrtAllocator* allocator, char** out) {
  return Guard(__func__, [&] {
    auto& result = Result(out, "value");
    result = CopyText(allocator, At(Need(session, "session")->file.inputs, index).name);
  });
}
OrtStatus* SessionGetOutputName(const OrtSession* session, size_t index, OrtAllocator* allocator, char** out) {
  return Guard(__func__, [&] {
    auto& result = Result(out, "value");
    result = CopyText(allocator, At(Need(session, "session")->file.outputs, index).name);
  });
}
OrtStatus* SessionGetOverridableInitializerName(const OrtSession* session, size_t index, OrtAllocator* allocator, char** out) {
  return Guard(__func__, [&] {
    auto& result = Result(out, "value");
    result = CopyText(allocator, At(Need(session, "session")->file.initialized, index).name);
  });
}
OrtStatus* SessionGetMemoryInfoForInputs(const OrtSession* session, const OrtMemoryInfo** out, size_t count) {
  return Guard(__func__, [&] {
    const size_t n = Need(session, "session")->file.inputs.size();
    if (count != n) Fail(ORT_FAIL, "room for ", std::to_string(count), " inputs; the model has ", std::to_string(n));
    std::fill_n(n > 0 ? Need(out, "inputs_memory_info") : out, n, CpuMemory());
  });
}
OrtStatus* SessionGetMemoryInfoForOutputs(const OrtSession* session, const OrtMemoryInfo** out, size_t count) {
  return Guard(__func__, [&] {
    const size_t n = Need(session, "session")->file.outputs.size();
    if (count != n) Fail(ORT_FAIL, "room for ", std::to_string(count), " outputs; the model has ", std::to_string(n));
    std::fill_n(n > 0 ? Need(out, "outputs_memory_info") : out, n, CpuMemory());
  });
}

// ---- Profiles ----

OrtStatus* SessionGetProfilingStartTimeNs(const OrtSession* session, uint64_t* out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = Need(session, "session")->profile.start_ns;
  });
}
// Writes the trace of all runs so far and returns the file's name; "" for a session without a profile.
OrtStatus* SessionEndProfiling(OrtSession* session, OrtAllocator* allocator, char** out) {
  return Guard(__func__, [&] {
    char*& name = Result(out);
    Profile& profile = Need(session, "session")->profile;
    const std::lock_guard lock(profile.mu);
    std::string path;
    if (profile.on) {
      path = ProfileName(profile.prefix);
      std::vector<const tw_step_stats*> steps;
      for (const StatsRef& s : profile.steps) steps.push_back(s.get());
      std::string text = "[]";
      if (!steps.empty()) {
        tw_buffer* json = nullptr;
        Check(tw_step_stats_trace(steps.data(), static_cast<uint32_t>(steps.size()), &json));
        const BufferRef owner(json);
        text.assign(tw_buffer_data(json), static_cast<size_t>(tw_buffer_bytes(json)));
      }
      WriteFile(path, text);
      profile.steps.clear();
    }
    name = CopyText(allocator, path);
  });
}

}  // namespace api
}  // namespace thalweg::ort
