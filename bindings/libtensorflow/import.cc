#include "import.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "builder.h"
#include "old_ops.h"
#include "ops.h"
#include "tensorflow/c/c_api_experimental.h"

namespace thalweg::tf {
namespace {

class Importer {
 public:
  Importer(TF_Graph* graph, proto::GraphDef def, const TF_ImportGraphDefOptions& options)
      : graph_(graph), def_(std::move(def)), options_(options), prefix_(Prefix()) {
    for (int i = 0; i < def_.node_size(); ++i) at_.emplace(def_.node(i).name(), i);
  }

  TF_ImportGraphDefResults Run() {
    CheckNodes();
    Rename();
    if (options_.inputs.empty() && options_.controls.empty() && options_.dependencies.empty()) {
      ImportWhole();
    } else {
      ImportNodes();
    }
    return Results();
  }

 private:
  std::string Prefix() const {
    std::string prefix = options_.prefix;
    while (!prefix.empty() && prefix.back() == '/') prefix.pop_back();
    if (prefix.empty() || !options_.uniquify_prefix) return prefix;
    const auto taken = [&](const std::string& p) {
      graph_->Update();
      return std::any_of(graph_->operations.begin(), graph_->operations.end(), [&](const TF_Operation& o) {
        const std::string_view name = tw_operation_name(o.op);
        return name == p || (name.starts_with(p) && name.size() > p.size() && name[p.size()] == '/');
      });
    };
    std::string unique = prefix;
    for (int i = 1; taken(unique); ++i) unique = prefix + "_" + std::to_string(i);
    return unique;
  }

  std::string NameOf(const std::string& name) const {
    const auto renamed = renamed_.find(name);
    const std::string& own = renamed == renamed_.end() ? name : renamed->second;
    return prefix_.empty() ? own : prefix_ + "/" + own;
  }

  // Refuses ops that nobody defines, before anything is added.
  void CheckNodes() {
    std::set<std::string_view> functions;
    for (const proto::FunctionDef& f : def_.library().function()) functions.insert(f.signature().name());
    for (const proto::NodeDef& node : def_.node()) {
      if (!functions.count(node.op()) && !FindOp(node.op()) && !graph_->FindFunction(node.op())) NeedOp(node.op());
      for (const std::string& input : node.input()) CheckInput(node, input);
    }
    for (const auto& [name, index] : options_.return_outputs) {
      if (!at_.count(name) && !options_.inputs.count({name, index})) {
        Fail(TF_INVALID_ARGUMENT, "Requested return tensor '", name, ":", std::to_string(index), "' not found in graph def");
      }
    }
    for (const std::string& name : options_.return_operations) {
      if (!at_.count(name)) Fail(TF_INVALID_ARGUMENT, "Requested return node '", name, "' not found in graph def");
    }
  }
  void CheckInput(const proto::NodeDef& node, const std::string& input) {
    const auto [name, port] = SplitInput(input);
    used_.insert({name, port});
    const bool mapped = port < 0 ? options_.controls.count(name) : options_.inputs.count({name, port});
    if (!mapped && !at_.count(name)) {
      Fail(TF_INVALID_ARGUMENT, "Node '", node.name(), "': Unknown input node '", input, "'");
    }
  }

  void Rename() {
    if (!options_.uniquify_names) return;
    std::unordered_set<std::string> taken;
    for (const proto::NodeDef& node : def_.node()) taken.insert(node.name());
    for (const proto::NodeDef& node : def_.node()) {
      std::string name = node.name();
      for (int i = 1; tw_graph_has(graph_->graph, NameOf(name).c_str()) || (i > 1 && taken.count(name)); ++i) {
        name = node.name() + "_" + std::to_string(i);
      }
      if (name == node.name()) continue;
      taken.insert(name);
      renamed_[node.name()] = name;
    }
  }

