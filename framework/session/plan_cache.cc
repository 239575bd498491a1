#include "framework/session/plan_cache.h"

#include <algorithm>
#include <utility>

#include "framework/runtime/step/step.h"

namespace thalweg {
namespace {

// Appends the rank and dims of a feed. Equal keys mean equal shapes.
void AddKey(const Shape& s, std::vector<int64_t>* key) {
  key->push_back(s.rank());
  key->insert(key->end(), s.dims().begin(), s.dims().end());
}
bool HasShapes(const std::vector<int64_t>& key, const Tensor* feeds, size_t n) {
  size_t at = 0;
  for (size_t i = 0; i < n; ++i) {
    if (at >= key.size() || key[at++] != feeds[i].rank()) return false;
    for (int32_t k = 0; k < feeds[i].rank(); ++k) {
      if (key[at++] != feeds[i].dim(k)) return false;
    }
  }
  return true;
}

}  // namespace

// REQUIRES: mu_ is held.
template <class Fits>
PlanCache::Known* PlanCache::FindKnown(Fits&& fits) {
  if (latest_ && fits(latest_->key)) return latest_;
  for (auto& k : known_) {
    if (!fits(k->key)) continue;
    latest_ = k.get();
    latest_->used = ++clock_;
    return latest_;
  }
  return nullptr;
}

// REQUIRES: mu_ is held. Prefers a state that is bound to these sizes; any other state can be bound
// to them.
void PlanCache::Hand(const Known& known, Found* out) {
  out->entry = known.entry;
  out->plan = known.entry->plan.get();
  auto& idle = known.entry->idle;
  if (!idle.empty() && idle.back()->shapes() != known.shapes.get()) {
    auto bound = std::find_if(idle.begin(), idle.end(), [&](auto& state) { return state->shapes() == known.shapes.get(); });
    if (bound != idle.end()) std::swap(*bound, idle.back());
  }
  if (idle.empty() || idle.back()->shapes() != known.shapes.get()) out->shapes = known.shapes;
  if (idle.empty()) return;
  out->state = std::move(idle.back());
  idle.pop_back();
}

PlanCache::PlanCache(size_t n_feeds, uint32_t max_plans, uint32_t max_shapes, Maker* maker)
    : n_feeds_(n_feeds), max_plans_(max_plans), max_shapes_(max_shapes), maker_(maker) {}
PlanCache::~PlanCache() = default;

bool PlanCache::Find(const Tensor* feeds, Found* out) {
  std::lock_guard lock(mu_);
  Known* known = FindKnown([&](const std::vector<int64_t>& key) { return HasShapes(key, feeds, n_feeds_); });
  if (!known) return false;
  ++counts_.hits;
  Hand(*known, out);
  return true;
}

Status PlanCache::Prepare(const Tensor* feeds, Found* out) {
  std::vector<Shape> shapes;
  std::vector<int64_t> key;
  for (size_t i = 0; i < n_feeds_; ++i) {
    shapes.push_back(feeds[i].shape());
    AddKey(shapes.back(), &key);
  }
  return Make(key, shapes, true, out);
}

Status PlanCache::Prepare(const std::vector<Shape>& feed_shapes, Found* out) {
  std::vector<int64_t> key;
  for (const Shape& s : feed_shapes) AddKey(s, &key);
  return Make(key, feed_shapes, false, out);
}

Status PlanCache::Make(const std::vector<int64_t>& key, const std::vector<Shape>& shapes, bool for_run, Found* out) {
  std::lock_guard making(making_mu_);
  auto find = [&] {
    Known* known = FindKnown([&](const std::vector<int64_t>& k) { return k == key; });
    if (!known) return false;
    if (for_run) {
      Hand(*known, out);
    } else {
      out->entry = known->entry;
      out->plan = known->entry->plan.get();
      out->shapes = known->shapes;
    }
    return true;
  };
  {  // another thread may have made it
    std::lock_guard lock(mu_);
    Known* latest = latest_;
    const bool found = find();
    if (!for_run) latest_ = latest;
    if (found) {
      counts_.hits += for_run;
      return Status();
    }
  }
  ASSIGN_OR_RETURN(Known made, Work(shapes, &out->made));
  RETURN_IF_ERROR(maker_->Keep(*made.shapes));
  made.key = key;
  std::lock_guard lock(mu_);
  if (for_run) ++(out->made ? counts_.misses : counts_.shape_hits);
  Remember(std::move(made));
  Known* latest = latest_;
  find();
  if (!for_run) latest_ = latest;
  return Status();
}

// REQUIRES: making_mu_ is held. Uses an existing plan that can serve these shapes, else makes a new
// plan, else uses the plan that serves all shapes.
StatusOr<PlanCache::Known> PlanCache::Work(const std::vector<Shape>& shapes, bool* made) {
  Known known;
  for (auto& e : entries_) {  // only the holder of making_mu_ changes the list
    if (e.get() == any_) continue;
    known.shapes = OtherShapes(*e->plan, shapes);
    known.entry = e.get();
    if (known.shapes) return known;
  }
  if (!any_) {
    const bool last = entries_.size() >= max_plans_;
    auto entry = std::make_unique<Entry>();
    ASSIGN_OR_RETURN(entry->plan, maker_->MakePlan(last ? std::vector<Shape>(shapes.size()) : shapes));
    *made = true;
    std::lock_guard lock(mu_);
    known.entry = entry.get();
    if (last) any_ = entry.get();
    entries_.push_back(std::move(entry));
  } else {
    known.entry = any_;
  }
  known.shapes = known.entry->plan->shapes;
  return known;
}

// REQUIRES: mu_ is held.
void PlanCache::Remember(Known known) {
  if (known_.size() >= max_shapes_) {
    auto oldest = std::min_element(known_.begin(), known_.end(), [](auto& a, auto& b) { return a->used < b->used; });
    if (oldest->get() == latest_) latest_ = nullptr;
    known_.erase(oldest);
    ++counts_.evictions;
  }
  known_.push_back(std::make_unique<Known>(std::move(known)));
}

void PlanCache::Latest(Found* out) {
  std::lock_guard lock(mu_);
  if (!latest_) return;
  out->entry = latest_->entry;
  out->plan = latest_->entry->plan.get();
  out->shapes = latest_->shapes;
}

void PlanCache::GiveBack(Entry* entry, std::unique_ptr<StepState> state) {
  std::lock_guard lock(mu_);
  if (&state->plan() == entry->plan.get()) entry->idle.push_back(std::move(state));
}

void PlanCache::Replace(Entry* entry, std::unique_ptr<Plan> plan, const std::vector<Shape>& shapes) {
  std::vector<int64_t> key;
  for (const Shape& s : shapes) AddKey(s, &key);
  std::vector<std::unique_ptr<StepState>> idle;  // freed outside the locks
  std::lock_guard making(making_mu_);
  std::lock_guard lock(mu_);
  idle.swap(entry->idle);
  replaced_.push_back(std::exchange(entry->plan, std::move(plan)));
  latest_ = nullptr;
  std::erase_if(known_, [&](const auto& k) { return k->entry == entry && k->key != key; });
  for (const auto& k : known_) {
    if (k->entry == entry) k->shapes = entry->plan->shapes;
  }
}

void PlanCache::Drop(Entry* entry) {
  std::vector<std::unique_ptr<StepState>> idle;  // freed outside the locks
  std::lock_guard making(making_mu_);
  std::lock_guard lock(mu_);
  auto it = std::find_if(entries_.begin(), entries_.end(), [&](const auto& e) { return e.get() == entry; });
  if (it == entries_.end()) return;  // another thread was first
  idle.swap(entry->idle);
  latest_ = nullptr;
  std::erase_if(known_, [&](const auto& k) { return k->entry == entry; });
  if (any_ == entry) any_ = nullptr;
  replaced_.push_back(std::move(entry->plan));
  dropped_.push_back(std::move(*it));
  entries_.erase(it);
}

void PlanCache::TakeIdle(std::vector<std::unique_ptr<StepState>>* to) {
  const std::unique_lock lock(mu_, std::try_to_lock);
  if (!lock) return;
  for (auto& e : entries_) {
    for (auto& state : e->idle) to->push_back(std::move(state));
    e->idle.clear();
  }
}

PlanCounts PlanCache::counts() {
  std::lock_guard lock(mu_);
  PlanCounts c = counts_;
  c.plans = entries_.size();
  c.shapes = known_.size();
  return c;
}

}  // namespace thalweg
