// Gradients and loops that clients add to a graph.
#include <algorithm>
#include <cstring>

#include "builder.h"
#include "graph.h"
#include "import.h"

using namespace thalweg::tf;

namespace {

// Adds one operation of the library's own.
class Adder {
 public:
  Adder(TF_Graph* graph, const std::string& type, const std::string& name) {
    d_.graph = graph;
    d_.type = type;
    d_.name = name;
  }
  Adder& In(tw_output value) {
    d_.inputs.push_back(value);
    return *this;
  }
  Adder& Type(const char* attr, uint32_t type) {
    d_.attrs[attr].set_type(static_cast<thalweg::proto::DataType>(type));
    return *this;
  }
  Adder& Int(const char* attr, int64_t value) {
    d_.attrs[attr].set_i(value);
    return *this;
  }
  Adder& Bool(const char* attr, bool value) {
    d_.attrs[attr].set_b(value);
    return *this;
  }
  Adder& Text(const char* attr, const std::string& value) {
    d_.attrs[attr].set_s(value);
    return *this;
  }
  TF_Operation* Add() { return Finish(&d_); }
  tw_output Out(uint32_t port = 0) { return tw_operation_output(Add()->op, port); }

 private:
  TF_OperationDescription d_;
};

// The name, or the name with the first number that makes it new.
std::string FreeName(TF_Graph* graph, const std::string& name) {
  std::string free = name;
  for (int i = 1; tw_graph_has(graph->graph, free.c_str()); ++i) free = name + "_" + std::to_string(i);
  return free;
}

// A gradient of rows as a whole tensor: zeros elsewhere, the sum where a row is named twice.
tw_output Dense(TF_Graph* graph, const tw_gradient& gradient, tw_output x, const std::string& scope) {
  if (gradient.rows == 0) return gradient.values;
  const auto name = [&](const char* op) { return scope.empty() ? std::string() : FreeName(graph, scope + "/" + op); };
  uint32_t type = 0;
  Check(tw_graph_describe(graph->graph, gradient.rows, &type, nullptr));
  const tw_output shape = Adder(graph, "Shape", name("Shape")).In(x).Type("out_type", type).Out();
  TF_OperationDescription constant;
  constant.graph = graph;
  constant.type = "Const";
  constant.name = name("Const");
  tw_tensor* tensor = nullptr;
  Check(tw_tensor_create_int32(-1, &tensor));
  constant.tensors["value"].emplace_back(tensor);
  constant.attrs["dtype"].set_type(static_cast<thalweg::proto::DataType>(TW_INT32));
  const tw_output last = tw_operation_output(Finish(&constant)->op, 0);
  const tw_output rows = Adder(graph, "ExpandDims", name("ExpandDims")).In(gradient.rows).In(last).Out();
  return Adder(graph, "ScatterNd", name("ScatterNd")).In(rows).In(gradient.values).In(shape).Out();
}

}  // namespace

// Returns the name of an operation that is the prefix or begins with it and "/"; empty if there is none.
static std::string_view HolderOf(TF_Graph* g, const std::string& prefix) {
  for (size_t i = 0, n = g->Update(); i < n; ++i) {
    const std::string_view name = tw_operation_name(g->operations[i].op);
    if (name.starts_with(prefix) && (name.size() == prefix.size() || name[prefix.size()] == '/')) return name;
  }
  return {};
}

// The prefix of the client, which must be new to the graph, so that no name needs a number; or the first
// free one of TensorFlow's own.
static std::string PrefixFor(TF_Graph* g, const std::string& wanted) {
  if (wanted.empty()) {
    std::string own = "gradients";
    for (int i = 1; !HolderOf(g, own).empty(); ++i) own = "gradients_" + std::to_string(i);
    return own;
  }
  if (const std::string_view name = HolderOf(g, wanted); !name.empty())
    Fail(TF_INVALID_ARGUMENT, "prefix [", wanted, "] conflicts with existing node in the graph named [", name, "]");
  return wanted;
}

