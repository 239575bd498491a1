// The gradient of While: each iteration pushes the values that the gradient reads onto lists, and
// another loop pops them.
#include <algorithm>
#include <map>
#include <utility>

#include "framework/autodiff/call_gradient.h"
#include "framework/autodiff/differentiated.h"
#include "framework/autodiff/loop_count.h"
#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/graph/builder.h"

namespace thalweg {
namespace {

// Returns k + by, of int32.
StatusOr<Edge> AddTo(Graph* g, Edge k, int32_t by, const Node& like) {
  ASSIGN_OR_RETURN(const Edge constant, AddScalarLike(g, by, like));
  ASSIGN_OR_RETURN(const Node* sum, AddRoleLike(g, "add_n", {k, constant}, {}, like));
  return Edge{sum, 0};
}

class LoopGradient {
 public:
  explicit LoopGradient(const CallGradient& c) : c_(c) {}

  Status Run() {
    Loop loop;
    ASSIGN_OR_RETURN(loop.cond, c_.Find(c_.node().FindAttr("cond")->strings()[0]));
    ASSIGN_OR_RETURN(loop.body, c_.Find(c_.node().FindAttr("body")->strings()[0]));
    const size_t n = size_t(c_.node().n_in());
    if (loop.body->args().size() != n || loop.body->results().size() != n) {
      return InvalidArgument("function ", loop.body->title(), " does not fit the node's ", n, " loop variables");
    }
    RETURN_IF_ERROR(FindVarying(&loop));
    if (std::find(loop.varies.begin(), loop.varies.end(), 1) == loop.varies.end()) return Status();
    Mask has_dy = loop.varies;
    for (size_t o = 0; o < n; ++o) has_dy[o] = has_dy[o] && HasOwnGradient(loop.body->result_type(o));
    ASSIGN_OR_RETURN(const Differentiated d, Differentiate(has_dy, &loop));
    ASSIGN_OR_RETURN(const Node* forward, ForwardLoop(loop, d));
    return BackwardLoop(loop, d, *forward);
  }

 private:
  // The parts of the loop that its gradient needs. `varies`: the variables whose gradient is passed
  // from iteration to iteration.
  struct Loop {
    std::shared_ptr<const Function> cond, body;
    std::vector<uint8_t> varies;
    std::vector<Edge> stored;       // values of the body, each pushed onto a list
    std::vector<size_t> unchanged;  // arguments that the gradient reads and that do not change between iterations
  };

  // Differentiates the body, and sets the values that the loop stores, as far as their budget
  // allows.
  StatusOr<Differentiated> Differentiate(const Mask& has_dy, Loop* loop) const {
    const Keeping& keeping = c_.gradient().keeping;
    if (!keeping.budget || keeping.recompute) {
      ASSIGN_OR_RETURN(Differentiated d, Differentiated::Make(loop->body, has_dy, loop->varies, keeping));
      Store(d, loop);
      return d;
    }
    const int64_t iterations = CountIterations(c_.node(), *loop->cond, *loop->body);
    uint64_t inside = iterations > 0 ? *keeping.budget / uint64_t(iterations) : 0;
    ASSIGN_OR_RETURN(Differentiated d, Differentiated::Make(loop->body, has_dy, loop->varies, {false, &inside}));
    Store(d, loop);
    uint64_t bytes = 0;
    if (BytesStored(*loop, iterations, &bytes) && bytes <= *keeping.budget) {
      *keeping.budget -= bytes;
      return d;
    }
    ASSIGN_OR_RETURN(d, Differentiated::Make(loop->body, has_dy, loop->varies, {true, nullptr}));
    Store(d, loop);
    return d;
  }

  void Store(const Differentiated& d, Loop* loop) const {
    loop->stored = d.captures();
    loop->unchanged.clear();
    for (const Edge& e : d.used_args()) {
      const size_t i = size_t(std::find(d.args().begin(), d.args().end(), e) - d.args().begin());
      if (Unchanged(*loop->body, i)) {
        loop->unchanged.push_back(i);
      } else {
        loop->stored.push_back(e);
      }
    }
  }

