#include "framework/session/partial_run.h"

#include <algorithm>

#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/graph/flow.h"
#include "framework/runtime/step/step.h"

namespace thalweg {
namespace {

bool ById(const Node* a, const Node* b) { return a->id() < b->id(); }
bool IsIn(const std::vector<const Node*>& by_id, const Node* n) { return std::binary_search(by_id.begin(), by_id.end(), n, ById); }

// Returns true for handles and constants: every part may run them again at no cost and with the
// same result.
bool RunsAgain(const Node* n) {
  const OpSchema& op = n->runs_as() ? n->runs_as()->op() : n->op();
  return op.once || (!op.stateful && n->n_in() == 0 && n->controls().empty());
}

// Visits the inputs of n: then(edge) for data inputs, including back edges of loops, and
// after(node) for control inputs.
template <class Then, class After>
void ForInputs(const Node* n, Then&& then, After&& after) {
  for (const Edge& e : n->inputs()) then(e);
  for (const Node* c : n->controls()) after(c);
  if (FlowOf(n->op()) != Flow::kMerge) return;
  for (int32_t i = 0; i < n->n_in(); ++i) {
    if (const Node* next = n->back(i)) then(Edge{next, 0});
  }
}

}  // namespace

StatusOr<std::unique_ptr<PartialRun>> PartialRun::Create(Steps steps, const CallableSpec& whole) {
  RETURN_IF_ERROR(steps.check(whole));
  std::unique_ptr<PartialRun> run(new PartialRun(std::move(steps)));
  run->Collect(whole);
  return run;
}

StatusOr<std::unique_ptr<PartialRun>> PartialRun::Create(std::shared_ptr<Session> session, const CallableSpec& whole) {
  Session* s = session.get();
  return Create({std::move(session), &s->graph(), [s](const CallableSpec& spec) { return CheckSpec(s->graph(), spec); },
                 [s](const CallableSpec& spec, const Tensor* feeds, const RunOptions& options, Tensor* fetches) {
                   return s->Run(spec, feeds, options, fetches);
                 }},
                whole);
}

PartialRun::Value& PartialRun::At(const Edge& e) {
  Value& v = values_[KeyOf(e)];
  v.edge = e;
  return v;
}

PartialRun::Value* PartialRun::Find(const Edge& e) {
  auto it = values_.find(KeyOf(e));
  return it == values_.end() ? nullptr : &it->second;
}

// Walks back from everything that is wanted and stops at everything that is fed.
void PartialRun::Collect(const CallableSpec& whole) {
  std::vector<const Node*> todo;
  const auto need = [&](const Node* n) {
    if (nodes_.insert(n).second) todo.push_back(n);
  };
  for (const Edge& e : whole.feeds) At(e).fed = true;
  for (const Edge& e : whole.fetches) {
    Value& v = At(e);
    fetches_left_ += !v.fetched;
    v.fetched = true;
    if (!v.fed) need(e.node);
  }
  for (const Node* n : whole.targets) {
    targets_.insert(n);
    need(n);
  }
  while (!todo.empty()) {
    const Node* n = todo.back();
    todo.pop_back();
    const auto read = [&](const Edge& e) {
      Value& v = At(e);
      v.readers.push_back(n);
      if (!v.fed) need(e.node);
    };
    ForInputs(n, read, need);
  }
}

// Returns the node that runs in place of `n`: the last of its extensions that the whole needs, or
// `n`.
const Node* PartialRun::Form(const Node* n) const {
  const Graph& graph = *steps_.graph;
  for (const Node* by = graph.ExtendedBy(n); by; by = graph.ExtendedBy(by)) {
    if (nodes_.count(by)) n = by;
  }
  return n;
}

// Records the feeds of a part as given.
Status PartialRun::Take(const CallableSpec& part, const Tensor* feeds) {
  std::set<Key> here;
  for (size_t i = 0; i < part.feeds.size(); ++i) {
    const Edge& e = part.feeds[i];
    Value* v = Find(e);
    if (!v || !v->fed) return InvalidArgument("'", Shown(e.text()), "' is fed, but was not declared to be when the run was set up");
    if (v->given || !here.insert(KeyOf(e)).second) return InvalidArgument("'", Shown(e.text()), "' is fed twice in one run");
    RETURN_IF_ERROR(CheckFeed(e, feeds[i]));
  }
  for (size_t i = 0; i < part.feeds.size(); ++i) {
    Value& v = At(part.feeds[i]);
    v.given = true;
    v.now = feeds[i];
  }
  return Status();
}

void PartialRun::GiveBack(const CallableSpec& part) {
  for (const Edge& e : part.feeds) {
    Value& v = At(e);
    v.given = false;
    v.now.reset();
  }
}

// Collects the nodes that the part's fetches and targets need and that no earlier part ran.
Status PartialRun::Want(const CallableSpec& part, Part* out) {
  struct Need {
    const Node* node;
    std::string for_what;
  };
  std::vector<Need> todo;
  std::unordered_set<const Node*> seen;
  std::unordered_set<Key> fed;
  Status missing;
  const auto lack = [&](const Edge& e, const std::string& what, const char* why) {
    if (missing.ok()) missing = InvalidArgument(what, " needs '", Shown(e.text()), "', which ", why);
  };
  const auto need = [&](const Node* n, const std::string& what) {
    const Edge fed_one{n, 0};
    if (n->op().role == "placeholder") {
      Value& v = At(fed_one);
      if (!v.fed) return lack(fed_one, what, "the run was not set up to feed");
      if (!v.now && !v.given) return lack(fed_one, what, "no part has fed yet; feed it with this part or an earlier one");
      if (v.now && fed.insert(KeyOf(fed_one)).second) out->spec.feeds.push_back(fed_one);
      return;
    }
    n = Form(n);
    if (!IsIn(over_, n) && seen.insert(n).second) todo.push_back({n, what});
  };
  const auto want = [&](const Edge& e, const std::string& what) {
    Value& v = At(e);
    if (v.now) {
      if (fed.insert(KeyOf(e)).second) out->spec.feeds.push_back(e);
    } else if (v.fed) {
      lack(e, what, "no part has fed yet; feed it with this part or an earlier one");
    } else if (IsIn(over_, Form(e.node)) && missing.ok()) {
      missing = Internal("'", Shown(e.text()), "', which ", what, " needs, was not kept by an earlier part");
    } else {
      need(e.node, what);
    }
  };
  std::set<Key> here;
  for (const Edge& e : part.fetches) {
    Value* v = Find(e);
    if (!v || !v->fetched) return InvalidArgument("'", Shown(e.text()), "' is fetched, but was not declared to be when the run was set up");
    if (v->handed_out || !here.insert(KeyOf(e)).second) return InvalidArgument("'", Shown(e.text()), "' is fetched twice in one run");
    out->wanted.push_back(v);
    want(e, StrCat("fetch '", Shown(e.text()), "'"));
  }
  std::set<const Node*> target_here;
  for (const Node* n : part.targets) {
    const std::string what = StrCat("target '", Shown(n->name()), "'");
    if (!targets_.count(n) || !target_here.insert(n).second) {
      return InvalidArgument(what, " was not declared when the run was set up, or is run twice in it");
    }
    need(n, what);
  }
  while (!todo.empty() && missing.ok()) {
    const Need n = std::move(todo.back());
    todo.pop_back();
    out->runs.push_back(n.node);
    ForInputs(n.node, [&](const Edge& e) { want(e, n.for_what); }, [&](const Node* c) { need(c, n.for_what); });
  }
  out->spec.fetches = part.fetches;
  for (const Node* n : part.targets) {
    if (!IsIn(over_, Form(n))) out->spec.targets.push_back(n);
  }
  return missing;
}

// Adds fetches for the values of this part that later parts need.
void PartialRun::Keep(Part* part) {
  std::sort(part->runs.begin(), part->runs.end(), ById);
  const auto later = [&](const Node* n) { return !IsIn(over_, Form(n)) && !IsIn(part->runs, Form(n)); };
  std::vector<const Node*> again;
  for (const Node* n : part->runs) {
    if (RunsAgain(n)) {
      again.push_back(n);
      continue;
    }
    if (steps_.graph->ExtendedBy(n) || Form(n) != n) part->spec.targets.push_back(n);  // it runs in place of another node
    for (int32_t o = 0; o < n->n_out(); ++o) {
      Value* v = Find({n, o});
      if (!v || v->fed) continue;
      const bool wanted = std::find(part->wanted.begin(), part->wanted.end(), v) != part->wanted.end();
      const bool read = std::any_of(v->readers.begin(), v->readers.end(), later);
      const bool fetched = v->fetched && !v->handed_out && !wanted;
      if (!read && !fetched) continue;
      part->kept.push_back(v);
      part->spec.fetches.push_back(v->edge);
    }
  }
  for (const Node* n : again) part->runs.erase(std::lower_bound(part->runs.begin(), part->runs.end(), n, ById));
}

// Records that the part has succeeded.
void PartialRun::Over(const CallableSpec& spec, const Part& part) {
  over_.insert(over_.end(), part.runs.begin(), part.runs.end());
  std::sort(over_.begin(), over_.end(), ById);
  for (Value* v : part.wanted) v->handed_out = true;
  fetches_left_ -= part.wanted.size();
  for (const Node* n : spec.targets) targets_.erase(n);
  const bool all = fetches_left_ == 0 && targets_.empty();
  for (auto& [key, v] : values_) {
    if (!v.now) continue;
    const bool read = std::any_of(v.readers.begin(), v.readers.end(), [&](const Node* n) { return !IsIn(over_, Form(n)); });
    if (all || (!read && !(v.fetched && !v.handed_out))) v.now.reset();
  }
}

uint64_t PartialRun::left() {
  std::lock_guard lock(mu_);
  return fetches_left_ + targets_.size();
}

Status PartialRun::Run(const CallableSpec& spec, const Tensor* feeds, const RunOptions& options, Tensor* fetches) {
  for (size_t k = 0; k < spec.fetches.size(); ++k) fetches[k].reset();
  std::unique_lock lock(mu_, std::try_to_lock);
  if (!lock) return FailedPrecondition("another part of the run is under way; parts come one after the other");
  if (!failed_.ok()) return FailedPrecondition("an earlier part of the run has failed: ", Message(failed_), "; set up another");
  if (fetches_left_ == 0 && targets_.empty()) return FailedPrecondition("all that the run was set up for has been run; set up another");
  RETURN_IF_ERROR(Take(spec, feeds));
  Part part;
  if (Status s = Want(spec, &part); !s.ok()) {
    GiveBack(spec);
    return s;
  }
  Keep(&part);
  part.spec.over = over_;
  std::vector<Tensor> in, out(part.spec.fetches.size());
  for (const Edge& e : part.spec.feeds) in.push_back(At(e).now);
  const bool runs = !part.spec.fetches.empty() || !part.spec.targets.empty();
  try {
    if (runs) failed_ = steps_.run(part.spec, in.data(), options, out.data());
  } catch (...) {
    failed_ = Thrown();
  }
  RETURN_IF_ERROR(failed_);
  for (size_t k = 0; k < spec.fetches.size(); ++k) fetches[k] = std::move(out[k]);
  for (size_t k = 0; k < part.kept.size(); ++k) part.kept[k]->now = std::move(out[spec.fetches.size() + k]);
  Over(spec, part);
  return Status();
}

}  // namespace thalweg
