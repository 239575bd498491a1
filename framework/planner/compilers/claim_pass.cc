// Graph compilers of plugins examine the nodes of their devices and take sets of them; the rest of
// each set becomes one node.
//
// A set must not wait for itself: no path may leave it and come back, not even through another set.
// Sets are settled one after the other, by priority. The order of clusters (a cluster is a settled
// set or a single node) stays topological all the time.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/planner/compilers/artefacts.h"
#include "framework/planner/compilers/part.h"
#include "framework/planner/compilers/part_records.h"
#include "framework/planner/compilers/value_limits.h"
#include "framework/planner/renumber.h"
#include "framework/runtime/runtime.h"

namespace thalweg {
namespace {

bool Runs(const WorkNode& n) { return n.node && !n.dead && !n.constant; }

bool MayBeTaken(const WorkNode& n) {
  if (!Runs(n) || n.node->op().once || n.node->op().touches || n.kernel->spec.may_block) return false;
  const std::vector<uint32_t>& types = n.node->types();
  return std::none_of(types.begin(), types.end(), [](uint32_t t) { return IsRef(t); });
}

// A set that a compiler took, as nodes of the work graph.
struct Wish {
  std::shared_ptr<const CompilerRole> role;
  Device* device = nullptr;
  std::vector<int32_t> work;  // sorted
  int32_t priority = 0;
};

// The object that `claim` writes its sets and notes into.
struct Claims {
  tw_claims c{TW_SIZED(tw_claims), &Take, &Refuse};
  const std::shared_ptr<const CompilerRole>& role;
  const ShownNodes& shown;
  Device* device;
  std::vector<Wish> wishes;
  std::vector<LeftNote> left;
  Status status;  // the first error, even if the plugin ignored it

  Claims(const std::shared_ptr<const CompilerRole>& r, const ShownNodes& n, Device* d) : role(r), shown(n), device(d) {}

  tw_status* Answer(Status s) {
    if (status.ok()) status = s;
    return ToC(s);
  }
  static tw_status* Take(tw_claims* c, const uint32_t* nodes, uint32_t n, int32_t priority) {
    auto* self = reinterpret_cast<Claims*>(c);
    tw_status* s = Guard([&]() -> Status {
      if (n == 0 || !nodes) return InvalidArgument("take: a set without nodes");
      std::set<uint32_t> seen;
      Wish wish{self->role, self->device, {}, priority};
      for (uint32_t i = 0; i < n; ++i) {
        if (nodes[i] >= self->shown.work().size()) {
          return InvalidArgument("take: there is no node ", nodes[i], "; there are ", self->shown.work().size());
        }
        if (!seen.insert(nodes[i]).second) return InvalidArgument("take: node ", nodes[i], " stands twice in a set");
        wish.work.push_back(self->shown.work()[nodes[i]]);
      }
      std::sort(wish.work.begin(), wish.work.end());
      self->wishes.push_back(std::move(wish));
      return Status();
    });
    return s ? self->Answer(FromC(s)) : nullptr;
  }
  static tw_status* Refuse(tw_claims* c, uint32_t node, const char* why, uint64_t len) {
    auto* self = reinterpret_cast<Claims*>(c);
    tw_status* s = Guard([&]() -> Status {
      if (node >= self->shown.work().size()) return InvalidArgument("refuse: there is no node ", node);
      self->left.push_back({self->role->name, self->role->plugin, self->shown.node(node), Shown({why, len})});
      return Status();
    });
    return s ? self->Answer(FromC(s)) : nullptr;
  }
};

// An order of clusters in which each cluster comes after those that it waits for.
class Clusters {
 public:
  Clusters(const WorkGraph& w, const Readers& readers) : readers_(readers) {
    for (int32_t i = 0; i < int32_t(w.nodes.size()); ++i) {
      order_.push_back(i);
      at_.push_back(i);
      of_.push_back(i);
      members_.push_back({i});
    }
  }
  // Joins the nodes, which are in no cluster yet, into one. Returns false if a path leaves them and
  // comes back; *through is a node on it.
  bool Join(const std::vector<int32_t>& work, int32_t* through) {
    const std::set<int32_t> own(work.begin(), work.end());
    int32_t lo = INT32_MAX, hi = -1;
    for (int32_t i : work) {
      lo = std::min(lo, at_[size_t(i)]);
      hi = std::max(hi, at_[size_t(i)]);
    }
    std::set<int32_t> behind;  // clusters that wait for one of the nodes
    std::vector<int32_t> todo = work;
    while (!todo.empty()) {
      const int32_t cluster = todo.back();
      todo.pop_back();
      for (int32_t member : members_[size_t(cluster)]) {
        for (int32_t reader : readers_.after(member)) {
          const int32_t next = of_[size_t(reader)];
          if (next == cluster || (own.count(cluster) && own.count(next))) continue;
          if (own.count(next)) {
            *through = member;
            return false;
          }
          if (at_[size_t(next)] < hi && behind.insert(next).second) todo.push_back(next);
        }
      }
    }
    Place(work, own, behind, lo, hi);
    return true;
  }
  // Makes each of the nodes a cluster of its own again.
  void Dissolve(const std::vector<int32_t>& work) {
    const int32_t at = at_[size_t(work[0])];
    order_.erase(order_.begin() + at);
    order_.insert(order_.begin() + at, work.begin(), work.end());
    for (int32_t i : work) {
      of_[size_t(i)] = i;
      members_[size_t(i)] = {i};
    }
    for (size_t k = 0; k < order_.size(); ++k) at_[size_t(order_[k])] = int32_t(k);
  }
  const std::vector<int32_t>& order() const { return order_; }  // the first node of each cluster
  const std::vector<int32_t>& members(int32_t first) const { return members_[size_t(first)]; }

