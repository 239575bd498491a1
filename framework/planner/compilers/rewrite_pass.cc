// Graph rewriters of plugins replace nodes by others (plugin/rewriter.h). Each substitution is
// checked as a whole before it changes anything. During a round nodes only go and come, so their
// numbers stay; the order of the work graph is restored at the end of the round.
#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/graph/function_shapes.h"
#include "framework/graph/resolve.h"
#include "framework/planner/compilers/part_records.h"
#include "framework/planner/placement/missing_kernel.h"
#include "framework/planner/placement/work_facts.h"
#include "framework/planner/renumber.h"
#include "framework/registry/seal.h"
#include "framework/runtime/runtime.h"

namespace thalweg {
namespace {

constexpr int kMostRounds = 16;

bool ActsOutside(const OpSchema& op) { return op.touches || op.role == "send" || op.role == "recv"; }

bool MayBeShown(const WorkNode& n) {
  if (!n.node || n.dead || n.constant) return false;
  if (n.node->op().once || ActsOutside(n.node->op())) return false;
  const std::vector<uint32_t>& types = n.node->types();
  return std::none_of(types.begin(), types.end(), [](uint32_t t) { return IsRef(t); });
}

// Identifies the value of an attribute; a value of a type without elements is equal only to itself.
std::string ContentOf(const Tensor& t) {
  const bool has_elements = FindDType(t.dtype())->plain || t.dtype() == TW_STRING;
  return StrCat(t.dtype(), t.shape().text(), has_elements ? DigestOf(t) : StrCat(reinterpret_cast<uintptr_t>(t.get())));
}

// A substitution with its records sealed, in terms of the work graph.
struct Wanted {
  struct Added {
    const OpSchema* op = nullptr;
    std::vector<AttrValue> attrs;  // in schema order; empty if open
    std::vector<tw_part_edge> in;
  };
  std::string rule;
  std::vector<int32_t> goes;  // work nodes
  std::vector<Added> added;
  std::vector<tw_part_edge> old_values, new_values;
};

// One call of rewrite: the records that the plugin sees and what it does with them.
class Round {
 public:
  Round(WorkGraph* w, const RewriterRole& role) : w_(*w), role_(role) {
    for (size_t i = 0; i < w_.nodes.size(); ++i) {
      if (MayBeShown(w_.nodes[i])) work_.push_back(int32_t(i));
    }
  }

  // Calls the rewriter. *changed: it changed something.
  Status Run(bool* changed) {
    *changed = false;
    if (work_.empty()) return Status();
    const Readers readers(w_);
    shown_.emplace(w_, readers, work_);
    gone_.assign(w_.nodes.size(), 0);
    readers_ = AllReaders(w_);
    Status s;
    try {
      s = FromC(role_.def.rewrite(role_.host, role_.def.user, shown_->c(), &to_.c));
    } catch (...) {
      s = Thrown();
    }
    if (n_applied_ > 0) {
      SortNodes(&w_);
      RETURN_IF_ERROR(PrunePass(&w_));
    }
    *changed = n_applied_ > 0;
    return s;
  }

 private:
  struct Receiver {
    tw_rewriting c{TW_SIZED(tw_rewriting), &Substitute, &Refuse};
    Round* round;
  };
  static Round& Of(tw_rewriting* r) { return *reinterpret_cast<Receiver*>(r)->round; }
  static tw_status* Substitute(tw_rewriting* r, const tw_substitution* s) {
    return Guard([&] { return Of(r).Substitute(s); });
  }
  static tw_status* Refuse(tw_rewriting* r, uint32_t node, const char* why, uint64_t len) {
    return Guard([&]() -> Status {
      Round& self = Of(r);
      if (node >= self.work_.size()) return InvalidArgument("refuse: there is no node ", node, "; there are ", self.work_.size());
      self.w_.notes.kept.push_back({self.role_.name, self.role_.plugin, self.shown_->node(node), Shown({why ? why : "", why ? len : 0})});
      return Status();
    });
  }

  Status Substitute(const tw_substitution* d) {
    Wanted want;
    Status s = Read(d, &want);
    if (s.ok()) s = Apply(want);
    RewriteNote note{role_.name, role_.plugin, want.rule, {}, {}, s.ok() ? std::string() : std::string(Message(s))};
    for (int32_t i : want.goes) note.nodes.push_back(w_.nodes[size_t(i)].node);
    for (const Wanted::Added& a : want.added) note.added.push_back(a.op->name);
    w_.notes.rewrites.push_back(std::move(note));
    return want.rule.empty() ? s : Prefix(s, StrCat("rule '", want.rule, "':"));
  }

