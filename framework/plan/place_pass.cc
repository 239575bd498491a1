#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "framework/base/dtype.h"
#include "framework/plan/work_graph.h"

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

const KernelDef* KernelOn(const WorkGraph& w, const WorkNode& n, const Device& d) {
  const Node& node = *n.node;
  return w.runtime().registry().FindKernel(node.op(), d.kind(), node.types(), node.in_at(), node.out_at(), node.attrs());
}

std::string TypesText(const Node& n) {
  std::string s;
  for (int32_t i = 0; i < n.n_in(); ++i) s += StrCat(i ? ", " : "", DTypeName(n.in_type(i)));
  return s;
}

// Why no device will do, with what there is.
Status NoDevice(const WorkGraph& w, const WorkNode& n, const DeviceSpec& spec, const std::vector<Device*>& devices) {
  const Node& node = *n.node;
  std::set<std::string> kinds;
  for (const KernelDef* k : w.runtime().registry().Kernels(node.op().name)) kinds.insert(k->spec.text);
  std::string all;
  for (const Device* d : devices) all += StrCat(all.empty() ? "" : ", ", d->kind(), ":", d->index());
  if (all.empty()) all = "none";
  bool admitted = false;
  for (const Device* d : devices) admitted = admitted || spec.Admits(d->spec());
  if (!admitted) {
    return NotFound(node.title(), ": device '", spec.text(), "' not found; registered: ", all, "; load the plugin that provides it");
  }
  std::string have;
  for (const std::string& k : kinds) have += StrCat(have.empty() ? "" : "; ", k);
  return NotFound(node.title(), ": no kernel for (", TypesText(node), ") on device '", spec.text().empty() ? "any" : spec.text(),
                  "'; kernels of ", node.op().name, ": ", have.empty() ? "none" : have,
                  "; place the node elsewhere, set the session option 'soft_placement', or load a plugin that has the kernel");
}

}  // namespace

Status PlacePass(WorkGraph* w) {
  // Devices that share memory with the host come first: nothing moves to an accelerator unless asked. Drivers are only started for a graph
  // that the devices found so far cannot serve.
  std::vector<Device*> devices;
  auto host_first = [&](std::vector<Device*> list) {
    std::stable_sort(list.begin(), list.end(), [](Device* a, Device* b) { return a->host_memory() > b->host_memory(); });
    devices = std::move(list);
  };
  host_first(w->runtime().ready_devices());
  size_t n_nodes = w->nodes.size();
  Groups groups(n_nodes);
  // Members of groups: the work nodes that run, then graph nodes that others are colocated with but that do not run here.
  std::vector<const Node*> member(n_nodes, nullptr);
  std::map<std::string_view, int32_t> by_name;
  auto placed = [&](size_t i) { return w->nodes[i].node && !w->nodes[i].dead && !w->nodes[i].constant; };
  for (size_t i = 0; i < n_nodes; ++i) {
    if (!placed(i)) continue;
    member[i] = w->nodes[i].node;
    by_name[member[i]->name()] = int32_t(i);
  }
  for (size_t i = 0; i < member.size(); ++i) {  // grows on the way
    if (!member[i]) continue;
    for (const std::string& other : member[i]->colocate_with()) {
      auto it = by_name.find(other);
      const Node* absent = it == by_name.end() ? w->graph->Find(other) : nullptr;
      if (absent) {
        it = by_name.emplace(absent->name(), groups.Add()).first;
        member.push_back(absent);
      }
      if (it != by_name.end()) groups.Join(it->second, int32_t(i));
    }
  }
  for (size_t i = 0; i < n_nodes; ++i) {
    if (!placed(i)) continue;
    const WorkNode& n = w->nodes[i];
    // State and every op that holds its handle share a device.
    for (size_t k = 0; k < n.in.size(); ++k) {
      uint32_t type = n.node->in_type(int32_t(k));
      if ((type == TW_RESOURCE || IsRef(type)) && placed(size_t(n.in[k].node))) groups.Join(n.in[k].node, int32_t(i));
    }
  }
  std::vector<DeviceSpec> spec(member.size());
  std::map<size_t, std::vector<std::pair<const Node*, DeviceSpec>>> wishes;  // per group
  for (size_t i = 0; i < member.size(); ++i) {
    if (!member[i] || member[i]->device().empty()) continue;
    size_t g = size_t(groups.Find(int32_t(i)));
    auto own = ParseDeviceSpec(member[i]->device());
    if (!own.ok()) return OfNode(*member[i], Prefix(own.status(), member[i]->title() + ":"));
    auto merged = MergeDeviceSpecs(spec[g], *own);
    if (!merged.ok()) {  // one of the group is to blame
      for (const auto& [other, wish] : wishes[g]) {
        if (MergeDeviceSpecs(wish, *own).ok()) continue;
        return OfNode(*member[i], InvalidArgument(member[i]->title(), ": device '", own->text(), "' contradicts '", wish.text(), "' of ",
                                                  other->title(), ", with which it must share a device"));
      }
    }
    ASSIGN_OR_RETURN(spec[g], merged);
    wishes[g].emplace_back(member[i], *std::move(own));
  }
  // Per group: the first device that the spec admits and that has a kernel for every member.
  std::map<int32_t, std::vector<int32_t>> members;
  for (size_t i = 0; i < n_nodes; ++i) {
    if (placed(i)) members[groups.Find(int32_t(i))].push_back(int32_t(i));
  }
  for (auto& [g, list] : members) {
    auto choose = [&](const DeviceSpec& s) -> Device* {
      for (Device* d : devices) {
        if (!s.Admits(d->spec())) continue;
        bool all = true;
        for (int32_t i : list) all = all && KernelOn(*w, w->nodes[size_t(i)], *d);
        if (all) return d;
      }
      return nullptr;
    };
    Device* d = choose(spec[size_t(g)]);
    if (!d) {
      host_first(w->runtime().devices());
      d = choose(spec[size_t(g)]);
    }
    if (!d && w->options->soft_placement) {
      d = choose(DeviceSpec());
      if (d) {
        w->runtime().Log(2, StrCat(w->nodes[size_t(list[0])].node->title(), ": device '", spec[size_t(g)].text(),
                                   "' has no kernel for it; it runs on ", d->name(), " with copies"));
      }
    }
    if (!d) {
      for (int32_t i : list) {
        const WorkNode& n = w->nodes[size_t(i)];
        bool any = false;
        for (Device* c : devices) any = any || (spec[size_t(g)].Admits(c->spec()) && KernelOn(*w, n, *c));
        if (!any) return OfNode(*n.node, NoDevice(*w, n, spec[size_t(g)], devices));
      }
      std::string all;
      for (size_t k = 0; k < list.size() && k < 8; ++k) all += StrCat(k ? ", " : "", w->nodes[size_t(list[k])].node->title());
      if (list.size() > 8) all += StrCat(" and ", list.size() - 8, " more");
      const std::string text = spec[size_t(g)].text();
      return OfNode(*w->nodes[size_t(list[0])].node,
                    NotFound(all, ": no device '", text.empty() ? "any" : text, "' has kernels for all the nodes that must share it"));
    }
    for (int32_t i : list) {
      w->nodes[size_t(i)].device = d;
      w->nodes[size_t(i)].kernel = KernelOn(*w, w->nodes[size_t(i)], *d);
    }
  }
  return Status();
}

}  // namespace thalweg
