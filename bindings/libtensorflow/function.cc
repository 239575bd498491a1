#include "function.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <set>

#include "graph.h"
#include "ops.h"

using namespace thalweg::tf;
namespace proto = thalweg::proto;

namespace {

// The request of a client: a part of a graph that becomes a function.
struct Wanted {
  const TF_Graph* body;
  std::string name;
  bool append_hash;
  int n_operations;  // -1: all
  const TF_Operation* const* operations;
  int n_inputs;
  const TF_Output* inputs;
  int n_outputs;
  const TF_Output* outputs;
  const char* const* output_names;
  int n_controls = 0;
  const TF_Operation* const* controls = nullptr;
  const char* const* control_names = nullptr;
  const char* description = nullptr;
};

class FunctionMaker {
 public:
  explicit FunctionMaker(const Wanted& wanted) : wanted_(wanted), graph_(const_cast<TF_Graph*>(wanted.body)) {}

  proto::FunctionDef Run() {
    const std::lock_guard lock(graph_->mu);
    if (wanted_.name.empty()) Fail(TF_INVALID_ARGUMENT, "a function needs a name");
    def_.mutable_signature()->set_name(wanted_.name);
    if (wanted_.description) def_.mutable_signature()->set_description(wanted_.description);
    FindInputs();
    FindOutputs();
    ChooseBody();
    // The same order as TensorFlow's, in which a name that is wanted twice stays with the output.
    NameOutputs();
    NameInputs();
    for (const TF_Operation* operation : body_) node_names_[operation->op] = Free(tw_operation_name(operation->op));
    for (const TF_Operation* operation : body_) AddNode(*operation);
    AddResults();
    AddControls();
    if (wanted_.append_hash) AppendHash();
    return std::move(def_);
  }

 private:
  // The end of a message.
  std::string Creating() const { return Text("Encountered while creating function '", wanted_.name, "'"); }

  // A name of lower-case letters, digits and underscores that begins with a letter and that nothing in the function has.
  std::string Unique(const std::string& wanted) {
    std::string name;
    for (const char c : wanted) {
      const auto u = static_cast<unsigned char>(c);
      if (name.empty() && !std::isalpha(u)) continue;
      name += std::isalnum(u) ? static_cast<char>(std::tolower(u)) : '_';
    }
    return Free(name.empty() ? "unknown" : name);
  }
  std::string Free(const std::string& name) {
    std::string unique = name;
    for (int i = 0; !names_.insert(unique).second; ++i) unique = name + "_" + std::to_string(i);
    return unique;
  }

  uint32_t TypeOf(tw_output value) {
    uint32_t type = 0;
    Check(tw_graph_describe(graph_->graph, value, &type, nullptr));
    return type;
  }

  tw_output Value(TF_Output output, int i, const char* what, const char* direction) {
    try {
      if (!output.oper) Fail(TF_INVALID_ARGUMENT, "Node is null");
      return Inside(*graph_, output, what);
    } catch (const Error& e) {
      Fail(e.code, e.message, "\n\tEncountered while processing ", what, " ", std::to_string(i), " ", direction, " function '",
           wanted_.name, "'");
    }
  }

  void FindInputs() {
    for (int i = 0; i < wanted_.n_inputs; ++i) {
      const TF_Output& input = wanted_.inputs[i];
      const tw_output value = Value(input, i, "input", "into");
      const std::string name = Text("TF_Output ", tw_operation_name(input.oper->op), ":", std::to_string(input.index));
      if (TypeOf(value) > TW_REF) Fail(TF_INVALID_ARGUMENT, name, " has reference type; this is not supported");
      if (!inputs_.emplace(value, "").second) Fail(TF_INVALID_ARGUMENT, name, " appears more than once in the input list");
    }
  }

  void FindOutputs() {
    std::set<std::string> given;
    for (int i = 0; i < wanted_.n_outputs; ++i) {
      outputs_.push_back(Value(wanted_.outputs[i], i, "output", "from"));
      if (!wanted_.output_names || given.insert(OrEmpty(wanted_.output_names[i])).second) continue;
      Fail(TF_INVALID_ARGUMENT, "Cannot have duplicate output names. Name '", OrEmpty(wanted_.output_names[i]),
           "' appears more than once in 'output_names' array.");
    }
  }

