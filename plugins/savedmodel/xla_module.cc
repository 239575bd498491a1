#include "xla_module.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "../common/importer/host_sink.h"
#include "../stablehlo/import.h"

namespace thalweg::savedmodel {
namespace {

// Attributes of the node that say how to read the module, in all versions of the op. Calls take none of them.
constexpr const char* kRead[] = {"module",
                                 "version",
                                 "platforms",
                                 "dim_args_spec",
                                 "function_list",
                                 "has_token_input_output",
                                 "disabled_checks",
                                 "use_shardy_partitioner",
                                 "Sout"};

using Function = std::pair<std::string, bool>;  // its name, and whether it has effects

class Modules {
 public:
  explicit Modules(Sink* sink) : sink_(*sink) {}

  void Replace(proto::NodeDef* node) {
    if (node->op() != kXlaCallModule) return;
    try {
      Call(node);
    } catch (const importer::Error& e) {
      if (e.code == TW_OK) throw HostError{nullptr};  // the host keeps the failure and reports it itself
      throw Error{e.code, Place(*node) + stablehlo::Printable(e.text)};
    }
  }

 private:
  static std::string Place(const proto::NodeDef& node) { return std::string(kXlaCallModule) + " '" + node.name() + "': "; }

  void Call(proto::NodeDef* node) {
    auto& attrs = *node->mutable_attr();
    const auto module = attrs.find("module");
    if (module == attrs.end()) throw importer::Error{TW_INVALID_ARGUMENT, "it has no attribute 'module'"};
    const auto functions = attrs.find("function_list");
    if (functions != attrs.end() && functions->second.list().func_size() > 0)
      throw importer::Error{TW_UNIMPLEMENTED, "modules that call functions of TensorFlow are not supported; export without call_tf"};
    const auto tokens = attrs.find("has_token_input_output");
    if (tokens != attrs.end() && tokens->second.b())
      throw importer::Error{TW_UNIMPLEMENTED, "modules that pass tokens are not supported; export without ordered effects"};
    std::vector<std::string> platforms;
    if (const auto found = attrs.find("platforms"); found != attrs.end()) {
      for (std::string p : found->second.list().s()) {
        std::transform(p.begin(), p.end(), p.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        platforms.push_back(std::move(p));
      }
    }
    const auto inputs = std::count_if(node->input().begin(), node->input().end(), [](const std::string& s) { return s[0] != '^'; });
    auto [made, is_new] = made_.try_emplace({module->second.s(), platforms});
    if (is_new) made->second = Import(module->second.s(), platforms, node->name(), inputs);
    const Function& f = made->second;
    for (const char* read : kRead) attrs.erase(read);
    node->set_op(f.second ? "StatefulPartitionedCall" : "PartitionedCall");
    attrs["f"].mutable_func()->set_name(f.first);
  }

  Function Import(const std::string& module, const std::vector<std::string>& platforms, const std::string& name, int64_t inputs) {
    const auto bytes = std::make_shared<const std::string>(module);
    stablehlo::File file = stablehlo::ReadFile(*bytes, bytes);
    file.exported.platforms = platforms;
    tw_model_builder* const to = sink_.builder();
    tw_builder* body = nullptr;
    importer::Check(sink_.host(), to->begin_function(to, &body));
    importer::HostSink fill(sink_.host(), to, body);
    const stablehlo::Ports ports = stablehlo::ImportFile(file, fill, &spent_);
    if (static_cast<int64_t>(ports.inputs.size()) != inputs) {
      throw importer::Error{TW_INVALID_ARGUMENT, "its module takes " + std::to_string(ports.inputs.size()) + " values, but the node has " +
                                                     std::to_string(inputs) + " inputs"};
    }
    std::vector<importer::Edge> args, results;
    for (const stablehlo::Port& p : ports.inputs) args.push_back(p.edge);
    for (const stablehlo::Port& p : ports.outputs) results.push_back(p.edge);
    const std::string wanted = "xla_module_" + importer::CleanName(std::string_view(name).substr(0, 200));
    const tw_import_function f = {TW_SIZED(tw_import_function),
                                  wanted.data(),
                                  wanted.size(),
                                  args.data(),
                                  results.data(),
                                  ports.effects.data(),
                                  static_cast<uint32_t>(args.size()),
                                  static_cast<uint32_t>(results.size()),
                                  static_cast<uint32_t>(ports.effects.size()),
                                  0};
    tw_string defined = {};
    importer::Check(sink_.host(), to->end_function(to, body, &f, &defined));
    return {std::string(defined.data, defined.size), !ports.effects.empty()};
  }

  Sink& sink_;
  stablehlo::Spent spent_;  // by all modules
  std::map<std::pair<std::string, std::vector<std::string>>, Function> made_;
};

}  // namespace

void ImportXlaModules(proto::GraphDef* graph, Sink* sink) {
  Modules modules(sink);
  for (proto::NodeDef& n : *graph->mutable_node()) modules.Replace(&n);
  for (proto::FunctionDef& f : *graph->mutable_library()->mutable_function()) {
    for (proto::NodeDef& n : *f.mutable_node_def()) modules.Replace(&n);
  }
}

}  // namespace thalweg::savedmodel
