// Level 2: the plugin's own ops: checks the promises of their shape rules, and their gradients.
#include <cmath>
#include <cstring>

#include "framework/autodiff/autodiff.h"
#include "framework/base/dtype.h"
#include "framework/graph/shape_inference.h"
#include "framework/graph/size_limits.h"
#include "framework/session/session.h"
#include "tools/conformance/cases.h"
#include "tools/conformance/levels.h"
#include "tools/conformance/numbers.h"

namespace thalweg::conformance {
namespace {

// ---- shape rules ----

StatusOr<std::vector<Shape>> Ask(const Node& node, const std::vector<Shape>& shapes, const std::vector<Tensor>& values,
                                 const HeldBy& held) {
  std::vector<tw_shape> in;
  for (const Shape& s : shapes) in.push_back(s.c());
  ShapeAnswer answer;
  std::vector<HandleInfo> infos;
  RETURN_IF_ERROR(InferShapes(node, in, values, InfosOf(held, shapes.size(), &infos), &answer));
  return answer.shapes;
}

std::string Contradicts(const std::vector<Shape>& promised, const std::vector<Shape>& real) {
  for (size_t o = 0; o < real.size(); ++o) {
    if (!promised[o].Admits(real[o])) return StrCat("output ", o, " was promised as ", promised[o].text(), " and is ", real[o].text());
  }
  return "";
}

// Calls the shape rule with all facts, then with one fact less at a time.
Outcome PromisesLess(World* world, const Case& c) {
  Graph graph(world->runtime_ptr());
  ASSIGN_OR_RETURN(const Node* node, AddCase(&graph, c, false));
  std::vector<Shape> known;
  for (const Tensor& t : c.inputs) known.push_back(t.shape());
  ASSIGN_OR_RETURN(std::vector<Shape> real, Ask(*node, known, ValuesOf(c), c.held));
  const std::vector<Tensor> no_values(c.inputs.size());
  auto compare = [&](const std::vector<Shape>& shapes, const HeldBy& held, const std::string& what) -> Outcome {
    auto promised = Ask(*node, shapes, no_values, held);
    if (!promised.ok()) return Fail(c.text(), ": ", what, ", it is refused: ", Message(promised.status()));
    if (std::string s = Contradicts(*promised, real); !s.empty()) return Fail(c.text(), ": ", what, ", ", s);
    return {};
  };
  RETURN_UNLESS_PASSED(compare(known, c.held, "without the values"));
  if (!c.held.empty()) RETURN_UNLESS_PASSED(compare(known, {}, "without the variables"));
  for (size_t i = 0; i < known.size(); ++i) {
    std::vector<Shape> less = known;
    less[i] = Shape();
    RETURN_UNLESS_PASSED(compare(less, c.held, StrCat("without the rank of input ", i)));
    for (int32_t d = 0; d < known[i].rank(); ++d) {
      std::vector<int64_t> dims(known[i].dims().begin(), known[i].dims().end());
      dims[size_t(d)] = -1;
      less[i] = Shape(dims);
      RETURN_UNLESS_PASSED(compare(less, c.held, StrCat("without size ", d, " of input ", i)));
    }
  }
  return {};
}

Outcome ShapesHold(World* world, CaseBook* book, const OpSchema& op) {
  std::string why;
  const std::vector<Case> cases = book->ForOp(op, 0, &why);
  for (const Case& c : cases) {
    At(c.text());
    RETURN_UNLESS_PASSED(PromisesLess(world, c));
  }
  return cases.empty() ? Skip(why) : Outcome();
}

// ---- limits of sizes ----

// Runs the op, and compares the sizes of the results with their limits.
Outcome KeepsLimits(World* world, const Case& c) {
  auto graph = std::make_shared<Graph>(world->runtime_ptr());
  ASSIGN_OR_RETURN(const Node* node, AddCase(graph.get(), c));
  CallableSpec spec;
  spec.feeds.assign(node->inputs().begin(), node->inputs().end());
  for (int32_t o = 0; o < node->n_out(); ++o) spec.fetches.push_back({node, o});
  ASSIGN_OR_RETURN(auto session, Session::Create(graph, SessionOptions()));
  ASSIGN_OR_RETURN(auto callable, session->MakeCallable(spec));
  std::vector<Tensor> out(spec.fetches.size());
  RETURN_IF_ERROR(callable->Run(c.inputs.data(), RunOptions(), out.data()));
  std::vector<Shape> known;
  for (const Tensor& t : c.inputs) known.push_back(t.shape());
  ASSIGN_OR_RETURN(const std::vector<Shape> inferred, Ask(*node, known, ValuesOf(c), c.held));
  const std::vector<Shape> limits = LimitOutputs(*node, inferred, known, ValuesOf(c));
  for (size_t o = 0; o < out.size(); ++o) {
    for (int32_t k = 0; k < out[o].rank() && limits[o].rank() == out[o].rank(); ++k) {
      if (limits[o].dim(k) >= 0 && out[o].dim(k) > limits[o].dim(k)) {
        return Fail(c.text(), ": axis ", k, " of output ", o, " has size ", out[o].dim(k), " and the limit ", limits[o].dim(k));
      }
    }
  }
  return {};
}

// Asks for the shapes with one input smaller at a time. A rule may refuse the smaller input.
Outcome Grows(World* world, const Case& c) {
  Graph graph(world->runtime_ptr());
  ASSIGN_OR_RETURN(const Node* node, AddCase(&graph, c, false));
  std::vector<Shape> known;
  for (const Tensor& t : c.inputs) known.push_back(t.shape());
  ASSIGN_OR_RETURN(const std::vector<Shape> real, Ask(*node, known, ValuesOf(c), c.held));
  for (size_t i = 0; i < known.size(); ++i) {
    for (int32_t d = 0; d < known[i].rank(); ++d) {
      std::vector<int64_t> dims(known[i].dims().begin(), known[i].dims().end());
      if (--dims[size_t(d)] < 0) continue;
      std::vector<Shape> less = known;
      less[i] = Shape(dims);
      std::vector<Tensor> values = ValuesOf(c);
      values[i].reset();
      const auto smaller = Ask(*node, less, values, c.held);
      for (size_t o = 0; smaller.ok() && o < real.size(); ++o) {
        for (int32_t k = 0; k < real[o].rank() && (*smaller)[o].rank() == real[o].rank(); ++k) {
          if (real[o].dim(k) < 0 || (*smaller)[o].dim(k) <= real[o].dim(k)) continue;
          return Fail(c.text(), ": axis ", k, " of output ", o, " grows from ", real[o].dim(k), " to ", (*smaller)[o].dim(k),
                      " when input ", i, " shrinks from ", known[i].text(), " to ", less[i].text());
        }
      }
    }
  }
  return {};
}

Outcome LimitsHold(World* world, CaseBook* book, const OpSchema& op) {
  std::string why;
  const SizeHints hints = SizeHintsOf(op);
  const std::vector<Case> cases = book->ForOp(op, 0, &why);
  for (const Case& c : cases) {
    At(c.text());
    if (!hints.limits.empty()) RETURN_UNLESS_PASSED(KeepsLimits(world, c));
    if (hints.grows) RETURN_UNLESS_PASSED(Grows(world, c));
  }
  return cases.empty() ? Skip(why) : Outcome();
}

// ---- gradients ----

bool IsReal(uint32_t dtype) { return dtype == TW_FLOAT || dtype == TW_DOUBLE; }
double Weight(uint64_t i) { return 0.5 + double((i * 3) % 5) / 4; }
double Smooth(uint64_t i) { return 0.3 + double((i * 7 + 2) % 9) / 8; }

// Two callables over the feeds of one case: the op's outputs, and the gradients of its real inputs.
struct Differentiated {
  std::shared_ptr<Graph> graph, backward_graph;
  std::unique_ptr<Session> session, backward_session;
  std::unique_ptr<Callable> forward, backward;
  const Node* node = nullptr;
  std::vector<Edge> ys;                // real outputs
  std::vector<Tensor> dys;             // per real output
  std::vector<size_t> real;            // indices of real inputs
  std::vector<size_t> inputs, others;  // those of `real` with a gradient; those without
};

// Makes the callable of the op alone, and weights for its outputs. Another rule checks errors of this
// call.
Status MakeForward(World* world, const Case& c, Differentiated* d) {
  d->graph = std::make_shared<Graph>(world->runtime_ptr());
  ASSIGN_OR_RETURN(d->node, AddCase(d->graph.get(), c));
  CallableSpec forward;
  forward.feeds.assign(d->node->inputs().begin(), d->node->inputs().end());
  for (int32_t o = 0; o < d->node->n_out(); ++o) {
    if (IsReal(d->node->out_type(o))) d->ys.push_back({d->node, o});
  }
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    if (IsReal(c.inputs[i].dtype())) d->real.push_back(i);
  }
  if (d->ys.empty()) return NotFound("no output of ", c.text(), " is float or double");
  if (d->real.empty()) return NotFound("no input of ", c.text(), " is float or double");
  forward.fetches = d->ys;
  ASSIGN_OR_RETURN(d->session, Session::Create(d->graph, SessionOptions()));
  ASSIGN_OR_RETURN(d->forward, d->session->MakeCallable(forward));
  std::vector<Tensor> out(d->ys.size());
  RETURN_IF_ERROR(d->forward->Run(c.inputs.data(), RunOptions(), out.data()));
  for (const Tensor& y : out) {
    ASSIGN_OR_RETURN(Tensor weights, TensorOf(y.dtype(), y.shape(), Weight));
    d->dys.push_back(std::move(weights));
  }
  return Status();
}

// Makes the callable of the gradients in a graph of its own, because the forward session already uses
// its graph.
Status MakeBackward(World* world, const Case& c, Differentiated* d) {
  auto graph = std::make_shared<Graph>(world->runtime_ptr());
  ASSIGN_OR_RETURN(const Node* node, AddCase(graph.get(), c));
  CallableSpec backward;
  backward.feeds.assign(node->inputs().begin(), node->inputs().end());
  std::vector<Edge> ys, dys, xs;
  for (size_t o = 0; o < d->ys.size(); ++o) {
    ASSIGN_OR_RETURN(Edge dy, graph->AddConst(d->dys[o]));
    ys.push_back({node, d->ys[o].port});
    dys.push_back(dy);
  }
  for (size_t i : d->real) xs.push_back(node->inputs()[i]);
  std::vector<Gradient> gradients;
  RETURN_IF_ERROR(AddGradients(graph.get(), ys, dys, xs, &gradients));
  for (size_t i = 0; i < xs.size(); ++i) {
    if (!gradients[i].values) {
      d->others.push_back(d->real[i]);
      continue;
    }
    ASSIGN_OR_RETURN(Edge dense, Densify(graph.get(), gradients[i], xs[i], "dense"));
    backward.fetches.push_back(dense);
    d->inputs.push_back(d->real[i]);
  }
  if (d->inputs.empty()) return Status();
  d->backward_graph = graph;
  ASSIGN_OR_RETURN(d->backward_session, Session::Create(graph, SessionOptions()));
  ASSIGN_OR_RETURN(d->backward, d->backward_session->MakeCallable(backward));
  return Status();
}

// Returns the sum over all outputs of value times weight.
StatusOr<double> Loss(const Differentiated& d, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> out(d.dys.size());
  RETURN_IF_ERROR(d.forward->Run(inputs.data(), RunOptions(), out.data()));
  double sum = 0;
  for (size_t o = 0; o < out.size(); ++o) {
    const std::vector<double> y = NumbersOf(out[o]), w = NumbersOf(d.dys[o]);
    for (size_t i = 0; i < y.size(); ++i) sum += y[i] * w[i];
  }
  return sum;
}

StatusOr<double> Moved(const Differentiated& d, const std::vector<Tensor>& inputs, size_t input, uint64_t element, double by) {
  std::vector<Tensor> moved = inputs;
  ASSIGN_OR_RETURN(moved[input], inputs[input].Clone());
  if (inputs[input].dtype() == TW_DOUBLE) {
    moved[input].as<double>()[element] += by;
  } else {
    moved[input].as<float>()[element] += float(by);
  }
  return Loss(d, moved);
}

// Returns the numeric derivative of the loss with respect to one element.
StatusOr<double> Slope(const Differentiated& d, const std::vector<Tensor>& inputs, size_t input, uint64_t element) {
  if (element >= inputs[input].count()) return 0.0;
  const double step = inputs[input].dtype() == TW_DOUBLE ? 1e-5 : 1e-2;
  ASSIGN_OR_RETURN(double more, Moved(d, inputs, input, element, step));
  ASSIGN_OR_RETURN(double less, Moved(d, inputs, input, element, -step));
  return (more - less) / (2 * step);
}

Outcome CheckGradient(World* world, Case c) {
  for (Tensor& t : c.inputs) {
    if (!IsReal(t.dtype()) || c.author) continue;
    ASSIGN_OR_RETURN(t, TensorOf(t.dtype(), t.shape(), Smooth));  // away from the corners of most functions
  }
  Differentiated d;
  if (Status s = MakeForward(world, c, &d); !s.ok()) return Skip(Message(s));
  if (Status s = MakeBackward(world, c, &d); !s.ok()) return Fail(c.text(), ": ", Message(s));
  for (size_t input : d.others) {
    ASSIGN_OR_RETURN(const double slope, Slope(d, c.inputs, input, 0));
    if (std::fabs(slope) < 1e-3) continue;
    return Fail(c.text(), ": the gradient gives no dx for input ", input, "; numerically that of its element 0 is ", slope);
  }
  if (d.inputs.empty()) return Outcome();  // no input affects the outputs
  std::vector<Tensor> gradients(d.inputs.size());
  if (Status s = d.backward->Run(c.inputs.data(), RunOptions(), gradients.data()); !s.ok()) return Fail(c.text(), ": ", Message(s));
  for (size_t g = 0; g < d.inputs.size(); ++g) {
    const size_t input = d.inputs[g];
    const Tensor& x = c.inputs[input];
    if (!(gradients[g].shape() == x.shape())) {
      return Fail(c.text(), ": the gradient of input ", input, " has shape ", gradients[g].shape().text(), " instead of ",
                  x.shape().text());
    }
    const double within = x.dtype() == TW_DOUBLE ? 1e-4 : 3e-2;
    const std::vector<double> got = NumbersOf(gradients[g]);
    for (uint64_t i = 0; i < std::min<uint64_t>(x.count(), 6); ++i) {
      ASSIGN_OR_RETURN(const double want, Slope(d, c.inputs, input, i));
      if (!(std::fabs(got[i] - want) <= within * (1 + std::fabs(want)))) {
        return Fail(c.text(), ": the gradient of element ", i, " of input ", input, " is ", got[i], "; numerically it is ", want);
      }
    }
  }
  return {};
}

Outcome GradientHolds(World* world, CaseBook* book, const OpSchema& op) {
  if (!op.def.gradient) return None(op.no_gradient.empty() ? "it has no gradient" : op.no_gradient);
  size_t checked = 0;
  std::string why;
  for (uint32_t dtype : {TW_DOUBLE, TW_FLOAT}) {
    for (const Case& c : book->ForOp(op, dtype, &why)) {
      At(c.text());
      Outcome o = CheckGradient(world, c);
      if (o.kind == Outcome::kFail) return o;
      checked += o.passed();
      if (!o.passed()) why = o.why;
    }
    if (checked) break;
  }
  return checked ? Outcome() : Skip(why);
}

}  // namespace

void CheckOps(Run& run, World& world) {
  if (!world.play().name.empty() && !world.play().hasty) return;
  CaseBook book(&world, nullptr, run.options().case_file.get(), run.options().full ? Effort::kFull : Effort::kUsual);
  for (const OpSchema* op : world.Ops()) {
    run.Check(203, op->name, [&] { return ShapesHold(&world, &book, *op); });
    if (const SizeHints hints = SizeHintsOf(*op); hints.grows || !hints.limits.empty()) {
      run.Check(219, op->name, [&] { return LimitsHold(&world, &book, *op); });
    }
    run.Check(204, op->name, [&] { return GradientHolds(&world, &book, *op); });
  }
}

}  // namespace thalweg::conformance
