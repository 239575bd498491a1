// Sets grow in node order. A node joins the sets that made its inputs if all of them have one
// domain. A set runs as a whole, so no outside node may read a member before the set's last node.
// Then no path can leave the set and come back, and no two sets can wait for each other.
#include "fuse/claim.h"

#include <algorithm>

#include "fuse/fit.h"
#include "fuse/program.h"

namespace thalweg::cpu {
namespace {

constexpr int64_t kLarge = 4096;   // elements; below, fusing saves less than a call costs
constexpr int32_t kPriority = -1;  // after compilers of other plugins

constexpr std::string_view kProducts[] = {"MatMul", "BatchMatMul", "BatchMatMulV2", "Conv2D", "Conv3D", "DepthwiseConv2dNative"};
constexpr std::string_view kActivations[] = {"Relu", "Relu6", "Elu", "Tanh", "Sigmoid"};

template <size_t n>
bool Is(std::string_view op, const std::string_view (&all)[n]) {
  return std::find(all, all + n, op) != all + n;
}

bool IsLarge(const tw_shape& s) { return Known(s) && CountOf(s) >= kLarge; }

struct Set {
  Domain domain;
  bool whole_rows = false;
  std::vector<uint32_t> nodes;
};

class Claimer {
 public:
  Claimer(const tw_part& part, const Catalogue& catalogue, const FuseKinds& kinds)
      : part_(part), kinds_(kinds), nodes_(part.n_nodes), marked_(part.n_nodes, UINT32_MAX) {
    FindOperations(catalogue);
    ListReaders();
  }

  void Run(tw_claims* to) {
    for (uint32_t i = 0; i < part_.n_nodes; ++i)
      if (nodes_[i].operation && !nodes_[i].why) Join(i);
    for (const Set& s : sets_) {
      if (Pays(s)) {
        Take(to, s.nodes, kPriority);
        const std::vector<uint32_t> rest = WithoutHeads(s);
        if (rest.size() < s.nodes.size() && rest.size() > 1) Take(to, rest, kPriority - 1);
      } else {
        for (uint32_t i : s.nodes) nodes_[i].why = s.nodes.size() == 1 ? "nothing beside it can be fused with it" : "its tensors are small";
      }
    }
    for (uint32_t i = 0; i < part_.n_nodes; ++i)
      if (const char* why = nodes_[i].why) tw::check(to->refuse(to, i, why, std::strlen(why)));
  }

 private:
  struct Node {
    const Operation* operation = nullptr;  // NULL: the catalogue does not have the node
    const char* why = nullptr;             // the reason why the node is not fused
    int32_t set = -1;
    Lie lie = Lie::kNone;  // the layout of the node's output in its set
  };

  void FindOperations(const Catalogue& catalogue) {
    std::unordered_map<const char*, const std::vector<Operation>*> of;  // the key is the text's address: nodes of one op share it
    for (uint32_t i = 0; i < part_.n_nodes; ++i) {
      const tw_part_node& n = *part_.nodes[i];
      auto [it, is_new] = of.try_emplace(n.op, nullptr);
      if (is_new) it->second = catalogue.OfOp(OpOf(n));
      if (it->second) nodes_[i].operation = Catalogue::ForTypes(*it->second, n.types, n.n_in);
      if (nodes_[i].operation) nodes_[i].why = Unfit(n);
    }
  }

  template <class F>
  void ForInputs(uint32_t i, F&& f) const {
    const tw_part_node& n = *part_.nodes[i];
    for (uint32_t k = 0; k < n.n_in; ++k)
      if (n.in[k].node >= 0) f(uint32_t(n.in[k].node));
    for (uint32_t k = 0; k < n.n_after; ++k) f(uint32_t(n.after[k]));
  }
  void ListReaders() {
    first_.assign(part_.n_nodes + 1, 0);
    for (uint32_t i = 0; i < part_.n_nodes; ++i) ForInputs(i, [&](uint32_t from) { ++first_[from + 1]; });
    for (uint32_t i = 0; i < part_.n_nodes; ++i) first_[i + 1] += first_[i];
    readers_.resize(first_.back());
    std::vector<uint32_t> at(first_.begin(), first_.end() - 1);
    for (uint32_t i = 0; i < part_.n_nodes; ++i) ForInputs(i, [&](uint32_t from) { readers_[at[from]++] = i; });
  }

  Fit FitOf(uint32_t i, const Domain& d) const {
    Fit fit = FitInto(*part_.nodes[i], *nodes_[i].operation, d);
    const bool allowed = fit.inner > 0 ? kinds_.rows : kinds_.elementwise || d.inner > 0;
    if (!fit.why && !allowed) fit.why = "the setting 'fuse' leaves it out";
    return fit;
  }

  // Puts node i into a set. Joins it with the sets that made its inputs where possible.
  void Join(uint32_t i) {
    std::vector<int32_t> around;
    const tw_part_node& n = *part_.nodes[i];
    for (uint32_t k = 0; k < n.n_in; ++k) {
      const int32_t set = n.in[k].node < 0 ? -1 : nodes_[size_t(n.in[k].node)].set;
      if (set >= 0 && std::find(around.begin(), around.end(), set) == around.end()) around.push_back(set);
    }
    std::sort(around.begin(), around.end(),
              [&](int32_t a, int32_t b) { return sets_[size_t(a)].nodes.size() > sets_[size_t(b)].nodes.size(); });
    for (int32_t set : around) {
      const Domain& domain = sets_[size_t(set)].domain;
      const Fit fit = FitOf(i, domain);
      if (fit.why) continue;
      std::vector<int32_t> with = Alike(i, fit, domain, around);
      if (with.size() > 1 && !CanBeOne(i, with)) with = {set};
      if (std::find(with.begin(), with.end(), set) != with.end() && CanBeOne(i, with)) return Merge(i, fit, with);
    }
    const Domain own{DomainOf(n, *nodes_[i].operation), 0};
    const Fit fit = FitOf(i, own);
    nodes_[i].why = fit.why;
    if (fit.why) return;
    sets_.push_back({own, false, {}});
    Merge(i, fit, {int32_t(sets_.size()) - 1});
  }

