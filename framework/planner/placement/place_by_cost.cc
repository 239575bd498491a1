#include "framework/planner/placement/place_by_cost.h"

#include <algorithm>
#include <map>

#include "framework/base/checked.h"
#include "framework/planner/placement/cost_model.h"
#include "framework/planner/placement/list_placer.h"
#include "framework/runtime/trace/node_texts.h"

namespace thalweg {
namespace {

constexpr uint64_t kUnknownBytes = 4096;  // assumed for a value whose shape only running tells

class Builder {
 public:
  Builder(const WorkGraph& w, std::vector<PlacedGroup>* groups)
      : w_(w), groups_(*groups), costs_(w.options->costs ? *w.options->costs : nothing_), task_of_(w.nodes.size(), -1) {}

  void Run() {
    AddDevices();
    AddTasks();
    for (size_t g = 0; g < groups_.size(); ++g) AddGroup(g);
    for (const WorkEdge& e : w_.fetches) {
      if (const int32_t v = ValueOf(e); v >= 0) p_.values[size_t(v)].fetched = true;
    }
    p_.copy_ns = [this](int32_t from, int32_t to, uint64_t bytes) {
      return costs_.CopyNs(memory_names_[size_t(from)], memory_names_[size_t(to)], bytes);
    };
    const Assignment where = SearchPlacement(p_);
    for (size_t g = 0; g < groups_.size(); ++g) Tell(g, where[g]);
  }

 private:
  int32_t IndexOf(Device* d) const { return int32_t(std::find(devices_.begin(), devices_.end(), d) - devices_.begin()); }

  void AddDevices() {
    p_.capacity = {0};
    memory_names_ = {""};
    for (const PlacedGroup& g : groups_) {
      for (Device* d : g.devices) {
        if (std::find(devices_.begin(), devices_.end(), d) != devices_.end()) continue;
        devices_.push_back(d);
        p_.memory.push_back(d->host_memory() ? 0 : int32_t(memory_names_.size()));
        if (d->host_memory()) continue;
        memory_names_.push_back(d->name());
        const uint64_t limit = d->pool()->stats().limit, memory = limit && (limit < d->memory() || d->memory() == 0) ? limit : d->memory();
        p_.capacity.push_back(memory - memory / 10);  // the rest is for scratch and gaps
      }
    }
  }

  // Adds tasks in the order of the work graph, which respects dependencies.
  void AddTasks() {
    std::vector<int32_t> group_of(w_.nodes.size(), -1);
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (int32_t i : groups_[g].nodes) group_of[size_t(i)] = int32_t(g);
    }
    for (size_t i = 0; i < w_.nodes.size(); ++i) {
      if (group_of[i] < 0) continue;
      task_of_[i] = int32_t(p_.tasks.size());
      PlacementProblem::Task t;
      t.group = group_of[i];
      for (const WorkEdge& e : w_.nodes[i].in) {
        const int32_t v = ValueOf(e);
        if (v >= 0 && std::find(t.reads.begin(), t.reads.end(), v) == t.reads.end()) t.reads.push_back(v);
      }
      for (int32_t c : w_.nodes[i].controls) {
        if (task_of_[size_t(c)] >= 0) t.after.push_back(task_of_[size_t(c)]);
      }
      p_.tasks.push_back(std::move(t));
    }
  }

  void AddGroup(size_t g) {
    PlacementProblem::Group group;
    for (Device* d : groups_[g].devices) group.devices.push_back(IndexOf(d));
    for (int32_t i : groups_[g].nodes) {
      const int32_t t = task_of_[size_t(i)];
      group.tasks.push_back(t);
      std::vector<int64_t>& ns = p_.tasks[size_t(t)].ns;
      ns.assign(devices_.size(), 0);
      uint64_t bytes = 0;
      const std::string shapes = ShapesOf(w_.nodes[size_t(i)], &bytes);
      for (Device* d : groups_[g].devices) {
        ns[size_t(IndexOf(d))] = costs_.KernelNs(w_.nodes[size_t(i)].node->op().name, shapes, d->name(), bytes);
      }
    }
    p_.groups.push_back(std::move(group));
  }

