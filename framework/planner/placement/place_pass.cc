// Chooses the device of each node. Nodes that must share a device form a group. A group gets the
// first device that its members ask for, or allow, and that has kernels for all of them;
// accelerators come first for large graphs, or as the option `prefer` says. A node without inputs then follows
// its only reader, and a node that needs only the shape of its input, or renames it, follows that
// input. If the session lets a node run elsewhere, the pass reports it.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/graph/function_shapes.h"
#include "framework/planner/placement/device_map.h"
#include "framework/planner/placement/missing_kernel.h"
#include "framework/planner/placement/place_by_cost.h"
#include "framework/planner/placement/work_facts.h"
#include "framework/planner/work_graph.h"
#include "framework/runtime/choose_kernel.h"
#include "framework/runtime/devices/missing_device.h"
#include "framework/runtime/runtime.h"

namespace thalweg {
namespace {

class Groups {
 public:
  explicit Groups(size_t n) : parent_(n) { std::iota(parent_.begin(), parent_.end(), 0); }
  int32_t Find(int32_t x) {
    while (parent_[size_t(x)] != x) x = parent_[size_t(x)] = parent_[size_t(parent_[size_t(x)])];
    return x;
  }
  void Join(int32_t a, int32_t b) { parent_[size_t(Find(b))] = Find(a); }
  int32_t Add() {
    parent_.push_back(int32_t(parent_.size()));
    return parent_.back();
  }

 private:
  std::vector<int32_t> parent_;
};

bool IsState(uint32_t type) { return type == TW_RESOURCE || IsRef(type); }

std::string ShortName(const Device& d) { return StrCat(d.kind(), ":", d.index()); }

class Placer {
 public:
  explicit Placer(WorkGraph* w) : w_(*w), n_nodes_(w->nodes.size()), groups_(n_nodes_), member_(n_nodes_, nullptr) {}

  Status Run() {
    CollectMembers();
    JoinState();
    RETURN_IF_ERROR(CollectWishes());
    if (has_state_ && (has_wishes_ || !w_.options->device.text().empty())) CollectIdleHolders();
    const bool by_cost = w_.options->placement == "cost";
    w_.accelerators_first = w_.options->prefer == "accelerator" || (w_.options->prefer == "auto" && IsLarge());
    SetDevices(by_cost || w_.options->places || w_.accelerators_first ? w_.runtime().devices() : w_.runtime().ready_devices());
    std::vector<std::pair<int32_t, int32_t>> nodes;  // group, node
    nodes.reserve(n_nodes_);
    for (size_t i = 0; i < n_nodes_; ++i) {
      if (member_[i]) nodes.emplace_back(groups_.Find(int32_t(i)), int32_t(i));
    }
    std::sort(nodes.begin(), nodes.end());
    std::vector<Group> groups;
    for (auto next = nodes.begin(); next != nodes.end();) {
      Group& g = groups.emplace_back();
      g.id = next->first;
      for (; next != nodes.end() && next->first == g.id; ++next) g.nodes.push_back(next->second);
      RETURN_IF_ERROR(PlaceGroup(&g));
    }
    if (devices_.size() > 1) Follow(&groups);
    if (by_cost) ChooseByCost(&groups);
    NoteReasons(groups);
    return refused_;
  }

 private:
  struct Group {
    int32_t id = -1;
    std::vector<int32_t> nodes;  // work nodes, in order
    DeviceSpec spec;             // the combined wishes of its nodes
    Device* device = nullptr;
    PlaceNote::Why why = PlaceNote::kFirst;
    const Node* with = nullptr;      // for kFollows: the node that it follows
    int64_t ns = -1, other_ns = -1;  // of a choice by cost
  };
  using Wishes = std::vector<std::pair<const Node*, DeviceSpec>>;

  // Collects the work nodes that run, then graph nodes that others are colocated with but that do
  // not run here.
  void CollectMembers() {
    bool colocated = false;
    for (size_t i = 0; i < n_nodes_; ++i) {
      const WorkNode& n = w_.nodes[i];
      if (!n.node || n.dead || n.constant || n.flow != Flow::kNone) continue;
      member_[i] = n.node;
      colocated = colocated || !n.node->colocate_with().empty();
    }
    if (colocated) JoinColocated();
  }

