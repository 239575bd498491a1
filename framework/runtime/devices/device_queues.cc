#include "framework/runtime/devices/device_queues.h"

#include <algorithm>

#include "framework/runtime/state/resource.h"
#include "framework/runtime/step/frame.h"

namespace thalweg {
namespace {

// Limits for memory that is kept before the queues are asked for their progress.
constexpr size_t kMostFresh = 16;
constexpr uint64_t kMostFreshBytes = 4 << 20;

}  // namespace

struct DeviceQueues::Closing {
  DeviceQueues* queues;
  std::vector<std::pair<Resource*, bool>> locks;  // references; true: an update lock
};

StatusOr<std::unique_ptr<DeviceQueues>> DeviceQueues::Create(Device* device) {
  std::unique_ptr<DeviceQueues> q(new DeviceQueues(device));
  ASSIGN_OR_RETURN(q->streams_[kCompute], Stream::Create(device));
  return q;
}

DeviceQueues::~DeviceQueues() { (void)Drain(); }

StatusOr<Stream*> DeviceQueues::Queue(Which which) {
  std::lock_guard lock(mu_);
  if (!streams_[which]) {
    ASSIGN_OR_RETURN(streams_[which], Stream::Create(device_));
  }
  given_[which] = true;
  return streams_[which].get();
}

StatusOr<QueueMark> DeviceQueues::Mark(Which which) {
  Stream* stream = streams_[which].get();
  ASSIGN_OR_RETURN(const uint64_t value, stream->Mark());
  return QueueMark{stream->timeline(), value};
}

Status DeviceQueues::Order(Which which, const QueueMark& mark) {
  ASSIGN_OR_RETURN(Stream * stream, Queue(which));
  if (mark.line == stream->timeline() || mark.line->value() >= mark.value) return Status();
  // Held until the queue waits, because a thread that finds the mark here may enqueue at once.
  std::lock_guard lock(order_mu_[which]);
  std::vector<QueueMark>& seen = seen_[which];
  auto known = std::find_if(seen.begin(), seen.end(), [&](const QueueMark& m) { return m.line == mark.line; });
  if (known != seen.end() && known->value >= mark.value) return Status();
  RETURN_IF_ERROR(stream->WaitFor(mark.line, mark.value));
  if (known == seen.end()) {
    seen.push_back(mark);
  } else {
    known->value = mark.value;
  }
  return Status();
}

// ---- Memory ----

bool DeviceQueues::Kept::over() const {
  return std::all_of(until.begin(), until.end(), [](const QueueMark& m) { return m.line->value() >= m.value; });
}

void DeviceQueues::Keep(Tensor t) {
  if (!t) return;
  try {
    std::vector<Tensor> over;  // freed outside the lock
    std::lock_guard lock(mu_);
    fresh_bytes_ += t.bytes();
    fresh_.push_back(t);
    if (fresh_.size() < kMostFresh && fresh_bytes_ < kMostFreshBytes) return;
    MarkFresh();
    over = TakeOver();
  } catch (...) {  // no memory to keep it in: wait for the queues instead
    for (const auto& stream : streams_) {
      if (stream) (void)stream->Drain();
    }
  }
}

void DeviceQueues::KeepShare(Tensor t) {
  if (!t) return;
  try {
    std::lock_guard lock(mu_);
    shares_.push_back(t);
  } catch (...) {  // no memory for the list
    Keep(std::move(t));
  }
}

int32_t DeviceQueues::CountShares(const Tensor& of) const {
  std::lock_guard lock(mu_);
  return int32_t(std::count_if(shares_.begin(), shares_.end(), [&](const Tensor& t) { return t.get() == of.get(); }));
}

void DeviceQueues::LetGoShares(const Tensor& of) {
  std::lock_guard lock(mu_);
  std::erase_if(shares_, [&](const Tensor& t) { return t.get() == of.get(); });
}

// Marks all queues for the fresh memory. A queue that cannot be marked has broken and holds nothing
// any more.
void DeviceQueues::MarkFresh() {
  if (fresh_.empty()) return;
  Kept& kept = kept_.emplace_back();
  kept.until.reserve(kQueues);
  for (int q = 0; q < kQueues; ++q) {
    if (!streams_[q] || !given_[q]) continue;
    if (auto mark = Mark(Which(q)); mark.ok()) kept.until.push_back(*mark);
  }
  kept.tensors = std::move(fresh_);
  fresh_.clear();
  fresh_bytes_ = 0;
}

std::vector<Tensor> DeviceQueues::TakeOver() {
  std::vector<Tensor> over;
  while (!kept_.empty() && kept_.front().over()) {
    std::move(kept_.front().tensors.begin(), kept_.front().tensors.end(), std::back_inserter(over));
    kept_.pop_front();
  }
  return over;
}

bool DeviceQueues::Reclaim() {
  std::vector<Tensor> over;
  std::vector<QueueMark> until;
  {
    std::lock_guard lock(mu_);
    std::move(shares_.begin(), shares_.end(), std::back_inserter(fresh_));
    shares_.clear();
    MarkFresh();
    if (kept_.empty()) return false;
    until = kept_.front().until;
  }
  for (const QueueMark& m : until) (void)m.line->Wait(m.value);
  std::lock_guard lock(mu_);
  over = TakeOver();
  return true;
}

// ---- Locks ----

// Reserves room for the locks of calls. NULL if there is no memory.
std::unique_ptr<DeviceQueues::Closing> DeviceQueues::MakeClosing(KernelFrame* const* frames, size_t n) noexcept {
  try {
    auto closing = std::make_unique<Closing>();
    closing->queues = this;
    size_t locks = 0;
    for (size_t k = 0; k < n; ++k) locks += frames[k]->run->open_read.size() + frames[k]->run->open_update.size();
    closing->locks.reserve(locks);
    std::lock_guard lock(closing_mu_);
    released_.reserve(released_.size() + closing_ + closing->locks.capacity());
    closing_ += closing->locks.capacity();
    return closing;
  } catch (...) {
    return nullptr;
  }
}

void DeviceQueues::CloseWhenOver(KernelFrame* const* frames, size_t n) {
  std::unique_ptr<Closing> closing = MakeClosing(frames, n);
  auto mark = Mark(kCompute);  // not OK: the queue has broken, so its work has ended
  if (!closing) {
    if (mark.ok()) (void)mark->line->Wait(mark->value);
    for (size_t k = 0; k < n; ++k) CloseResources(frames[k]);
    return;
  }
  const auto add = [&](KernelFrame* f, uint32_t input, bool update) {
    Resource* r = f->opened[input];
    f->opened[input] = nullptr;
    const auto same = [r](const auto& lock) { return lock.first == r; };
    if (!r || std::any_of(closing->locks.begin(), closing->locks.end(), same)) return;
    r->Retain();
    closing->locks.emplace_back(r, update);
  };
  for (size_t k = 0; k < n; ++k) {
    for (uint32_t i : frames[k]->run->open_read) add(frames[k], i, false);
    for (uint32_t i : frames[k]->run->open_update) add(frames[k], i, true);
  }
  Closing* c = closing.release();
  if (!mark.ok()) return Closed(c);
  const auto closed = [](void* arg, const tw_status*) {
    auto* reached = static_cast<Closing*>(arg);
    reached->queues->Closed(reached);
  };
  try {
    mark->line->When(mark->value, closed, c);
  } catch (...) {  // no memory for a callback
    (void)mark->line->Wait(mark->value);
    Closed(c);
  }
}

// Releases the locks. This may run on the device's thread, which must not free memory, so
// references are released later.
void DeviceQueues::Closed(Closing* c) {
  std::unique_ptr<Closing> closing(c);
  for (auto [r, update] : closing->locks) {
    if (update) {
      r->UnlockUpdate();
    } else {
      r->UnlockRead();
    }
  }
  std::lock_guard lock(closing_mu_);
  for (auto [r, update] : closing->locks) released_.push_back(r);
  closing_ -= closing->locks.capacity();
  if (closing_ == 0) closed_.notify_all();
}

// ---- The end ----

// All queues are marked before the first is awaited, because each reports its end on a thread of
// its own.
Status DeviceQueues::Await() {
  Status first;
  QueueMark until[kQueues];
  {
    std::lock_guard lock(mu_);
    for (int q = 0; q < kQueues; ++q) {
      if (!streams_[q]) continue;
      if (!given_[q]) {  // it was awaited before, but its failure may not have been reported yet
        if (first.ok()) first = streams_[q]->timeline()->failure();
        continue;
      }
      auto mark = Mark(Which(q));
      if (mark.ok()) until[q] = *mark;
      if (first.ok()) first = mark.status();
    }
  }
  for (const QueueMark& m : until) {
    Status s = m.line ? m.line->Wait(m.value) : Status();
    if (first.ok()) first = std::move(s);
  }
  return first;
}

Status DeviceQueues::Settle() {
  {
    std::lock_guard lock(mu_);
    MarkFresh();
  }
  Status first = Await();
  std::vector<Tensor> over;  // freed outside the lock
  std::lock_guard lock(mu_);
  over = TakeOver();
  return first;
}

Status DeviceQueues::Drain() {
  Status first = Await();
  std::vector<Tensor> over;
  std::vector<Resource*> released;
  {
    std::unique_lock lock(closing_mu_);
    closed_.wait(lock, [&] { return closing_ == 0; });
    released = std::move(released_);
    released_.clear();
  }
  {
    std::lock_guard lock(mu_);
    over = std::move(fresh_);
    fresh_.clear();
    std::move(shares_.begin(), shares_.end(), std::back_inserter(over));
    shares_.clear();
    fresh_bytes_ = 0;
    for (Kept& k : kept_) std::move(k.tensors.begin(), k.tensors.end(), std::back_inserter(over));
    kept_.clear();
    std::fill(given_ + kIn, given_ + kQueues, false);
  }
  for (Resource* r : released) r->Release();
  return first;
}

Status DeviceQueues::failure(uint64_t* at) const {
  std::lock_guard lock(mu_);
  const tw_timeline* first = nullptr;
  for (const auto& s : streams_) {
    const uint64_t failed = s ? s->timeline()->failed_at() : 0;
    if (failed && (!first || failed < first->failed_at())) first = s->timeline();
  }
  *at = first ? first->failed_at() : 0;
  return first ? first->failure() : Status();
}

}  // namespace thalweg
