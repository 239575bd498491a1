// Builds the work graph of a signature: the nodes that feeds, fetches and targets need. It also
// replaces nodes with references: each becomes the node that it runs as, a reference becomes its
// handle, and a use of its value becomes a read of its own. So no pass and no kernel ever sees a
// reference.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/planner/passes/open_variables.h"
#include "framework/planner/work_graph.h"

namespace thalweg {
namespace {

// Returns true if the node makes a handle for each reference that it outputs; other nodes forward a
// handle that they were given.
bool GivesHandles(const Node& n) { return n.runs_as() && n.runs_as()->n_out() == n.n_out(); }

uint64_t EdgeKey(const Edge& e) { return uint64_t(uint32_t(e.node->id())) << 16 | uint64_t(uint32_t(e.port)); }

// A reference: its handle, and the work node that forwards it and must end before it is read (-1 if
// none).
struct Reference {
  WorkEdge handle;
  int32_t after = -1;
  const Node* read = nullptr;    // the node that reads the value
  std::vector<int32_t> renamed;  // work nodes that then change the dims of the value, one after the other
};

// Maps the id of a node to its work node; -1 if none. Its size grows with the needed nodes, not
// with the graph.
class WorkIndex {
 public:
  int32_t& operator[](size_t id) { return at_.try_emplace(id, -1).first->second; }
  int32_t operator[](size_t id) const {
    auto it = at_.find(id);
    return it == at_.end() ? -1 : it->second;
  }
  void Reserve(size_t n) { at_.reserve(n); }

 private:
  std::unordered_map<size_t, int32_t> at_;
};

class Builder {
 public:
  Builder(Graph* graph, const Signature& signature, WorkGraph* w) : graph_(graph), sig_(signature), w_(*w) {
    w->graph = graph;
    w->signature = &signature;
  }

  Status Run() {
    for (size_t i = 0; i < sig_.feeds.size(); ++i) {
      if (!fed_.emplace(EdgeKey(sig_.feeds[i]), int32_t(i)).second) {
        return InvalidArgument("'", Shown(sig_.feeds[i].text()), "' is fed twice");
      }
    }
    CollectNeeded();
    if (graph_->has_replaced()) ReplaceValues();
    w_.nodes.reserve(sig_.feeds.size() + needed_.size());
    index_.Reserve(needed_.size());
    RETURN_IF_ERROR(AddFeeds());
    for (const Node* n : needed_) RETURN_IF_ERROR(AddOnce(n));
    if (w_.flow) CloseLoops();
    MarkOpen();
    Waits waits;
    for (const Edge& e : sig_.fetches) w_.fetches.push_back(Fetched(Real(e), &waits));
    for (const Node* n : sig_.targets) {
      if (!Given(n)) w_.targets.push_back(index_[size_t(Real(n)->id())]);
    }
    return Status();
  }

 private:
  // The nodes that the reads of one node wait for, so that the reads come as late as if the node
  // itself read. The first read waits for all of them, the others wait for the first read.
  struct Waits {
    std::vector<int32_t> nodes;
    std::unordered_map<uint64_t, int32_t> reads;  // by edge
  };

  int32_t Feed(const Edge& e) const {
    auto it = fed_.find(EdgeKey(e));
    return it == fed_.end() ? -1 : it->second;
  }
  // A fed placeholder does not run, so no node has to wait for it.
  bool Given(const Node* n) const { return (n->op().role == "placeholder" && Feed({n, 0}) >= 0) || Over(n); }
  bool Over(const Node* n) const {
    return !sig_.over.empty() &&
           std::binary_search(sig_.over.begin(), sig_.over.end(), n, [](const Node* a, const Node* b) { return a->id() < b->id(); });
  }

  bool Needed(const Node* n) const {
    return std::binary_search(needed_.begin(), needed_.end(), n, [](const Node* a, const Node* b) { return a->id() < b->id(); });
  }

  // If needed nodes make a value in another way anyway, takes the value from them.
  void ReplaceValues() {
    for (const Node* n : needed_) {
      for (int32_t o = 0; o < n->n_out(); ++o) {
        const Edge by = Feed({n, o}) < 0 ? graph_->ReplacedBy({n, o}) : Edge();
        bool runs = false;
        for (const Node* form = by.node; form && !runs; form = graph_->ExtendedBy(form)) runs = Needed(form);
        if (runs) real_.emplace(EdgeKey({n, o}), by);
      }
    }
    if (real_.empty()) return;
    needed_.clear();
    CollectNeeded();
  }

