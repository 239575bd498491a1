#include "distributed/partition.h"

#include <algorithm>
#include <optional>

#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/graph/attr_proto.h"
#include "framework/graph/flow.h"
#include "framework/graph/function.h"
#include "framework/runtime/runtime.h"

namespace thalweg::distributed {
namespace {

constexpr uint64_t kSmallConst = 4096;  // bytes up to which a constant is made where it is needed rather than sent

// The smallest value there is, for those who only wait.
StatusOr<std::string> Nothing() {
  const int64_t none = 0;
  ASSIGN_OR_RETURN(Tensor t, Tensor::Make(TW_FLOAT, &none, 1));
  return SerializeAttr(AttrValue::OfTensor(std::move(t)));
}

bool IsSmallConst(const Node& n) {
  return n.op().role == "const" && n.controls().empty() && n.value(0) && n.value(0).bytes() <= kSmallConst;
}

}  // namespace

// One signature's way through a Partition.
class Splitter {
 public:
  Splitter(Partition* partition, const CallableSpec& spec) : p_(*partition), spec_(spec) {}

  StatusOr<Parts> Run() {
    for (size_t i = 0; i < spec_.feeds.size(); ++i) fed_.emplace(Key(spec_.feeds[i]), int32_t(i));
    CollectNeeded();
    for (const Node* n : needed_) {
      ASSIGN_OR_RETURN(const int32_t task, p_.placement_->TaskOf(*n));
      RETURN_IF_ERROR(AddNode(*n, task));
    }
    for (const Edge& e : spec_.fetches) RETURN_IF_ERROR(AddFetch(e));
    for (const Node* n : spec_.targets) {
      if (Given(n)) continue;
      ASSIGN_OR_RETURN(const int32_t task, p_.placement_->TaskOf(*n));
      AddTarget(task, n->name());
    }
    RETURN_IF_ERROR(Emit());
    return Finish();
  }

 private:
  using EdgeKey = std::pair<const Node*, int32_t>;
  static EdgeKey Key(const Edge& e) { return {e.node, e.port}; }
  // What is to become a part.
  struct Work {
    Part part;
    std::set<int32_t> wanted;              // nodes of the graph that must be there
    std::vector<PieceNode> before, after;  // nodes of ours: what nodes of the graph read, and what reads them
    std::map<std::string, int32_t> feed_at, fetch_at;
    std::set<std::string> targets, made;
  };

  std::optional<int32_t> Feed(const Edge& e) const {
    auto it = fed_.find(Key(e));
    return it == fed_.end() ? std::nullopt : std::optional(it->second);
  }
  // A placeholder that is fed runs nothing, so nobody has to wait for it.
  bool Given(const Node* n) const { return n->op().role == "placeholder" && Feed({n, 0}); }

  // As planning does it in one process: backwards from what is wanted, stopping at feeds.
  void CollectNeeded() {
    std::vector<const Node*> todo;
    std::set<const Node*> seen;
    auto need = [&](const Node* n) {
      if (!Given(n) && seen.insert(n).second) todo.push_back(n);
    };
    for (const Edge& e : spec_.fetches) {
      if (!Feed(e)) need(e.node);
    }
    for (const Node* n : spec_.targets) need(n);
    while (!todo.empty()) {
      const Node* n = todo.back();
      todo.pop_back();
      needed_.push_back(n);
      for (const Edge& e : n->inputs()) {
        if (!Feed(e)) need(e.node);
      }
      for (const Node* c : n->controls()) need(c);
      for (int32_t i = 0; i < n->n_in(); ++i) {
        if (const Node* next = n->back(i)) need(next);
      }
    }
    std::sort(needed_.begin(), needed_.end(), [](const Node* a, const Node* b) { return a->id() < b->id(); });
  }

  Work& WorkOf(int32_t task) {
    Work& w = work_[task];
    w.part.task = task;
    return w;
  }

  std::string TaskText(int32_t task) const {
    const TaskId& id = p_.cluster_->tasks()[size_t(task)].id;
    return StrCat(id.job, "_", id.index);
  }

  // ---- What runs ----

  Status AddNode(const Node& n, int32_t task) {
    Work& w = WorkOf(task);
    w.wanted.insert(n.id());
    for (const Edge& e : n.inputs()) RETURN_IF_ERROR(AddInput(e, task));
    for (const Node* c : n.controls()) RETURN_IF_ERROR(AddControl(c, task));
    if (const Node* by = p_.graph_->ExtendedBy(&n)) {
      const bool runs = std::binary_search(needed_.begin(), needed_.end(), by, [](auto* a, auto* b) { return a->id() < b->id(); });
      if (runs) w.part.piece.extended.emplace_back(n.name(), by->name());
    }
    return Status();
  }

