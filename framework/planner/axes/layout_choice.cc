#include "framework/planner/axes/layout_choice.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "framework/base/checked.h"
#include "framework/planner/axes/layout_form.h"

namespace thalweg {
namespace {

// More than any memory holds, and small enough to be added for every value of a hostile graph
// without overflow.
constexpr int64_t kMost = int64_t{1} << 45;

int64_t BytesOf(const WorkNode& n, int32_t port) {
  const Shape& s = n.shapes[size_t(port)];
  if (!s.known()) return 0;
  auto bytes = CountBytes(s.dims().data(), s.rank(), n.out_types[size_t(port)]);
  return bytes.ok() ? int64_t(std::min<uint64_t>(uint64_t(*bytes), kMost)) : 0;
}

double ElementsOf(const Shape& s) {
  double count = s.known() ? 1 : 0;
  for (int64_t d : s.dims()) count *= double(d);
  return count;
}

// Estimates the multiply-adds of a product of the two largest inputs: for matrices [m, k] and [k,
// n] they are the square root of the product of all three sizes, m k * k n * m n; a convolution
// does no less than that.
double WorkOf(const WorkGraph& w, const WorkNode& n) {
  std::vector<double> in;
  for (const WorkEdge& e : n.in) in.push_back(ElementsOf(w.nodes[size_t(e.node)].shapes[size_t(e.port)]));
  double out = 0;
  for (const Shape& s : n.shapes) out = std::max(out, ElementsOf(s));
  std::sort(in.rbegin(), in.rend());
  return in.size() < 2 ? 0 : std::sqrt(in[0] * in[1] * out);
}

const std::string* FormatOf(const WorkNode& n) {
  if (!n.node || n.dead || n.constant || n.part || !n.kernel || n.node->op().axes.format < 0) return nullptr;
  return &n.node->attrs()[size_t(n.node->op().axes.format)].strings()[0];
}

bool Prefers(const KernelDef& kernel, const std::string& order) {
  const auto& all = kernel.spec.prefers;
  return std::find(all.begin(), all.end(), order) != all.end();
}

class Chooser {
 public:
  Chooser(const WorkGraph& w, LayoutChoice* choice) : w_(w), c_(*choice), gain_(w.nodes.size(), 0), part_(w.nodes.size()) {}

  void Run(const std::string& from) {
    LayoutForms forms(w_, *c_.transpose, from, c_.to, c_.order);
    may_.resize(w_.nodes.size());
    for (size_t i = 0; i < w_.nodes.size(); ++i) {
      LayoutChoice::Form form;
      may_[i] = forms.Find(w_.nodes[i], &form);
      if (!may_[i]) form = LayoutChoice::Form();
      c_.forms.push_back(std::move(form));
      if (!may_[i] || !FormatOf(w_.nodes[i]) || !Prefers(*c_.forms[i].kernel, c_.to)) continue;
      gain_[i] = int64_t(std::min(WorkOf(w_, w_.nodes[i]) / kWorkPerByte, double(kMost)));
      c_.forms[i].turned = true;
    }
    FindValues();
    if (std::any_of(gain_.begin(), gain_.end(), [](int64_t g) { return g > 0; })) {
      Improve(/*all=*/false);  // a node that gains may pay only after others have joined it
      Improve(/*all=*/true);
    }
    DropWhatDoesNotPay();
    c_.any = std::any_of(c_.forms.begin(), c_.forms.end(), [](const auto& f) { return f.turned; });
  }

 private:
  struct Reader {
    int32_t node = -1;    // -1 for a fetch
    bool turns = false;   // it reads the turned value if it is turned
    bool either = false;  // it transposes the value itself, and takes it in any order
    bool undoes = false;  // and its own order is the turned one
  };
  struct Value {
    WorkEdge made;
    int64_t bytes = 0;
    bool free = false;    // turning it moves no bytes
    bool undone = false;  // its maker is the transpose that turning undoes, so nothing is left to do
    std::vector<Reader> readers;
  };