  Edge Real(const Edge& e) const {
    auto it = real_.empty() ? real_.end() : real_.find(EdgeKey(e));
    return it == real_.end() ? e : it->second;
  }
  const Node* Real(const Node* n) const { return Real(Edge{n, 0}).node; }

  // Walks back from fetches and targets and stops at feeds.
  void CollectNeeded() {
    std::vector<const Node*> todo;
    std::unordered_set<const Node*> seen;
    auto need = [&](const Node* n) {
      if (!Given(n) && seen.insert(n).second) todo.push_back(n);
    };
    for (const Edge& e : sig_.fetches) {
      if (Feed(e) < 0) need(Real(e).node);
    }
    for (const Node* n : sig_.targets) need(Real(n));
    while (!todo.empty()) {
      const Node* n = todo.back();
      todo.pop_back();
      needed_.push_back(n);
      for (const Edge& e : n->inputs()) {
        if (Feed(e) < 0) need(Real(e).node);
      }
      for (const Node* c : n->controls()) need(Real(c));
      if (FlowOf(*n) != Flow::kMerge) continue;
      for (int32_t i = 0; i < n->n_in(); ++i) {
        if (const Node* next = n->back(i)) need(next);
      }
    }
    std::sort(needed_.begin(), needed_.end(), [](const Node* a, const Node* b) { return a->id() < b->id(); });
  }

  Status AddFeeds() {
    w_.feeds.assign(sig_.feeds.size(), -1);
    for (size_t i = 0; i < sig_.feeds.size(); ++i) {
      const Edge& e = sig_.feeds[i];
      WorkNode f;
      f.feed = int32_t(i);
      f.out_types = {BaseType(e.node->out_type(e.port))};
      auto shape = MergeShapes(e.node->shape(e.port), w_.feed_shapes[i]);
      if (!shape.ok()) {
        return InvalidArgument("the feed of '", Shown(e.text()), "' has shape ", w_.feed_shapes[i].text(), " but ",
                               e.node->shape(e.port).text(), " is declared");
      }
      f.shapes = {*std::move(shape)};
      f.handles = {e.node->handle(e.port)};
      f.values.resize(1);
      f.varies = !e.node->shape(e.port).known();
      w_.feeds[i] = Push(std::move(f));
    }
    return Status();
  }

  int32_t Push(WorkNode n) {
    w_.nodes.push_back(std::move(n));
    changes_.push_back(0);
    return int32_t(w_.nodes.size()) - 1;
  }

  // If nodes replace each other, only the last needed one runs, at the place of the first. The
  // inputs that only this one reads come early with it.
  Status AddOnce(const Node* first) {
    std::vector<const Node*> todo = {first};
    while (!todo.empty()) {
      const Node* n = todo.back();
      if (index_[size_t(n->id())] >= 0) {
        todo.pop_back();
        continue;
      }
      const Node* runs = n;
      for (const Node* by = graph_->ExtendedBy(n); by; by = graph_->ExtendedBy(by)) {
        if (Needed(by)) runs = by;
      }
      const size_t before = todo.size();
      const auto want = [&](const Node* of) {
        if (index_[size_t(of->id())] < 0) todo.push_back(of);
      };
      for (const Edge& e : runs->inputs()) {
        if (Feed(e) < 0) want(Real(e).node);
      }
      for (const Node* c : runs->controls()) {
        if (!Given(c)) want(Real(c));
      }
      if (todo.size() > before) continue;
      Status s = index_[size_t(runs->id())] < 0 ? AddNode(*runs) : Status();
      if (!s.ok()) return OfNode(*runs, Prefix(s, runs->title() + ":"));
      for (; n != runs; n = graph_->ExtendedBy(n)) index_[size_t(n->id())] = index_[size_t(runs->id())];
    }
    return Status();
  }

  Status AddNode(const Node& n) {
    if (n.op().role == "placeholder") {
      return InvalidArgument("no value is fed; feed '", Shown(n.name()), "' (", DTypeName(n.out_type(0)), ", shape ", n.shape(0).text(),
                             ")");
    }
    WorkNode x;
    x.node = n.runs_as() ? n.runs_as() : &n;
    x.flow = FlowOf(x.node->op());
    w_.flow = w_.flow || x.flow != Flow::kNone || (n.op().role == "recv" && n.extra_attrs().count(kMayBeDead));
    x.in.resize(n.inputs().size());
    x.controls.reserve(n.controls().size());
    for (const Node* c : n.controls()) {
      if (!Given(c)) x.controls.push_back(index_[size_t(Real(c)->id())]);
    }
    bool reads = false;
    for (size_t i = 0; i < x.in.size(); ++i) {
      const Edge e = Real(n.inputs()[i]);
      if (IsRef(n.in_type(int32_t(i)))) {
        RETURN_IF_ERROR(TakeReference(e, &x.in[i], &x));
      } else if (Find(e)) {
        reads = true;
      } else {
        x.in[i] = Plain(e);
      }
    }
    if (reads) AddReads(n, &x);
    AddAfterReads(n, std::move(x));
    return Status();
  }