 private:
  // Orders the range from lo to hi: clusters that do not wait for the set, the set, clusters that
  // wait for it.
  void Place(const std::vector<int32_t>& work, const std::set<int32_t>& own, const std::set<int32_t>& behind, int32_t lo, int32_t hi) {
    std::vector<int32_t> first, last;
    for (int32_t k = lo; k <= hi; ++k) {
      const int32_t c = order_[size_t(k)];
      if (!own.count(c)) (behind.count(c) ? last : first).push_back(c);
    }
    first.push_back(work[0]);
    first.insert(first.end(), last.begin(), last.end());
    order_.erase(order_.begin() + lo, order_.begin() + hi + 1);
    order_.insert(order_.begin() + lo, first.begin(), first.end());
    for (int32_t i : work) {
      of_[size_t(i)] = work[0];
      members_[size_t(i)].clear();
    }
    members_[size_t(work[0])] = work;
    for (size_t k = size_t(lo); k < order_.size(); ++k) at_[size_t(order_[k])] = int32_t(k);
  }

  const Readers& readers_;
  std::vector<int32_t> order_, at_;  // clusters, by their first node; position of each
  std::vector<int32_t> of_;          // node -> cluster
  std::vector<std::vector<int32_t>> members_;
};

class Claimer {
 public:
  explicit Claimer(WorkGraph* w) : w_(*w), readers_(*w), limits_(*w) {}

  Status Run(const std::vector<std::shared_ptr<const CompilerRole>>& roles) {
    RETURN_IF_ERROR(Show(roles));
    std::stable_sort(wishes_.begin(), wishes_.end(), [](const Wish& a, const Wish& b) {
      return std::tie(b.priority, a.role->plugin, a.role->name) < std::tie(a.priority, b.role->plugin, b.role->name);
    });
    if (wishes_.empty()) return Status();
    RETURN_IF_ERROR(OpenCache());
    clusters_.emplace(w_, readers_);
    part_of_.resize(w_.nodes.size());
    for (const Wish& wish : wishes_) RETURN_IF_ERROR(Settle(wish));
    if (n_parts_ > 0) Rebuild();
    return Status();
  }

 private:
  bool required() const { return w_.options->compilers == "require"; }
  // Reports a failure that costs only speed; it is an error if the session requires compilers.
  Status Tell(const Status& s, std::string_view then) {
    if (required()) return s;
    w_.runtime().Log(2, StrCat(Message(s), "; ", then));
    return Status();
  }
  static std::string Title(const CompilerRole& role) { return StrCat("graph compiler '", role.name, "' of plugin '", role.plugin, "':"); }

