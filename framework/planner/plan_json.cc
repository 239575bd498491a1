#include "framework/planner/plan_json.h"

#include <algorithm>
#include <iterator>

#include "framework/base/dtype.h"
#include "framework/json/json.h"
#include "framework/plan/frame_plan.h"
#include "framework/planner/compilers/part.h"
#include "framework/planner/memory/budget.h"
#include "framework/registry/kernel_spec.h"
#include "framework/runtime/devices/device.h"

namespace thalweg {
namespace {

bool IsCopy(const PlanNode& n) { return n.kind != PlanNode::kKernel && n.kind != PlanNode::kFlow; }

class Writer {
 public:
  Writer(const Plan& plan, const PlanShapes& shapes, const Signature& signature)
      : p_(plan), s_(shapes), signature_(signature), name_(plan.values.size()), after_(plan.nodes.size()) {
    for (size_t f = 0; f < p_.feeds.size(); ++f) {
      if (p_.feeds[f] >= 0) name_[size_t(p_.feeds[f])] = signature_.feeds[f].text();
    }
    for (size_t i = 0; i < p_.nodes.size(); ++i) {
      const PlanNode& n = p_.nodes[i];
      for (size_t o = 0; n.run.node && !IsCopy(n) && o < n.out.size(); ++o) {
        name_[size_t(n.out[o])] = (n.part ? n.part->graph().out_edge(o) : Edge{n.run.node, int32_t(o)}).text();
      }
      for (int32_t k : n.next) after_[size_t(k)].push_back(int32_t(i));
    }
  }

  std::string Text() {
    j_.Object();
    j_.Text("engine", p_.frames ? "frames" : p_.counted ? "counted" : "fixed");
    j_.Text("order", p_.smallest_peak ? "smallest_peak" : "given");
    Edges("feeds", signature_.feeds);
    Edges("fetches", signature_.fetches);
    j_.Array("nodes");
    for (size_t i = 0; i < p_.nodes.size(); ++i) WriteNode(i);
    j_.End();
    Notes();
    Copies();
    j_.Array("block_bytes");
    for (size_t l = 0; l < s_.block_bytes.size(); ++l) {
      j_.Object().Text("device", Location(int32_t(l))).Number("bytes", int64_t(s_.block_bytes[l])).End();
    }
    j_.End();
    j_.Number("peak_bytes", int64_t(s_.peak_bytes));
    j_.Number("unplanned_bytes", int64_t(s_.unplanned_bytes));
    Memory();
    return j_.End().text();
  }

 private:
  // The bytes in use while each node runs, and what was done to make them few.
  void Memory() {
    j_.Array("live_bytes");
    if (!p_.frames) {
      for (uint64_t bytes : LiveBytes(p_, s_)) j_.Number({}, int64_t(bytes));
    }
    j_.End();
    j_.Number("lower_bound_bytes", p_.frames ? 0 : int64_t(LowerBoundBytes(p_, s_)));
    const MemoryNote& m = p_.memory;
    if (!m.budget && !m.any()) return;
    j_.Object("memory").Number("budget", int64_t(m.budget)).Number("before", int64_t(m.before)).Number("after", int64_t(m.after));
    j_.Bool("ordered", m.ordered).Array("recomputed");
    for (const Node* n : m.recomputed) j_.Text({}, n->name());
    j_.End().Array("swapped");
    for (const MemoryNote::Value& v : m.swapped) {
      j_.Object().Text("value", Edge{v.node, v.port}.text()).Number("bytes", int64_t(v.bytes)).End();
    }
    j_.End().Number("recompute_ns", m.recompute_ns).Number("swap_ns", m.swap_ns).Number("step_ns", m.step_ns).End();
  }

  // Counts copies between memories and their bytes, and the further bytes that one copy per reader
  // would move.
  void Copies() {
    std::vector<int64_t> readers(p_.values.size(), 0);
    for (const PlanNode& n : p_.nodes) {
      for (int32_t v : n.in) ++readers[size_t(v)];
    }
    for (int32_t v : p_.fetches) ++readers[size_t(v)];
    int64_t copies = 0, bytes = 0, saved = 0;
    for (const PlanNode& n : p_.nodes) {
      if (!IsCopy(n)) continue;
      const int64_t size = int64_t(s_.values[size_t(n.out[0])].bytes);
      ++copies;
      bytes += size;
      saved += size * std::max<int64_t>(readers[size_t(n.out[0])] - 1, 0);
    }
    j_.Number("copies", copies).Number("copied_bytes", bytes).Number("saved_bytes", saved);
  }

  std::string Location(int32_t l) const { return (l == 0 ? p_.host : p_.devices[size_t(l - 1)])->name(); }

  void Edges(const char* key, const std::vector<Edge>& edges) {
    j_.Array(key);
    for (const Edge& e : edges) j_.Text({}, e.text());
    j_.End();
  }

  void WriteNode(size_t i) {
    const PlanNode& n = p_.nodes[i];
    const bool copy = IsCopy(n);
    j_.Object();
    j_.Text("name", copy ? "" : n.run.node->name());
    j_.Text("op", copy ? "copy" : n.run.node->op().name);
    j_.Text("device", n.run.device->name());
    j_.Text("kernel", n.run.kernel ? n.run.kernel->spec.text : "");
    j_.Number("order", int64_t(i));
    j_.Number("priority", n.priority);
    j_.Array("after");
    for (int32_t k : after_[i]) j_.Number({}, k);
    j_.End();
    Values("inputs", n.in);
    Values("outputs", n.out);
    j_.Number("scratch", int64_t(s_.scratch[i].bytes));
    if (n.part) {
      j_.Array("part");
      for (const PartGraph::Member& m : n.part->graph().members) j_.Text({}, m.node->name());
      j_.End();
    }
    j_.Bool("dynamic", n.dynamic);
    j_.End();
  }