  Status TakeReference(const Edge& e, WorkEdge* in, WorkNode* x) {
    if (Feed(e) >= 0) return InvalidArgument("'", Shown(e.text()), "' is fed, but the node works on the variable that it refers to");
    const Reference& r = ReferenceOf(e);
    *in = r.handle;
    if (r.after >= 0) x->controls.push_back(r.after);
    return Status();
  }

  // A value that is no reference, or is fed.
  WorkEdge Plain(const Edge& e) const {
    if (const int32_t f = Feed(e); f >= 0) return {w_.feeds[size_t(f)], 0};
    int32_t port = e.port;
    const bool fewer = e.node->runs_as() && !GivesHandles(*e.node);
    for (int32_t o = 0; fewer && o < e.port; ++o) port -= IsRef(e.node->out_type(o));  // outputs that the other node lacks
    return {index_[size_t(e.node->id())], port};
  }

  const Reference& ReferenceOf(const Edge& e) const { return references_.at(EdgeKey({e.node, GivesHandles(*e.node) ? e.port : 0})); }

  // Returns the variable behind an edge that is not fed: behind a reference, or behind a value that
  // an op forwarded. Returns NULL if there is none.
  const Reference* Find(const Edge& e) const {
    if (Feed(e) >= 0) return nullptr;
    if (IsRef(e.node->out_type(e.port))) return &ReferenceOf(e);
    auto it = passed_.find(EdgeKey(e));
    return it == passed_.end() ? nullptr : &it->second;
  }

  // REQUIRES: all other inputs of x are there. If the reader of a forwarded value waits for a
  // change of the variable, the variable is read again: graphs were written for a runtime in which
  // both share memory.
  void AddReads(const Node& n, WorkNode* x) {
    Waits waits;
    auto wait = [&](int32_t k) {
      if (k >= 0 && changes_[size_t(k)]) waits.nodes.push_back(k);
    };
    for (int32_t c : x->controls) wait(c);
    for (const WorkEdge& e : x->in) wait(e.node);
    std::vector<size_t> open;
    for (size_t i = 0; i < x->in.size(); ++i) {
      if (x->in[i].node >= 0) continue;
      open.push_back(i);
      const Edge e = Real(n.inputs()[i]);
      wait(IsRef(e.node->out_type(e.port)) ? ReferenceOf(e).after : index_[size_t(e.node->id())]);
    }
    const bool again = !waits.nodes.empty();
    for (size_t i : open) {
      const int32_t after = Find(Real(n.inputs()[i]))->after;
      if (again && after >= 0) waits.nodes.push_back(after);
    }
    std::sort(waits.nodes.begin(), waits.nodes.end());
    waits.nodes.erase(std::unique(waits.nodes.begin(), waits.nodes.end()), waits.nodes.end());
    for (size_t i : open) {
      const Edge e = Real(n.inputs()[i]);
      x->in[i] = again || IsRef(e.node->out_type(e.port)) ? Read(e, &n, &waits) : Plain(e);
    }
  }

  WorkEdge Fetched(const Edge& e, Waits* waits) {
    if (Feed(e) >= 0 || !IsRef(e.node->out_type(e.port))) return Plain(e);
    const int32_t after = ReferenceOf(e).after;
    waits->nodes.clear();
    if (after >= 0) waits->nodes = {after};
    return Read(e, nullptr, waits);
  }

  // reader: NULL for a fetch.
  WorkEdge Read(const Edge& e, const Node* reader, Waits* waits) {
    auto [it, is_new] = waits->reads.emplace(EdgeKey(e), -1);
    if (!is_new) return {it->second, 0};
    const Reference& r = *Find(e);
    WorkNode read;
    read.node = r.read;
    read.reader = reader;
    read.in = {r.handle};
    read.controls = waits->nodes;
    read.out_types = {r.read->out_type(0)};
    read.values.resize(1);
    const int32_t first = it->second = Push(std::move(read));
    changes_.back() = !waits->nodes.empty();
    for (int32_t k : r.renamed) {
      WorkNode again = w_.nodes[size_t(k)];
      again.in[size_t(again.node->op().algebra.renames)] = {it->second, 0};
      it->second = Push(std::move(again));
      changes_.back() = changes_[size_t(first)];
    }
    if (!waits->nodes.empty() && waits->reads.size() == 1) waits->nodes = {first};
    return {it->second, 0};
  }

