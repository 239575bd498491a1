// Converts a loop made of Enter, Merge, Switch, NextIteration and Exit to While.
#include <algorithm>
#include <utility>

#include "framework/autodiff/form_builder.h"
#include "framework/base/shown.h"

namespace thalweg {
namespace {

class LoopForm {
 public:
  explicit LoopForm(const FormBuilder& b) : b_(b) {}

  Status Run(const Node& exit) {
    ASSIGN_OR_RETURN(const FlowPlace at, b_.flow().At(exit));
    const FlowLoop& loop = b_.flow().loops()[size_t(at.frame)];
    if (!(loop.outer == FlowPlace())) return Unstructured(exit, "what it gives lies in a branch or loop");
    if (!loop.cond) return Unstructured(exit, StrCat("frame '", Shown(loop.name), "' has no LoopCond"));
    Variables v;
    NodeSet before;
    RETURN_IF_ERROR(FindVariables(loop, &v, &before));
    RETURN_IF_ERROR(b_.WantNoCycle(v.first, before, loop.exits));
    for (const Node* x : loop.exits) {
      if (NumberOf(v, *x) < 0) return Unstructured(*x, "it is no variable of its loop that leaves here");
    }
    std::vector<const Node*> waits, cond_waits(loop.cond->controls());
    for (const Node* m : loop.merges) {
      const Node* next = m->back(0) ? m->back(0) : m->back(1);
      waits.insert(waits.end(), next->controls().begin(), next->controls().end());
    }
    std::vector<Edge> next;
    for (const Edge& e : v.next) {
      if (e) next.push_back(e);
    }
    ASSIGN_OR_RETURN(const FormInside body, b_.Collect(next, waits, {at.frame, {}}, &loop));
    ASSIGN_OR_RETURN(const FormInside cond, b_.Collect(loop.cond->inputs(), cond_waits, {at.frame, {}}, &loop));
    for (const Node* n : cond.nodes) {
      if (n->op().stateful && body.nodes.count(n)) return Unstructured(*n, "it has state and is used by its loop's condition and body");
    }
    return AddWhile(loop, exit, v, before, body, waits, cond, cond_waits);
  }

 private:
  // The loop's variables, then its invariants.
  struct Variables {
    std::vector<Edge> inner, first, next;  // next: empty for an invariant
    std::vector<Shape> shapes;
  };

  // Returns the number of the variable that leaves the loop at `exit`; -1 if there is none.
  static int32_t NumberOf(const Variables& v, const Node& exit) {
    const Edge& from = exit.inputs()[0];
    if (!FlowStructure::IsOfLoop(*from.node) || from.port != 0) return -1;
    const auto at = std::find(v.inner.begin(), v.inner.end(), from.node->inputs()[0]);
    return at == v.inner.end() ? -1 : int32_t(at - v.inner.begin());
  }

  Status FindVariables(const FlowLoop& loop, Variables* v, NodeSet* before) const {
    std::vector<const Node*> merges(loop.merges), enters(loop.enters);
    std::sort(merges.begin(), merges.end(), NodeLess());
    std::sort(enters.begin(), enters.end(), NodeLess());
    for (const Node* m : merges) {
      const int32_t i = m->back(0) ? 0 : 1;
      v->inner.push_back({m, 0});
      v->first.push_back(m->inputs()[size_t(1 - i)].node->inputs()[0]);
      v->next.push_back(m->back(i)->inputs()[0]);
    }
    for (const Node* e : enters) {
      before->insert(e->controls().begin(), e->controls().end());
      if (!e->FindAttr("is_constant")->bools()[0]) continue;
      v->inner.push_back({e, 0});
      v->first.push_back(e->inputs()[0]);
      v->next.push_back({});
    }
    for (const Edge& e : v->first) v->shapes.push_back(e.node->shape(e.port));
    return Status();
  }

