#include "export.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <stdexcept>
#include <vector>

#include "table.h"

namespace thalweg::cli::onnx {
namespace {

constexpr uint64_t kMostBytes = (uint64_t{1} << 31) - 1;  // of a message

bool Is(const tw_operation* op, const char* type) { return std::strcmp(tw_operation_type(op), type) == 0; }

std::string Title(const tw_operation* op) { return std::string(tw_operation_type(op)) + " '" + tw_operation_name(op) + "'"; }

// The part of the model's graph that the signature needs, without calls of functions.
class Flat : public tw::Owned<tw_graph, tw_graph_destroy> {
 public:
  Flat(const tw_graph* graph, const tw_model_signature& signature) : inputs(signature.n_inputs), outputs(signature.n_outputs) {
    std::vector<tw_output> from, to;
    for (uint32_t i = 0; i < signature.n_inputs; ++i) from.push_back(signature.inputs[i]->output);
    for (uint32_t i = 0; i < signature.n_outputs; ++i) to.push_back(signature.outputs[i]->output);
    tw_graph* made = nullptr;
    tw::raise(
        tw_graph_flatten(graph, from.data(), signature.n_inputs, to.data(), signature.n_outputs, &made, inputs.data(), outputs.data()));
    own(made);
  }
  std::vector<tw_output> inputs, outputs;
};

class Exporter {
 public:
  Exporter(const tw::Model& model, const tw_model_signature& signature)
      : whole_(tw_model_graph(model.c())), session_(tw_model_session(model.c())), signature_(signature), flat_(whole_, signature) {}

  std::string File(const std::string& version) {
    for (uint32_t i = 0; i < signature_.n_inputs; ++i) inputs_.push_back(net_.Unique(signature_.inputs[i]->name));
    // An output with the name of an input gets a number, because a file has each name once.
    for (uint32_t i = 0; i < signature_.n_outputs; ++i) outputs_.push_back(net_.Unique(signature_.outputs[i]->name));
    AddInputs();
    Sort();
    ReadVariables();
    for (const tw_operation* op : order_) Translate(op);
    if (!missing_.empty()) throw std::runtime_error(Missing());
    AddOutputs();
    std::string bytes = net_.Model(version);
    if (bytes.size() > kMostBytes) {
      throw std::runtime_error("the model takes " + std::to_string(bytes.size()) + " bytes, and an ONNX file holds up to " +
                               std::to_string(kMostBytes));
    }
    return bytes;
  }

 private:
  static const tw_operation* Producer(const tw_graph* graph, tw_output value) {
    const tw_operation* op = nullptr;
    tw::raise(tw_graph_producer(graph, value, &op, nullptr));
    return op;
  }

  void AddInputs() {
    for (uint32_t i = 0; i < signature_.n_inputs; ++i) {
      const tw_model_value& v = *signature_.inputs[i];
      net_.Input(inputs_[i], v.dtype, *v.shape, v.symbols);
      held_[flat_.inputs[i]].last = inputs_[i];
      if (v.is_optional) AddDefault(v, inputs_[i]);
    }
  }

  // In ONNX, a constant with the name of an input is the input's default.
  void AddDefault(const tw_model_value& v, const Name& name) {
    const tw_operation* op = Producer(whole_, v.output);
    const tw_operation* from = Is(op, "PlaceholderWithDefault") ? Producer(whole_, tw_operation_input(op, 0)) : nullptr;
    if (from && Is(from, "Const")) {
      HeldValues none;
      net_.Constant(Op(whole_, from, &net_, &none).tensor("value"), name);
    } else {
      missing_.push_back("the default of input '" + name + "', which is computed");
    }
  }