  // Computes the bytes in the lists at the end; returns false if they are unknown. iterations is -1
  // if unknown.
  static bool BytesStored(const Loop& loop, int64_t iterations, uint64_t* bytes) {
    for (const Edge& e : loop.stored) {
      const Shape& shape = e.node->shape(e.port);
      const DTypeInfo* info = FindDType(TypeOf(e));
      if (iterations < 0 || !shape.known() || !info || !info->plain) return false;
      const auto each = CountBytes(shape.dims().data(), shape.rank(), TypeOf(e));
      int64_t all = 0;
      if (!each.ok() || !CheckedMul(*each, iterations, &all) || uint64_t(all) > UINT64_MAX - *bytes) return false;
      *bytes += uint64_t(all);
    }
    return true;
  }

  bool Unchanged(const Function& body, size_t i) const { return body.results()[i] == body.args()[i]; }

  // A variable's gradient matters if the variable depends on an input whose gradient is wanted, and
  // an output with a gradient depends on it.
  Status FindVarying(Loop* loop) const {
    const size_t n = size_t(c_.node().n_in());
    const std::vector<Mask> on = Dependencies(*loop->body);
    Mask wanted(n), given(n);
    for (size_t i = 0; i < n; ++i) {
      wanted[i] = c_.gradient().wants_dx(int32_t(i));
      given[i] = c_.HasDy(int32_t(i));
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t o = 0; o < n; ++o) {
        for (size_t i = 0; i < n; ++i) {
          if (!on[o][i] || !HasOwnGradient(loop->body->result_type(o))) continue;
          if (wanted[i] && !wanted[o]) wanted[o] = changed = true;
          if (given[o] && !given[i]) given[i] = changed = true;
        }
      }
    }
    loop->varies.resize(n);
    for (size_t i = 0; i < n; ++i) {
      const bool handle = loop->body->arg_type(i) == TW_RESOURCE;
      loop->varies[i] = wanted[i] && given[i] && (handle || HasOwnGradient(loop->body->arg_type(i)));
      if (loop->varies[i] && handle && !Unchanged(*loop->body, i)) {
        return Unimplemented("loop variable ", i, " is a handle that changes from iteration to iteration; it has no gradient");
      }
    }
    return Status();
  }