  void Values(const char* key, const std::vector<int32_t>& values) {
    j_.Array(key);
    for (int32_t v : values) WriteValue(v);
    j_.End();
  }

  void WriteValue(int32_t v) {
    static constexpr const char* kKinds[] = {"block", "held", "constant", "feed", "feed_view", "block"};
    const PlanValue& value = p_.values[size_t(v)];
    const PlanShapes::Value& sized = s_.values[size_t(v)];
    j_.Object();
    j_.Number("id", v);
    j_.Text("name", name_[size_t(v)]);
    j_.Text("dtype", DTypeName(value.dtype));
    if (!sized.shape.has_rank()) {
      j_.Raw("shape", "null");
    } else {
      j_.Array("shape");
      for (int64_t d : sized.shape.dims()) j_.Number({}, d);
      j_.End();
    }
    j_.Text("location", Location(value.location));
    j_.Text("kind", kKinds[value.kind]);
    if (value.kind == PlanValue::kBlock || value.kind == PlanValue::kPassed) {
      j_.Number("offset", int64_t(sized.offset)).Number("bytes", int64_t(sized.bytes));
      const int32_t other = value.view_of >= 0 ? value.view_of : sized.in_place_of;
      if (other >= 0) j_.Number("in_place_of", other);
    }
    j_.End();
  }

  void Notes() {
    j_.Array("folded");
    for (const Node* n : p_.notes.folded) j_.Text({}, n->name());
    j_.End().Array("merged");
    for (const auto& [n, into] : p_.notes.merged) j_.Object().Text("node", n->name()).Text("into", into->name()).End();
    j_.End().Array("removed");
    for (const auto& [n, into] : p_.notes.removed) j_.Object().Text("node", n->name()).Text("into", into.text()).End();
    j_.End().Array("rewrites");
    for (const RewriteNote& r : p_.notes.rewrites) {
      j_.Object().Text("rewriter", r.rewriter).Text("plugin", r.plugin).Text("rule", r.rule).Array("nodes");
      for (const Node* n : r.nodes) j_.Text({}, n->name());
      j_.End().Array("added");
      for (const std::string& op : r.added) j_.Text({}, op);
      j_.End().Text("refused", r.refused).End();
    }
    j_.End().Array("kept");
    for (const KeptNote& k : p_.notes.kept) {
      j_.Object().Text("rewriter", k.rewriter).Text("plugin", k.plugin).Text("node", k.node->name()).Text("why", k.why).End();
    }
    j_.End().Array("claims");
    for (const ClaimNote& c : p_.notes.claims) {
      j_.Object().Text("compiler", c.compiler).Text("plugin", c.plugin).Array("nodes");
      for (const Node* n : c.nodes) j_.Text({}, n->name());
      j_.End().Bool("loaded", c.loaded).Text("refused", c.refused).End();
    }
    j_.End().Array("left");
    for (const LeftNote& l : p_.notes.left) {
      j_.Object().Text("compiler", l.compiler).Text("plugin", l.plugin).Text("node", l.node->name()).Text("why", l.why).End();
    }
    j_.End().Array("fallbacks");
    for (const FallbackNote& f : p_.notes.fallbacks) {
      j_.Object().Text("node", f.node->name()).Text("asked", f.asked).Text("device", f.device->name()).Text("why", f.why).End();
    }
    j_.End().Array("layouts");
    for (const LayoutNote& l : p_.notes.layouts) {
      j_.Object().Text("order", l.order).Number("transposes", l.transposes).Number("bytes", l.bytes).Array("nodes");
      for (const Node* n : l.nodes) j_.Text({}, n->name());
      j_.End().End();
    }
    j_.End().Array("sequences");
    for (const auto& [frame, n] : p_.notes.sequences) j_.Object().Text("frame", frame).Text("node", n->name()).End();
    j_.End();
    Places();
  }

  void Places() {
    constexpr const char* kWhy[] = {"asked", "shared", "only_there", "first", "cost", "learned", "fallback", "follows"};
    j_.Array("places");
    for (const PlaceNote& p : p_.notes.places) {
      j_.Object().Text("node", p.node->name()).Text("op", p.node->op().name).Text("device", p.device->name()).Text("why", kWhy[p.why]);
      if (p.with) j_.Text("with", p.with->name());
      if (p.cost_ns >= 0) j_.Number("cost_ns", p.cost_ns);
      if (p.other_ns >= 0) j_.Number("other_ns", p.other_ns);
      j_.End();
    }
    j_.End();
  }

  const Plan& p_;
  const PlanShapes& s_;
  const Signature& signature_;
  std::vector<std::string> name_;            // per value
  std::vector<std::vector<int32_t>> after_;  // per node: the nodes that it waits for
  Json j_;
};

}  // namespace

std::string PlanJson(const Plan& plan, const PlanShapes& shapes, const Signature& signature) {
  return Writer(plan, shapes, signature).Text();
}

}  // namespace thalweg