  void FindValues() {
    for (const WorkNode& n : w_.nodes) {
      first_.push_back(int32_t(values_.size()));
      for (int32_t o = 0; o < int32_t(n.out_types.size()); ++o) {
        Value& v = values_.emplace_back();
        v.made = {int32_t(first_.size()) - 1, o};
        v.bytes = BytesOf(n, o);
        v.free = n.constant || (!n.varies && n.shapes[size_t(o)].known() && LiesTheSame(n.shapes[size_t(o)]));
        const AxisOrder given = OrderGiven(w_, n);
        v.undone = given.size() == c_.order.size() && IsInOrder(Composed(given, c_.order));
      }
    }
    const AxisOrder back = Inverse(c_.order);
    for (size_t i = 0; i < w_.nodes.size(); ++i) {
      const WorkNode& n = w_.nodes[i];
      if (!n.node || n.dead || n.constant) continue;
      const AxisOrder given = OrderGiven(w_, n);
      const bool either = given.size() == c_.order.size();
      for (size_t k = 0; k < n.in.size(); ++k) {
        const bool turns = may_[i] && c_.forms[i].in[k] == AxisUse::kTurned;
        const bool by_axes = either && int32_t(k) == n.node->op().algebra.permuted;
        ValueAt(n.in[k]).readers.push_back({int32_t(i), turns, by_axes, by_axes && IsInOrder(Composed(back, given))});
      }
    }
    for (const WorkEdge& e : w_.fetches) ValueAt(e).readers.push_back({});
  }
  size_t Number(const WorkEdge& e) const { return size_t(first_[size_t(e.node)] + e.port); }
  Value& ValueAt(const WorkEdge& e) { return values_[Number(e)]; }

  bool IsTurned(int32_t node) const { return c_.forms[size_t(node)].turned; }
  bool MadeTurned(const Value& v) const {
    return IsTurned(v.made.node) && TurnsOutput(w_.nodes[size_t(v.made.node)], v.made.port, c_.order.size());
  }

  // Returns the bytes that are transposed for the value, less those that need no transpose any
  // more.
  int64_t CostOf(const Value& v) const {
    bool plain = false, turned = false;
    int64_t saved = 0;
    for (const Reader& r : v.readers) {
      if (r.either) {
        saved += r.undoes ? v.bytes : 0;
      } else if (r.turns && IsTurned(r.node)) {
        turned = true;
      } else {
        plain = true;
      }
    }
    if (MadeTurned(v)) return (plain ? v.bytes : 0) - saved;
    if (!turned || v.free) return 0;
    return !v.undone ? v.bytes : plain ? 0 : -v.bytes;
  }

  // Returns the values that depend on whether node i is turned.
  std::vector<size_t> Around(size_t i) const {
    std::set<size_t> all;
    const WorkNode& n = w_.nodes[i];
    for (size_t k = 0; k < n.in.size(); ++k) {
      if (c_.forms[i].in[k] == AxisUse::kTurned) all.insert(Number(n.in[k]));
    }
    for (int32_t o = 0; o < n.node->n_out(); ++o) {
      if (TurnsOutput(n, o, c_.order.size())) all.insert(Number({int32_t(i), o}));
    }
    return {all.begin(), all.end()};
  }
  int64_t CostAround(size_t i, const std::vector<size_t>& values) const {
    int64_t cost = IsTurned(int32_t(i)) ? -gain_[i] : 0;
    for (size_t v : values) cost += CostOf(values_[v]);
    return cost;
  }
  bool ReadsTurned(size_t i) const {
    const WorkNode& n = w_.nodes[i];
    for (size_t k = 0; k < n.in.size(); ++k) {
      if (c_.forms[i].in[k] == AxisUse::kTurned && MadeTurned(values_[Number(n.in[k])])) return true;
    }
    return false;
  }