  Status Show(const std::vector<std::shared_ptr<const CompilerRole>>& roles) {
    std::vector<Device*> devices;  // in the order of the nodes, so that plans do not depend on addresses
    std::map<Device*, std::vector<int32_t>> on;
    std::pair<Device* const, std::vector<int32_t>>* last = nullptr;
    for (int32_t i = 0; i < int32_t(w_.nodes.size()); ++i) {
      const WorkNode& n = w_.nodes[size_t(i)];
      if (!MayBeTaken(n)) continue;
      if (!last || last->first != n.device) {
        auto [it, is_new] = on.try_emplace(n.device);
        if (is_new) devices.push_back(n.device);
        last = &*it;
      }
      last->second.push_back(i);
    }
    for (Device* device : devices) {
      std::optional<ShownNodes> shown;
      for (const auto& role : roles) {
        if (role->kind != device->kind()) continue;
        if (!shown) shown.emplace(w_, readers_, on[device]);
        RETURN_IF_ERROR(Claim(role, *shown, device));
      }
    }
    return Status();
  }

  Status Claim(const std::shared_ptr<const CompilerRole>& role, const ShownNodes& shown, Device* device) {
    Claims claims(role, shown, device);
    Status s;
    try {
      s = FromC(role->def.claim(role->host, role->def.user, device->self(), shown.c(), &claims.c));
    } catch (...) {
      s = Thrown();
    }
    if (s.ok()) s = claims.status;
    if (!s.ok()) return Tell(Prefix(s, StrCat(Title(*role), " claim:")), "it takes nothing of this plan");
    std::move(claims.wishes.begin(), claims.wishes.end(), std::back_inserter(wishes_));
    std::move(claims.left.begin(), claims.left.end(), std::back_inserter(w_.notes.left));
    return Status();
  }

  Status OpenCache() {
    const std::string& folder = w_.runtime().options().compile_cache;
    if (folder.empty()) return Status();
    auto cache = ArtefactCache::Open(folder);
    if (!cache.ok()) {
      w_.runtime().Log(2, StrCat("runtime option 'compile_cache': ", Message(cache.status()), "; nothing is kept"));
      return Status();
    }
    cache_ = *std::move(cache);
    return Status();
  }

  Status Settle(const Wish& wish) {
    ClaimNote note;
    note.compiler = wish.role->name;
    note.plugin = wish.role->plugin;
    for (int32_t i : wish.work) note.nodes.push_back(w_.nodes[size_t(i)].node);
    Status failed;
    note.refused = Refusal(wish);
    if (note.refused.empty()) {
      auto part = Part::Make(wish.role, TakePart(w_, readers_, wish.work, &limits_), wish.device, cache_.get(), &note.loaded);
      failed = part.status();
      if (part.ok()) {
        for (int32_t i : wish.work) part_of_[size_t(i)] = *part;
        ++n_parts_;
      } else {
        clusters_->Dissolve(wish.work);
        note.refused = Message(failed);
      }
    }
    const std::string nodes = StrCat(Title(*wish.role), " ", note.nodes.size(), " nodes from '", Shown(note.nodes[0]->name()), "' on:");
    w_.notes.claims.push_back(std::move(note));
    return failed.ok() ? Status() : Tell(Prefix(failed, nodes), "they run one by one");
  }

  // Returns the reason why the set cannot become one cluster; "" if it is one now.
  std::string Refusal(const Wish& wish) {
    for (int32_t i : wish.work) {
      const Part* other = part_of_[size_t(i)].get();
      if (other) return StrCat("'", Shown(w_.nodes[size_t(i)].node->name()), "' is in a part of '", other->node().op().name, "' already");
    }
    if (!Matters(wish)) return "nobody reads what it makes";
    int32_t through = -1;
    if (clusters_->Join(wish.work, &through)) return "";
    return StrCat("a path leaves the set and comes back, by way of '", Shown(w_.nodes[size_t(through)].node->name()), "'");
  }

  // A set without values and effects runs only because some node waits for it; a compiler would
  // then have nothing to write.
  bool Matters(const Wish& wish) const {
    const std::set<int32_t> own(wish.work.begin(), wish.work.end());
    return std::any_of(wish.work.begin(), wish.work.end(), [&](int32_t i) {
      const WorkNode& n = w_.nodes[size_t(i)];
      if (n.node->op().stateful) return true;
      for (int32_t o = 0; o < int32_t(n.shapes.size()); ++o) {
        const auto readers = readers_.of({i, o});
        if (std::any_of(readers.begin(), readers.end(), [&](int32_t r) { return !own.contains(r); })) return true;  // fetches are -1
      }
      return false;
    });
  }