  uint32_t TypeOf(const WorkEdge& e) const {
    const WorkNode& n = w_.nodes[size_t(e.node)];
    return n.node ? n.node->out_type(e.port) : n.out_types[size_t(e.port)];
  }
  uint64_t BytesOf(const WorkEdge& e) const {
    const Shape& s = w_.nodes[size_t(e.node)].shapes[size_t(e.port)];
    if (!s.known()) return kUnknownBytes;
    auto bytes = CountBytes(s.dims().data(), s.rank(), TypeOf(e));
    return bytes.ok() ? *bytes : kUnknownBytes;
  }

  // Nodes of control flow pass a value on in the memory where it is, so a reader behind them reads
  // what comes in first. A loop counts as one iteration.
  WorkEdge Passed(WorkEdge e) const {
    for (size_t steps = 0; steps < w_.nodes.size(); ++steps) {
      const WorkNode& n = w_.nodes[size_t(e.node)];
      if (n.flow == Flow::kNone || n.in.empty() || n.in[0].node < 0) break;
      e = n.in[0];
    }
    return e;
  }

  // Returns -1 for constants and handles, which are never copied.
  int32_t ValueOf(const WorkEdge& given) {
    const WorkEdge e = Passed(given);
    const WorkNode& n = w_.nodes[size_t(e.node)];
    if (n.constant || TypeOf(e) == TW_RESOURCE || (n.node && task_of_[size_t(e.node)] < 0)) return -1;
    auto [it, is_new] = values_.try_emplace({e.node, e.port}, int32_t(p_.values.size()));
    if (is_new) p_.values.push_back({task_of_[size_t(e.node)], BytesOf(e), false});
    return it->second;
  }

  // Returns the shapes as traces show them; "" if only running tells them. Adds the bytes of the
  // outputs to *bytes.
  std::string ShapesOf(const WorkNode& n, uint64_t* bytes) const {
    std::vector<int64_t> all;
    bool known = true;
    const auto add = [&](const WorkEdge& e) {
      const Shape& s = w_.nodes[size_t(e.node)].shapes[size_t(e.port)];
      const uint32_t dtype = TypeOf(e);
      known = known && (s.known() || dtype == TW_RESOURCE);
      AddDims(dtype, s.dims().data(), s.known() ? s.rank() : 0, &all);
    };
    for (const WorkEdge& e : n.in) add(e);
    all.push_back(kOutputsFollow);
    const auto self = int32_t(&n - w_.nodes.data());
    for (int32_t o = 0; o < n.node->n_out(); ++o) {
      add({self, o});
      *bytes += BytesOf({self, o});
    }
    return known ? DimsText(all) : "";
  }

  void Tell(size_t g, int32_t device) {
    PlacedGroup& group = groups_[g];
    group.device = devices_[size_t(device)];
    for (Device* d : group.devices) {
      int64_t ns = 0;
      for (int32_t t : p_.groups[g].tasks) ns += p_.tasks[size_t(t)].ns[size_t(IndexOf(d))];
      if (d == group.device) {
        group.ns = ns;
      } else {
        group.other_ns = group.other_ns < 0 ? ns : std::min(group.other_ns, ns);
      }
    }
  }

  const WorkGraph& w_;
  std::vector<PlacedGroup>& groups_;
  const CostModel nothing_{};
  const CostModel& costs_;
  PlacementProblem p_;
  std::vector<Device*> devices_;
  std::vector<std::string> memory_names_;
  std::vector<int32_t> task_of_;
  std::map<std::pair<int32_t, int32_t>, int32_t> values_;
};

}  // namespace

void PlaceByCost(const WorkGraph& w, std::vector<PlacedGroup>* groups) { Builder(w, groups).Run(); }

}  // namespace thalweg