  void ImportWhole() {
    for (proto::NodeDef& node : *def_.mutable_node()) {
      if (renamed_.empty()) break;
      if (const auto to = renamed_.find(node.name()); to != renamed_.end()) node.set_name(to->second);
      for (std::string& input : *node.mutable_input()) input = RenamedInput(input);
      const auto colocated = node.mutable_attr()->find("_class");
      if (colocated == node.mutable_attr()->end()) continue;
      for (std::string& entry : *colocated->second.mutable_list()->mutable_s()) {
        const auto to = entry.rfind("loc:@", 0) == 0 ? renamed_.find(entry.substr(5)) : renamed_.end();
        if (to != renamed_.end()) entry = "loc:@" + to->second;
      }
    }
    const std::string bytes = Serialise(def_);
    tw_import_options options{};
    options.size = sizeof options;
    options.prefix = prefix_.empty() ? nullptr : prefix_.c_str();
    options.device = options_.device.empty() ? nullptr : options_.device.c_str();
    tw_status* status = tw_graph_import(graph_->graph, bytes.data(), bytes.size(), &options);
    if (tw_status_code(status) == TW_ALREADY_EXISTS) {
      const std::string message = tw_status_message(status);
      tw_status_release(status);
      Fail(TF_INVALID_ARGUMENT, message);
    }
    Check(status);
  }

  std::string RenamedInput(const std::string& input) const {
    const auto [name, port] = SplitInput(input);
    const auto to = renamed_.find(name);
    if (to == renamed_.end()) return input;
    return port < 0 ? "^" + to->second : port == 0 ? to->second : to->second + ":" + std::to_string(port);
  }

  // Adds the nodes one by one, each after its inputs. A Merge comes before the NextIteration that leads back to it.
  void ImportNodes() {
    for (const proto::FunctionDef& f : def_.library().function()) AddFunction(graph_, f);
    std::vector<int> waits(static_cast<size_t>(def_.node_size()));
    std::vector<std::vector<int>> readers(waits.size());
    for (int i = 0; i < def_.node_size(); ++i) {
      for (const std::string& input : def_.node(i).input()) {
        const int from = Source(input);
        if (from < 0 || IsBack(def_.node(i), from)) continue;
        ++waits[static_cast<size_t>(i)];
        readers[static_cast<size_t>(from)].push_back(i);
      }
    }
    std::vector<int> ready;
    for (int i = def_.node_size(); i-- > 0;) {
      if (waits[static_cast<size_t>(i)] == 0) ready.push_back(i);
    }
    size_t added = 0;
    while (!ready.empty()) {
      const int i = ready.back();
      ready.pop_back();
      Add(def_.node(i));
      ++added;
      for (int reader : readers[static_cast<size_t>(i)]) {
        if (--waits[static_cast<size_t>(reader)] == 0) ready.push_back(reader);
      }
    }
    if (added < waits.size()) Fail(TF_INVALID_ARGUMENT, std::to_string(waits.size() - added), " nodes in a cycle");
    for (const auto& [merge, input, next] : loops_) {
      Check(tw_graph_close_loop(graph_->graph, merge->op, static_cast<uint32_t>(input), made_.at(next)->op));
    }
  }

  // The node of the GraphDef that an input comes from; -1 if it comes from the graph.
  int Source(const std::string& input) const {
    const auto [name, port] = SplitInput(input);
    if (port < 0 ? options_.controls.count(name) : options_.inputs.count({name, port})) return -1;
    return at_.at(name);
  }
  bool IsBack(const proto::NodeDef& node, int from) const {
    return node.op().ends_with("Merge") && def_.node(from).op().ends_with("NextIteration");
  }

  void Add(const proto::NodeDef& node) {
    TF_OperationDescription d;
    d.graph = graph_;
    d.type = node.op();
    d.name = NameOf(node.name());
    d.device = node.device().empty() ? options_.device : node.device();
    bool inside = false;
    std::vector<std::pair<int, int>> back;  // input and node that leads back to it
    for (const std::string& input : node.input()) {
      const int from = Source(input);
      inside = inside || from >= 0;
      if (from >= 0 && IsBack(node, from)) {
        back.push_back({static_cast<int>(d.inputs.size()), from});
        d.inputs.push_back(0);
        continue;
      }
      AddInput(input, from, &d);
    }
    for (const auto& [input, from] : back) {
      const auto other = std::find_if(d.inputs.begin(), d.inputs.end(), [](tw_output o) { return o != 0; });
      if (other == d.inputs.end()) Fail(TF_INVALID_ARGUMENT, "Node '", node.name(), "' has no input from outside its loop");
      d.inputs[static_cast<size_t>(input)] = *other;
    }
    for (const TF_Operation* dependency : options_.dependencies) {
      if (!inside) d.controls.push_back(dependency->op);
    }
    for (const auto& [name, value] : node.attr()) {
      if (name != "_class") {
        d.attrs[name] = value;
        continue;
      }
      for (const std::string& entry : value.list().s()) {
        const bool named = entry.rfind("loc:@", 0) == 0;
        d.colocated.push_back(named && at_.count(entry.substr(5)) ? "loc:@" + NameOf(entry.substr(5)) : entry);
      }
    }
    std::erase_if(d.colocated,
                  [&](const std::string& entry) { return entry.rfind("loc:@", 0) != 0 || !graph_->FindName(entry.substr(5)); });
    TF_Operation* operation = Finish(&d);
    made_[node.name()] = operation;
    for (const auto& [input, from] : back) loops_.push_back({operation, input, def_.node(from).name()});
  }