  // Sorts the work graph by clusters. Members of parts stay for the shape rules; the node that
  // stands for them runs.
  void Rebuild() {
    std::vector<WorkNode> nodes;
    std::vector<int32_t> now(w_.nodes.size(), -1), part_at(w_.nodes.size(), -1);
    for (int32_t first : clusters_->order()) {
      const std::vector<int32_t>& members = clusters_->members(first);
      for (int32_t i : members) {
        now[size_t(i)] = int32_t(nodes.size());
        nodes.push_back(std::move(w_.nodes[size_t(i)]));
      }
      if (!part_of_[size_t(first)]) continue;
      for (int32_t i : members) part_at[size_t(i)] = int32_t(nodes.size());
      nodes.push_back(StandIn(part_of_[size_t(first)], nodes, now));
    }
    auto moved = [&](const WorkEdge& e) { return WorkEdge{now[size_t(e.node)], e.port}; };
    auto read = [&](const WorkEdge& e) {
      const int32_t at = part_at[size_t(e.node)];
      return at < 0 ? moved(e) : WorkEdge{at, OutputOf(*part_of_[size_t(e.node)], e)};
    };
    auto waited = [&](int32_t i) { return part_at[size_t(i)] < 0 ? now[size_t(i)] : part_at[size_t(i)]; };
    for (WorkNode& n : nodes) {
      for (WorkEdge& e : n.in) e = n.dead || n.constant ? moved(e) : read(e);
      for (int32_t& c : n.controls) c = n.dead ? now[size_t(c)] : waited(c);
    }
    Renumber(&w_, now, read, waited);
    w_.nodes = std::move(nodes);
  }

  static int32_t OutputOf(const Part& part, const WorkEdge& e) {
    const PartGraph& g = part.graph();
    for (size_t o = 0; o < g.out.size(); ++o) {
      if (g.work[size_t(g.out[o].node)] == e.node && g.out[o].port == e.port) return int32_t(o);
    }
    return -1;
  }

  // Makes the stand-in of a part. Its edges are still to be mapped. The members are in `nodes`
  // already and die here.
  static WorkNode StandIn(const std::shared_ptr<const Part>& part, std::vector<WorkNode>& nodes, const std::vector<int32_t>& now) {
    const PartGraph& g = part->graph();
    WorkNode n;
    n.node = &part->node();
    n.kernel = &part->kernel();
    n.part = part;
    for (const PartGraph::Input& in : g.inputs) n.in.push_back(in.from);
    n.controls = g.work_before;
    for (size_t i = 0; i < g.work.size(); ++i) {
      WorkNode& m = nodes[size_t(now[size_t(g.work[i])])];
      n.device = m.device;
      n.varies = n.varies || m.varies;
      m.dead = true;
    }
    for (const WorkEdge& e : g.out) {
      const WorkNode& m = nodes[size_t(now[size_t(g.work[size_t(e.node)])])];
      n.out_types.push_back(m.out_types[size_t(e.port)]);
      n.shapes.push_back(m.shapes[size_t(e.port)]);
      n.handles.push_back(m.handle(e.port));
    }
    n.values.resize(g.out.size());
    return n;
  }

  WorkGraph& w_;
  const Readers readers_;
  ValueLimits limits_;
  std::optional<Clusters> clusters_;                  // set if some nodes are to be taken
  std::vector<std::shared_ptr<const Part>> part_of_;  // per node
  std::vector<Wish> wishes_;
  std::unique_ptr<ArtefactCache> cache_;
  size_t n_parts_ = 0;
};

}  // namespace

Status ClaimPass(WorkGraph* w) {
  if (w->options->compilers == "off" || w->flow) return Status();
  // Asks only for the kinds that have nodes: the plugins of other kinds may not be loaded yet and
  // then need not be.
  std::set<std::string_view> kinds;
  const Device* last = nullptr;
  for (const WorkNode& n : w->nodes) {
    if (n.device == last || !MayBeTaken(n)) continue;
    last = n.device;
    kinds.insert(last->kind());
  }
  std::vector<std::shared_ptr<const CompilerRole>> roles;
  for (std::string_view kind : kinds) {
    for (auto& role : w->runtime().registry().RolesOf<CompilerRole>({}, kind)) roles.push_back(std::move(role));
  }
  return roles.empty() ? Status() : Claimer(w).Run(roles);
}

}  // namespace thalweg