  // Without a list the body is everything except the sources of inputs; these may have one output only.
  void ChooseBody() {
    std::set<const TF_Operation*> sources;
    for (int i = 0; i < wanted_.n_inputs; ++i) sources.insert(wanted_.inputs[i].oper);
    if (wanted_.n_operations >= 0) {
      for (int i = 0; i < wanted_.n_operations; ++i) {
        if (!wanted_.operations[i] || wanted_.operations[i]->graph != graph_)
          Fail(TF_INVALID_ARGUMENT, "Operation ", std::to_string(i), " of the body is not in the graph. ", Creating());
        body_.push_back(wanted_.operations[i]);
      }
      std::sort(body_.begin(), body_.end(), [](auto* a, auto* b) { return a->index < b->index; });
      return;
    }
    for (const TF_Operation* source : sources) {
      if (tw_operation_output_count(source->op) > 1) {
        Fail(TF_INVALID_ARGUMENT, "When `num_opers` is set to -1, nodes referenced in `inputs` must have a single output. Node ",
             tw_operation_name(source->op), " has ", std::to_string(tw_operation_output_count(source->op)), " outputs. ", Creating());
      }
    }
    graph_->Update();
    for (const TF_Operation& operation : graph_->operations) {
      if (!sources.count(&operation)) body_.push_back(&operation);
    }
  }

  void NameOutputs() {
    for (int i = 0; i < wanted_.n_outputs; ++i) {
      const std::string given = wanted_.output_names ? OrEmpty(wanted_.output_names[i]) : "";
      auto* arg = def_.mutable_signature()->add_output_arg();
      arg->set_name(wanted_.output_names ? given : Unique(tw_operation_name(wanted_.outputs[i].oper->op)));
      if (wanted_.output_names) names_.insert(given);
      arg->set_type(static_cast<proto::DataType>(TypeOf(outputs_[static_cast<size_t>(i)])));
    }
  }

  void NameInputs() {
    for (int i = 0; i < wanted_.n_inputs; ++i) {
      const TF_Operation& source = *wanted_.inputs[i].oper;
      const tw_output value = tw_operation_output(source.op, static_cast<uint32_t>(wanted_.inputs[i].index));
      auto* arg = def_.mutable_signature()->add_input_arg();
      arg->set_name(Unique(tw_operation_name(source.op)));
      arg->set_type(static_cast<proto::DataType>(TypeOf(value)));
      inputs_[value] = arg->name();
      sources_.emplace(source.op, arg->name());
      KeepAttrs(source, static_cast<uint32_t>(i));
    }
  }

  // An argument keeps the private attributes of its operation, and the shape of a placeholder.
  void KeepAttrs(const TF_Operation& source, uint32_t argument) {
    const proto::NodeDef node = NodeOf(source);
    for (const auto& [name, value] : node.attr()) {
      if (name[0] == '_') (*(*def_.mutable_arg_attr())[argument].mutable_attr())[name] = value;
      if (name != "shape" || !value.has_shape() || value.shape().unknown_rank()) continue;
      *(*(*def_.mutable_arg_attr())[argument].mutable_attr())["_output_shapes"].mutable_list()->add_shape() = value.shape();
    }
  }

  // "node:argument:n", the form in which a body of a function names a value.
  std::string ValueName(tw_output value, const TF_Operation& operation, uint32_t port) {
    if (const auto input = inputs_.find(value); input != inputs_.end()) return input->second;
    const auto node = node_names_.find(operation.op);
    if (node == node_names_.end()) return "";
    const proto::OpDef op = SignatureOf(operation);
    const proto::NodeDef def = NodeOf(operation);
    int64_t left = port;
    for (const auto& arg : op.output_arg()) {
      const int64_t length = Length(arg, def);
      if (left < length) return node->second + ":" + arg.name() + ":" + std::to_string(left);
      left -= length;
    }
    Fail(TF_INTERNAL, "output ", std::to_string(port), " of '", def.name(), "' belongs to no argument");
  }

  void AddNode(const TF_Operation& operation) {
    proto::NodeDef node = NodeOf(operation);
    const std::string name = node.name();
    node.set_name(node_names_.at(operation.op));
    node.clear_input();
    for (uint32_t i = 0; i < tw_operation_input_count(operation.op); ++i) {
      const tw_output value = tw_operation_input(operation.op, i);
      const TF_Output from = graph_->Outside(value);
      const std::string text = ValueName(value, *from.oper, static_cast<uint32_t>(from.index));
      if (text.empty()) {
        Fail(TF_INVALID_ARGUMENT, "Input ", std::to_string(i), ", '", tw_operation_name(from.oper->op), ":", std::to_string(from.index),
             "', of node '", name, "' in function '", wanted_.name,
             "' is not available. You might need to include it in inputs or include its source node in the body");
      }
      node.add_input(text);
    }
    for (uint32_t i = 0; i < tw_operation_control_count(operation.op); ++i) AddControl(operation, i, &node);
    if (tw_operation_is_stateful(operation.op)) def_.mutable_signature()->set_is_stateful(true);
    *def_.add_node_def() = std::move(node);
  }

