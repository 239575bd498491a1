// A step reads a variable before it updates the variable, unless the graph has another order. Each
// update of a variable waits for every read of that variable that has no node with effects before it.
// Values fetched beside a training step are therefore computed from the variables as they were before
// the step. The pass leaves a read alone if the read depends on a node with effects by a data or
// control edge.
//
// The added edges make no cycle and no deadlock. They lead from reads to updates only, and such a read
// depends neither on an update, nor on a value that another task sends, nor on any other node that may
// wait.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "framework/graph/function.h"
#include "framework/planner/renumber.h"
#include "framework/runtime/runtime.h"

namespace thalweg {
namespace {

using Handle = std::pair<int32_t, int32_t>;  // a work node and its output

// How a node uses a resource that is one of its inputs.
enum class Use : uint8_t { kUnknown, kReads, kUpdates };

class ReadsFirst {
 public:
  explicit ReadsFirst(WorkGraph* w) : w_(*w) {}

  void Run() {
    FindUpdates();
    if (updates_.empty()) return;
    for (size_t i = 0; i < w_.nodes.size(); ++i) Look(int32_t(i));
    if (reads_.empty()) return;
    AddUses();
    FindBehind();
    bool in_order = true;
    for (const auto& [handle, by] : reads_) {
      for (const int32_t update : updates_.at(handle)) {
        if (looped_[size_t(update)]) continue;
        for (const int32_t read : by) {
          if (Comes(read, update)) continue;
          w_.nodes[size_t(update)].controls.push_back(read);
          in_order = in_order && read < update;
        }
      }
    }
    if (!in_order) SortNodes(&w_);
  }

 private:
  // Facts about an op, from its kernels.
  struct Kind {
    std::vector<Use> uses;  // by argument; set for resources
    bool waits = false;     // may wait for an event outside the step
    bool views = false;     // its outputs may share memory with its inputs
  };
  const Kind& KindOf(const OpSchema& op) {
    const auto [it, is_new] = kinds_.try_emplace(&op);
    Kind& kind = it->second;
    if (!is_new) return kind;
    kind.uses.resize(op.inputs.size(), Use::kUnknown);
    kind.waits = op.role == "recv" || op.role == "send";
    for (const KernelDef* k : w_.runtime().registry().Kernels(op.name)) {
      kind.waits = kind.waits || k->spec.async || k->spec.may_block;
      kind.views = kind.views || !k->spec.view.empty();
      for (size_t a = 0; a < kind.uses.size(); ++a) {
        if (a < k->read.size() && k->read[a]) kind.uses[a] = std::max(kind.uses[a], Use::kReads);
        if (a < k->update.size() && k->update[a]) kind.uses[a] = Use::kUpdates;
      }
    }
    return kind;
  }

  static bool Calls(const OpSchema& op) {
    return std::any_of(op.attrs.begin(), op.attrs.end(), [](const auto& a) { return a.kind == TW_ATTR_FUNC; });
  }

  static void AddCalled(const Node& n, std::vector<std::string>* to) {
    for (size_t a = 0; a < n.attrs().size(); ++a) {
      if (n.op().attrs[a].kind == TW_ATTR_FUNC) to->insert(to->end(), n.attrs()[a].strings().begin(), n.attrs()[a].strings().end());
    }
  }

  static Use Worse(Use a, Use b) { return a == Use::kUnknown || b == Use::kUnknown ? Use::kUnknown : std::max(a, b); }

  // Returns how a node uses its input i, which is a resource.
  Use UseOf(const Node& n, int32_t i) {
    if (Calls(n.op())) return UseOfCalled(n);
    return n.op().stateful ? KindOf(n.op()).uses[ArgumentOf(n, i)] : Use::kReads;
  }

