#include "framework/autodiff/loop_count.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <vector>

#include "framework/autodiff/differentiated.h"
#include "framework/graph/flow.h"
#include "framework/graph/function_shapes.h"

namespace thalweg {
namespace {

constexpr int64_t kMostNodes = 100'000;   // evaluated nodes, in all iterations together
constexpr uint64_t kMostBytes = 1 << 10;  // of a value: values that decide an iteration count are small

using Values = std::unordered_map<const Node*, std::vector<Tensor>>;

// The nodes that some results of a function depend on, to be evaluated repeatedly.
class Slice {
 public:
  Slice(const Function& f, std::vector<size_t> results) : f_(f), results_(std::move(results)) {}

  // Returns false if they cannot be evaluated now.
  bool Find() {
    std::set<int32_t> needed;
    std::vector<const Node*> todo;
    for (size_t o : results_) todo.push_back(f_.results()[o].node);
    while (!todo.empty()) {
      const Node& n = *todo.back();
      todo.pop_back();
      if (n.op().role == "placeholder" || !needed.insert(n.id()).second) continue;
      if (n.op().stateful || n.op().once || n.runs_as() || FlowOf(n) != Flow::kNone || CallsFunctions(n.op())) return false;
      for (const Edge& e : n.inputs()) todo.push_back(e.node);
    }
    for (int32_t id : needed) nodes_.push_back(f_.body().node(id));
    return true;
  }

  int64_t size() const { return int64_t(nodes_.size()) + 1; }

  // Sets the results, each at its index. Returns false if a node cannot be evaluated.
  bool Run(const std::vector<Tensor>& args, std::vector<Tensor>* results) const {
    Values made;
    for (size_t i = 0; i < args.size(); ++i) made[f_.args()[i].node] = {args[i]};
    for (const Node* n : nodes_) {
      if (!Evaluate(*n, &made)) return false;
    }
    for (size_t o : results_) {
      const Edge& e = f_.results()[o];
      (*results)[o] = made[e.node][size_t(e.port)];
    }
    return true;
  }

 private:
  bool Evaluate(const Node& n, Values* made) const {
    std::vector<Tensor>& known = (*made)[&n];
    for (int32_t o = 0; o < n.n_out(); ++o) known.push_back(n.value(o));
    if (std::all_of(known.begin(), known.end(), [](const Tensor& t) { return bool(t); })) return true;
    std::vector<Tensor> values;
    std::vector<tw_shape> shapes;
    for (const Edge& e : n.inputs()) {
      const Tensor& value = made->at(e.node)[size_t(e.port)];
      if (!value || value.bytes() > kMostBytes) return false;
      values.push_back(value);
      shapes.push_back({value.view().dims, value.rank(), 0});
    }
    auto results = f_.body().host().Evaluate(n, shapes, values, nullptr);
    if (results.ok()) (*made)[&n] = *std::move(results);
    return results.ok();
  }

  const Function& f_;
  const std::vector<size_t> results_;
  std::vector<const Node*> nodes_;
};

// Returns the variables that decide how often the loop runs.
std::vector<size_t> Deciding(const Function& cond, const Function& body) {
  Mask decides = Dependencies(cond)[0];
  const std::vector<Mask> on = Dependencies(body);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t o = 0; o < decides.size(); ++o) {
      for (size_t i = 0; decides[o] && i < decides.size(); ++i) {
        if (!on[o][i] || decides[i]) continue;
        decides[i] = 1;
        changed = true;
      }
    }
  }
  std::vector<size_t> all;
  for (size_t i = 0; i < decides.size(); ++i) {
    if (decides[i]) all.push_back(i);
  }
  return all;
}

// Returns the truth value 1 or 0; -1 if `t` is no single truth value.
int32_t Says(const Tensor& t) {
  if (!t || t.rank() != 0) return -1;
  if (t.dtype() == TW_BOOL) return *t.as<uint8_t>() != 0;
  return t.dtype() == TW_INT32 ? *t.as<int32_t>() != 0 : -1;
}

}  // namespace

int64_t CountIterations(const Node& loop, const Function& cond, const Function& body) {
  if (cond.results().size() != 1) return -1;
  const std::vector<size_t> deciding = Deciding(cond, body);
  std::vector<Tensor> variables(body.args().size());
  for (size_t i : deciding) {
    const Edge& first = loop.inputs()[i];
    variables[i] = first.node->value(first.port);
    if (!variables[i] || variables[i].bytes() > kMostBytes) return -1;
  }
  Slice asks(cond, {0}), goes_on(body, deciding);
  if (!asks.Find() || !goes_on.Find()) return -1;
  int64_t left = kMostNodes;
  for (int64_t n = 0; (left -= asks.size() + goes_on.size()) > 0; ++n) {
    std::vector<Tensor> answer(1);
    const int32_t more = asks.Run(variables, &answer) ? Says(answer[0]) : -1;
    if (more <= 0) return more < 0 ? -1 : n;
    if (!goes_on.Run(variables, &variables)) return -1;
  }
  return -1;
}

}  // namespace thalweg