  Status AddInput(const Edge& e, int32_t task) {
    ASSIGN_OR_RETURN(const int32_t from, p_.placement_->TaskOf(*e.node));
    if (const auto feed = Feed(e)) {
      AddFeed(task, from == task ? e.text() : Away(e, task), *feed);
      return Status();
    }
    if (from == task || IsSmallConst(*e.node)) return Status();
    return Transfer(e, from, task);
  }

  Status AddControl(const Node* c, int32_t task) {
    ASSIGN_OR_RETURN(const int32_t from, p_.placement_->TaskOf(*c));
    if (Given(c)) AddFeed(from, c->name(), *Feed({c, 0}));
    if (from == task || IsSmallConst(*c)) return Status();
    ASSIGN_OR_RETURN(const std::string done, DoneOf(c, from));
    return Send(done, TW_FLOAT, ControlKey(c, task), from, task);
  }

  // Another task has the value.
  Status Transfer(const Edge& e, int32_t from, int32_t task) {
    const uint32_t type = BaseType(e.node->out_type(e.port));
    if (type == TW_RESOURCE || type == TW_VARIANT) {
      return OfNode(
          *e.node, Unimplemented(e.node->title(), ": its ", DTypeName(type), " cannot leave ", p_.cluster_->tasks()[size_t(from)].id.text(),
                                 " for ", p_.cluster_->tasks()[size_t(task)].id.text(), "; place what takes it there too"));
    }
    WorkOf(from).wanted.insert(e.node->id());
    return Send(e.text(), type, ValueKey(e, task), from, task);
  }

  Status Send(const std::string& value, uint32_t type, const std::string& key, int32_t from, int32_t task) {
    const std::string& name = p_.NameFor(StrCat(key, "/_send"));
    if (!sent_.insert(key).second) return Status();
    Work& w = WorkOf(from);
    PieceNode n;
    n.name = name;
    n.op = "_Send";
    n.inputs = {value};
    RETURN_IF_ERROR(SetMeeting(key, "T", type, from, task, &n));
    AddMade(&w, std::move(n), &w.after);
    AddTarget(from, name);
    WorkOf(task).part.comes.emplace_back(key, from);
    return Status();
  }

  Status SetMeeting(const std::string& key, const std::string& type_attr, uint32_t type, int32_t from, int32_t to, PieceNode* n) const {
    const auto& tasks = p_.cluster_->tasks();
    ASSIGN_OR_RETURN(n->attrs[type_attr], SerializeAttr(AttrValue::Type(type)));
    ASSIGN_OR_RETURN(n->attrs["tensor_name"], SerializeAttr(AttrValue::String(key)));
    ASSIGN_OR_RETURN(n->attrs["send_device"], SerializeAttr(AttrValue::String(tasks[size_t(from)].id.text())));
    ASSIGN_OR_RETURN(n->attrs["recv_device"], SerializeAttr(AttrValue::String(tasks[size_t(to)].id.text())));
    ASSIGN_OR_RETURN(n->attrs["send_device_incarnation"], SerializeAttr(AttrValue::Int(0)));
    return Status();
  }

  std::string ValueKey(const Edge& e, int32_t task) const { return StrCat(e.node->name(), "/", e.port, "/", TaskText(task)); }
  std::string ControlKey(const Node* c, int32_t task) const { return StrCat(c->name(), "/done/", TaskText(task)); }
  // The name under which a task has a value that another makes.
  std::string Away(const Edge& e, int32_t task) {
    if (IsSmallConst(*e.node)) return p_.NameFor(StrCat(e.node->name(), "/_at/", TaskText(task)));
    return p_.NameFor(StrCat(ValueKey(e, task), "/_recv"));
  }

  // A value that is there when the node is over; on its own task.
  StatusOr<std::string> DoneOf(const Node* c, int32_t from) {
    Work& w = WorkOf(from);
    w.wanted.insert(c->id());
    PieceNode n;
    n.name = p_.NameFor(StrCat(c->name(), "/_done"));
    ASSIGN_OR_RETURN(const OpSchema* op, p_.graph_->runtime().registry().FindRole("const"));
    n.op = op->name;
    n.controls = {c->name()};
    ASSIGN_OR_RETURN(n.attrs["dtype"], SerializeAttr(AttrValue::Type(TW_FLOAT)));
    ASSIGN_OR_RETURN(n.attrs["value"], Nothing());
    const std::string name = n.name;
    AddMade(&w, std::move(n), &w.after);
    return name;
  }