  void JoinColocated() {
    std::map<std::string_view, int32_t> by_name;
    for (size_t i = 0; i < n_nodes_; ++i) {
      if (member_[i]) by_name[member_[i]->name()] = int32_t(i);
    }
    for (size_t i = 0; i < member_.size(); ++i) {  // grows during the loop
      if (!member_[i]) continue;
      for (const std::string& other : member_[i]->colocate_with()) {
        auto it = by_name.find(other);
        const Node* absent = it == by_name.end() ? w_.graph->Find(other) : nullptr;
        if (absent) {
          it = by_name.emplace(absent->name(), groups_.Add()).first;
          member_.push_back(absent);
        }
        if (it != by_name.end()) groups_.Join(it->second, int32_t(i));
      }
    }
  }

  static bool Unopened(const Node& n, uint32_t i) {
    const auto& at = n.in_at();
    const auto argument = std::upper_bound(at.begin(), at.end(), i) - at.begin() - 1;
    return n.op().unopened[size_t(argument)] != 0;
  }

  // State and every op that opens its handle share a device. A node that calls functions only
  // passes handles on, so it need not share the device.
  void JoinState() {
    const bool somewhere = !w_.options->device.text().empty() ||
                           std::any_of(member_.begin(), member_.end(), [](const Node* n) { return n && !n->device().empty(); });
    for (size_t i = 0; i < n_nodes_; ++i) {
      if (!member_[i] || (somewhere && CallsFunctions(member_[i]->op()))) continue;
      const WorkNode& n = w_.nodes[i];
      for (size_t k = 0; k < n.in.size(); ++k) {
        if (!IsState(n.node->in_type(int32_t(k))) || !member_[size_t(n.in[k].node)] || Unopened(*n.node, uint32_t(k))) continue;
        groups_.Join(n.in[k].node, int32_t(i));
        has_state_ = true;
      }
    }
  }

  Status CollectWishes() {
    spec_.resize(member_.size());
    std::map<size_t, Wishes> wishes;  // per group
    for (size_t i = 0; i < member_.size(); ++i) {
      if (!member_[i] || member_[i]->device().empty()) continue;
      has_wishes_ = true;
      RETURN_IF_ERROR(AddWish(*member_[i], size_t(groups_.Find(int32_t(i))), &wishes));
    }
    return Status();
  }

  Status AddWish(const Node& node, size_t g, std::map<size_t, Wishes>* wishes) {
    auto own = MappedDevice(w_.options->device_map, node.device());
    if (!own.ok()) return OfNode(node, Prefix(own.status(), node.title() + ":"));
    auto merged = MergeDeviceSpecs(spec_[g], *own);
    if (!merged.ok()) {  // some wish of the group contradicts this one
      for (const auto& [other, wish] : (*wishes)[g]) {
        if (MergeDeviceSpecs(wish, *own).ok()) continue;
        return OfNode(node, InvalidArgument(node.title(), ": device '", Shown(own->text()), "' contradicts '", Shown(wish.text()), "' of ",
                                            other->title(), ", with which it must share a device"));
      }
    }
    ASSIGN_OR_RETURN(spec_[g], merged);
    (*wishes)[g].emplace_back(&node, *std::move(own));
    return Status();
  }

  // Collects nodes of the graph that open the handle of state that is placed here, but that do not
  // run in this step. A step that runs them must find the state where this one puts it. As in
  // JoinState, nodes that call functions open no handle.
  void CollectIdleHolders() {
    std::unordered_map<const Node*, std::set<int32_t>> groups_of;  // the groups whose state a node passes on
    for (size_t i = 0; i < n_nodes_; ++i) {
      if (member_[i]) groups_of[&member_[i]->origin()] = {groups_.Find(int32_t(i))};
    }
    for (int32_t id = 0; id < w_.graph->size(); ++id) {
      const Node* node = w_.graph->node(id);
      if (groups_of.count(node)) continue;
      std::set<int32_t> held;
      for (int32_t k = 0; k < node->n_in(); ++k) {
        const bool holds = IsState(node->in_type(k)) && !Unopened(*node, uint32_t(k));
        auto it = holds ? groups_of.find(node->inputs()[size_t(k)].node) : groups_of.end();
        if (it != groups_of.end()) held.insert(it->second.begin(), it->second.end());
      }
      const Node* opens = node->runs_as() ? node->runs_as() : node;
      for (int32_t g : held) {
        if (!CallsFunctions(opens->op())) idle_[g].push_back(opens);
      }
      if (!held.empty()) groups_of[node] = std::move(held);
    }
  }

