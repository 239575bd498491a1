#include "options.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "common/session_options.h"

namespace thalweg::ort {
namespace {

constexpr size_t kLongestKey = 1024, kLongestValue = 8192;  // as ONNX Runtime's

void AddEntry(std::map<std::string, std::string>* config, const char* key, const char* value) {
  const std::string_view k = Need(key, "config_key"), v = Need(value, "config_value");
  if (k.empty() || k.size() > kLongestKey)
    Fail(ORT_INVALID_ARGUMENT, "a key has 1 to ", std::to_string(kLongestKey), " bytes, not ", std::to_string(k.size()));
  if (v.size() > kLongestValue) {
    Fail(ORT_INVALID_ARGUMENT, "the value of '", k, "' has ", std::to_string(v.size()), " bytes; at most ", std::to_string(kLongestValue),
         " are accepted");
  }
  (*config)[std::string(k)] = v;
}

// Copies a text into a buffer of the client, or says how long it is, the zero byte included.
void CopyOut(const std::string& text, char* to, size_t* size) {
  const size_t room = *Need(size, "size"), needed = text.size() + 1;
  *size = needed;
  if (!to) return;
  if (room < needed) Fail(ORT_INVALID_ARGUMENT, "the buffer has ", std::to_string(room), " bytes; ", std::to_string(needed), " are needed");
  std::memcpy(to, text.c_str(), needed);
}

void CheckThreads(int threads) {
  if (threads < 0) Fail(ORT_INVALID_ARGUMENT, "the number of threads is ", std::to_string(threads), "; give 0 for all");
}

void AddFixedSize(OrtSessionOptions* options, const char* name, bool denotation, int64_t size) {
  Need(options, "options");
  const std::string wanted = Need(name, denotation ? "dim_denotation" : "dim_name");
  if (size < 0) Fail(ORT_INVALID_ARGUMENT, "size ", std::to_string(size), " of '", wanted, "' is negative");
  options->fixed_sizes.push_back({wanted, denotation, size});
}

}  // namespace

Terminate::Terminate() { Unset(); }

void Terminate::Set() { tw_cancel_token_cancel(token().get()); }

void Terminate::Unset() {
  const std::lock_guard lock(mu_);
  if (token_ && !tw_cancel_token_cancelled(token_.get())) return;
  tw_cancel_token* made = nullptr;
  Check(tw_cancel_token_create(&made));
  token_ = std::shared_ptr<tw_cancel_token>(made, tw_cancel_token_destroy);
}

std::shared_ptr<tw_cancel_token> Terminate::token() const {
  const std::lock_guard lock(mu_);
  return token_;
}

std::vector<std::string> SessionOptionTexts(const OrtSessionOptions& o) {
  std::vector<std::string> texts;
  if (o.intra > 0) texts.push_back(Text("threads=", std::to_string(o.intra)));
  if (o.level == ORT_DISABLE_ALL) texts.emplace_back("optimize=false");
  if (o.mode == ORT_PARALLEL) texts.emplace_back("engine=counted");
  AppendOptionsOf("THALWEG_ONNXRUNTIME_SESSION_OPTIONS", &texts);
  return texts;
}

namespace api {

// ---- Sessions ----

OrtStatus* CreateSessionOptions(OrtSessionOptions** out) {
  return Guard(__func__, [&] {
    auto& result = Result(out, "options");
    result = new OrtSessionOptions;
  });
}
OrtStatus* CloneSessionOptions(const OrtSessionOptions* options, OrtSessionOptions** out) {
  return Guard(__func__, [&] {
    OrtSessionOptions*& made = Result(out, "out_options");
    made = new OrtSessionOptions(*Need(options, "in_options"));
    made->cancel_load = std::make_shared<std::atomic<bool>>(options->cancel_load->load());
  });
}
void ReleaseSessionOptions(OrtSessionOptions* options) { delete options; }

OrtStatus* SetSessionExecutionMode(OrtSessionOptions* options, ExecutionMode mode) {
  return Guard(__func__, [&] {
    if (mode != ORT_SEQUENTIAL && mode != ORT_PARALLEL) {
      Fail(ORT_INVALID_ARGUMENT, "execution mode ", std::to_string(static_cast<int>(mode)),
           " does not exist; modes are 0 (sequential) and 1 (parallel)");
    }
    Need(options, "options")->mode = mode;
  });
}
OrtStatus* GetSessionExecutionMode(const OrtSessionOptions* options, ExecutionMode* out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = Need(options, "options")->mode;
  });
}
OrtStatus* SetSessionGraphOptimizationLevel(OrtSessionOptions* options, GraphOptimizationLevel level) {
  return Guard(__func__, [&] {
    if (level < ORT_DISABLE_ALL || (level > ORT_ENABLE_LAYOUT && level != ORT_ENABLE_ALL)) {
      Fail(ORT_INVALID_ARGUMENT, "optimization level ", std::to_string(static_cast<int>(level)),
           " does not exist; levels are 0, 1, 2, 3 and 99");
    }
    Need(options, "options")->level = level;
  });
}
OrtStatus* SetIntraOpNumThreads(OrtSessionOptions* options, int threads) {
  return Guard(__func__, [&] {
    CheckThreads(threads);
    Need(options, "options")->intra = threads;
  });
}
OrtStatus* SetInterOpNumThreads(OrtSessionOptions* options, int threads) {
  return Guard(__func__, [&] {
    CheckThreads(threads);
    Need(options, "options")->inter = threads;
  });
}
OrtStatus* DisablePerSessionThreads(OrtSessionOptions* options) {
  return Guard(__func__, [&] { Need(options, "options")->intra = 0; });
}
OrtStatus* EnableMemPattern(OrtSessionOptions* options) {
  return Guard(__func__, [&] { Need(options, "options")->mem_pattern = true; });
}
OrtStatus* DisableMemPattern(OrtSessionOptions* options) {
  return Guard(__func__, [&] { Need(options, "options")->mem_pattern = false; });
}
OrtStatus* GetMemPatternEnabled(const OrtSessionOptions* options, int* out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = Need(options, "options")->mem_pattern;
  });
}
OrtStatus* EnableCpuMemArena(OrtSessionOptions* options) {
  return Guard(__func__, [&] { Need(options, "options")->cpu_arena = true; });
}
OrtStatus* DisableCpuMemArena(OrtSessionOptions* options) {
  return Guard(__func__, [&] { Need(options, "options")->cpu_arena = false; });
}
OrtStatus* EnableProfiling(OrtSessionOptions* options, const char* prefix) {
  return Guard(__func__, [&] {
    Need(options, "options")->profile_prefix = Need(prefix, "profile_file_prefix");
    options->profile = true;
  });
}
OrtStatus* DisableProfiling(OrtSessionOptions* options) {
  return Guard(__func__, [&] { Need(options, "options")->profile = false; });
}
OrtStatus* SetSessionLogId(OrtSessionOptions* options, const char* id) {
  return Guard(__func__, [&] { Need(options, "options")->log_id = Need(id, "logid"); });
}
OrtStatus* SetSessionLogVerbosityLevel(OrtSessionOptions* options, int level) {
  return Guard(__func__, [&] { Need(options, "options")->log_verbosity = level; });
}
OrtStatus* SetSessionLogSeverityLevel(OrtSessionOptions* options, int level) {
  return Guard(__func__, [&] {
    if (level < -1 || level > ORT_LOGGING_LEVEL_FATAL) {
      Fail(ORT_INVALID_ARGUMENT, "log level ", std::to_string(level), " does not exist; levels are 0 (verbose) to 4 (fatal)");
    }
    Need(options, "options")->log_severity = level;
  });
}
OrtStatus* SetUserLoggingFunction(OrtSessionOptions* options, OrtLoggingFunction function, void* param) {
  return Guard(__func__, [&] {
    if (!function) Fail(ORT_INVALID_ARGUMENT, "'user_logging_function' is NULL");
    Need(options, "options")->log_function = function;
    options->log_param = param;
  });
}
OrtStatus* AddFreeDimensionOverride(OrtSessionOptions* options, const char* denotation, int64_t size) {
  return Guard(__func__, [&] { AddFixedSize(options, denotation, true, size); });
}
OrtStatus* AddFreeDimensionOverrideByName(OrtSessionOptions* options, const char* name, int64_t size) {
  return Guard(__func__, [&] { AddFixedSize(options, name, false, size); });
}
OrtStatus* SessionOptionsSetLoadCancellationFlag(OrtSessionOptions* options, bool cancel) {
  return Guard(__func__, [&] { Need(options, "options")->cancel_load->store(cancel); });
}