  void AddAfterReads(const Node& n, WorkNode x) {
    const Node& run = *x.node;
    x.out_types.assign(run.types().begin() + run.n_in(), run.types().end());
    x.values.resize(size_t(run.n_out()));
    auto changed = [this](int32_t k) { return changes_[size_t(k)] != 0; };
    const bool follows = std::any_of(x.controls.begin(), x.controls.end(), changed) ||
                         std::any_of(x.in.begin(), x.in.end(), [&](const WorkEdge& e) { return changed(e.node); });
    const bool holds = std::any_of(run.types().begin(), run.types().begin() + run.n_in(), [](uint32_t t) { return t == TW_RESOURCE; });
    const bool acts = holds && run.op().stateful && run.op().role != "read_variable";
    if (n.runs_as()) AddReference(n, x);
    index_[size_t(n.id())] = Push(std::move(x));
    changes_.back() = follows || acts;
    const OpAlgebra& a = n.op().algebra;
    if (a.passes >= 0) Pass(n, 0, a.passes);
    if (a.renames >= 0) Pass(n, 0, a.renames);
    for (int32_t o = 0; n.op().role == "identities" && o < n.n_out(); ++o) Pass(n, o, o);
  }

  // Output o of the node is its input i, possibly under other dims.
  void Pass(const Node& n, int32_t o, int32_t i) {
    const Reference* passed = Find(Real(n.inputs()[size_t(i)]));
    if (!passed) return;
    Reference mine = *passed;
    const int32_t self = index_[size_t(n.id())];
    if (n.op().algebra.renames >= 0) mine.renamed.push_back(self);
    if (!n.controls().empty()) mine.after = self;
    passed_[EdgeKey({&n, o})] = std::move(mine);
  }

  // Adds the references that the node outputs: handles of its own, or the one that it was given, to
  // be read later.
  void AddReference(const Node& n, const WorkNode& x) {
    const int32_t self = int32_t(w_.nodes.size());
    if (GivesHandles(n)) {
      for (int32_t o = 0; o < n.n_out(); ++o) {
        if (IsRef(n.out_type(o))) references_[EdgeKey({&n, o})] = {{self, o}, -1, n.read(o)};
      }
      return;
    }
    const Node* read = nullptr;
    for (int32_t o = 0; !read && o < n.n_out(); ++o) read = n.read(o);
    for (int32_t i = 0; i < n.n_in(); ++i) {
      if (!IsRef(n.in_type(i))) continue;
      references_[EdgeKey({&n, 0})] = {x.in[size_t(i)], self, read};
      return;
    }
  }

  // Connects the back edges of loops, whose sources did not exist before.
  void CloseLoops() {
    for (const Node* n : needed_) {
      WorkNode& x = w_.nodes[size_t(index_[size_t(n->id())])];
      for (int32_t i = 0; x.flow == Flow::kMerge && i < n->n_in(); ++i) {
        if (!n->back(i)) continue;
        x.back.resize(x.in.size());
        x.back[size_t(i)] = Plain({n->back(i), 0});
      }
    }
  }

  // Marks the variables whose shape some node of the graph may change. The other variables keep
  // their declared shape.
  void MarkOpen() {
    if (references_.empty()) return;
    OpenVariables open;
    open.Look(*graph_);
    w_.seen = open.seen();
    for (const Node* n : needed_) {
      if (!MakesReference(*n)) continue;
      if (open.Has(n))
        w_.nodes[size_t(index_[size_t(n->id())])].open = true;
      else
        w_.fixed.push_back(n);
    }
  }

  Graph* const graph_;
  const Signature& sig_;
  WorkGraph& w_;
  std::unordered_map<uint64_t, int32_t> fed_;
  std::unordered_map<uint64_t, Edge> real_;  // values that other nodes make in this plan
  std::vector<const Node*> needed_;
  WorkIndex index_;
  std::unordered_map<uint64_t, Reference> references_;  // by output; for nodes that forward their reference, by output 0
  std::unordered_map<uint64_t, Reference> passed_;      // by output, for nodes that forward the value of a reference
  std::vector<uint8_t> changes_;                        // per node: it, or a node that it waits for, may change state
};

}  // namespace

Status BuildWorkGraph(Graph* graph, const Signature& signature, WorkGraph* out) { return Builder(graph, signature, out).Run(); }

}  // namespace thalweg