  // ---- Records ----

  Status Read(const tw_substitution* d, Wanted* want) {
    tw_substitution s;
    RETURN_IF_ERROR(Seal(d, "substitution", &s));
    ASSIGN_OR_RETURN(const std::string_view rule, SealText(s.rule, s.rule_len, "substitution: rule"));
    want->rule = Shown(rule);
    if (s.n_nodes == 0 || !s.nodes) return InvalidArgument("no nodes go; name at least one");
    if ((s.n_added && !s.added) || (s.n_values && (!s.old_values || !s.new_values)))
      return InvalidArgument("a list is NULL, but its length is not 0");
    std::set<uint32_t> seen;
    for (uint32_t i = 0; i < s.n_nodes; ++i) {
      if (s.nodes[i] >= work_.size()) return InvalidArgument("there is no node ", s.nodes[i], "; there are ", work_.size());
      if (!seen.insert(s.nodes[i]).second) return InvalidArgument("node ", s.nodes[i], " goes twice");
      if (gone(work_[s.nodes[i]])) return InvalidArgument("node ", s.nodes[i], " went with an earlier substitution");
    }
    for (uint32_t i : seen) want->goes.push_back(work_[i]);
    for (uint32_t k = 0; k < s.n_added; ++k) RETURN_IF_ERROR(ReadAdded(s.added[k], k, want));
    for (uint32_t v = 0; v < s.n_values; ++v) {
      const tw_part_edge& old = s.old_values[v];
      if (old.node < 0 || !seen.count(uint32_t(old.node))) return InvalidArgument("value ", v, ": node ", old.node, " does not go");
      if (old.port >= OutputsOf(work_[size_t(old.node)]))
        return InvalidArgument("value ", v, ": node ", old.node, " has no output ", old.port);
    }
    want->old_values.assign(s.old_values, s.old_values + s.n_values);
    want->new_values.assign(s.new_values, s.new_values + s.n_values);
    return Status();
  }

  Status ReadAdded(const tw_added_node* d, uint32_t k, Wanted* want) {
    tw_added_node a;
    RETURN_IF_ERROR(Seal(d, StrCat("added node ", k), &a));
    ASSIGN_OR_RETURN(const std::string_view name, SealText(a.op, a.op_len, StrCat("added node ", k, ": op")));
    if ((a.n_in && !a.in) || (a.n_attrs && !a.attrs)) return InvalidArgument("added node ", k, ": a list is NULL, but its length is not 0");
    Wanted::Added node;
    node.op = w_.runtime().registry().FindOp(name);
    if (!node.op) return InvalidArgument("added node ", k, ": no loaded plugin defines the op '", Shown(name), "'");
    if (ActsOutside(*node.op)) {
      return FailedPrecondition("added node ", k, ": a rewriter may not add ", node.op->name, ", which acts outside the step");
    }
    std::map<std::string, AttrValue> attrs;
    for (uint32_t i = 0; i < a.n_attrs; ++i) {
      ASSIGN_OR_RETURN(AttrValue value, AttrValue::FromC(a.attrs[i]));
      attrs.insert_or_assign(std::string(a.attrs[i].name, a.attrs[i].name_len), std::move(value));
    }
    auto ordered = InSchemaOrder(*node.op, std::move(attrs));
    if (!ordered.ok()) return Prefix(ordered.status(), StrCat("added node ", k, " (", node.op->name, "):"));
    node.attrs = *std::move(ordered);
    node.in.assign(a.in, a.in + a.n_in);
    want->added.push_back(std::move(node));
    return Status();
  }

  // ---- One substitution ----

  bool gone(int32_t work) const { return size_t(work) < gone_.size() && gone_[size_t(work)]; }
  uint32_t OutputsOf(int32_t work) const { return uint32_t(w_.nodes[size_t(work)].out_types.size()); }

  // Finds the value of the work graph that an edge of the records means. added: work nodes of the
  // added nodes so far.
  StatusOr<WorkEdge> Find(const tw_part_edge& e, const std::set<int32_t>& goes, const std::vector<int32_t>& added) const {
    const size_t n = work_.size();
    if (e.node < 0) {
      if (e.node != -1 || e.port >= shown_->inputs().size()) return InvalidArgument("the part has no input ", e.port);
      return shown_->inputs()[e.port];
    }
    if (size_t(e.node) >= n + added.size()) return InvalidArgument("it reads node ", e.node, ", which does not come before it");
    const int32_t at = size_t(e.node) < n ? work_[size_t(e.node)] : added[size_t(e.node) - n];
    if (e.port >= OutputsOf(at)) return InvalidArgument("it reads output ", e.port, " of node ", e.node, ", which has ", OutputsOf(at));
    WorkEdge value{at, int32_t(e.port)};
    while (gone(value.node)) {
      auto it = stands_for_.find({value.node, value.port});
      if (it == stands_for_.end()) return InvalidArgument("it reads node ", e.node, ", which went with an earlier substitution");
      value = it->second;
    }
    if (goes.count(value.node)) return InvalidArgument("it reads node ", e.node, ", which goes");
    return value;
  }