  // Adds the loop with a count and a list for each stored value.
  StatusOr<const Node*> ForwardLoop(const Loop& loop, const Differentiated& d) {
    Graph* g = &d.graph();
    std::vector<Edge> args = d.args(), results = d.results(), more_inputs;
    ASSIGN_OR_RETURN(args.emplace_back(), AddPlaceholderLike(g, TW_INT32, Shape(std::vector<int64_t>{}), "count", c_.node()));
    ASSIGN_OR_RETURN(results.emplace_back(), AddTo(g, args.back(), 1, c_.node()));
    ASSIGN_OR_RETURN(more_inputs.emplace_back(), AddScalarLike(c_.graph(), 0, c_.node()));
    for (const Edge& e : loop.stored) {
      ASSIGN_OR_RETURN(args.emplace_back(), AddPlaceholderLike(g, TW_VARIANT, Shape(std::vector<int64_t>{}), "list", c_.node()));
      ASSIGN_OR_RETURN(const Node* pushed, AddRoleLike(g, "list_push", {args.back(), e}, {}, c_.node()));
      results.push_back({pushed, 0});
      ASSIGN_OR_RETURN(more_inputs.emplace_back(), AddListLike(c_.graph(), TypeOf(e), c_.node()));
    }
    std::map<std::string, AttrValue> changed;
    ASSIGN_OR_RETURN(const std::string body, c_.AddFunction(loop.body->name() + "_forward", d.shared_graph(), args, results, d.targets()));
    changed["body"] = AttrValue::Func(body);

    std::shared_ptr<Graph> cond = Graph::Body(*c_.graph());
    Copied copied;
    RETURN_IF_ERROR(CopyNodes(loop.cond->body(), cond.get(), &copied));
    std::vector<Edge> cond_args, answer;
    std::vector<const Node*> targets;
    for (const Edge& e : loop.cond->args()) cond_args.push_back(copied.Find(e));
    for (size_t i = cond_args.size(); i < args.size(); ++i) {
      ASSIGN_OR_RETURN(cond_args.emplace_back(), cond->AddArgument(args[i], cond->UniqueName("more")));
    }
    for (const Edge& e : loop.cond->results()) answer.push_back(copied.Find(e));
    for (const Node* t : loop.cond->targets()) targets.push_back(copied.Find(t));
    ASSIGN_OR_RETURN(const std::string cond_name, c_.AddFunction(loop.cond->name() + "_forward", cond, cond_args, answer, targets));
    changed["cond"] = AttrValue::Func(cond_name);
    if (const auto stated = c_.node().FindAttr("output_shapes")->shapes(); !stated.empty()) {
      std::vector<Shape> shapes(stated.begin(), stated.end());
      shapes.resize(shapes.size() + more_inputs.size(), Shape(std::vector<int64_t>{}));
      changed["output_shapes"] = AttrValue::Shapes(std::move(shapes));
    }
    return c_.Extended(std::move(more_inputs), std::move(changed));
  }

  // Arguments of the backward loop: the count, the gradients, the lists, the unchanged arguments.
  Status BackwardLoop(const Loop& loop, const Differentiated& d, const Node& forward) {
    std::shared_ptr<Graph> body = Graph::Body(*c_.graph());
    Graph* g = body.get();
    Copied copied;
    const size_t n = loop.varies.size();
    std::vector<Edge> in = {{&forward, int32_t(n)}}, args, results;
    ASSIGN_OR_RETURN(args.emplace_back(), AddPlaceholderLike(g, TW_INT32, Shape(std::vector<int64_t>{}), "count", c_.node()));
    ASSIGN_OR_RETURN(results.emplace_back(), AddTo(g, args[0], -1, c_.node()));
    std::vector<size_t> varying;
    for (size_t i = 0; i < n; ++i) {
      if (loop.varies[i]) varying.push_back(i);
    }
    for (size_t i : varying) {
      ASSIGN_OR_RETURN(in.emplace_back(), InitialGradient(int32_t(i)));
      const Edge like = d.dys()[i] ? d.dys()[i] : in.back();
      ASSIGN_OR_RETURN(args.emplace_back(), AddPlaceholderLike(g, TypeOf(like), like.node->shape(like.port), "dy", c_.node()));
      if (d.dys()[i]) copied.Put(d.dys()[i], args.back());
    }
    std::vector<Edge> rest;
    for (size_t j = 0; j < loop.stored.size(); ++j) {
      in.push_back({&forward, int32_t(n + 1 + j)});
      ASSIGN_OR_RETURN(args.emplace_back(), AddPlaceholderLike(g, TW_VARIANT, Shape(std::vector<int64_t>{}), "list", c_.node()));
      ASSIGN_OR_RETURN(const Node* popped, Pop(g, args.back(), loop.stored[j]));
      copied.Put(loop.stored[j], {popped, 1});
      rest.push_back({popped, 0});
    }
    for (size_t i : loop.unchanged) {
      in.push_back(c_.node().inputs()[i]);
      ASSIGN_OR_RETURN(args.emplace_back(), g->AddArgument(d.args()[i], g->UniqueName("unchanged")));
      copied.Put(d.args()[i], args.back());
      rest.push_back(args.back());
    }
    RETURN_IF_ERROR(d.CopyBackward(g, &copied));
    for (size_t k = 0; k < varying.size(); ++k) {
      ASSIGN_OR_RETURN(results.emplace_back(), NextGradient(g, d, varying[k], args[1 + k], &copied));
    }
    results.insert(results.end(), rest.begin(), rest.end());
    ASSIGN_OR_RETURN(const Node* backward, AddBackwardLoop(loop, body, std::move(in), args, results));
    for (size_t k = 0; k < varying.size(); ++k) c_.gradient().dx(int32_t(varying[k]), {backward, int32_t(1 + k)});
    return Status();
  }