  // Sorts the devices: those with memory of their own before or behind those in host memory.
  void SetDevices(std::vector<Device*> list) {
    const auto rank = [this](const Device* d) { return d->host_memory() == w_.accelerators_first ? 1 : 0; };
    std::stable_sort(list.begin(), list.end(), [&](Device* a, Device* b) { return rank(a) < rank(b); });
    devices_ = std::move(list);
  }

  // Returns true if the values that the graph declares take so many bytes that an accelerator is
  // worth its start and the copies. The whole graph counts and not only this step, so that all
  // steps, which share variables, agree.
  bool IsLarge() const {
    constexpr uint64_t kLarge = 1 << 20;
    uint64_t bytes = 0;
    const auto add = [&](uint32_t dtype, const Shape& shape) {
      const DTypeInfo* info = FindDType(BaseType(dtype));
      if (!info || !info->plain || !shape.has_rank()) return;
      std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end());
      for (int64_t& d : dims) d = std::max<int64_t>(d, 1);  // an open size is at least one
      const auto size = CountBytes(dims.data(), int32_t(dims.size()), BaseType(dtype));
      bytes += size.ok() ? std::min<uint64_t>(uint64_t(*size), kLarge) : kLarge;
    };
    for (int32_t id = 0, n = w_.graph->size(); id < n && bytes < kLarge; ++id) {
      const Node* node = w_.graph->node(id);
      for (int32_t o = 0; o < node->n_out(); ++o) {
        const bool handle = node->out_type(o) == TW_RESOURCE;
        if (!handle || node->handle(o).known())
          add(handle ? node->handle(o).dtype : node->out_type(o), handle ? node->handle(o).shape : node->shape(o));
      }
    }
    return bytes >= kLarge;
  }

  static bool Admits(const DeviceSpec& spec, const Device& d) { return spec.Admits(d.spec()) && !(d.on_request() && spec.kind.empty()); }
  // For a choice by times: a device on request is chosen where it was measured to be faster. One in
  // host memory may compute nothing, and so would always win.
  static bool AdmitsByCost(const DeviceSpec& spec, const Device& d) {
    return Admits(spec, d) || (spec.Admits(d.spec()) && !d.host_memory());
  }

  // A kernel that refuses the node ends the pass: see refused_.
  const KernelDef* KernelOn(const NodeFacts& facts, const Device& d, std::string* declined = nullptr) const {
    auto k = ChooseKernel(w_.runtime().registry(), d, facts, declined);
    if (k.ok()) return *k;
    if (refused_.ok()) refused_ = OfNode(facts.node, k.status());
    return nullptr;
  }
  const KernelDef* KernelOn(const Node& n, const Device& d) const { return KernelOn(NodeFacts{n, {}, {}}, d); }
  const KernelDef* KernelOn(const WorkNode& n, const Device& d, std::string* declined = nullptr) const {
    const KernelDef* best =
        w_.runtime().registry().FindKernel(n.node->op(), d.kind(), n.node->types(), n.node->in_at(), n.node->out_at(), n.node->attrs());
    if (!best || !best->def.fits) return best;  // nearly always, and then nobody needs the facts
    const WorkFacts facts(w_, n);
    return KernelOn(facts.facts(), d, declined);
  }
  template <class SomeNode>
  bool RunsThere(const DeviceSpec& spec, const SomeNode& n) const {
    return std::any_of(devices_.begin(), devices_.end(), [&](Device* d) { return Admits(spec, *d) && KernelOn(n, *d); });
  }
  // Returns the reasons of the kernels that decline the node on the admitted devices, each once; "" if
  // there are none.
  std::string Declined(const DeviceSpec& spec, const WorkNode& n) const {
    std::set<std::string> kinds;
    std::string text;
    for (Device* d : devices_) {
      if (Admits(spec, *d) && kinds.insert(d->kind()).second) KernelOn(n, *d, &text);
    }
    return text;
  }