  Status Apply(const Wanted& want) {
    const std::set<int32_t> goes(want.goes.begin(), want.goes.end());
    std::vector<int32_t> added, before;
    for (int32_t g : goes) {
      for (int32_t c : w_.nodes[size_t(g)].controls) {
        if (!goes.count(c)) before.push_back(c);
      }
    }
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    std::map<std::pair<int32_t, int32_t>, WorkEdge> now;
    Status s = Make(want, goes, before, &added);
    if (s.ok()) s = Match(want, goes, added, &now);
    if (s.ok()) s = CheckPaths(goes, added, before, now);
    if (!s.ok()) {
      w_.nodes.resize(w_.nodes.size() - added.size());
      return s;
    }
    Replace(goes, added, before, now);
    ++n_applied_;
    return Status();
  }

  // Adds the nodes at the end of the work graph.
  Status Make(const Wanted& want, const std::set<int32_t>& goes, const std::vector<int32_t>& before, std::vector<int32_t>* added) {
    const WorkNode& first = w_.nodes[size_t(*goes.begin())];
    const Node& origin = first.node->origin();
    const std::string within = first.within;
    for (size_t k = 0; k < want.added.size(); ++k) {
      const Wanted::Added& a = want.added[k];
      WorkNode x;
      std::vector<Edge> edges;
      std::vector<uint32_t> types;
      std::string key = StrCat("rewrite ", role_.plugin, "/", role_.name, " ", k, " ", a.op->name);
      for (const tw_part_edge& e : a.in) {
        auto from = Find(e, goes, *added);
        if (!from.ok()) return Prefix(from.status(), StrCat("added node ", k, " (", a.op->name, "):"));
        const WorkNode& p = w_.nodes[size_t(from->node)];
        edges.push_back(p.node ? Edge{p.node, from->port} : w_.signature->feeds[size_t(p.feed)]);
        types.push_back(p.out_types[size_t(from->port)]);
        key += StrCat(" ", reinterpret_cast<uintptr_t>(edges.back().node), ".", edges.back().port, ".", types.back());
        x.in.push_back(*from);
      }
      for (const AttrValue& v : a.attrs) {
        key += StrCat(" ", v.kind(), v.is_list() ? "*" : "", v.text());
        if (v.kind() != TW_ATTR_TENSOR) continue;
        for (const Tensor& t : v.tensors()) key += t ? ContentOf(t) : "-";
      }
      auto node = w_.graph->Beside(origin, std::move(key), *a.op, std::move(edges), types, a.attrs);
      if (!node.ok()) return Prefix(node.status(), StrCat("added node ", k, ":"));
      x.node = *node;
      if (a.op->role != "const") x.controls = before;
      x.within = within;
      x.out_types.assign(x.node->types().begin() + x.node->n_in(), x.node->types().end());
      x.values.resize(x.out_types.size());
      w_.nodes.push_back(std::move(x));
      added->push_back(int32_t(w_.nodes.size()) - 1);
      WorkNode* here = &w_.nodes.back();
      if (Status s = InferAdded(&w_, here); !s.ok()) return Refused(k, a, s);
      if (here->constant || CallsFunctions(*a.op)) continue;
      if (Status s = NeedsKernel(*here); !s.ok()) return Refused(k, a, s);
    }
    return Status();
  }
  static Status Refused(size_t k, const Wanted::Added& a, const Status& s) {
    return FailedPrecondition("added node ", k, " (", a.op->name, "): ", Message(s));
  }

  Status NeedsKernel(const WorkNode& n) const {
    const WorkFacts facts(w_, n);
    const auto is_on = [&](const std::vector<Device*>& devices) -> StatusOr<bool> {
      for (Device* device : devices) {
        ASSIGN_OR_RETURN(const KernelDef* kernel, ChooseKernel(w_.runtime().registry(), *device, facts.facts()));
        if (kernel) return true;
      }
      return false;
    };
    // Other devices than the host start only if there is no kernel without them.
    RETURN_IF_ERROR(w_.runtime().host_device().status());
    ASSIGN_OR_RETURN(bool found, is_on(w_.runtime().ready_devices()));
    if (!found) {
      ASSIGN_OR_RETURN(found, is_on(w_.runtime().devices()));
    }
    return found ? Status() : MissingKernel(w_.runtime(), *n.node, "");
  }