void TF_AddGradientsWithPrefix(TF_Graph* g, const char* prefix, TF_Output* y, int ny, TF_Output* x, int nx, TF_Output* dx,
                               TF_Status* status, TF_Output* dy) {
  Guard(status, [&] {
    const std::lock_guard lock(g->mu);
    std::vector<tw_output> ys, xs, given;
    for (int i = 0; i < ny; ++i) ys.push_back(Inside(*g, y[i], "a y"));
    for (int i = 0; i < nx; ++i) xs.push_back(Inside(*g, x[i], "an x"));
    for (int i = 0; dx && i < ny; ++i) given.push_back(dx[i].oper ? Inside(*g, dx[i], "a dx") : 0);
    const std::string scope = PrefixFor(g, OrEmpty(prefix));
    std::vector<tw_gradient> gradients(xs.size());
    Check(tw_gradients_add_named(g->graph, scope.c_str(), ys.data(), given.empty() ? nullptr : given.data(),
                                 static_cast<uint32_t>(ys.size()), xs.data(), static_cast<uint32_t>(xs.size()), gradients.data()));
    for (size_t i = 0; i < xs.size(); ++i) dy[i] = g->Outside(Dense(g, gradients[i], xs[i], scope));
  });
}
void TF_AddGradients(TF_Graph* g, TF_Output* y, int ny, TF_Output* x, int nx, TF_Output* dx, TF_Status* status, TF_Output* dy) {
  TF_AddGradientsWithPrefix(g, nullptr, y, ny, x, nx, dx, status, dy);
}

// ---- Loops ----

namespace {

// The memory that a TF_WhileParams points to, except for its name, which belongs to the client.
struct Loop {
  TF_Graph* outer;
  std::vector<TF_Output> inputs, cond_inputs, body_inputs, body_outputs;
};

std::map<TF_Graph*, std::unique_ptr<Loop>>& Loops() {  // by the graph of the condition
  static auto* const loops = new std::map<TF_Graph*, std::unique_ptr<Loop>>;
  return *loops;
}
std::mutex& LoopsMutex() {
  static auto* const mu = new std::mutex;
  return *mu;
}

std::unique_ptr<Loop> TakeLoop(const TF_WhileParams& params) {
  const std::lock_guard lock(LoopsMutex());
  const auto at = Loops().find(params.cond_graph);
  if (at == Loops().end()) Fail(TF_INVALID_ARGUMENT, "the loop was finished or given up before");
  std::unique_ptr<Loop> loop = std::move(at->second);
  Loops().erase(at);
  return loop;
}

TF_Output Placeholder(TF_Graph* graph, const TF_Output& like, const std::string& name) {
  uint32_t type = 0;
  Check(tw_graph_describe(like.oper->graph->graph, Inside(*like.oper->graph, like), &type, nullptr));
  return {Adder(graph, "Placeholder", name).Type("dtype", type).Add(), 0};
}

// Copies what `outputs` need of a part into the graph, with `values` in the place of the part's inputs.
std::vector<TF_Output> CopyPart(TF_Graph* graph, TF_Graph* part, const std::vector<TF_Output>& inputs, const std::vector<TF_Output>& values,
                                const std::vector<TF_Output>& outputs, const std::string& prefix, TF_Operation* pivot) {
  TF_ImportGraphDefOptions options;
  options.prefix = prefix;
  options.dependencies.push_back(pivot);
  thalweg::proto::GraphDef def = part->Export(), needed;
  for (size_t i = 0; i < inputs.size(); ++i) options.inputs[{tw_operation_name(inputs[i].oper->op), 0}] = values[i];
  for (thalweg::proto::NodeDef& node : *def.mutable_node()) {
    const bool input =
        std::any_of(inputs.begin(), inputs.end(), [&](const TF_Output& o) { return node.name() == tw_operation_name(o.oper->op); });
    if (!input) needed.add_node()->Swap(&node);
  }
  *needed.mutable_library() = def.library();
  for (const TF_Output& o : outputs) options.return_outputs.push_back({tw_operation_name(o.oper->op), o.index});
  return Import(graph, std::move(needed), options).outputs;
}

void FinishLoop(const TF_WhileParams& params, const Loop& loop, TF_Output* outputs) {
  TF_Graph* g = loop.outer;
  const std::lock_guard lock(g->mu);
  const std::string name = OrEmpty(params.name);
  if (name.empty()) Fail(TF_INVALID_ARGUMENT, "TF_WhileParams `name` field is null");
  if (!params.cond_output.oper || params.cond_output.oper->graph != params.cond_graph) {
    Fail(TF_INVALID_ARGUMENT, "TF_WhileParams `cond_output` field isn't set");
  }
  for (int i = 0; i < params.ninputs; ++i) {
    if (!params.body_outputs[i].oper || params.body_outputs[i].oper->graph != params.body_graph) {
      Fail(TF_INVALID_ARGUMENT, "TF_WhileParams `body_outputs[", std::to_string(i), "]` field isn't set");
    }
  }
  const auto n = static_cast<size_t>(params.ninputs);
  const auto numbered = [&](const char* part, size_t i) { return name + "/" + part + (i ? "_" + std::to_string(i) : ""); };
  std::vector<TF_Operation*> merges;
  std::vector<TF_Output> merged, taken, exits(n);
  for (size_t i = 0; i < n; ++i) {
    const tw_output enter = Adder(g, "Enter", numbered("Enter", i))
                                .In(Inside(*g, loop.inputs[i]))
                                .Text("frame_name", name)
                                .Bool("is_constant", false)
                                .Int("parallel_iterations", 10)
                                .Out();
    merges.push_back(Adder(g, "Merge", numbered("Merge", i)).In(enter).In(enter).Add());
    merged.push_back({merges.back(), 0});
  }
  const TF_Output cond = CopyPart(g, params.cond_graph, loop.cond_inputs, merged, {params.cond_output}, name + "/cond", merges[0])[0];
  const tw_output goes_on = Adder(g, "LoopCond", name + "/LoopCond").In(Inside(*g, cond)).Out();
  for (size_t i = 0; i < n; ++i) {
    const TF_Operation* split = Adder(g, "Switch", numbered("Switch", i)).In(Inside(*g, merged[i])).In(goes_on).Add();
    exits[i] = {Adder(g, "Exit", numbered("Exit", i)).In(tw_operation_output(split->op, 0)).Add(), 0};
    taken.push_back({Adder(g, "Identity", numbered("body_input", i)).In(tw_operation_output(split->op, 1)).Add(), 0});
  }
  const std::vector<TF_Output> results =
      CopyPart(g, params.body_graph, loop.body_inputs, taken, std::vector<TF_Output>(params.body_outputs, params.body_outputs + n),
               name + "/body", taken[0].oper);
  for (size_t i = 0; i < n; ++i) {
    const TF_Operation* next = Adder(g, "NextIteration", numbered("NextIteration", i)).In(Inside(*g, results[i])).Add();
    Check(tw_graph_close_loop(g->graph, merges[i]->op, 1, next->op));
    g->Update();
    g->consumers[tw_operation_output(next->op, 0)].push_back({merges[i], 1});
    outputs[i] = exits[i];
  }
}

}  // namespace

