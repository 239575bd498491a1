// PartialRun: one step that is run in parts, each with some of its feeds and fetches. What a part computes and a later one needs is kept
// in between; no node runs twice. A part is a run of a callable of its own, which the session keeps, so parts that come again are warm.
// Threads: any, one part at a time.
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
  // Whoever runs the parts: a session of this process, or another.
  struct Steps {
    std::shared_ptr<const void> session;  // kept
    const Graph* graph = nullptr;
    std::function<Status(const CallableSpec& spec)> check;
    std::function<Status(const CallableSpec& spec, const Tensor* feeds, const RunOptions& options, Tensor* fetches)> run;
  };
  // whole: all that its parts will feed, fetch and run. Errors: as MakeCallable.
  static StatusOr<std::unique_ptr<PartialRun>> Create(Steps steps, const CallableSpec& whole);
  static StatusOr<std::unique_ptr<PartialRun>> Create(std::shared_ptr<Session> session, const CallableSpec& whole);

  // part: feeds, fetches and targets of the whole that no earlier part had. Runs what its fetches and targets need and no earlier part ran.
  // feeds, fetches: as Session::Run. Errors: INVALID_ARGUMENT for what is not of the whole, comes twice, or needs a feed that no part gave,
  // naming both; such a part has not begun. Any other failure ends the run, as Session::Run's: later parts are refused with
  // FAILED_PRECONDITION.
  Status Run(const CallableSpec& part, const Tensor* feeds, const RunOptions& options, Tensor* fetches);
  // Fetches and targets that no part had yet.
  uint64_t left();

 private:
  using Key = uint64_t;
  // A value, and who of the run reads it.
  struct Value {
    Edge edge;
    std::vector<const Node*> readers;
    bool fed = false, fetched = false;       // it is declared to be
    bool given = false, handed_out = false;  // and has been
    Tensor now;                              // empty: it is not kept
  };
  // What one part runs.
  struct Part {
    CallableSpec spec;              // and what is kept is fed, what will be needed is fetched
    std::vector<Value*> wanted;     // of the part's own fetches, in their order
    std::vector<Value*> kept;       // the fetches behind those
    std::vector<const Node*> runs;  // and is over then
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
  std::mutex mu_;                          // all that follows
  std::unordered_map<Key, Value> values_;  // that pass between nodes of the run, or are fed or fetched
  std::unordered_set<const Node*> nodes_;  // of the run
  std::set<const Node*> targets_;          // that are yet to run
  std::vector<const Node*> over_;          // by id
  size_t fetches_left_ = 0;
  Status failed_;  // of the part that ended the run
};

}  // namespace thalweg