  // Finds what each old value that is still read becomes.
  Status Match(const Wanted& want, const std::set<int32_t>& goes, const std::vector<int32_t>& added,
               std::map<std::pair<int32_t, int32_t>, WorkEdge>* now) {
    for (size_t i = 0; i < want.old_values.size(); ++i) {
      const tw_part_edge& value = want.old_values[i];
      const int32_t old = work_[size_t(value.node)];
      auto to = Find(want.new_values[i], goes, added);
      if (!to.ok()) return Prefix(to.status(), StrCat("output ", value.port, " of '", Shown(w_.nodes[size_t(old)].node->name()), "':"));
      const WorkNode& from = w_.nodes[size_t(old)];
      WorkNode& by = w_.nodes[size_t(to->node)];
      const uint32_t had = from.out_types[value.port], has = by.out_types[size_t(to->port)];
      const Shape& before = from.shapes[value.port];
      Shape& after = by.shapes[size_t(to->port)];
      const auto title = [&] { return StrCat("output ", value.port, " of '", Shown(from.node->name()), "'"); };
      if (had != has) return InvalidArgument(title(), " is ", DTypeName(had), "; what stands for it is ", DTypeName(has));
      if (!(before == after)) {
        auto both = MergeShapes(before, after);
        const bool is_new = std::find(added.begin(), added.end(), to->node) != added.end();
        if (!both.ok() || !(*both == after) || !is_new) {
          return FailedPrecondition(title(), " has shape ", before.text(), "; what stands for it has ", after.text());
        }
        after = before;  // readers were planned with what was known before
      }
      if (!now->try_emplace({old, int32_t(value.port)}, *to).second) return InvalidArgument(title(), " is replaced twice");
    }
    const auto needs = [&](const WorkEdge& e, std::string_view reader) -> Status {
      if (!goes.count(e.node) || now->count({e.node, e.port})) return Status();
      return InvalidArgument("output ", e.port, " of '", Shown(w_.nodes[size_t(e.node)].node->name()), "' is read by ", reader,
                             ", but nothing stands for it");
    };
    for (int32_t g : goes) {
      for (int32_t reader : readers_[size_t(g)]) {
        const WorkNode& n = w_.nodes[size_t(reader)];
        if (gone(reader) || goes.count(reader) || n.dead || n.constant) continue;
        for (const WorkEdge& e : n.in) RETURN_IF_ERROR(needs(e, StrCat("'", Shown(n.node->name()), "'")));
      }
    }
    for (const WorkEdge& e : w_.fetches) RETURN_IF_ERROR(needs(e, "the program"));
    return Status();
  }

  // readers_ may name a node that an earlier substitution gave another value to read.
  bool Reads(int32_t reader, int32_t from) const {
    const std::vector<WorkEdge>& in = w_.nodes[size_t(reader)].in;
    return std::any_of(in.begin(), in.end(), [&](const WorkEdge& e) { return e.node == from; });
  }
  bool WaitsFor(int32_t reader, int32_t from) const {
    const std::vector<int32_t>& controls = w_.nodes[size_t(reader)].controls;
    return std::find(controls.begin(), controls.end(), from) != controls.end();
  }
  // Returns true if Replace gives a reader of a node that goes other edges. The inputs of dead nodes
  // and constants stay: such nodes do not run.
  bool IsMoved(int32_t reader, int32_t from) const {
    const WorkNode& n = w_.nodes[size_t(reader)];
    return WaitsFor(reader, from) || (!n.dead && !n.constant && Reads(reader, from));
  }