  void AddInput(const std::string& input, int from, TF_OperationDescription* d) {
    const auto [name, port] = SplitInput(input);
    if (port < 0) {
      const TF_Operation* before = from < 0 ? options_.controls.at(name) : made_.at(name);
      if (std::find(d->controls.begin(), d->controls.end(), before->op) == d->controls.end()) d->controls.push_back(before->op);
    } else if (from < 0) {
      d->inputs.push_back(Inside(*graph_, options_.inputs.at({name, port}), "an input mapping"));
    } else {
      d->inputs.push_back(Inside(*graph_, {made_.at(name), port}, "an input"));
    }
  }

  TF_ImportGraphDefResults Results() {
    TF_ImportGraphDefResults results;
    for (const auto& [name, index] : options_.return_outputs) {
      const auto mapped = options_.inputs.find({name, index});
      results.outputs.push_back(mapped == options_.inputs.end() ? TF_Output{graph_->FindName(NameOf(name)), index} : mapped->second);
    }
    for (const std::string& name : options_.return_operations) results.operations.push_back(graph_->FindName(NameOf(name)));
    for (const auto& [source, value] : options_.inputs) {
      if (used_.count(source) || Exists(source)) continue;
      results.missing_names.push_back(source.first);
      results.missing_indexes.push_back(source.second);
    }
    return results;
  }
  bool Exists(const std::pair<std::string, int>& source) {
    TF_Operation* operation = at_.count(source.first) ? graph_->FindName(NameOf(source.first)) : nullptr;
    return operation && source.second >= 0 && static_cast<uint32_t>(source.second) < tw_operation_output_count(operation->op);
  }

  struct Loop {
    TF_Operation* merge;
    int input;
    std::string next;
  };

  TF_Graph* graph_;
  proto::GraphDef def_;
  const TF_ImportGraphDefOptions& options_;
  const std::string prefix_;
  std::unordered_map<std::string, int> at_;
  std::unordered_map<std::string, std::string> renamed_;
  std::unordered_map<std::string, TF_Operation*> made_;
  std::vector<Loop> loops_;
  std::set<std::pair<std::string, int>> used_;  // inputs of nodes
};

}  // namespace

TF_ImportGraphDefResults Import(TF_Graph* graph, proto::GraphDef def, const TF_ImportGraphDefOptions& options) {
  const std::lock_guard lock(graph->mu);
  ReplaceOldOps(&def);
  return Importer(graph, std::move(def), options).Run();
}

void AddFunction(TF_Graph* graph, const proto::FunctionDef& def) {
  const std::lock_guard lock(graph->mu);
  if (const proto::FunctionDef* known = graph->FindFunction(def.signature().name())) {
    if (Serialise(*known) == Serialise(def)) return;
    Fail(TF_INVALID_ARGUMENT, "Cannot add function '", def.signature().name(),
         "' because a different function with the same name already exists.");
  }
  proto::GraphDef graph_def;
  *graph_def.mutable_library()->add_function() = def;
  const std::string bytes = Serialise(graph_def);
  Check(tw_graph_import(graph->graph, bytes.data(), bytes.size(), nullptr));
}

}  // namespace thalweg::tf

using namespace thalweg::tf;

