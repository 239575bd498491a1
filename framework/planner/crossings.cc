#include "framework/planner/crossings.h"

#include <algorithm>

#include "framework/base/dtype.h"
#include "framework/planner/emit/plan_values.h"

namespace thalweg {

std::vector<WorkEdge> Crossings::Find() {
  std::vector<WorkEdge> found;
  const auto away = [](const WorkNode& n) { return n.node && !n.dead && !n.constant && !n.device->host_memory(); };
  if (w_.signature->feed_devices.empty() && w_.signature->fetch_devices.empty() && std::none_of(w_.nodes.begin(), w_.nodes.end(), away)) {
    return found;
  }
  runs_.resize(w_.nodes.size());
  wanted_.resize(w_.nodes.size());
  for (size_t i = 0; i < w_.nodes.size(); ++i) {
    const WorkNode& n = w_.nodes[i];
    wanted_[i].resize(n.shapes.size());
    if (n.node && !n.dead && !n.constant) runs_[i] = RunOf(w_, n);
  }
  FindLandings();
  for (size_t i = 0; i < w_.nodes.size(); ++i) {
    for (size_t k = 0; runs_[i].device && k < w_.nodes[i].in.size(); ++k) {
      const WorkEdge& e = w_.nodes[i].in[k];
      if (!TakesAnywhere(i, k) && Crosses(e, runs_[i].host_in[k] ? nullptr : runs_[i].device)) found.push_back(e);
    }
  }
  for (size_t k = 0; k < w_.fetches.size() && !w_.signature->stays; ++k) {
    if (Crosses(w_.fetches[k], w_.signature->fetch_device(k))) found.push_back(w_.fetches[k]);
  }
  return found;
}

// If a kernel may give a value in any memory, the value goes to the device of its first reader that
// is on one; later readers, and the host, get copies.
void Crossings::FindLandings() {
  const auto land = [&](const WorkEdge& e, Device* device) {
    NodeRun& run = runs_[size_t(e.node)];
    const WorkNode& maker = w_.nodes[size_t(e.node)];
    if (!device || device->host_memory() || !run.device || run.anywhere_out.empty() || !run.anywhere_out[size_t(e.port)]) return;
    if (!FindDType(maker.out_types[size_t(e.port)])->plain) return;
    run.lands.resize(maker.shapes.size(), nullptr);
    if (!run.lands[size_t(e.port)]) run.lands[size_t(e.port)] = device;
  };
  for (size_t i = 0; i < w_.nodes.size(); ++i) {
    for (size_t k = 0; runs_[i].device && k < w_.nodes[i].in.size(); ++k) {
      if (!runs_[i].host_in[k]) land(w_.nodes[i].in[k], runs_[i].device);
    }
  }
  for (size_t k = 0; k < w_.fetches.size(); ++k) land(w_.fetches[k], w_.signature->fetch_device(k));
}

// device: the device whose memory needs the value; NULL means host memory.
bool Crossings::Crosses(const WorkEdge& e, Device* device) {
  const WorkNode& maker = w_.nodes[size_t(e.node)];
  if (maker.constant) return false;  // it exists before any node runs
  const int32_t there = LocationOf(device, &plan_);
  const int32_t here = WhereMade(e);
  if (here == there) return false;
  if (here && maker.node) wanted_[size_t(e.node)][size_t(e.port)].push_back(there);
  return true;
}

int32_t Crossings::WhereMade(const WorkEdge& e) {
  const WorkNode& maker = w_.nodes[size_t(e.node)];
  const NodeRun& run = runs_[size_t(e.node)];
  if (!run.lands.empty() && run.lands[size_t(e.port)]) return LocationOf(run.lands[size_t(e.port)], &plan_);
  if (maker.node && run.host_out[size_t(e.port)]) return 0;
  return LocationOf(maker.node ? run.device : w_.signature->feed_device(size_t(maker.feed)), &plan_);
}

}  // namespace thalweg
