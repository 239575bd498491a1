// A graph file with a session, its variables restored, and runs of it prepared: what `run`, `bench` and `inspect --plan` have in common.
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

// What a run is given and gives, by the options --feed, --fetch and --target.
struct Signature {
  std::vector<Value> feeds, fetches;
  std::vector<const tw_operation*> targets;
};

// Those options, and --checkpoint, --init, --threads, --session-option and those of a runtime.
std::vector<Option> SignatureOptions(const char* fetch_value, const char* fetch_help);
std::vector<Option> ModelOptions();

extern const Option kDeviceOption, kSessionOption;

tw::Graph LoadGraph(const tw::Runtime& runtime, const std::string& path);
// The fetches and targets. Throws UsageError if there is nothing to run. A fetch may have `=FILE` behind its name, which is left alone.
Signature ReadTargets(const Args& args, const tw::Graph& graph);
// Those, and the feeds with their values.
Signature ReadSignature(const Args& args, const tw::Runtime& runtime, const tw::Graph& graph);
// A session with its variables restored (--checkpoint) and then initialised (--init).
tw::Session OpenSession(const Args& args, const tw::Graph& graph);

// "name=value" in two; without `=` the value is empty.
std::pair<std::string, std::string> SplitAtEquals(const std::string& text);

// A prepared run.
class Callable : public tw::Owned<tw_callable, tw_callable_destroy> {
 public:
  Callable(const tw::Session& session, const Signature& signature);
  // Feeds as they stand in the signature now. timeout_ns: 0 is none.
  std::vector<tw::Tensor> Run(const Signature& signature, int64_t timeout_ns = 0, tw_step_stats* stats = nullptr);
};

}  // namespace thalweg::cli