TF_ImportGraphDefOptions* TF_NewImportGraphDefOptions(void) { return new TF_ImportGraphDefOptions; }
void TF_DeleteImportGraphDefOptions(TF_ImportGraphDefOptions* o) { delete o; }
void TF_ImportGraphDefOptionsSetPrefix(TF_ImportGraphDefOptions* o, const char* prefix) { o->prefix = OrEmpty(prefix); }
void TF_ImportGraphDefOptionsSetDefaultDevice(TF_ImportGraphDefOptions* o, const char* device) { o->device = OrEmpty(device); }
void TF_ImportGraphDefOptionsSetUniquifyNames(TF_ImportGraphDefOptions* o, unsigned char yes) { o->uniquify_names = yes != 0; }
void TF_ImportGraphDefOptionsSetUniquifyPrefix(TF_ImportGraphDefOptions* o, unsigned char yes) { o->uniquify_prefix = yes != 0; }
// Thalweg checks colocation when it places operations.
void TF_ImportGraphDefOptionsSetValidateColocationConstraints(TF_ImportGraphDefOptions*, unsigned char) {}
void TF_ImportGraphDefOptionsAddInputMapping(TF_ImportGraphDefOptions* o, const char* name, int index, TF_Output dst) {
  o->inputs[{OrEmpty(name), index}] = dst;
}
void TF_ImportGraphDefOptionsRemapControlDependency(TF_ImportGraphDefOptions* o, const char* name, TF_Operation* dst) {
  o->controls[OrEmpty(name)] = dst;
}
void TF_ImportGraphDefOptionsAddControlDependency(TF_ImportGraphDefOptions* o, TF_Operation* oper) { o->dependencies.push_back(oper); }
void TF_ImportGraphDefOptionsAddReturnOutput(TF_ImportGraphDefOptions* o, const char* name, int index) {
  o->return_outputs.push_back({OrEmpty(name), index});
}
int TF_ImportGraphDefOptionsNumReturnOutputs(const TF_ImportGraphDefOptions* o) { return static_cast<int>(o->return_outputs.size()); }
void TF_ImportGraphDefOptionsAddReturnOperation(TF_ImportGraphDefOptions* o, const char* name) {
  o->return_operations.push_back(OrEmpty(name));
}
int TF_ImportGraphDefOptionsNumReturnOperations(const TF_ImportGraphDefOptions* o) { return static_cast<int>(o->return_operations.size()); }

void TF_ImportGraphDefResultsReturnOutputs(TF_ImportGraphDefResults* r, int* n, TF_Output** outputs) {
  *n = static_cast<int>(r->outputs.size());
  *outputs = r->outputs.data();
}
void TF_ImportGraphDefResultsReturnOperations(TF_ImportGraphDefResults* r, int* n, TF_Operation*** opers) {
  *n = static_cast<int>(r->operations.size());
  *opers = r->operations.data();
}
void TF_ImportGraphDefResultsMissingUnusedInputMappings(TF_ImportGraphDefResults* r, int* n, const char*** names, int** indexes) {
  r->missing_texts.clear();
  for (const std::string& name : r->missing_names) r->missing_texts.push_back(name.c_str());
  *n = static_cast<int>(r->missing_names.size());
  *names = r->missing_texts.data();
  *indexes = r->missing_indexes.data();
}
void TF_DeleteImportGraphDefResults(TF_ImportGraphDefResults* r) { delete r; }

TF_ImportGraphDefResults* TF_GraphImportGraphDefWithResults(TF_Graph* graph, const TF_Buffer* graph_def,
                                                            const TF_ImportGraphDefOptions* options, TF_Status* status) {
  return Guard(status, [&] {
    thalweg::proto::GraphDef def;
    Parse(graph_def, "GraphDef proto", &def);
    return new TF_ImportGraphDefResults(Import(graph, std::move(def), options ? *options : TF_ImportGraphDefOptions()));
  });
}
void TF_GraphImportGraphDefWithReturnOutputs(TF_Graph* graph, const TF_Buffer* graph_def, const TF_ImportGraphDefOptions* options,
                                             TF_Output* return_outputs, int num_return_outputs, TF_Status* status) {
  Guard(status, [&] {
    if (num_return_outputs != TF_ImportGraphDefOptionsNumReturnOutputs(options)) {
      Fail(TF_INVALID_ARGUMENT, "Expected 'num_return_outputs' to be ", std::to_string(options->return_outputs.size()), ", got ",
           std::to_string(num_return_outputs));
    }
    thalweg::proto::GraphDef def;
    Parse(graph_def, "GraphDef proto", &def);
    const TF_ImportGraphDefResults results = Import(graph, std::move(def), *options);
    std::copy(results.outputs.begin(), results.outputs.end(), return_outputs);
  });
}
void TF_GraphImportGraphDef(TF_Graph* graph, const TF_Buffer* graph_def, const TF_ImportGraphDefOptions* options, TF_Status* status) {
  TF_DeleteImportGraphDefResults(TF_GraphImportGraphDefWithResults(graph, graph_def, options, status));
}