  // Returns how the functions that a node calls, and the functions that these call, use resources;
  // kUnknown if one of the functions may wait.
  Use UseOfCalled(const Node& n) {
    std::vector<std::string> todo;
    AddCalled(n, &todo);
    std::sort(todo.begin(), todo.end());
    const auto [it, is_new] = called_.try_emplace(todo, Use::kReads);
    if (!is_new) return it->second;
    const auto library = w_.graph->functions();
    Use all = library ? Use::kReads : Use::kUnknown;
    std::set<std::string> seen;
    while (!todo.empty() && all != Use::kUnknown) {
      const std::string name = std::move(todo.back());
      todo.pop_back();
      if (!seen.insert(name).second) continue;
      const auto f = library->Find(name);
      all = f.ok() ? Worse(all, UseIn((*f)->body(), &todo)) : Use::kUnknown;
    }
    return it->second = all;
  }

  // Returns how the nodes of a function use resources. Appends the functions that the nodes call to
  // todo.
  Use UseIn(const Graph& body, std::vector<std::string>* todo) {
    Use all = Use::kReads;
    for (int32_t id = 0; id < body.size(); ++id) {
      const Node& n = body.node(id)->runs_as() ? *body.node(id)->runs_as() : *body.node(id);
      AddCalled(n, todo);
      if (Calls(n.op())) continue;
      if (KindOf(n.op()).waits) return Use::kUnknown;
      for (int32_t i = 0; i < n.n_in(); ++i) {
        if (n.in_type(i) == TW_RESOURCE) all = Worse(all, UseOf(n, i));
      }
    }
    return all;
  }

  static size_t ArgumentOf(const Node& n, int32_t input) {
    const auto& at = n.in_at();
    return size_t(std::upper_bound(at.begin(), at.end(), uint32_t(input)) - at.begin()) - 1;
  }

  // Returns true if the edge is the handle of a variable. Variables by reference do not count: their
  // graphs were written for a runtime in which all readers share one memory (BuildWorkGraph).
  bool IsVariable(const WorkEdge& e) const {
    const WorkNode& n = w_.nodes[size_t(e.node)];
    if (n.node && &n.node->origin() != n.node) return false;
    return (n.node ? n.node->handle(e.port) : n.handle(e.port)).dtype != 0;
  }

  template <class F>
  void ForResources(const WorkNode& n, F&& use) {
    for (size_t k = 0; n.node && k < n.in.size(); ++k) {
      if (n.node->in_type(int32_t(k)) == TW_RESOURCE && n.in[k].node >= 0) use(UseOf(*n.node, int32_t(k)), n.in[k]);
    }
  }

  void FindUpdates() {
    std::vector<Handle> begun;
    for (size_t i = 0; i < w_.nodes.size(); ++i) {
      ForResources(w_.nodes[i], [&](Use use, const WorkEdge& e) {
        if (use != Use::kUpdates || !IsVariable(e)) return;
        updates_[{e.node, e.port}].push_back(int32_t(i));
        if (IsFirst(*w_.nodes[i].node, w_.nodes[size_t(e.node)])) begun.emplace_back(e.node, e.port);
      });
    }
    for (const Handle& handle : begun) updates_.erase(handle);
  }

  // Returns true if the update is the assignment of the variable's first value, which is recognised by
  // the name that tw_variable_create gives it. In a step with this assignment there is no earlier value
  // to read. Initial values that read other variables rely on the order of the graph.
  static bool IsFirst(const Node& update, const WorkNode& handle) {
    return handle.node && update.name().size() == handle.node->name().size() + kFirst.size() &&
           update.name().starts_with(handle.node->name()) && update.name().ends_with(kFirst);
  }

  // Adds node i to acts_, looped_ and reads_. REQUIRES: Look was called for all nodes before i.
  void Look(int32_t i) {
    const WorkNode& n = w_.nodes[size_t(i)];
    bool acts = false, looped = n.flow != Flow::kNone;
    const auto after = [&](int32_t k) {
      acts = acts || (k >= 0 && acts_[size_t(k)]);
      looped = looped || (k >= 0 && looped_[size_t(k)]);
    };
    for (const WorkEdge& e : n.in) after(e.node);
    for (const int32_t c : n.controls) after(c);
    acts = acts || looped || (n.node && !Calls(n.node->op()) && KindOf(n.node->op()).waits);
    std::vector<Handle> read;
    ForResources(n, [&](Use use, const WorkEdge& e) {
      acts = acts || use != Use::kReads;
      if (n.node->op().stateful && updates_.count({e.node, e.port})) read.emplace_back(e.node, e.port);
    });
    // A call that does not act on its inputs: its functions may still wait.
    if (n.node && !acts && Calls(n.node->op())) acts = UseOfCalled(*n.node) == Use::kUnknown;
    acts_.push_back(acts);
    looped_.push_back(looped);
    for (size_t k = 0; !acts && k < read.size(); ++k) reads_[read[k]].push_back(i);
  }