  // Returns the first device that the spec admits and that has kernels for all nodes of the group;
  // sets these kernels. idle: the device must also have kernels for the nodes that open its state
  // elsewhere in the graph.
  Device* First(const Group& g, const DeviceSpec& spec, bool idle) {
    for (Device* d : devices_) {
      if (!Admits(spec, *d)) continue;
      bool all = true;
      for (size_t k = 0; all && k < g.nodes.size(); ++k) {
        WorkNode& n = w_.nodes[size_t(g.nodes[k])];
        all = (n.kernel = KernelOn(n, *d)) != nullptr;
      }
      auto holders = idle ? idle_.find(g.id) : idle_.end();
      for (size_t k = 0; all && holders != idle_.end() && k < holders->second.size(); ++k) all = KernelOn(*holders->second[k], *d);
      if (all) return d;
    }
    return nullptr;
  }

  // Starts drivers only for a group that the devices found so far cannot serve.
  Device* Choose(const Group& g) {
    const bool elsewhere = w_.options->fallback != "fail";
    Device* d = First(g, g.spec, true);
    if (!d && !First(g, g.spec, false)) {
      SetDevices(w_.runtime().devices());
      d = First(g, g.spec, true);
    }
    if (!d && elsewhere) d = First(g, DeviceSpec(), true);
    if (!d) d = First(g, g.spec, false);
    if (!d && elsewhere) d = First(g, DeviceSpec(), false);
    return d;
  }

  Status PlaceGroup(Group* g) {
    g->spec = spec_[size_t(g->id)];
    if (auto with_default = MergeDeviceSpecs(g->spec, w_.options->device); with_default.ok()) g->spec = *std::move(with_default);
    Device* d = w_.options->places ? Learned(g) : nullptr;
    if (!d) {
      Bend(spec_[size_t(g->id)], g);
      d = Choose(*g);
    }
    RETURN_IF_ERROR(refused_);
    if (!d) return NoDevice(*g);
    PutOn(d, g);
    if (!Admits(g->spec, *d)) {
      g->why = PlaceNote::kFallback;
      Report(*g, *d);
    }
    return Status();
  }

  // If a requested device has no kernel for a node that calls functions, that node runs on the
  // host: only its functions' nodes need the device. A node that inherited the device from its
  // caller may run elsewhere. own: the device that the group itself asks for.
  void Bend(const DeviceSpec& own, Group* g) {
    const bool calls =
        std::all_of(g->nodes.begin(), g->nodes.end(), [&](int32_t i) { return CallsFunctions(w_.nodes[size_t(i)].node->op()); });
    if (g->spec.text().empty() || (!calls && !w_.options->may_leave_device) || First(*g, g->spec, true)) return;
    SetDevices(w_.runtime().devices());
    const bool is_there = std::any_of(devices_.begin(), devices_.end(), [&](Device* d) { return Admits(g->spec, *d); });
    if (!is_there || First(*g, g->spec, true)) return;
    if (w_.options->may_leave_device) g->spec = own;
    if (calls && !First(*g, g->spec, true)) {
      g->spec.kind.clear();
      g->spec.index = -1;
    }
  }

  // First, called here or elsewhere, has set the nodes' kernels.
  void PutOn(Device* d, Group* g) {
    g->device = d;
    for (int32_t i : g->nodes) w_.nodes[size_t(i)].device = d;
  }

  // Returns the device that was measured to be fastest, if it is allowed; NULL if none is known.
  Device* Learned(Group* g) {
    for (int32_t i : g->nodes) {
      const auto place = w_.options->places->find(w_.nodes[size_t(i)].node->name());
      if (place == w_.options->places->end()) continue;
      for (Device* d : devices_) {
        if (ShortName(*d) != place->second || !AdmitsByCost(g->spec, *d) || First(*g, d->spec(), true) != d) continue;
        g->why = PlaceNote::kLearned;
        return d;
      }
    }
    return nullptr;
  }

  // Returns the devices that could run the group as requested; the one chosen without costs comes
  // first.
  std::vector<Device*> Candidates(const Group& g) {
    std::vector<Device*> all = {g.device};
    for (Device* d : devices_) {
      if (d != g.device && AdmitsByCost(g.spec, *d) && First(g, d->spec(), true) == d) all.push_back(d);
    }
    return all;
  }

  // ---- Nodes that follow others ----