OrtStatus* AddSessionConfigEntry(OrtSessionOptions* options, const char* key, const char* value) {
  return Guard(__func__, [&] { AddEntry(&Need(options, "options")->config, key, value); });
}
OrtStatus* HasSessionConfigEntry(const OrtSessionOptions* options, const char* key, int* out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = Need(options, "options")->config.count(Need(key, "config_key")) > 0;
  });
}
OrtStatus* GetSessionConfigEntry(const OrtSessionOptions* options, const char* key, char* value, size_t* size) {
  return Guard(__func__, [&] {
    const auto found = Need(options, "options")->config.find(Need(key, "config_key"));
    if (found == options->config.end()) Fail(ORT_INVALID_ARGUMENT, "there is no entry '", key, "'");
    CopyOut(found->second, value, size);
  });
}
OrtStatus* GetSessionOptionsConfigEntries(const OrtSessionOptions* options, OrtKeyValuePairs** out) {
  return Guard(__func__, [&] {
    OrtKeyValuePairs*& made = Result(out);
    auto pairs = std::make_unique<OrtKeyValuePairs>();
    pairs->entries = Need(options, "options")->config;
    pairs->List();
    made = pairs.release();
  });
}

// ---- Runs ----

OrtStatus* CreateRunOptions(OrtRunOptions** out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = new OrtRunOptions;
  });
}
void ReleaseRunOptions(OrtRunOptions* options) { delete options; }
OrtStatus* RunOptionsSetRunLogVerbosityLevel(OrtRunOptions* options, int level) {
  return Guard(__func__, [&] { Need(options, "options")->log_verbosity = level; });
}
OrtStatus* RunOptionsGetRunLogVerbosityLevel(const OrtRunOptions* options, int* out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = Need(options, "options")->log_verbosity;
  });
}
OrtStatus* RunOptionsSetRunLogSeverityLevel(OrtRunOptions* options, int level) {
  return Guard(__func__, [&] { Need(options, "options")->log_severity = level; });
}
OrtStatus* RunOptionsGetRunLogSeverityLevel(const OrtRunOptions* options, int* out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = Need(options, "options")->log_severity;
  });
}
OrtStatus* RunOptionsSetRunTag(OrtRunOptions* options, const char* tag) {
  return Guard(__func__, [&] { Need(options, "options")->tag = tag ? tag : ""; });
}
OrtStatus* RunOptionsGetRunTag(const OrtRunOptions* options, const char** out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = Need(options, "options")->tag.c_str();
  });
}
OrtStatus* RunOptionsSetTerminate(OrtRunOptions* options) {
  return Guard(__func__, [&] { Need(options, "options")->terminate.Set(); });
}
OrtStatus* RunOptionsUnsetTerminate(OrtRunOptions* options) {
  return Guard(__func__, [&] { Need(options, "options")->terminate.Unset(); });
}
OrtStatus* AddRunConfigEntry(OrtRunOptions* options, const char* key, const char* value) {
  return Guard(__func__, [&] { AddEntry(&Need(options, "options")->config, key, value); });
}
const char* GetRunConfigEntry(const OrtRunOptions* options, const char* key) {
  if (!options || !key) return nullptr;
  const auto found = options->config.find(key);
  return found == options->config.end() ? nullptr : found->second.c_str();
}

}  // namespace api
}  // namespace thalweg::ort
