// The environment, and the options of threads, sessions and runs. Threads: an environment may be used by several at once; options by one,
// except that any thread may set the flags that end a load or a run.
#pragma once
#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include "core.h"
#include "memory.h"

struct OrtKeyValuePairs {
  std::map<std::string, std::string> entries;
  std::vector<const char*> keys, values;  // of entries
  void Set(std::string key, std::string value);
  void Remove(const std::string& key);
  void List();
};

struct OrtThreadingOptions {
  int intra = 0, inter = 0;
  bool spin = true;
};

namespace thalweg::ort {

// Receives lines of the log. function: NULL writes to standard error.
struct Logger {
  OrtLoggingFunction function = nullptr;
  void* param = nullptr;
  OrtLoggingLevel level = ORT_LOGGING_LEVEL_WARNING;
  std::string id;
  // Writes a line that is at least of the logger's level. category: the part of the library that it comes from.
  void Write(OrtLoggingLevel severity, const char* category, const std::string& text) const;
};

// A free size of the model's inputs that is fixed, by its name or by its denotation.
struct FixedSize {
  std::string name;
  bool denotation = false;
  int64_t size = 0;
};

// A flag that ends runs. Threads: any.
class Terminate {
 public:
  Terminate();
  void Set();
  void Unset();
  // The token for a run that starts now.
  std::shared_ptr<tw_cancel_token> token() const;

 private:
  mutable std::mutex mu_;
  std::shared_ptr<tw_cancel_token> token_;  // guarded by mu_
};

}  // namespace thalweg::ort

// One for the process, as ONNX Runtime's: a further CreateEnv returns the same one.
struct OrtEnv {
  int uses = 0;  // guarded by the mutex of env.cc's Process
  thalweg::ort::RuntimeRef runtime;
  std::mutex mu;
  std::vector<OrtMemoryInfo> allocators;  // guarded by mu; of CreateAndRegisterAllocator
};

struct OrtSessionOptions {
  std::map<std::string, std::string> config;
  std::vector<thalweg::ort::FixedSize> fixed_sizes;
  std::string log_id;
  int log_severity = -1;  // -1: the environment's
  int log_verbosity = 0;
  OrtLoggingFunction log_function = nullptr;
  void* log_param = nullptr;
  GraphOptimizationLevel level = ORT_ENABLE_ALL;
  ExecutionMode mode = ORT_SEQUENTIAL;
  int intra = 0, inter = 0;
  bool mem_pattern = true, cpu_arena = true;
  bool profile = false;
  std::string profile_prefix;
  std::shared_ptr<std::atomic<bool>> cancel_load = std::make_shared<std::atomic<bool>>(false);
};

struct OrtRunOptions {
  std::map<std::string, std::string> config;
  int log_severity = -1, log_verbosity = 0;
  std::string tag;
  thalweg::ort::Terminate terminate;
};

namespace thalweg::ort {

// The logger of a session.
Logger LoggerOf(const OrtSessionOptions& options);
// The texts for a model's session, those of THALWEG_ONNXRUNTIME_SESSION_OPTIONS included.
std::vector<std::string> SessionOptionTexts(const OrtSessionOptions& options);

}  // namespace thalweg::ort
