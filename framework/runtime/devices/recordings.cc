#include "framework/runtime/devices/recordings.h"

#include <algorithm>
#include <mutex>

#include "framework/runtime/runtime.h"
#include "framework/runtime/state/resource.h"
#include "framework/runtime/step/in_order.h"
#include "framework/runtime/step/step.h"

namespace thalweg {
namespace {

constexpr uint32_t kWarm = 2;      // uses of the same memory before it is recorded
constexpr size_t kStories = 8;     // sets of memory that a run remembers
constexpr uint32_t kAttempts = 3;  // attempts to record a run

std::vector<char> BytesOf(const tw_view& v) {
  const char* bytes = static_cast<const char*>(v.data) + v.offset;
  return v.bytes ? std::vector<char>(bytes, bytes + v.bytes) : std::vector<char>();
}

}  // namespace

Recordings::Recordings(StepState* step) : step_(step), spare_(step->plan().values.size()), own_memory_(spare_.size(), 0) {
  const Plan& p = step_->plan();
  for (const PlanNode& n : p.nodes) {
    for (int32_t v : n.out) {
      const PlanValue& value = p.values[size_t(v)];
      own_memory_[size_t(v)] = value.location && value.kind == PlanValue::kHeld && !value.fetched && !n.given;
    }
  }
  for (const PlanRun& nodes : p.runs) {
    Run& run = runs_.emplace_back();
    run.nodes = nodes;
    run.device = p.nodes[size_t(nodes.begin)].run.device;
    for (int32_t i = nodes.begin; i < nodes.end; ++i) AddNode(&run, size_t(i));
    std::sort(run.moves.begin(), run.moves.end());
    run.moves.erase(std::unique(run.moves.begin(), run.moves.end()), run.moves.end());
    run.wants.reserve(run.locks.size());
    run.stories.resize(kStories);
    for (Story& s : run.stories) s.memory.resize(run.moves.size());
    now_.reserve(std::max(now_.capacity(), run.moves.size()));
  }
}

void Recordings::AddNode(Run* run, size_t i) {
  const Plan& p = step_->plan();
  const PlanNode& n = p.nodes[i];
  if (!n.copied_in.empty()) run->await.push_back(uint32_t(i));
  if (!n.held_in.empty()) run->release.push_back(uint32_t(i));
  const auto moves = [&](int32_t v) {
    const PlanValue::Kind kind = p.values[size_t(v)].kind;
    return kind != PlanValue::kBlock && kind != PlanValue::kConst;
  };
  for (size_t k = 0; k < n.in.size(); ++k) {
    const int32_t v = n.in[k];
    const bool is_const = p.values[size_t(v)].kind == PlanValue::kConst;
    if (n.run.host_in[k] && !is_const && p.values[size_t(v)].dtype != TW_RESOURCE) {
      run->told.emplace_back(uint32_t(i), &step_->slot(v));  // the kernel has read it when it returns, wherever it is
    } else if (moves(v)) {
      run->moves.push_back(&step_->slot(v));
    }
  }
  bool holds = false;
  for (int32_t v : n.out) {
    if (!moves(v)) continue;
    run->moves.push_back(&step_->slot(v));
    holds = true;
  }
  if (holds) run->hold.push_back(uint32_t(i));
  if (!n.run.opens()) return;
  run->opens.push_back(&step_->frame(i));
  const auto add = [&](uint32_t input, bool update) {
    run->locks.push_back({uint32_t(i), input, update});
    run->moves.push_back(&step_->slots_[step_->opened_slots_[i] + input]);
  };
  for (uint32_t k : n.run.open_read) add(k, false);
  for (uint32_t k : n.run.open_update) add(k, true);
}

Recordings::~Recordings() {
  for (const Run& run : runs_) {
    for (const Story& s : run.stories) Release(run, s.recording);
  }
}

void Recordings::Release(const Run& run, void* recording) {
  const DeviceKind& kind = run.device->def();
  if (recording) kind.capture->release(kind.host, run.device->self(), recording);
}

// Keeps the recordings, so that end_into can turn them into others.
void Recordings::Forget() {
  for (Run& run : runs_) {
    for (Story& s : run.stories) s.times = 0;
  }
  for (Tensor& t : spare_) t.reset();
}

bool Recordings::Spare(int32_t value, Tensor* t) {
  if (!own_memory_[size_t(value)] || !*t) return false;
  spare_[size_t(value)] = std::move(*t);
  *t = Tensor();
  return true;
}

Tensor Recordings::TakeSpare(int32_t value, const int64_t* dims, int32_t rank) {
  Tensor t = std::move(spare_[size_t(value)]);
  spare_[size_t(value)] = Tensor();
  if (!t || !t.unique() || t.rank() != rank || !std::equal(dims, dims + rank, t.view().dims)) return Tensor();
  return t;
}

bool Recordings::GiveSpares() {
  bool any = false;
  for (size_t v = 0; v < spare_.size(); ++v) {
    if (!spare_[v]) continue;
    step_->QueuesOf(step_->DeviceOf(int32_t(v)))->Keep(std::move(spare_[v]));
    spare_[v] = Tensor();
    any = true;
  }
  return any;
}

Status Recordings::RunAll() {
  size_t next = 0;
  for (Run& run : runs_) {
    RETURN_IF_ERROR((RunInOrder<false, false>(step_, next, size_t(run.nodes.begin))));
    RETURN_IF_ERROR(StepInterrupted(*step_));
    RETURN_IF_ERROR(Guarded(&run));
    next = size_t(run.nodes.end);
  }
  return RunInOrder<false, false>(step_, next, step_->plan().nodes.size());
}

Status Recordings::Guarded(Run* run) {
  try {
    return RunOne(run);
  } catch (...) {  // no memory
    return step_->Describe(size_t(run->nodes.begin), Thrown());
  }
}

Status Recordings::NodeByNode(const Run& run) { return RunInOrder<false, false>(step_, size_t(run.nodes.begin), size_t(run.nodes.end)); }

Status Recordings::RunOne(Run* run) {
  if (run->failures == kAttempts) return NodeByNode(*run);
  if (!LockAll(run)) return NodeByNode(*run);
  DeviceQueues* queues = step_->QueuesOf(run->device);
  Status s = Prepare(run);
  const bool enqueues = s.ok();
  if (enqueues) s = Enqueue(run);
  if (!run->opens.empty()) {
    if (enqueues) {
      queues->CloseWhenOver(run->opens.data(), run->opens.size());
    } else {
      for (KernelFrame* f : run->opens) CloseResources(f);
    }
  }
  RETURN_IF_ERROR(s);
  for (uint32_t i : run->hold) RETURN_IF_ERROR(step_->EndNode(i));
  for (uint32_t i : run->release) step_->ReleaseInputs<false>(i);
  return Status();
}

// Takes all locks at once, in address order, as one kernel takes its own. Returns false with no
// lock held if the nodes must take their locks one by one: two of them open one resource, or a
// variable is on another device.
bool Recordings::LockAll(Run* run) {
  auto& wants = run->wants;
  wants.clear();
  for (const Lock& lock : run->locks) {
    KernelFrame& f = step_->frame(lock.node);
    f.opened[lock.input] = nullptr;
    auto r = ResourceOf(f, lock.input);
    if (!r.ok() || (step_->moves_state && (*r)->Away(run->device))) return false;
    wants.emplace_back(*r, &lock);
  }
  std::sort(wants.begin(), wants.end());
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  if (std::adjacent_find(wants.begin(), wants.end(), same) != wants.end()) return false;
  for (const auto& [r, lock] : wants) {
    if (lock->update) {
      r->LockUpdate();
    } else {
      r->LockRead();
    }
    step_->frame(lock->node).opened[lock->input] = r;
  }
  if (!IsAway(*run)) return true;
  for (KernelFrame* f : run->opens) CloseResources(f);
  return false;
}

// Returns true if a locked variable is on another device; another step may have moved it before.
bool Recordings::IsAway(const Run& run) const {
  return step_->moves_state && std::any_of(run.wants.begin(), run.wants.end(), [&](const auto& w) { return w.first->Away(run.device); });
}

// Does everything that precedes enqueueing: waits for copies, shows opened resources, makes memory
// for outputs.
Status Recordings::Prepare(Run* run) {
  size_t at = size_t(run->nodes.begin);  // node to name in an error
  const auto prepare = [&]() -> Status {
    const Plan& p = step_->plan();
    DeviceQueues* queues = step_->QueuesOf(run->device);
    for (uint32_t i : run->await) RETURN_IF_ERROR(step_->AwaitCopies(p.nodes[at = i], queues, DeviceQueues::kCompute));
    for (const Lock& lock : run->locks) {
      at = lock.node;
      Slot* shown = &step_->slots_[step_->opened_slots_[at] + lock.input];
      RETURN_IF_ERROR(ShowResource(&step_->frame(at), lock.input, lock.update, shown));
    }
    for (uint32_t i : run->hold) RETURN_IF_ERROR(step_->AllocateOutputs(at = i));
    return Status();
  };
  Status s;
  try {
    s = prepare();
  } catch (...) {  // no memory
    s = Thrown();
  }
  return s.ok() ? s : step_->Describe(at, s);
}

// Returns the story of the run's present memory and dims. The dims are compared too, because a
// variable's memory may be reused under other dims. A new story replaces one whose memory has
// moved, preferably one with a recording; otherwise the least recently given story, preferably one
// without a recording.
Recordings::Story* Recordings::Find(Run* run) {
  now_.clear();
  dims_.clear();
  for (const Slot* s : run->moves) {
    now_.push_back({s->view.data, s->view.offset});
    dims_.push_back(s->view.rank);
    dims_.insert(dims_.end(), s->view.dims, s->view.dims + std::max(s->view.rank, 0));
  }
  for (const auto& [node, slot] : run->told) {  // their memory may move, because the recording does not hold it
    dims_.push_back(slot->view.rank);
    dims_.insert(dims_.end(), slot->view.dims, slot->view.dims + std::max(slot->view.rank, 0));
  }
  const auto known = [&](const Story& s) { return s.times && s.memory == now_ && s.dims == dims_; };
  auto found = std::find_if(run->stories.begin(), run->stories.end(), known);
  if (found == run->stories.end()) {
    const auto rank = [](const Story& s) {
      const int kept = s.recording ? 1 : 0;
      return std::pair(s.times ? 2 + kept : 1 - kept, s.last);
    };
    found = std::min_element(run->stories.begin(), run->stories.end(), [&](const Story& a, const Story& b) { return rank(a) < rank(b); });
    std::copy(now_.begin(), now_.end(), found->memory.begin());
    found->dims = dims_;
    found->times = 0;
  }
  found->last = ++clock_;
  ++found->times;
  return &*found;
}

tw_status* Recordings::ExecuteAll(const Run& run, size_t* failed) {
  for (*failed = size_t(run.nodes.begin); *failed < size_t(run.nodes.end); ++*failed) {
    if (tw_status* s = CallSimple(step_->plan().nodes[*failed], step_->frame(*failed))) return s;
  }
  return nullptr;
}

// As ExecuteAll, while the queue is being recorded: names the work of nodes that may have to be
// updated.
tw_status* Recordings::RecordAll(const Run& run, size_t* failed) {
  if (run.told.empty()) return ExecuteAll(run, failed);
  const DeviceKind& kind = run.device->def();
  void* stream = step_->QueuesOf(run.device)->compute()->c();
  size_t next = 0;
  bool named = false;
  for (*failed = size_t(run.nodes.begin); *failed < size_t(run.nodes.end); ++*failed) {
    const bool names = next < run.told.size() && run.told[next].first == *failed;
    while (next < run.told.size() && run.told[next].first == *failed) ++next;
    if (names || named) {
      if (tw_status* s = kind.capture->mark(kind.host, stream, names ? *failed + 1 : 0)) return s;
    }
    named = names;
    if (tw_status* s = CallSimple(step_->plan().nodes[*failed], step_->frame(*failed))) return s;
  }
  return nullptr;
}

// Records the node's work again, in place of what the recording has of it.
Status Recordings::UpdateNode(const Run& run, void* recording, uint32_t node) {
  const DeviceKind& kind = run.device->def();
  void* stream = step_->QueuesOf(run.device)->compute()->c();
  RETURN_IF_ERROR(FromC(kind.capture->update(kind.host, stream, recording, uint64_t{node} + 1)));
  Status s;
  try {
    s = FromC(CallSimple(step_->plan().nodes[node], step_->frame(node)));
  } catch (...) {
    s = Thrown();
  }
  Status ended = FromC(kind.capture->updated(kind.host, stream, recording, uint64_t{node} + 1));
  return s.ok() ? ended : s;
}

// Updates the parts of the story's recording whose kernels would get other host arguments now. After
// an error the recording is gone.
Status Recordings::Follow(Run* run, Story* story) {
  size_t at = 0;
  for (size_t k = 0; k < run->told.size();) {
    const uint32_t node = run->told[k].first;
    const size_t first = at;
    std::vector<char> now;
    for (; k < run->told.size() && run->told[k].first == node; ++k) {
      const std::vector<char> text = BytesOf(run->told[k].second->view);
      now.insert(now.end(), text.begin(), text.end());
    }
    at += now.size();
    const bool same = at <= story->told.size() && std::equal(now.begin(), now.end(), story->told.begin() + ptrdiff_t(first));
    if (same) continue;
    Status s = at <= story->told.size() ? UpdateNode(*run, story->recording, node) : Internal("the sizes of arguments have changed");
    if (!s.ok()) {
      Release(*run, std::exchange(story->recording, nullptr));
      ++run->failures;
      return s;
    }
    std::copy(now.begin(), now.end(), story->told.begin() + ptrdiff_t(first));
  }
  return Status();
}

// Converts exceptions to errors, so that the run's locks are released.
Status Recordings::Enqueue(Run* run) {
  try {
    return EnqueueAll(run);
  } catch (...) {
    return step_->Describe(size_t(run->nodes.begin), Thrown());
  }
}

Status Recordings::EnqueueAll(Run* run) {
  const DeviceKind& kind = run->device->def();
  Stream* stream = step_->QueuesOf(run->device)->compute();
  Story* story = Find(run);
  std::lock_guard lock(stream->mutex());
  size_t failed = size_t(run->nodes.begin);
  if (!stream->c()) return step_->Describe(failed, stream->timeline()->failure());
  if (story->times == kWarm + 1) Record(run, story);
  bool replays = story->recording && story->times > kWarm;
  if (replays && !run->told.empty()) replays = Follow(run, story).ok();  // else the nodes say themselves what is wrong
  tw_status* s = replays ? kind.capture->replay(kind.host, stream->c(), story->recording) : ExecuteAll(*run, &failed);
  return s ? step_->Describe(failed, FromC(s)) : Status();
}

// Records the run. The queue always leaves recording mode. A failure is logged, and the nodes are
// enqueued as before. REQUIRES: the stream's lock is held.
void Recordings::Record(Run* run, Story* story) {
  const DeviceKind& kind = run->device->def();
  const tw_capture_set& capture = *kind.capture;
  void* stream = step_->QueuesOf(run->device)->compute()->c();
  void* made = std::exchange(story->recording, nullptr);
  if (!capture.end_into) Release(*run, std::exchange(made, nullptr));
  size_t failed = size_t(run->nodes.begin);
  const tw_capture_config config = {TW_SIZED(tw_capture_config), stream};
  Status s = FromC(capture.begin(kind.host, &config));
  if (s.ok()) {
    try {
      s = FromC(RecordAll(*run, &failed));
    } catch (...) {
      s = Thrown();
    }
    Status ended = FromC(made ? capture.end_into(kind.host, stream, made) : capture.end(kind.host, stream, &made));
    if (s.ok()) s = std::move(ended);
  }
  if (s.ok()) {
    story->recording = made;
    story->told.clear();
    for (const auto& [node, slot] : run->told) {
      const std::vector<char> text = BytesOf(slot->view);
      story->told.insert(story->told.end(), text.begin(), text.end());
    }
    return;
  }
  Release(*run, made);
  ++run->failures;
  step_->runtime->Log(1, StrCat("what ", run->nodes.end - run->nodes.begin, " nodes give to ", run->device->name(), " is not recorded: ",
                                step_->plan().nodes[std::min(failed, size_t(run->nodes.end) - 1)].title, " ", Message(s)));
}

}  // namespace thalweg