  // Lists the operations that the outputs need, each after those that it reads.
  void Sort() {
    std::set<const tw_operation*> seen;
    std::vector<std::pair<const tw_operation*, uint32_t>> path;  // with the next input to follow
    const auto enter = [&](tw_output value) {
      if (held_.count(value)) return;
      const tw_operation* op = Producer(flat_.c(), value);
      if (seen.insert(op).second) path.emplace_back(op, 0);
    };
    for (const tw_output output : flat_.outputs) {
      enter(output);
      while (!path.empty()) {
        const tw_operation* op = path.back().first;
        if (path.back().second < tw_operation_input_count(op)) {
          enter(tw_operation_input(op, path.back().second++));
        } else {
          order_.push_back(op);
          path.pop_back();
        }
      }
    }
  }

  // Fetches the values of variables. Their handles have the same names in the whole graph.
  void ReadVariables() {
    std::vector<const tw_operation*> handles;
    std::vector<tw_output> fetches;
    tw_scope* scope = tw_scope_create(whole_, "export");
    for (const tw_operation* op : order_) {
      if (!Is(op, "VarHandleOp")) continue;
      const tw_operation* own = nullptr;
      tw_scope_fail(scope, tw_graph_find(whole_, tw_operation_name(op), &own));
      handles.push_back(op);
      fetches.push_back(tw_variable_read(scope, tw_operation_output(own, 0)));
    }
    tw::raise(tw_scope_finish(scope));
    if (fetches.empty()) return;
    std::vector<tw_tensor*> got(fetches.size());
    const tw_signature what = tw::signature_of(std::vector<tw_output>(), fetches);
    tw::raise(tw_session_run(session_, &what, nullptr, nullptr, got.data()));
    for (size_t i = 0; i < got.size(); ++i) variables_.emplace(handles[i], tw::Tensor::adopt(got[i]));
  }

  void Translate(const tw_operation* op) {
    try {
      net_.Begin(tw_operation_name(op));
      Op o(flat_.c(), op, &net_, &held_);
      if (Is(op, "Const")) return o.out(0, net_.Constant(o.tensor("value")));
      if (Is(op, "VarHandleOp")) return o.out(0, net_.Constant(variables_.at(op)));  // its value: readers take it as it is
      const Translator* translator = FindTranslator(tw_operation_type(op));
      if (!translator) throw NoTwin{""};
      for (uint32_t i = 0; i < o.inputs(); ++i) {
        if (!held_.count(tw_operation_input(op, i))) return;  // the operation that makes it is listed as missing
      }
      translator->translate(o, translator->twin);
    } catch (const NoTwin& e) {
      missing_.push_back(Title(op) + (e.reason.empty() ? "" : ": " + e.reason));
    }
  }

  std::string Missing() const {
    constexpr size_t kMost = 20;
    std::string text = "ONNX has no twin of:";
    for (size_t i = 0; i < missing_.size() && i < kMost; ++i) text += (i ? "; " : " ") + missing_[i];
    if (missing_.size() > kMost) text += "; and " + std::to_string(missing_.size() - kMost) + " more";
    return text;
  }

  void AddOutputs() {
    for (uint32_t i = 0; i < signature_.n_outputs; ++i) {
      const tw_model_value& v = *signature_.outputs[i];
      Held& held = held_.at(flat_.outputs[i]);
      net_.Begin(outputs_[i]);
      if (held.last.empty()) held.last = net_.Transpose(held.first, ToLast(v.shape->rank));
      net_.AddNamed("Identity", {held.last}, outputs_[i]);
      net_.Output(outputs_[i], v.dtype, *v.shape, v.symbols);
    }
  }

  tw_graph* whole_;
  tw_session* session_;
  const tw_model_signature& signature_;
  const Flat flat_;
  Net net_;
  HeldValues held_;
  std::vector<Name> inputs_, outputs_;
  std::vector<const tw_operation*> order_;
  std::map<const tw_operation*, tw::Tensor> variables_;  // by the operations of their handles
  std::vector<std::string> missing_;
};

}  // namespace

std::string Export(const tw::Model& model, const tw_model_signature& signature, const std::string& version) {
  try {
    return Exporter(model, signature).File(version);
  } catch (const NoTwin& e) {
    throw std::runtime_error(e.reason);
  }
}

}  // namespace thalweg::cli::onnx
