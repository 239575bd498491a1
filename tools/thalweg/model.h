// A graph file with a session whose variables are restored, and prepared runs of it. Used by `run`,
// `bench` and `inspect --plan`.
#pragma once
#include <string>
#include <vector>

#include "command.h"
#include "handles.h"
#include "thalweg/cpp/thalweg.hpp"

namespace thalweg::cli {

// A value of the graph that is fed or fetched.
struct Value {
  std::string name;
  tw_output output = 0;
  tw::Tensor tensor;
};

// The feeds, fetches and targets of a run, from the options --feed, --fetch and --target.
struct Signature {
  std::vector<Value> feeds, fetches;
  std::vector<const tw_operation*> targets;
};

// Returns those options, and --checkpoint, --init, --threads, --session-option and the options of a
// runtime.
std::vector<Option> SignatureOptions(const char* fetch_value, const char* fetch_help);
std::vector<Option> ModelOptions();

extern const Option kDeviceOption, kSessionOption;

tw::Graph LoadGraph(const tw::Runtime& runtime, const std::string& path);
// Reads the fetches and targets. Throws UsageError if there is nothing to run. Ignores a `=FILE`
// behind the name of a fetch.
Signature ReadTargets(const Args& args, const tw::Graph& graph);
// Reads the fetches and targets, and the feeds with their values.
Signature ReadSignature(const Args& args, const tw::Runtime& runtime, const tw::Graph& graph);
// Opens a session, restores its variables (--checkpoint), then initialises it (--init).
tw::Session OpenSession(const Args& args, const tw::Graph& graph);

// Splits "name=value"; without `=` the value is empty.
std::pair<std::string, std::string> SplitAtEquals(const std::string& text);

// A prepared run.
class Callable : public tw::Owned<tw_callable, tw_callable_destroy> {
 public:
  Callable(const tw::Session& session, const Signature& signature);
  // Runs a step with the signature's current feeds. timeout_ns: 0 means no timeout.
  std::vector<tw::Tensor> Run(const Signature& signature, int64_t timeout_ns = 0, tw_step_stats* stats = nullptr);
};

}  // namespace thalweg::cli