  void AddMade(Work* w, PieceNode n, std::vector<PieceNode>* list) const {
    auto known = p_.known_.find(w->part.task);
    if (known != p_.known_.end() && known->second.made.count(n.name)) return;
    if (!w->made.insert(n.name).second) return;
    w->part.made.push_back(n.name);
    list->push_back(std::move(n));
  }

  void AddFeed(int32_t task, const std::string& text, int32_t feed) {
    Work& w = WorkOf(task);
    if (!w.feed_at.emplace(text, feed).second) return;
    w.part.piece.feeds.push_back(text);
    w.part.feeds.push_back(feed);
    const Edge& e = spec_.feeds[size_t(feed)];
    if (text == e.text()) {
      w.wanted.insert(e.node->id());
    } else {
      fed_away_.emplace_back(e, task);
    }
  }

  void AddTarget(int32_t task, const std::string& name) {
    Work& w = WorkOf(task);
    if (w.targets.insert(name).second) w.part.piece.targets.push_back(name);
  }

  Status AddFetch(const Edge& e) {
    if (const auto feed = Feed(e)) {
      fetches_.emplace_back(-1, *feed);
      return Status();
    }
    ASSIGN_OR_RETURN(const int32_t task, p_.placement_->TaskOf(*e.node));
    Work& w = WorkOf(task);
    auto [at, is_new] = w.fetch_at.emplace(e.text(), int32_t(w.part.piece.fetches.size()));
    if (is_new) w.part.piece.fetches.push_back(e.text());
    fetches_.emplace_back(task, at->second);
    return Status();
  }

  // ---- What has to be there ----

  Status Emit() {
    for (auto& [task, w] : work_) RETURN_IF_ERROR(EmitNodes(task, &w));
    for (const auto& [e, task] : fed_away_) RETURN_IF_ERROR(NeedAway(e, task, &WorkOf(task)));
    for (auto& [task, w] : work_) {
      RETURN_IF_ERROR(EmitLibrary(task, &w));
      auto& nodes = w.part.piece.nodes;
      nodes.insert(nodes.begin(), std::make_move_iterator(w.before.begin()), std::make_move_iterator(w.before.end()));
      nodes.insert(nodes.end(), std::make_move_iterator(w.after.begin()), std::make_move_iterator(w.after.end()));
    }
    return Status();
  }

  // What is wanted, and, on the same task, whatever its inputs need to exist.
  Status EmitNodes(int32_t task, Work* w) {
    const auto& known = p_.known_[task].nodes;
    std::vector<int32_t> todo(w->wanted.begin(), w->wanted.end());
    std::set<int32_t> all;
    auto want = [&](const Node* n) -> Status {
      ASSIGN_OR_RETURN(const int32_t at, p_.placement_->TaskOf(*n));
      if (at == task) todo.push_back(n->id());
      return Status();
    };
    while (!todo.empty()) {
      const int32_t id = todo.back();
      todo.pop_back();
      if (known.count(id) || !all.insert(id).second) continue;
      const Node& n = *p_.graph_->node(id);
      for (const Edge& e : n.inputs()) RETURN_IF_ERROR(want(e.node));
      for (const Node* c : n.controls()) RETURN_IF_ERROR(want(c));
      for (int32_t i = 0; i < n.n_in(); ++i) {
        if (const Node* next = n.back(i)) RETURN_IF_ERROR(want(next));
      }
    }
    for (int32_t id : all) RETURN_IF_ERROR(EmitNode(*p_.graph_->node(id), task, w));
    return Status();
  }

  Status EmitNode(const Node& n, int32_t task, Work* w) {
    PieceNode out;
    out.name = n.name();
    out.op = n.op().name;
    out.place = n.place();
    out.colocate_with = n.colocate_with();
    RETURN_IF_ERROR(SetDevice(n, &out));
    for (const Edge& e : n.inputs()) {
      ASSIGN_OR_RETURN(const int32_t from, p_.placement_->TaskOf(*e.node));
      out.inputs.push_back(from == task ? e.text() : Away(e, task));
      if (from != task) RETURN_IF_ERROR(NeedAway(e, task, w));
    }
    for (const Node* c : n.controls()) {
      ASSIGN_OR_RETURN(const int32_t from, p_.placement_->TaskOf(*c));
      if (from == task) {
        out.controls.push_back(c->name());
      } else if (!IsSmallConst(*c)) {
        out.controls.push_back(p_.NameFor(StrCat(ControlKey(c, task), "/_recv")));
        RETURN_IF_ERROR(AddReceive(out.controls.back(), ControlKey(c, task), TW_FLOAT, from, task, w));
      }
    }
    for (int32_t i = 0; i < n.n_in(); ++i) {
      if (const Node* next = n.back(i)) w->part.piece.loops.push_back({n.name(), next->name(), i});
    }
    RETURN_IF_ERROR(SetAttrs(n, &out));
    w->part.piece.nodes.push_back(std::move(out));
    w->part.nodes.push_back(n.id());
    return Status();
  }