  // A node may wait for another one of the body, and for an argument.
  void AddControl(const TF_Operation& operation, uint32_t i, proto::NodeDef* node) {
    const tw_operation* before = tw_operation_control(operation.op, i);
    const auto in_body = node_names_.find(before);
    const auto source = sources_.find(before);
    if (in_body == node_names_.end() && source == sources_.end()) {
      Fail(TF_INVALID_ARGUMENT, "The source of control edge [id=", std::to_string(EdgeId(operation, i)), " ", tw_operation_name(before),
           ":-1 -> ", tw_operation_name(operation.op), ":-1] is not in the body. ", Creating());
    }
    node->add_input("^" + (in_body == node_names_.end() ? source->second : in_body->second));
  }

  // The number that TensorFlow gives the edge: edges count from 1 in the order of operations, those of values first.
  size_t EdgeId(const TF_Operation& operation, uint32_t control) {
    size_t id = 1 + tw_operation_input_count(operation.op) + control;
    graph_->Update();
    for (size_t i = 0; i < operation.index; ++i) {
      const tw_operation* op = graph_->operations[i].op;
      id += tw_operation_input_count(op) + tw_operation_control_count(op);
    }
    return id;
  }

  void AddResults() {
    for (int i = 0; i < wanted_.n_outputs; ++i) {
      const TF_Output& output = wanted_.outputs[i];
      const std::string text = ValueName(outputs_[static_cast<size_t>(i)], *output.oper, static_cast<uint32_t>(output.index));
      if (text.empty()) {
        Fail(TF_INVALID_ARGUMENT, "TF_Output ", tw_operation_name(output.oper->op), ":", std::to_string(output.index),
             " is neither in the function body nor among function inputs. ", Creating());
      }
      (*def_.mutable_ret())[def_.signature().output_arg(i).name()] = text;
    }
  }

  void AddControls() {
    for (int i = 0; i < wanted_.n_controls; ++i) {
      const auto node = node_names_.find(wanted_.controls[i]->op);
      if (node == node_names_.end()) {
        Fail(TF_INVALID_ARGUMENT, "The control output '", tw_operation_name(wanted_.controls[i]->op), "' is not in the function body. ",
             Creating());
      }
      const std::string name = wanted_.control_names ? OrEmpty(wanted_.control_names[i]) : node->second;
      def_.mutable_signature()->add_control_output(name);
      (*def_.mutable_control_ret())[name] = node->second;
    }
  }

  // Equal bodies get equal names.
  void AppendHash() {
    uint64_t hash = 14695981039346656037u;  // FNV-1a
    for (const unsigned char c : Serialise(def_)) hash = (hash ^ c) * 1099511628211u;
    char text[24];
    std::snprintf(text, sizeof text, "_%016llx", static_cast<unsigned long long>(hash));
    def_.mutable_signature()->set_name(wanted_.name + text);
  }

  const Wanted& wanted_;
  TF_Graph* graph_;
  proto::FunctionDef def_;
  std::set<std::string> names_;
  std::map<tw_output, std::string> inputs_;  // the names of arguments
  std::vector<tw_output> outputs_;
  std::map<const tw_operation*, std::string> sources_;  // of inputs, with the name of an argument
  std::vector<const TF_Operation*> body_;
  std::map<const tw_operation*, std::string> node_names_;
};

}  // namespace

