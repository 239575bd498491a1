#include "distributed/partition.h"

#include <algorithm>

#include "distributed/splitter.h"

namespace thalweg::distributed {

StatusOr<Parts> Partition::Split(const CallableSpec& spec) { return Splitter(this, spec).Run(); }

bool Partition::WasTold(const Node* n) const {
  return std::any_of(known_.begin(), known_.end(), [n](const auto& k) { return k.second.nodes.count(n->id()) != 0; });
}

std::string Partition::TaskName(int32_t task) const { return cluster_->tasks()[size_t(task)].id.text(); }

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

void Partition::Told(const Part& part) {
  Known& k = known_[part.task];
  k.nodes.insert(part.nodes.begin(), part.nodes.end());
  k.made.insert(part.made.begin(), part.made.end());
  if (!part.piece.library.empty()) k.library = part.piece.library;
  for (int32_t id : part.nodes) placement_->Settle(*graph_->node(id));
}

void Partition::Forget(int32_t task) { known_.erase(task); }

}  // namespace thalweg::distributed
