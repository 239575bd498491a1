// The environment: the runtime whose plugins, threads and log the sessions of a process use.
#include <algorithm>
#include <cstdio>
#include <shared_mutex>

#include "options.h"

namespace thalweg::ort {
namespace {

// The logger of the environment. A line that a thread is writing when the environment ends holds `mu`, so the client's function is not
// called after ReleaseEnv has returned.
struct Log {
  std::shared_mutex mu;
  Logger logger;      // guarded by mu
  bool open = false;  // guarded by mu
};
Log& TheLog() {
  static Log* const log = new Log;
  return *log;
}

struct Process {
  std::mutex mu;
  OrtEnv* env = nullptr;  // guarded by mu
};
Process& TheProcess() {
  static Process* const process = new Process;
  return *process;
}

uint32_t ThalwegLevel(OrtLoggingLevel level) { return std::min<uint32_t>(static_cast<uint32_t>(level), TW_LOG_ERROR); }

void Sink(void*, uint32_t level, const char* text, uint64_t bytes) {
  const std::shared_lock lock(TheLog().mu);
  if (TheLog().open) TheLog().logger.Write(static_cast<OrtLoggingLevel>(level), "thalweg", std::string(text, bytes));
}

void SetSink(const OrtEnv& env, OrtLoggingLevel level) {
  // Thalweg has no lines of the level FATAL.
  const bool any = level < ORT_LOGGING_LEVEL_FATAL;
  Check(tw_log_set_sink(env.runtime.get(), any ? Sink : nullptr, nullptr, ThalwegLevel(level)));
}

void CheckLevel(OrtLoggingLevel level) {
  if (level >= ORT_LOGGING_LEVEL_VERBOSE && level <= ORT_LOGGING_LEVEL_FATAL) return;
  Fail(ORT_INVALID_ARGUMENT, "log level ", std::to_string(static_cast<int>(level)), " does not exist; levels are 0 (verbose) to 4 (fatal)");
}

RuntimeRef NewRuntime(const OrtThreadingOptions* threading) {
  tw_runtime* made = nullptr;
  if (threading && threading->intra > 0) {
    const std::string threads = Text("threads=", std::to_string(threading->intra));
    const char* options[] = {threads.c_str()};
    Check(tw_runtime_create(options, 1, &made));
  } else {
    Check(tw_runtime_default(&made));
  }
  return RuntimeRef(made);
}

OrtEnv* Acquire(Logger logger, const OrtThreadingOptions* threading) {
  CheckLevel(logger.level);
  const std::lock_guard lock(TheProcess().mu);
  OrtEnv*& env = TheProcess().env;
  if (!env) {
    auto made = std::make_unique<OrtEnv>();
    made->runtime = NewRuntime(threading);
    const OrtLoggingLevel level = logger.level;
    {
      const std::unique_lock writing(TheLog().mu);
      TheLog().logger = std::move(logger);
      TheLog().open = true;
    }
    SetSink(*made, level);
    env = made.release();
  }
  ++env->uses;
  return env;
}

}  // namespace

void Logger::Write(OrtLoggingLevel severity, const char* category, const std::string& text) const {
  if (severity < level) return;
  if (function) {
    function(param, severity, category, id.c_str(), "", text.c_str());
  } else {
    std::fprintf(stderr, "[%c:%s:%s] %s\n", "VIWEF"[severity], "onnxruntime", id.c_str(), text.c_str());
  }
}

Logger LoggerOf(const OrtSessionOptions& options) {
  const std::shared_lock lock(TheLog().mu);
  Logger logger = TheLog().logger;
  if (options.log_function) {
    logger.function = options.log_function;
    logger.param = options.log_param;
  }
  if (options.log_severity >= 0) logger.level = static_cast<OrtLoggingLevel>(options.log_severity);
  if (!options.log_id.empty()) logger.id = options.log_id;
  return logger;
}

namespace api {

OrtStatus* CreateEnv(OrtLoggingLevel level, const char* id, OrtEnv** out) {
  return Guard(__func__, [&] {
    OrtEnv*& env = Result(out);
    env = Acquire({nullptr, nullptr, level, Need(id, "logid")}, nullptr);
  });
}
OrtStatus* CreateEnvWithCustomLogger(OrtLoggingFunction function, void* param, OrtLoggingLevel level, const char* id, OrtEnv** out) {
  return Guard(__func__, [&] {
    OrtEnv*& env = Result(out);
    if (!function) Fail(ORT_INVALID_ARGUMENT, "'logging_function' is NULL");
    env = Acquire({function, param, level, Need(id, "logid")}, nullptr);
  });
}
OrtStatus* CreateEnvWithGlobalThreadPools(OrtLoggingLevel level, const char* id, const OrtThreadingOptions* threading, OrtEnv** out) {
  return Guard(__func__, [&] {
    OrtEnv*& env = Result(out);
    env = Acquire({nullptr, nullptr, level, Need(id, "logid")}, Need(threading, "tp_options"));
  });
}
OrtStatus* CreateEnvWithCustomLoggerAndGlobalThreadPools(OrtLoggingFunction function, void* param, OrtLoggingLevel level, const char* id,
                                                         const OrtThreadingOptions* threading, OrtEnv** out) {
  return Guard(__func__, [&] {
    OrtEnv*& env = Result(out);
    if (!function) Fail(ORT_INVALID_ARGUMENT, "'logging_function' is NULL");
    env = Acquire({function, param, level, Need(id, "logid")}, Need(threading, "tp_options"));
  });
}
OrtStatus* CreateEnvWithOptions(const OrtEnvCreationOptions* options, OrtEnv** out) {
  return Guard(__func__, [&] {
    OrtEnv*& env = Result(out);
    Need(options, "options");
    if (options->version == 0 || options->version > ORT_API_VERSION) {
      Fail(ORT_INVALID_ARGUMENT, "version ", std::to_string(options->version), " of the options is unknown; versions up to ",
           std::to_string(ORT_API_VERSION), " are known");
    }
    const auto level = static_cast<OrtLoggingLevel>(options->logging_severity_level);
    env = Acquire({options->custom_logging_function, options->custom_logging_param, level, options->log_id ? options->log_id : ""},
                  options->threading_options);
  });
}
OrtStatus* UpdateEnvWithCustomLogLevel(OrtEnv* env, OrtLoggingLevel level) {
  return Guard(__func__, [&] {
    Need(env, "ort_env");
    CheckLevel(level);
    {
      const std::unique_lock writing(TheLog().mu);
      TheLog().logger.level = level;
    }
    SetSink(*env, level);
  });
}
void ReleaseEnv(OrtEnv* env) {
  if (!env) return;
  const std::lock_guard lock(TheProcess().mu);
  if (env != TheProcess().env || --env->uses > 0) return;
  tw_status_release(tw_log_set_sink(env->runtime.get(), nullptr, nullptr, TW_LOG_ERROR));
  {
    const std::unique_lock writing(TheLog().mu);
    TheLog().logger = Logger();
    TheLog().open = false;
  }
  TheProcess().env = nullptr;
  delete env;
}

// Nothing is ever sent anywhere.
OrtStatus* EnableTelemetryEvents(const OrtEnv* env) {
  return Guard(__func__, [&] { Need(env, "env"); });
}
OrtStatus* DisableTelemetryEvents(const OrtEnv* env) {
  return Guard(__func__, [&] { Need(env, "env"); });
}
OrtStatus* SetLanguageProjection(const OrtEnv* env, OrtLanguageProjection) {
  return Guard(__func__, [&] { Need(env, "ort_env"); });
}

// ---- Threads ----

OrtStatus* CreateThreadingOptions(OrtThreadingOptions** out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = new OrtThreadingOptions;
  });
}
void ReleaseThreadingOptions(OrtThreadingOptions* options) { delete options; }
OrtStatus* SetGlobalIntraOpNumThreads(OrtThreadingOptions* options, int threads) {
  return Guard(__func__, [&] {
    if (threads < 0) Fail(ORT_INVALID_ARGUMENT, "the number of threads is ", std::to_string(threads), "; give 0 for all");
    Need(options, "tp_options")->intra = threads;
  });
}
OrtStatus* SetGlobalInterOpNumThreads(OrtThreadingOptions* options, int threads) {
  return Guard(__func__, [&] {
    if (threads < 0) Fail(ORT_INVALID_ARGUMENT, "the number of threads is ", std::to_string(threads), "; give 0 for all");
    Need(options, "tp_options")->inter = threads;
  });
}
OrtStatus* SetGlobalSpinControl(OrtThreadingOptions* options, int allow) {
  return Guard(__func__, [&] {
    if (allow != 0 && allow != 1) Fail(ORT_INVALID_ARGUMENT, "'allow_spinning' is ", std::to_string(allow), "; give 0 or 1");
    Need(options, "tp_options")->spin = allow != 0;
  });
}

