// Sessions: a model with its prepared runs. Threads: any number may run one session.
#pragma once
#include <map>
#include <mutex>
#include <vector>

#include "lists.h"
#include "model_file.h"
#include "options.h"
#include "value.h"

namespace thalweg::ort {

// The statistics of runs, for SessionEndProfiling.
struct Profile {
  bool on = false;
  std::string prefix;
  uint64_t start_ns = 0;
  std::mutex mu;
  std::vector<StatsRef> steps;  // guarded by mu
};

}  // namespace thalweg::ort

struct OrtSession {
  explicit OrtSession(thalweg::ort::RuntimeRef r) : runtime(std::move(r)), lists(runtime.get()) {}

  thalweg::ort::RuntimeRef runtime;
  thalweg::ort::ModelFile file;
  thalweg::ort::Logger logger;
  std::map<std::string, uint32_t> input_index, output_index;
  thalweg::ort::Profile profile;
  thalweg::ort::Lists lists;
  thalweg::ort::ModelRef model;
  std::vector<tw_output> feeds, fetches;  // of all inputs and outputs
  std::mutex mu;
  // By the outputs that they fetch. They end before the model.
  std::map<std::vector<uint32_t>, std::shared_ptr<tw_callable>> callables;  // guarded by mu
};

namespace thalweg::ort {

// A run that is prepared: all inputs, and some outputs.
class Step {
 public:
  Step(OrtSession* session, const OrtRunOptions* options) : session_(*session), options_(options) {}
  Step(const Step&) = delete;
  ~Step();
  // Take the client's values; throw for names that the model lacks, and for types and shapes that do not fit.
  void Feed(const std::string& name, const OrtValue* value);
  void Fetch(const std::string& name);
  // Run, and return the values of the outputs. given: a value for each to write to, or NULL for a new one.
  std::vector<ValueRef> Run(OrtValue* const* given);
  // Starts a run; done(user, status, outputs) comes later, on another thread or this one.
  void Start(tw_run_done done, void* user);
  std::vector<ValueRef> Results(OrtValue* const* given, tw_tensor** fetched);
  size_t outputs() const { return outputs_.size(); }

 private:
  void Prepare();
  OrtSession& session_;
  const OrtRunOptions* const options_;
  std::vector<tw_tensor*> fed_;    // by input
  std::vector<uint32_t> outputs_;  // numbers of outputs
  std::shared_ptr<tw_callable> callable_;
  std::shared_ptr<tw_cancel_token> cancel_;
  StatsRef stats_;
  tw_run_options run_{};
};

// Throws what a run failed with.
void CheckRun(tw_status* status);
// Runs with the names and values of the client.
void RunNamed(OrtSession* session, const OrtRunOptions* options, const char* const* input_names, const OrtValue* const* inputs,
              size_t n_inputs, const char* const* output_names, size_t n_outputs, OrtValue** outputs);

}  // namespace thalweg::ort