  StatusOr<Edge> InitialGradient(int32_t i) const {
    const Edge& input = c_.node().inputs()[size_t(i)];
    if (c_.is_given(i) && (c_.gradient().has_dy(i) || !IsHandle(input))) return c_.gradient().dy(i);
    return ZerosLike(c_.graph(), IsHandle(input) ? input : Edge{&c_.node(), i}, c_.node());
  }

  StatusOr<const Node*> Pop(Graph* g, Edge list, const Edge& like) const {
    const Shape& shape = like.node->shape(like.port);
    std::vector<int32_t> dims(shape.dims().begin(), shape.dims().end());
    Tensor t;
    if (shape.has_rank()) {
      ASSIGN_OR_RETURN(t, Tensor::Vector<int32_t>(TW_INT32, dims));
    } else {
      ASSIGN_OR_RETURN(t, ScalarTensor(TW_INT32, -1));
    }
    ASSIGN_OR_RETURN(const Edge element_shape, g->AddConst(t, g->UniqueName("element_shape"), c_.node().place()));
    return AddRoleLike(g, "list_pop", {list, element_shape}, {{"element_dtype", AttrValue::Type(TypeOf(like))}}, c_.node());
  }

  // Returns the gradient that arrives at loop variable i at the beginning of the iteration. The
  // gradient of a variable behind a handle adds up over the iterations.
  StatusOr<Edge> NextGradient(Graph* g, const Differentiated& d, size_t i, Edge dy, Copied* copied) const {
    const Edge dx = d.dxs()[i] ? copied->Find(d.dxs()[i]) : Edge();
    if (d.dys()[i]) return dx ? StatusOr<Edge>(dx) : ZerosLike(g, dy, c_.node());
    if (!dx) return dy;
    ASSIGN_OR_RETURN(const Node* sum, AddRoleLike(g, "add_n", {dy, dx}, {}, c_.node()));
    return Edge{sum, 0};
  }

  StatusOr<const Node*> AddBackwardLoop(const Loop& loop, std::shared_ptr<Graph> body, std::vector<Edge> in, const std::vector<Edge>& args,
                                        const std::vector<Edge>& results) {
    const bool is_stateful = IsStateful(*body);
    std::shared_ptr<Graph> cond = Graph::Body(*c_.graph());
    std::vector<Edge> cond_args;
    for (const Edge& e : args) {
      ASSIGN_OR_RETURN(cond_args.emplace_back(), cond->AddArgument(e, cond->UniqueName("x")));
    }
    ASSIGN_OR_RETURN(const std::string body_name, c_.AddFunction(loop.body->name() + "_backward", std::move(body), args, results));
    ASSIGN_OR_RETURN(const std::string cond_name, c_.AddFunction(loop.cond->name() + "_backward", cond, cond_args, {cond_args[0]}));
    ASSIGN_OR_RETURN(const OpSchema* op, c_.Op(is_stateful));
    return AddNodeLike(c_.graph(), *op, c_.scope() + op->name, std::move(in),
                       {{"cond", AttrValue::Func(cond_name)}, {"body", AttrValue::Func(body_name)}}, c_.node());
  }

  const CallGradient& c_;
};

}  // namespace

Status AddLoopGradient(const CallGradient& c) { return LoopGradient(c).Run(); }

}  // namespace thalweg