  // A read may return the variable's own memory, and an update copies that memory while somebody else
  // holds it. The update therefore also waits for the nodes that use the read, except nodes with
  // effects and nodes after these.
  void AddUses() {
    std::map<int32_t, std::vector<int32_t>> uses;  // users of each read
    for (const auto& [handle, by] : reads_) {
      for (const int32_t read : by) {
        if (KindOf(w_.nodes[size_t(read)].node->op()).views) uses[read];
      }
    }
    for (size_t i = 0; i < w_.nodes.size(); ++i) {
      for (const WorkEdge& e : w_.nodes[i].in) {
        const auto it = acts_[i] ? uses.end() : uses.find(e.node);
        if (it != uses.end() && (it->second.empty() || it->second.back() != int32_t(i))) it->second.push_back(int32_t(i));
      }
    }
    for (auto& [handle, by] : reads_) {
      const size_t n = by.size();
      for (size_t k = 0; k < n; ++k) {
        const std::vector<int32_t> more = uses[by[k]];
        by.insert(by.end(), more.begin(), more.end());
      }
      std::sort(by.begin(), by.end());
      by.erase(std::unique(by.begin(), by.end()), by.end());
    }
  }

  // Fills behind_: for every node, a bit for each read that comes before the node. Leaves behind_ empty
  // if it would exceed kMostWords.
  void FindBehind() {
    for (const auto& [handle, by] : reads_) {
      for (const int32_t read : by) number_.emplace(read, number_.size());
    }
    words_ = (number_.size() + 63) / 64;
    if (words_ * w_.nodes.size() > kMostWords) return;
    behind_.resize(words_ * w_.nodes.size());
    for (size_t i = 0; i < w_.nodes.size(); ++i) {
      uint64_t* mine = &behind_[i * words_];
      const auto add = [&](int32_t k) {
        if (k < 0) return;
        const uint64_t* before = &behind_[size_t(k) * words_];
        for (size_t j = 0; j < words_; ++j) mine[j] |= before[j];
        if (const auto it = number_.find(k); it != number_.end()) mine[it->second / 64] |= uint64_t{1} << it->second % 64;
      };
      for (const WorkEdge& e : w_.nodes[i].in) add(e.node);
      for (const int32_t c : w_.nodes[i].controls) add(c);
    }
  }

  // Returns true if the graph already orders `read` before the node `before`. Returns false also if
  // behind_ is empty; the added edge is then redundant at worst.
  bool Comes(int32_t read, int32_t before) const {
    if (behind_.empty()) return false;
    const size_t n = number_.at(read);
    return behind_[size_t(before) * words_ + n / 64] >> n % 64 & 1;
  }

  static constexpr std::string_view kFirst = "/Assign";
  static constexpr size_t kMostWords = size_t{1} << 22;  // 32 MiB

  WorkGraph& w_;
  std::unordered_map<const OpSchema*, Kind> kinds_;
  std::map<std::vector<std::string>, Use> called_;          // by the sorted names of the functions
  std::vector<uint8_t> acts_;                               // by node: it or a node before it has effects or may wait
  std::vector<uint8_t> looped_;                             // by node: it or a node before it is a control flow primitive
  std::map<Handle, std::vector<int32_t>> reads_, updates_;  // by handle; AddUses adds users of reads to reads_
  std::map<int32_t, size_t> number_;
  std::vector<uint64_t> behind_;
  size_t words_ = 0;
};

}  // namespace

Status ReadsPass(WorkGraph* w) {
  ReadsFirst(w).Run();
  return Status();
}

}  // namespace thalweg