TF_Function* TF_GraphToFunctionWithControlOutputs(const TF_Graph* fn_body, const char* fn_name, unsigned char append_hash_to_fn_name,
                                                  int num_opers, const TF_Operation* const* opers, int ninputs, const TF_Output* inputs,
                                                  int noutputs, const TF_Output* outputs, const char* const* output_names,
                                                  int ncontrol_outputs, const TF_Operation* const* control_outputs,
                                                  const char* const* control_output_names, const TF_FunctionOptions*,
                                                  const char* description, TF_Status* status) {
  return Guard(status, [&] {
    const Wanted wanted{fn_body,
                        OrEmpty(fn_name),
                        append_hash_to_fn_name != 0,
                        num_opers,
                        opers,
                        ninputs,
                        inputs,
                        noutputs,
                        outputs,
                        output_names,
                        ncontrol_outputs,
                        control_outputs,
                        control_output_names,
                        description};
    return new TF_Function{FunctionMaker(wanted).Run()};
  });
}
TF_Function* TF_GraphToFunction(const TF_Graph* fn_body, const char* fn_name, unsigned char append_hash_to_fn_name, int num_opers,
                                const TF_Operation* const* opers, int ninputs, const TF_Output* inputs, int noutputs,
                                const TF_Output* outputs, const char* const* output_names, const TF_FunctionOptions* opts,
                                const char* description, TF_Status* status) {
  return TF_GraphToFunctionWithControlOutputs(fn_body, fn_name, append_hash_to_fn_name, num_opers, opers, ninputs, inputs, noutputs,
                                              outputs, output_names, 0, nullptr, nullptr, opts, description, status);
}

const char* TF_FunctionName(TF_Function* func) { return func->def.signature().name().c_str(); }
void TF_DeleteFunction(TF_Function* func) { delete func; }
void TF_FunctionToFunctionDef(TF_Function* func, TF_Buffer* output, TF_Status* status) {
  Guard(status, [&] { Fill(output, Serialise(func->def)); });
}
TF_Function* TF_FunctionImportFunctionDef(const void* bytes, size_t n, TF_Status* status) {
  return Guard(status, [&] {
    auto func = std::make_unique<TF_Function>();
    try {
      Parse(bytes, n, "FunctionDef", &func->def);
    } catch (const Error&) {
      Fail(TF_INVALID_ARGUMENT, "Invalid FunctionDef given to TF_FunctionImportFunctionDef");
    }
    return func.release();
  });
}
void TF_FunctionSetAttrValueProto(TF_Function* func, const char* name, const void* bytes, size_t n, TF_Status* status) {
  Guard(status, [&] {
    proto::AttrValue value;
    Parse(bytes, n, "AttrValue", &value);
    (*func->def.mutable_attr())[OrEmpty(name)] = std::move(value);
  });
}
void TF_FunctionGetAttrValueProto(TF_Function* func, const char* name, TF_Buffer* output, TF_Status* status) {
  Guard(status, [&] {
    const auto at = func->def.attr().find(OrEmpty(name));
    if (at == func->def.attr().end()) {
      Fail(TF_INVALID_ARGUMENT, "Function '", func->def.signature().name(), "' has no attr named '", OrEmpty(name), "'.");
    }
    Fill(output, Serialise(at->second));
  });
}

// Makes `gradient` the function that computes the gradient of calls of `function`.
static void AddGradient(TF_Graph* g, const std::string& function, const std::string& gradient) {
  const proto::GraphDef now = g->Export();
  for (const auto& known : now.library().gradient()) {
    if (known.function_name() != function) continue;
    if (known.gradient_func() == gradient) return;
    Fail(TF_INVALID_ARGUMENT, "Cannot assign gradient function '", gradient, "' to '", function,
         "' because it already has gradient function '", known.gradient_func(), "'");
  }
  proto::GraphDef def;
  auto* added = def.mutable_library()->add_gradient();
  added->set_function_name(function);
  added->set_gradient_func(gradient);
  const std::string bytes = Serialise(def);
  Check(tw_graph_import(g->graph, bytes.data(), bytes.size(), nullptr));
}

void TF_GraphCopyFunction(TF_Graph* g, const TF_Function* func, const TF_Function* grad, TF_Status* status) {
  Guard(status, [&] {
    if (!func) Fail(TF_INVALID_ARGUMENT, "'func' argument to TF_GraphCopyFunction cannot be null");
    const std::lock_guard lock(g->mu);
    AddFunction(g, func->def);
    if (!grad) return;
    AddFunction(g, grad->def);
    AddGradient(g, func->def.signature().name(), grad->def.signature().name());
  });
}
int TF_GraphNumFunctions(TF_Graph* g) {
  return Guard(nullptr, [&] { return g->Export().library().function_size(); });
}
int TF_GraphGetFunctions(TF_Graph* g, TF_Function** funcs, int max_func, TF_Status* status) {
  return Guard(status, [&] {
    const proto::GraphDef def = g->Export();
    const int n = std::min(max_func, def.library().function_size());
    for (int i = 0; i < n; ++i) funcs[i] = new TF_Function{def.library().function(i)};
    return n;
  });
}