TF_WhileParams TF_NewWhile(TF_Graph* g, TF_Output* inputs, int ninputs, TF_Status* status) {
  Loop* made = nullptr;
  TF_Graph *cond = nullptr, *body = nullptr;
  Guard(status, [&] {
    if (ninputs <= 0) Fail(TF_INVALID_ARGUMENT, "TF_NewWhile() must be passed at least one input");
    auto loop = std::make_unique<Loop>();
    auto cond_graph = std::make_unique<TF_Graph>(), body_graph = std::make_unique<TF_Graph>();
    loop->outer = g;
    for (int i = 0; i < ninputs; ++i) {
      Inside(*g, inputs[i], "an input of the loop");
      loop->inputs.push_back(inputs[i]);
      loop->cond_inputs.push_back(Placeholder(cond_graph.get(), inputs[i], "cond_input" + std::to_string(i)));
      loop->body_inputs.push_back(Placeholder(body_graph.get(), inputs[i], "body_input" + std::to_string(i)));
    }
    loop->body_outputs.assign(static_cast<size_t>(ninputs), TF_Output{nullptr, -1});
    cond = cond_graph.release();
    body = body_graph.release();
    made = loop.get();
    const std::lock_guard lock(LoopsMutex());
    Loops()[cond] = std::move(loop);
  });
  if (!made) return {0, nullptr, nullptr, {nullptr, 0}, nullptr, nullptr, nullptr, nullptr};
  return {ninputs, cond, made->cond_inputs.data(), {nullptr, -1}, body, made->body_inputs.data(), made->body_outputs.data(), nullptr};
}

void TF_FinishWhile(const TF_WhileParams* params, TF_Status* status, TF_Output* outputs) {
  Guard(status, [&] {
    const std::unique_ptr<Loop> loop = TakeLoop(*params);
    const std::unique_ptr<TF_Graph> cond(params->cond_graph), body(params->body_graph);
    FinishLoop(*params, *loop, outputs);
  });
}

void TF_AbortWhile(const TF_WhileParams* params) {
  Guard(nullptr, [&] {
    const std::unique_ptr<Loop> loop = TakeLoop(*params);
    delete params->cond_graph;
    delete params->body_graph;
  });
}