  // Refuses what would wait for itself: a path from a reader of what stands for an old value to an
  // input of an added node. The path may lead through nodes that do not run: the nodes that go or
  // went, and dead nodes, keep their inputs, and a constant may follow from the shape of their
  // outputs. SortNodes follows these edges, and so do the shape rules for other feeds.
  Status CheckPaths(const std::set<int32_t>& goes, const std::vector<int32_t>& added, const std::vector<int32_t>& before,
                    const std::map<std::pair<int32_t, int32_t>, WorkEdge>& now) {
    std::set<int32_t> wanted(before.begin(), before.end());
    for (int32_t a : added) {
      for (const WorkEdge& e : w_.nodes[size_t(a)].in) {
        if (e.node < added.front()) wanted.insert(e.node);
      }
    }
    // A value that stays and stands for an old one gets the readers of the old one, too.
    for (const auto& [old, to] : now) {
      if (added.empty() || to.node < added.front()) wanted.insert(to.node);
    }
    if (wanted.empty()) return Status();
    std::vector<uint8_t> seen(w_.nodes.size(), 0);
    std::vector<int32_t> todo;
    const auto visit = [&](int32_t i) {
      if (seen[size_t(i)]) return;
      seen[size_t(i)] = 1;
      todo.push_back(i);
    };
    for (int32_t g : goes) {
      for (int32_t reader : readers_[size_t(g)]) {
        if (!gone(reader) && !goes.count(reader) && IsMoved(reader, g)) visit(reader);
      }
    }
    while (!todo.empty()) {
      const int32_t at = todo.back();
      todo.pop_back();
      if (wanted.count(at)) {
        return FailedPrecondition("the nodes that come would wait for themselves, by way of '", Shown(w_.nodes[size_t(at)].node->name()),
                                  "'");
      }
      for (int32_t reader : readers_[size_t(at)]) {
        if (!seen[size_t(reader)] && (Reads(reader, at) || WaitsFor(reader, at))) visit(reader);
      }
    }
    return Status();
  }

  void Replace(const std::set<int32_t>& goes, const std::vector<int32_t>& added, const std::vector<int32_t>& before,
               const std::map<std::pair<int32_t, int32_t>, WorkEdge>& now) {
    gone_.resize(w_.nodes.size(), 0);
    readers_.resize(w_.nodes.size());
    std::vector<int32_t> instead = added;  // of a node that goes, for who waits for it
    instead.insert(instead.end(), before.begin(), before.end());
    for (int32_t a : added) {
      for (const WorkEdge& e : w_.nodes[size_t(a)].in) readers_[size_t(e.node)].push_back(a);
      for (int32_t c : before) readers_[size_t(c)].push_back(a);
    }
    const auto moved = [&](WorkEdge* e) {
      if (auto it = now.find({e->node, e->port}); it != now.end()) *e = it->second;
    };
    for (int32_t g : goes) {
      gone_[size_t(g)] = 1;
      for (int32_t reader : readers_[size_t(g)]) {
        WorkNode& n = w_.nodes[size_t(reader)];
        if (gone(reader) || goes.count(reader)) continue;
        if (!n.dead && !n.constant) {
          for (WorkEdge& e : n.in) moved(&e);
          for (const WorkEdge& e : n.in) readers_[size_t(e.node)].push_back(reader);
        }
        if (std::find(n.controls.begin(), n.controls.end(), g) == n.controls.end()) continue;
        std::erase(n.controls, g);
        for (int32_t c : instead) {
          if (std::find(n.controls.begin(), n.controls.end(), c) == n.controls.end()) n.controls.push_back(c);
          readers_[size_t(c)].push_back(reader);
        }
      }
    }
    for (WorkEdge& e : w_.fetches) moved(&e);
    stands_for_.insert(now.begin(), now.end());
    const auto is_gone = [&](int32_t t) { return goes.count(t) != 0; };
    if (std::any_of(w_.targets.begin(), w_.targets.end(), is_gone)) {
      std::erase_if(w_.targets, is_gone);
      w_.targets.insert(w_.targets.end(), instead.begin(), instead.end());
    }
  }

  WorkGraph& w_;
  const RewriterRole& role_;
  Receiver to_{.round = this};
  std::vector<int32_t> work_;  // the nodes that are shown
  std::optional<ShownNodes> shown_;
  std::vector<uint8_t> gone_;                                   // per work node
  std::vector<std::vector<int32_t>> readers_;                   // per work node; may name nodes that no longer read it
  std::map<std::pair<int32_t, int32_t>, WorkEdge> stands_for_;  // per output of a node that went
  size_t n_applied_ = 0;
};

}  // namespace

Status RewritePass(WorkGraph* w) {
  if (w->flow) return Status();  // values decide which nodes run, and so which values may be read
  auto roles = w->runtime().registry().RolesOf<RewriterRole>();
  if (roles.empty()) return Status();
  std::sort(roles.begin(), roles.end(),
            [](const auto& a, const auto& b) { return std::tie(a->plugin, a->name) < std::tie(b->plugin, b->name); });
  RETURN_IF_ERROR(PrunePass(w));
  for (const auto& role : roles) {
    bool changed = true;
    for (int round = 0; changed && round < kMostRounds; ++round) {
      Status s = Round(w, *role).Run(&changed);
      if (s.ok()) continue;
      w->runtime().Log(2, StrCat("graph rewriter '", role->name, "' of plugin '", role->plugin, "': ", Message(s),
                                 "; the plan keeps what it replaced before"));
      break;
    }
  }
  return Status();
}

}  // namespace thalweg