  Status AddWhile(const FlowLoop& loop, const Node& exit, Variables& v, const NodeSet& before, const FormInside& inside,
                  const std::vector<const Node*>& waits, const FormInside& cond_inside, const std::vector<const Node*>& cond_waits) {
    const std::string name = b_.graph()->UniqueName(exit.name() + "_while");
    ASSIGN_OR_RETURN(const auto made, MakeBody(&v, inside));
    const auto& [body, results] = made;
    std::map<std::string, AttrValue> attrs;
    ASSIGN_OR_RETURN(const std::string body_name, b_.AddFunction(name + "_body", body, results, waits));
    ASSIGN_OR_RETURN(FormBody cond, MakeArguments(v));
    RETURN_IF_ERROR(b_.Copy(cond_inside, &cond));
    const Edge answer = cond.copied.Find(loop.cond->inputs()[0]);
    if (!answer) return Unstructured(*loop.cond, "its condition is not computed in its loop");
    ASSIGN_OR_RETURN(const std::string cond_name, b_.AddFunction(name + "_cond", cond, {answer}, cond_waits));
    attrs["body"] = AttrValue::Func(body_name);
    attrs["cond"] = AttrValue::Func(cond_name);
    attrs["parallel_iterations"] = *loop.enters[0]->FindAttr("parallel_iterations");
    ASSIGN_OR_RETURN(const Node* form,
                     b_.AddForm("while", inside.stateful() || cond_inside.stateful(), exit, v.first, before, std::move(attrs), name));
    for (const Node* x : loop.exits) b_.graph()->Replace({x, 0}, {form, NumberOf(v, *x)});
    return Status();
  }

  StatusOr<FormBody> MakeArguments(const Variables& v) const {
    FormBody body{Graph::Body(*b_.graph()), {}, {}};
    for (size_t i = 0; i < v.inner.size(); ++i) {
      ASSIGN_OR_RETURN(body.args.emplace_back(), b_.AddArgument(body.graph.get(), v.first[i], v.shapes[i]));
      body.copied.Put(v.inner[i], body.args.back());
    }
    return body;
  }

  // Makes the body and its results. If a variable changes its shape, it gets a shape that holds in
  // every iteration.
  StatusOr<std::pair<FormBody, std::vector<Edge>>> MakeBody(Variables* v, const FormInside& inside) const {
    constexpr int kTries = 3;  // after that, a shape that still changes becomes unknown
    for (int tried = 0;; ++tried) {
      ASSIGN_OR_RETURN(FormBody body, MakeArguments(*v));
      RETURN_IF_ERROR(b_.Copy(inside, &body));
      std::vector<Edge> results;
      bool holds = true;
      for (size_t i = 0; i < v->inner.size(); ++i) {
        results.push_back(v->next[i] ? body.copied.Find(v->next[i]) : body.args[i]);
        if (!results[i]) return Unstructured(*v->inner[i].node, "its next value is not computed in its loop");
        const Shape& next = results[i].node->shape(results[i].port);
        if (Holds(v->shapes[i], next)) continue;
        holds = false;
        v->shapes[i] = tried < kTries ? Widened(v->shapes[i], next) : Shape();
      }
      if (holds) return std::pair(std::move(body), std::move(results));
    }
  }

  // Returns true if every value of shape s satisfies `wide`.
  static bool Holds(const Shape& wide, const Shape& s) {
    if (!wide.has_rank()) return true;
    if (!s.has_rank() || s.rank() != wide.rank()) return false;
    for (int32_t k = 0; k < s.rank(); ++k) {
      if (wide.dim(k) >= 0 && wide.dim(k) != s.dim(k)) return false;
    }
    return true;
  }

  static Shape Widened(const Shape& a, const Shape& b) {
    if (!b.has_rank() || a.rank() != b.rank()) return Shape();
    std::vector<int64_t> dims;
    for (int32_t k = 0; k < a.rank(); ++k) dims.push_back(a.dim(k) == b.dim(k) ? a.dim(k) : -1);
    return Shape(dims);
  }

  const FormBuilder& b_;
};

}  // namespace

Status FormLoop(const FormBuilder& b, const Node& exit) { return LoopForm(b).Run(exit); }

}  // namespace thalweg
