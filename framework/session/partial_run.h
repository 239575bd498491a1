// PartialRun: one step that runs in parts, each with some of its feeds and fetches. Values that one
// part computes and a later part needs are kept in between; no node runs twice. Each part is a run
// of a callable that the session caches, so a part that recurs is warm. Threads: any, one part at a
// time.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "framework/base/status.h"
#include "framework/session/session.h"

namespace thalweg {

class PartialRun {
 public:
  // The session that runs the parts, in this process or another.
  struct Steps {
    std::shared_ptr<const void> session;  // kept alive
    const Graph* graph = nullptr;
    std::function<Status(const CallableSpec& spec)> check;
    std::function<Status(const CallableSpec& spec, const Tensor* feeds, const RunOptions& options, Tensor* fetches)> run;
  };
  // whole: everything that the parts will feed, fetch and run. Errors: as MakeCallable.
  static StatusOr<std::unique_ptr<PartialRun>> Create(Steps steps, const CallableSpec& whole);
  static StatusOr<std::unique_ptr<PartialRun>> Create(std::shared_ptr<Session> session, const CallableSpec& whole);

  // Runs one part: the nodes that its fetches and targets need and that no earlier part ran.
  // part: feeds, fetches and targets of the whole that no earlier part had. feeds, fetches: as
  // Session::Run.
  // INVALID_ARGUMENT, before the part begins, if something is not of the whole, comes twice, or
  // needs a feed that no part gave (names both). Any other failure ends the run with the error of
  // Session::Run; later parts get FAILED_PRECONDITION.
  Status Run(const CallableSpec& part, const Tensor* feeds, const RunOptions& options, Tensor* fetches);
  // Returns the number of fetches and targets that no part has had yet.
  uint64_t left();

 private:
  using Key = uint64_t;
  // A value and the nodes of the run that read it.
  struct Value {
    Edge edge;
    std::vector<const Node*> readers;
    bool fed = false, fetched = false;       // declared as a feed, declared as a fetch
    bool given = false, handed_out = false;  // fed by a part, fetched by a part
    Tensor now;                              // the kept value; empty if it is not kept
  };
  // The work of one part.
  struct Part {
    CallableSpec spec;              // the part's own, plus kept values as feeds and values for later parts as fetches
    std::vector<Value*> wanted;     // the part's own fetches, in their order
    std::vector<Value*> kept;       // values of the further fetches
    std::vector<const Node*> runs;  // nodes that have run after this part
  };

  explicit PartialRun(Steps steps) : steps_(std::move(steps)) {}
  static Key KeyOf(const Edge& e) { return uint64_t(uint32_t(e.node->id())) << 16 | uint64_t(uint32_t(e.port)); }
  Value& At(const Edge& e);
  Value* Find(const Edge& e);
  void Collect(const CallableSpec& whole);
  const Node* Form(const Node* n) const;
  Status Take(const CallableSpec& part, const Tensor* feeds);
  void GiveBack(const CallableSpec& part);
  Status Want(const CallableSpec& part, Part* out);
  void Keep(Part* part);
  void Over(const CallableSpec& spec, const Part& part);

  const Steps steps_;
  std::mutex mu_;                          // guards everything below
  std::unordered_map<Key, Value> values_;  // values that pass between nodes of the run, or are fed or fetched
  std::unordered_set<const Node*> nodes_;  // all nodes of the run
  std::set<const Node*> targets_;          // targets that have not run yet
  std::vector<const Node*> over_;          // nodes that have run, sorted by id
  size_t fetches_left_ = 0;
  Status failed_;  // error of the part that ended the run
};

}  // namespace thalweg