// ---- Pairs of texts ----

void CreateKeyValuePairs(OrtKeyValuePairs** out) {
  if (out) *out = new OrtKeyValuePairs;
}
void ReleaseKeyValuePairs(OrtKeyValuePairs* pairs) { delete pairs; }
void AddKeyValuePair(OrtKeyValuePairs* pairs, const char* key, const char* value) {
  if (pairs && key && *key) pairs->Set(key, value ? value : "");
}
const char* GetKeyValue(const OrtKeyValuePairs* pairs, const char* key) {
  if (!pairs || !key) return nullptr;
  const auto found = pairs->entries.find(key);
  return found == pairs->entries.end() ? nullptr : found->second.c_str();
}
void GetKeyValuePairs(const OrtKeyValuePairs* pairs, const char* const** keys, const char* const** values, size_t* count) {
  if (keys) *keys = pairs ? pairs->keys.data() : nullptr;
  if (values) *values = pairs ? pairs->values.data() : nullptr;
  if (count) *count = pairs ? pairs->keys.size() : 0;
}
void RemoveKeyValuePair(OrtKeyValuePairs* pairs, const char* key) {
  if (pairs && key) pairs->Remove(key);
}

}  // namespace api
}  // namespace thalweg::ort

void OrtKeyValuePairs::Set(std::string key, std::string value) {
  entries[std::move(key)] = std::move(value);
  List();
}
void OrtKeyValuePairs::Remove(const std::string& key) {
  entries.erase(key);
  List();
}
void OrtKeyValuePairs::List() {
  keys.clear();
  values.clear();
  for (const auto& [key, value] : entries) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
}