  // The placement that the paper's system ships with: a node of constant inputs at most that
  // one group reads runs where that group runs, and a node that reads no elements, or only renames dims, runs where
  // its input is made. Both save a copy.
  void Follow(std::vector<Group>* groups) {
    std::vector<Group*> of(n_nodes_, nullptr);
    std::vector<std::set<Group*>> readers(n_nodes_);
    for (Group& g : *groups) {
      for (int32_t i : g.nodes) of[size_t(i)] = &g;
    }
    for (size_t i = 0; i < n_nodes_; ++i) {
      for (size_t k = 0; of[i] && k < w_.nodes[i].in.size(); ++k) readers[size_t(w_.nodes[i].in[k].node)].insert(of[i]);
    }
    for (size_t i = 0; i < n_nodes_; ++i) {
      Group* g = of[i];
      if (!g || !MayFollow(*g) || !IsAboutShape(w_.nodes[i])) continue;
      Group* maker = of[size_t(w_.nodes[i].in[0].node)];
      if (maker && maker != g) FollowTo(g, *maker);
    }
    for (size_t i = n_nodes_; i-- > 0;) {
      Group* g = of[i];
      const WorkNode& n = w_.nodes[i];
      if (!g || !MayFollow(*g) || !IsSource(n) || n.shapes.size() != 1 || readers[i].size() != 1) continue;
      if (std::any_of(w_.fetches.begin(), w_.fetches.end(), [&](const WorkEdge& e) { return e.node == int32_t(i); })) continue;
      if (Group* reader = *readers[i].begin(); reader != g) FollowTo(g, *reader);
    }
  }
  static bool MayFollow(const Group& g) { return g.nodes.size() == 1 && g.why == PlaceNote::kFirst; }
  // A node with effects, such as one that draws random numbers, has a state on each device, so it does
  // not go with the readers of this step.
  bool IsSource(const WorkNode& n) const {
    if (n.node->op().stateful) return false;
    return std::all_of(n.in.begin(), n.in.end(), [this](const WorkEdge& e) { return w_.nodes[size_t(e.node)].constant; });
  }
  static bool IsAboutShape(const WorkNode& n) {
    const OpSchema& op = n.node->op();
    if (n.in.empty() || op.inputs.empty()) return false;
    return op.algebra.renames == 0 || (!op.shape_only.empty() && op.shape_only[0]);
  }
  void FollowTo(Group* g, const Group& other) {
    if (other.device == g->device || !Admits(g->spec, *other.device)) return;
    WorkNode& n = w_.nodes[size_t(g->nodes[0])];
    const KernelDef* before = n.kernel;
    const Status refused = refused_;
    if (First(*g, other.device->spec(), true) != other.device) {
      n.kernel = before;
      refused_ = refused;  // it stays where it can run
      return;
    }
    PutOn(other.device, g);
    g->why = PlaceNote::kFollows;
    g->with = w_.nodes[size_t(other.nodes[0])].node;
  }

  void ChooseByCost(std::vector<Group>* groups) {
    std::vector<PlacedGroup> placed;
    for (Group& g : *groups) {
      const bool open = g.why == PlaceNote::kFirst || g.why == PlaceNote::kFollows;
      placed.push_back({g.nodes, open ? Candidates(g) : std::vector<Device*>{g.device}, nullptr, 0, -1});
    }
    PlaceByCost(w_, &placed);
    for (size_t k = 0; k < placed.size(); ++k) {
      Group& g = (*groups)[k];
      PutOn(placed[k].device, &g);
      for (int32_t i : g.nodes) w_.nodes[size_t(i)].kernel = KernelOn(w_.nodes[size_t(i)], *g.device);
      if (placed[k].devices.size() == 1) continue;
      g.why = PlaceNote::kCost;
      g.ns = placed[k].ns;
      g.other_ns = placed[k].other_ns;
    }
  }

  // ---- Reasons ----

  void NoteReasons(const std::vector<Group>& groups) {
    for (const Group& g : groups) {
      for (int32_t i : g.nodes) {
        const WorkNode& work = w_.nodes[size_t(i)];
        const Node* node = work.node;
        PlaceNote note{node, g.device, g.why, g.with, g.ns, g.other_ns};
        if (g.why == PlaceNote::kFirst && devices_.size() > 1) Constraint(g, work, &note);
        w_.notes.places.push_back(note);
      }
    }
  }