  Status NeedAway(const Edge& e, int32_t task, Work* w) {
    ASSIGN_OR_RETURN(const int32_t from, p_.placement_->TaskOf(*e.node));
    if (!IsSmallConst(*e.node)) return AddReceive(Away(e, task), ValueKey(e, task), BaseType(e.node->out_type(e.port)), from, task, w);
    PieceNode copy;
    copy.name = Away(e, task);
    copy.op = e.node->op().name;
    copy.place = e.node->place();
    RETURN_IF_ERROR(SetAttrs(*e.node, &copy));
    AddMade(w, std::move(copy), &w->before);
    return Status();
  }

  Status AddReceive(const std::string& name, const std::string& key, uint32_t type, int32_t from, int32_t task, Work* w) {
    PieceNode n;
    n.name = name;
    n.op = "_Recv";
    RETURN_IF_ERROR(SetMeeting(key, "tensor_type", type, from, task, &n));
    AddMade(w, std::move(n), &w->before);
    return Status();
  }

  // Where on its task it is to run: what it says itself, and what the session says where it says nothing.
  Status SetDevice(const Node& n, PieceNode* out) const {
    auto spec = ParseDeviceSpec(n.device());
    if (!spec.ok()) return OfNode(n, Prefix(spec.status(), n.title() + ":"));
    if (auto both = MergeDeviceSpecs(*spec, p_.wish_); both.ok()) spec = *std::move(both);
    spec->job.clear();
    spec->replica = spec->task = -1;
    out->device = spec->text();
    return Status();
  }

  static Status SetAttrs(const Node& n, PieceNode* out) {
    for (size_t i = 0; i < n.attrs().size(); ++i) {
      const std::string& name = n.op().attrs[i].name;
      if (n.extra_attrs().count(name)) continue;  // its full form
      auto message = SerializeAttr(n.attrs()[i]);
      if (!message.ok()) return OfNode(n, Prefix(message.status(), StrCat(n.title(), ": attribute '", name, "':")));
      out->attrs.emplace(name, *std::move(message));
    }
    for (const auto& [name, message] : n.extra_attrs()) {
      if (name == "_class") continue;
      (name[0] == '_' ? out->extra_attrs : out->attrs).emplace(name, message);
    }
    return Status();
  }

  Status EmitLibrary(int32_t task, Work* w) {
    if (library_.empty()) {
      library_ = p_.graph_->extras().library;
      if (const auto functions = p_.graph_->functions()) {
        ASSIGN_OR_RETURN(const std::string added, functions->ExportAdded());
        library_ += added;
      }
    }
    if (library_ != p_.known_[task].library) w->part.piece.library = library_;
    return Status();
  }

  Parts Finish() {
    Parts out;
    std::map<int32_t, int32_t> index;
    for (auto& [task, w] : work_) {
      index[task] = int32_t(out.parts.size());
      out.parts.push_back(std::move(w.part));
    }
    for (const auto& [task, at] : fetches_) out.fetches.emplace_back(task < 0 ? -1 : index.at(task), at);
    return out;
  }

  Partition& p_;
  const CallableSpec& spec_;
  std::map<EdgeKey, int32_t> fed_;
  std::vector<const Node*> needed_;
  std::map<int32_t, Work> work_;                    // by task
  std::set<std::string> sent_;                      // keys
  std::vector<std::pair<Edge, int32_t>> fed_away_;  // values that are fed to a task beside the one that would make them
  std::vector<std::pair<int32_t, int32_t>> fetches_;
  std::string library_;
};

const std::string& Partition::NameFor(const std::string& base) {
  auto [it, is_new] = names_.emplace(base, std::string());
  if (!is_new) return it->second;
  std::string& name = it->second;
  for (char c : base) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '/';
    name += plain ? c : '.';
  }
  while (graph_->Find(name)) name += "_";
  return name;
}

StatusOr<Parts> Partition::Split(const CallableSpec& spec) { return Splitter(this, spec).Run(); }

void Partition::Told(const Part& part) {
  Known& k = known_[part.task];
  k.nodes.insert(part.nodes.begin(), part.nodes.end());
  k.made.insert(part.made.begin(), part.made.end());
  if (!part.piece.library.empty()) k.library = part.piece.library;
  for (int32_t id : part.nodes) placement_->Settle(*graph_->node(id));
}

void Partition::Forget(int32_t task) { known_.erase(task); }

}  // namespace thalweg::distributed