  // ties: a node is turned along with the one before it if that costs nothing, so that the next
  // node may be turned too.
  bool Flip(size_t i, bool ties) {
    const std::vector<size_t> values = Around(i);
    bool& turned = c_.forms[i].turned;
    const int64_t before = CostAround(i, values);
    turned = !turned;
    const int64_t after = CostAround(i, values);
    if (after < before || (after == before && ties && turned && ReadsTurned(i))) return true;
    turned = !turned;
    return false;
  }
  // all: includes the nodes whose kernel gains.
  void Improve(bool all) {
    constexpr int kMostSweeps = 8;
    const auto improve = [&](size_t i, bool ties) { return may_[i] && (all || gain_[i] == 0) && Flip(i, ties); };
    bool again = true;
    for (int sweep = 0; again && sweep < kMostSweeps; ++sweep) {
      again = false;
      for (size_t i = 0; i < may_.size(); ++i) again = improve(i, true) || again;
      for (size_t i = may_.size(); i-- > 0;) again = improve(i, false) || again;
    }
  }

  int32_t PartOf(int32_t i) {
    while (part_[size_t(i)] != i) i = part_[size_t(i)] = part_[size_t(part_[size_t(i)])];
    return i;
  }
  // Turned nodes that pass values to each other, or share a value that is turned for them, are
  // judged together.
  void DropWhatDoesNotPay() {
    std::iota(part_.begin(), part_.end(), 0);
    std::vector<int32_t> some(values_.size(), -1);  // a turned node that the value matters to
    for (size_t v = 0; v < values_.size(); ++v) {
      const auto join = [&](int32_t node) {
        if (some[v] >= 0) part_[size_t(PartOf(node))] = PartOf(some[v]);
        some[v] = node;
      };
      if (MadeTurned(values_[v])) join(values_[v].made.node);
      for (const Reader& r : values_[v].readers) {
        if (r.turns && IsTurned(r.node)) join(r.node);
      }
    }
    std::vector<int64_t> cost(part_.size(), 0);
    for (size_t v = 0; v < values_.size(); ++v) {
      if (some[v] >= 0) cost[size_t(PartOf(some[v]))] += CostOf(values_[v]);
    }
    for (size_t i = 0; i < part_.size(); ++i) {
      if (c_.forms[i].turned) cost[size_t(PartOf(int32_t(i)))] -= gain_[i];
    }
    for (size_t i = 0; i < part_.size(); ++i) c_.forms[i].turned = c_.forms[i].turned && cost[size_t(PartOf(int32_t(i)))] < 0;
  }

  const WorkGraph& w_;
  LayoutChoice& c_;
  std::vector<uint8_t> may_;
  std::vector<int64_t> gain_;  // bytes that may be transposed for the node
  std::vector<int32_t> part_;
  std::vector<int32_t> first_;  // per node: its first value
  std::vector<Value> values_;
};

}  // namespace

std::vector<std::pair<std::string, std::string>> PreferredOrders(const WorkGraph& w) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const WorkNode& n : w.nodes) {
    const std::string* from = FormatOf(n);
    if (!from || Prefers(*n.kernel, *from)) continue;
    for (const std::string& to : n.kernel->spec.prefers) {
      const std::pair<std::string, std::string> pair(*from, to);
      const AxisOrder order = OrderBetween(*from, to);
      if (!order.empty() && !IsInOrder(order) && std::find(all.begin(), all.end(), pair) == all.end()) all.push_back(pair);
    }
  }
  return all;
}

LayoutChoice ChooseLayout(const WorkGraph& w, const std::string& from, const std::string& to, const OpSchema& transpose) {
  LayoutChoice choice;
  choice.to = to;
  choice.order = OrderBetween(from, to);
  choice.transpose = &transpose;
  Chooser(w, &choice).Run(from);
  return choice;
}

}  // namespace thalweg
