#include "framework/tensor/memory_budget.h"

#include <algorithm>

#include "framework/base/dtype.h"
#include "framework/tensor/idle_memory.h"
#include "framework/tensor/tensor.h"
#include "framework/tensor/texts.h"

namespace thalweg {

MemoryBudget::MemoryBudget(uint64_t limit, std::string who, MemoryBudget* parent) : limit_(limit), who_(std::move(who)), parent_(parent) {
  if (parent_) parent_->Retain();
}

MemoryBudget::~MemoryBudget() {
  SetReclaim(nullptr);
  if (parent_) parent_->Release();
}

bool MemoryBudget::TryRetain() {
  int32_t refs = refs_.load(std::memory_order_relaxed);
  do {
    if (refs == 0) return false;
  } while (!refs_.compare_exchange_weak(refs, refs + 1, std::memory_order_relaxed));
  return true;
}

bool MemoryBudget::Fits(uint64_t bytes) const {
  const uint64_t used = used_.load(std::memory_order_relaxed);
  return used <= limit_ && bytes <= limit_ - used;
}

uint64_t MemoryBudget::left() const {
  uint64_t least = kUnlimited;
  for (const MemoryBudget* b = this; b; b = b->parent_) {
    const uint64_t used = b->used();
    least = std::min(least, used < b->limit_ ? b->limit_ - used : 0);
  }
  return least;
}

// A reclaim function only frees; it takes no memory. children_mu_ is not held while a child
// reclaims, because releasing the last reference to a child locks it.
void MemoryBudget::Reclaim() {
  std::vector<MemoryBudget*> children;
  {
    std::lock_guard lock(children_mu_);
    for (MemoryBudget* child : children_) {
      if (child->TryRetain()) children.push_back(child);
    }
  }
  for (MemoryBudget* child : children) {
    child->Reclaim();
    child->Release();
  }
  std::lock_guard lock(reclaim_mu_);
  if (reclaim_) reclaim_();
}

void MemoryBudget::SetReclaim(std::function<void()> reclaim) {
  for (MemoryBudget *child = this, *b = parent_; b; child = b, b = b->parent_) {
    std::lock_guard lock(b->children_mu_);
    auto it = std::find(b->children_.begin(), b->children_.end(), child);
    if (!reclaim) {  // the parent stays registered with its own parent, for its other children
      if (it != b->children_.end()) b->children_.erase(it);
      break;
    }
    if (it == b->children_.end()) b->children_.push_back(child);
  }
  std::lock_guard lock(reclaim_mu_);
  reclaim_ = std::move(reclaim);
}

bool MemoryBudget::TryTake(uint64_t bytes) {
  uint64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (used > limit_ || bytes > limit_ - used) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return true;
}

MemoryBudget* MemoryBudget::TryTakeAll(uint64_t bytes) {
  for (MemoryBudget* b = this; b; b = b->parent_) {
    if (b->TryTake(bytes)) continue;
    for (MemoryBudget* paid = this; paid != b; paid = paid->parent_) paid->used_.fetch_sub(bytes, std::memory_order_relaxed);
    return b;
  }
  return nullptr;
}

void MemoryBudget::Add(uint64_t bytes) {
  for (MemoryBudget* b = this; b; b = b->parent_) b->used_.fetch_add(bytes, std::memory_order_relaxed);
}

Status MemoryBudget::TooMany(uint64_t bytes) const {
  return ResourceExhausted(bytes, " bytes more are too many: ", who_, " holds ", used(), " of the ", limit_,
                           " bytes of its memory_limit; raise the limit or use less");
}

Status MemoryBudget::Check(uint64_t bytes) {
  for (MemoryBudget* b = this; b; b = b->parent_) {
    if (b->Fits(bytes)) continue;
    b->Reclaim();
    if (!b->Fits(bytes)) return b->TooMany(bytes);
  }
  return Status();
}

Status MemoryBudget::TakeBuffer(uint64_t bytes) {
  MemoryBudget* tried = nullptr;
  for (;;) {
    MemoryBudget* short_of = TryTakeAll(bytes);
    if (!short_of) return Status();
    if (short_of == tried) return short_of->TooMany(bytes);
    tried = short_of;
    short_of->Reclaim();
  }
}

void MemoryBudget::GiveBuffer(uint64_t bytes) {
  for (MemoryBudget* b = this; b; b = b->parent_) b->used_.fetch_sub(bytes, std::memory_order_relaxed);
}

Status MemoryBudget::Take(uint64_t bytes) {
  RETURN_IF_ERROR(TakeBuffer(bytes));
  constexpr uint64_t kFew = 4 << 20;  // returning less costs more than it gains
  IdleMemory::KeepAtMost(std::max(left(), kFew));
  return Status();
}

void MemoryBudget::Give(uint64_t bytes) {
  GiveBuffer(bytes);
  IdleMemory::Freed(bytes);
}

Status MemoryBudget::Charge(Buffer* buffer) {
  if (!buffer || !buffer->pool || buffer->release) return Status();  // only a pool's own, uncharged buffers
  RETURN_IF_ERROR(TakeBuffer(buffer->bytes + kPerBuffer));
  Retain();
  buffer->ChargeTo(this);
  return Status();
}

Status MemoryBudget::Charge(tw_tensor* tensor) {
  if (!tensor->buffer || !tensor->buffer->pool || IsShared(*tensor)) return Status();
  RETURN_IF_ERROR(Charge(tensor->buffer));
  if (BaseType(tensor->view.dtype) != TW_STRING || !tensor->view.data) return Status();
  const uint64_t bytes = TextsOf(tensor).bytes();
  // The bytes are counted even if they do not fit, because releasing the tensor credits them.
  Status fits = Check(bytes);
  Add(bytes);
  return fits;
}

}  // namespace thalweg