  // Notes why a node had no choice, if it had none.
  void Constraint(const Group& g, const WorkNode& node, PlaceNote* note) const {
    const auto leaves_no_choice = [&](const WorkNode& n) {
      const auto own = MappedDevice(w_.options->device_map, n.node->device());
      return own.ok() &&
             std::count_if(devices_.begin(), devices_.end(), [&](Device* d) { return Admits(*own, *d) && KernelOn(n, *d); }) == 1;
    };
    if (leaves_no_choice(node)) {
      note->why = node.node->device().empty() ? PlaceNote::kOnlyThere : PlaceNote::kAsked;
      return;
    }
    for (int32_t i : g.nodes) {
      const WorkNode& other = w_.nodes[size_t(i)];
      if (&other == &node || !leaves_no_choice(other)) continue;
      note->why = PlaceNote::kShared;
      note->with = other.node;
      return;
    }
    if (!g.spec.text().empty()) note->why = PlaceNote::kAsked;
  }

  // ---- Messages ----

  void Report(const Group& g, const Device& d) {
    for (int32_t i : g.nodes) {
      const Node& node = *w_.nodes[size_t(i)].node;
      std::string why = WhyElsewhere(g, w_.nodes[size_t(i)]);
      if (w_.options->fallback == "warn") {
        w_.runtime().Log(2, StrCat(node.title(), ": placed on ", ShortName(d), " because ", why));
      }
      w_.notes.fallbacks.push_back({&node, g.spec.text(), std::move(why), &d});
    }
  }

  std::string WhyElsewhere(const Group& g, const WorkNode& node) const {
    std::vector<const Device*> asked;
    for (const Device* d : devices_) {
      if (Admits(g.spec, *d)) asked.push_back(d);
    }
    const std::string text = asked.size() == 1 ? ShortName(*asked[0]) : StrCat("'", Shown(g.spec.text()), "'");
    if (asked.empty()) return StrCat("there is no device ", text);
    if (!RunsThere(g.spec, node)) {
      const std::string declined = Declined(g.spec, node);
      if (!declined.empty()) return StrCat(text, " has no kernel that takes it: ", declined);
      return StrCat(text, " has no kernel for (", InputTypesText(*node.node), ")");
    }
    const Node* lacks = nullptr;
    for (int32_t i : g.nodes) {
      if (!lacks && !RunsThere(g.spec, w_.nodes[size_t(i)])) lacks = w_.nodes[size_t(i)].node;
    }
    if (auto holders = idle_.find(g.id); !lacks && holders != idle_.end()) {
      for (const Node* n : holders->second) {
        if (!lacks && !RunsThere(g.spec, *n)) lacks = n;
      }
    }
    if (!lacks) return StrCat("no one of ", text, " has kernels for all the nodes that must share it");
    return StrCat("it shares a device with ", lacks->title(), ", for which ", text, " has no kernel");
  }

  Status NoDevice(const Group& g) const {
    for (int32_t i : g.nodes) {
      const WorkNode& n = w_.nodes[size_t(i)];
      if (!RunsThere(g.spec, n)) return OfNode(*n.node, NoDeviceFor(g.spec, n));
    }
    std::string all;
    for (size_t k = 0; k < g.nodes.size() && k < 8; ++k) all += StrCat(k ? ", " : "", w_.nodes[size_t(g.nodes[k])].node->title());
    if (g.nodes.size() > 8) all += StrCat(" and ", g.nodes.size() - 8, " more");
    const std::string text = g.spec.text();
    return OfNode(*w_.nodes[size_t(g.nodes[0])].node,
                  NotFound(all, ": no device '", text.empty() ? "any" : Shown(text), "' has kernels for all the nodes that must share it"));
  }

  // Explains why no device fits one node, with the devices and kernels that exist.
  Status NoDeviceFor(const DeviceSpec& spec, const WorkNode& n) const {
    const std::string asked = spec.text();
    const Node& node = *n.node;
    if (std::any_of(devices_.begin(), devices_.end(), [&](const Device* d) { return Admits(spec, *d); }))
      return MissingKernel(w_.runtime(), node, asked, Declined(spec, n));
    return Prefix(MissingDevice(w_.runtime(), asked, spec.kind), StrCat(node.title(), ":"));
  }

  WorkGraph& w_;
  const size_t n_nodes_;
  Groups groups_;
  std::vector<const Node*> member_;                   // NULL for a work node that is not placed
  std::vector<DeviceSpec> spec_;                      // per group
  std::map<int32_t, std::vector<const Node*>> idle_;  // per group; see CollectIdleHolders
  std::vector<Device*> devices_;
  bool has_state_ = false, has_wishes_ = false;
  mutable Status refused_;  // the first error with which a kernel refused a node
};

}  // namespace

Status PlacePass(WorkGraph* w) { return Placer(w).Run(); }

}  // namespace thalweg