  // Returns the sets of `around` that share the domain and whose members have the layout in which
  // node i reads them.
  std::vector<int32_t> Alike(uint32_t i, const Fit& fit, const Domain& domain, const std::vector<int32_t>& around) const {
    const tw_part_node& n = *part_.nodes[i];
    std::vector<int32_t> with;
    int32_t inner = std::max(domain.inner, fit.inner);
    for (int32_t set : around) {
      const Domain& d = sets_[size_t(set)].domain;
      bool alike = Same(d.shape, domain.shape) && (d.inner == 0 || inner == 0 || d.inner == inner);
      for (uint32_t k = 0; k < n.n_in; ++k) {
        if (n.in[k].node < 0 || nodes_[size_t(n.in[k].node)].set != set) continue;
        alike = alike && nodes_[size_t(n.in[k].node)].lie == fit.in[k];
      }
      if (!alike) continue;
      inner = std::max(inner, d.inner);
      with.push_back(set);
    }
    return with;
  }

  // Returns true if node i and the sets can form one set: they have at most kMostNodes nodes, and
  // no outside node before node i reads a member.
  bool CanBeOne(uint32_t i, const std::vector<int32_t>& with) {
    size_t size = 1;
    for (int32_t set : with) {
      size += sets_[size_t(set)].nodes.size();
      for (uint32_t m : sets_[size_t(set)].nodes) marked_[m] = i;
    }
    if (size > Program::kMostNodes) return false;
    for (int32_t set : with) {
      for (uint32_t m : sets_[size_t(set)].nodes) {
        for (uint32_t r = first_[m]; r < first_[m + 1]; ++r)
          if (readers_[r] < i && marked_[readers_[r]] != i) return false;
      }
    }
    return true;
  }

  void Merge(uint32_t i, const Fit& fit, const std::vector<int32_t>& with) {
    Set& to = sets_[size_t(with[0])];
    for (size_t k = 1; k < with.size(); ++k) {
      Set& from = sets_[size_t(with[k])];
      for (uint32_t m : from.nodes) nodes_[m].set = with[0];
      to.nodes.insert(to.nodes.end(), from.nodes.begin(), from.nodes.end());
      to.domain.inner = std::max(to.domain.inner, from.domain.inner);
      to.whole_rows |= from.whole_rows;
      from.nodes.clear();
    }
    to.nodes.push_back(i);
    to.domain.inner = std::max(to.domain.inner, fit.inner);
    to.whole_rows |= fit.whole_rows;
    nodes_[i].set = with[0];
    nodes_[i].lie = fit.out;
  }

  static void Take(tw_claims* to, const std::vector<uint32_t>& nodes, int32_t priority) {
    tw::check(to->take(to, nodes.data(), uint32_t(nodes.size()), priority));
  }

  // Returns the set without the nodes (bias, activation) that another plugin's compiler may take
  // together with the product or convolution before them.
  std::vector<uint32_t> WithoutHeads(const Set& s) {
    std::vector<uint32_t> rest, sorted = s.nodes;
    std::sort(sorted.begin(), sorted.end());
    std::vector<uint32_t> heads;
    for (uint32_t i : sorted) {
      const tw_part_node& n = *part_.nodes[i];
      const int32_t from = n.in[0].node;
      const std::string_view before = from < 0 ? "" : OpOf(*part_.nodes[size_t(from)]);
      const bool after_head = from >= 0 && std::find(heads.begin(), heads.end(), uint32_t(from)) != heads.end() && before == "BiasAdd";
      const bool after_product = Is(before, kProducts);
      const bool head = (OpOf(n) == "BiasAdd" && after_product) || (Is(OpOf(n), kActivations) && (after_product || after_head));
      (head ? heads : rest).push_back(i);
    }
    return rest;
  }

  bool Pays(const Set& s) const {
    if (s.nodes.size() < 2 || (s.whole_rows && s.domain.columns() > kMostColumns)) return false;
    return std::any_of(s.nodes.begin(), s.nodes.end(),
                       [&](uint32_t i) { return IsLarge(DomainOf(*part_.nodes[i], *nodes_[i].operation)); });
  }

  const tw_part& part_;
  const FuseKinds& kinds_;
  std::vector<Node> nodes_;
  std::vector<uint32_t> first_, readers_;  // the nodes that read or wait for node i, from first_[i] on
  std::vector<uint32_t> marked_;           // per node, the last node i for which CanBeOne marked it
  std::vector<Set> sets_;                  // a set without nodes was merged into another
};

}  // namespace

bool HasLargeTensors(const tw_part& part) {
  for (uint32_t i = 0; i < part.n_nodes; ++i) {
    const tw_part_node& n = *part.nodes[i];
    for (uint32_t k = 0; k < n.n_in + n.n_out; ++k)
      if (IsLarge(n.shapes[k])) return true;
  }
  return false;
}

void ClaimSets(const tw_part& part, const Catalogue& catalogue, const FuseKinds& kinds, tw_claims* to) {
  Claimer(part, catalogue, kinds).Run(to);
}

}  // namespace thalweg::cpu
