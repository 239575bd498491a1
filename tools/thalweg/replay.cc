// thalweg replay: runs a step again that tw.record_step of Python recorded, and compares all bits. bindings/python/thalweg/record.py
// describes the folder.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>

#include "command.h"
#include "json.h"
#include "json_value.h"
#include "model.h"
#include "thalweg/cpp/thalweg.hpp"

namespace thalweg::cli {
namespace {

constexpr int kFormat = 1;
const std::string kVariable = "variable ";  // before the name of an updated variable among the results

using Names = std::vector<std::string>;

class Recording {
 public:
  explicit Recording(std::string folder) : folder_(std::move(folder)) {
    const std::string path = folder_ + "/step.json";
    try {
      about_ = JsonValue::Parse(ReadFile(path, kMostConfig));
    } catch (const std::exception& e) {
      throw std::runtime_error("'" + folder_ + "' is no recording of a step: " + e.what() + "; tw.record_step makes one");
    }
    if (about_["format"].number() != kFormat)
      throw std::runtime_error("'" + path + "' is of a format that is not known; this version reads format " + std::to_string(kFormat));
  }
  std::string Part(const std::string& name) const { return folder_ + "/" + name; }

  Names List(const std::string& key) const {
    const JsonValue& list = about_[key];
    Names names;
    for (const JsonValue& name : list.items()) {
      if (name.is(JsonValue::Kind::kText)) names.push_back(name.text());
    }
    if (!list.is(JsonValue::Kind::kArray) || names.size() != list.items().size())
      throw std::runtime_error("'" + Part("step.json") + "': '" + key + "' must be a list of names");
    return names;
  }

  // The tensors of a part, by name.
  std::map<std::string, tw::Tensor> Tensors(const std::string& part) const {
    std::map<std::string, tw::Tensor> all;
    const Names names = List(part);
    if (names.empty()) return all;
    const Checkpoint checkpoint(Part(part));
    for (const std::string& name : names) {
      tw_tensor* read = nullptr;
      tw::raise(tw_checkpoint_read(checkpoint.c(), name.c_str(), &read));
      all[name] = tw::Tensor::adopt(read);
    }
    return all;
  }

 private:
  const std::string folder_;
  JsonValue about_;
};

// Returns the number of elements that differ in a bit; all of them if type or shape do.
uint64_t Differing(const tw::Tensor& a, const tw::Tensor& b) {
  const uint64_t n = a.count();
  if (a.dtype() != b.dtype() || a.dims() != b.dims()) return std::max<uint64_t>(1, std::max(n, b.count()));
  uint64_t count = 0;
  if (a.dtype() == TW_STRING) {
    for (uint64_t i = 0; i < n; ++i) count += a.string(i) != b.string(i);
    return count;
  }
  const uint64_t each = n ? tw_tensor_bytes(a.c()) / n : 0;
  const auto *x = static_cast<const char*>(tw_tensor_data(a.c())), *y = static_cast<const char*>(tw_tensor_data(b.c()));
  for (uint64_t i = 0; i < n; ++i) count += std::memcmp(x + i * each, y + i * each, each) != 0;
  return count;
}

// The handles of variables, by name.
std::map<std::string, tw_output> Handles(const tw::Graph& graph) {
  std::map<std::string, tw_output> all;
  const Variables variables(graph);
  for (uint32_t i = 0; i < tw_variables_count(variables.c()); ++i)
    all[tw_variables_name(variables.c(), i)] = tw_variables_handle(variables.c(), i);
  return all;
}

// Runs the step. Returns what it gives, under the names of the recording's results.
std::map<std::string, tw::Tensor> Replay(const Args& args, const Recording& recording, const std::map<std::string, tw::Tensor>& wanted) {
  const tw::Runtime runtime = MakeRuntime(args);
  const tw::Graph graph = LoadGraph(runtime, recording.Part("graph.pb"));
  Signature step, after;
  for (const char* part : {"inputs", "drawn"})
    for (auto& [name, tensor] : recording.Tensors(part)) step.feeds.push_back({name, graph.output(name), tensor});
  for (const std::string& name : recording.List("fetches")) step.fetches.push_back({name, graph.output(name), {}});
  for (const std::string& name : recording.List("targets")) step.targets.push_back(graph.find(name));

  const std::map<std::string, tw_output> handles = Handles(graph);
  tw::Scope scope(graph);
  for (const auto& [name, tensor] : wanted) {
    if (name.compare(0, kVariable.size(), kVariable) != 0) continue;
    const auto found = handles.find(name.substr(kVariable.size()));
    if (found == handles.end()) throw std::runtime_error("the graph has no " + name + ", which step.json names; the recording is damaged");
    after.fetches.push_back({name, tw_variable_read(scope.c(), found->second), {}});
  }
  scope.finish();

  const bool restores = !recording.List("before").empty();
  const tw::Session session = OpenSession(restores ? args.with("--checkpoint", recording.Part("before")) : args, graph);
  std::map<std::string, tw::Tensor> given;
  for (const Signature* part : {&step, &after}) {
    if (part->fetches.empty() && part->targets.empty()) continue;
    const std::vector<tw::Tensor> results = Callable(session, *part).Run(*part);
    for (size_t i = 0; i < results.size(); ++i) given[part->fetches[i].name] = results[i].to_host();
  }
  return given;
}

int Run(const Args& args) {
  const Recording recording(args.positional()[0]);
  const std::map<std::string, tw::Tensor> wanted = recording.Tensors("results");
  const std::map<std::string, tw::Tensor> given = Replay(args, recording, wanted);
  size_t others = 0;
  std::vector<std::vector<std::string>> rows;
  Json json;
  json.Object().Text("recording", args.positional()[0]).Array("results");
  for (const auto& [name, then] : wanted) {
    const auto found = given.find(name);
    if (found == given.end()) throw std::runtime_error("the step gives no '" + name + "', which step.json names; the recording is damaged");
    const uint64_t n = Differing(found->second, then);
    others += n > 0;
    json.Object().Text("name", name).Number("elements", int64_t(then.count())).Number("differing", int64_t(n)).End();
    rows.push_back(
        {Coloured(kBold, name), n ? Coloured(kRed, std::to_string(n) + " of " + std::to_string(then.count()) + " elements differ")
                                  : Coloured(kGreen, "same bits")});
  }
  std::fputs(args.has("--json") ? json.End().End().text().c_str() : Table(rows).c_str(), stdout);
  if (others)
    throw std::runtime_error(std::to_string(others) + " of " + std::to_string(wanted.size()) + " results differ from the recorded step");
  return kGood;
}

}  // namespace

const Command& ReplayCommand() {
  static const Command command = {"replay",
                                  "FOLDER",
                                  "Runs a recorded step again and compares all bits of its results.",
                                  "FOLDER is what tw.record_step of Python wrote.\n",
                                  {kJsonOption, kThreadsOption, kDeviceOption, kSessionOption, kPluginOption, kRuntimeOption},
                                  1,
                                  1,
                                  Run};
  return command;
}

}  // namespace thalweg::cli
