#include "framework/tensor/memory_budget.h"

#include "framework/base/dtype.h"
#include "framework/tensor/tensor.h"

namespace thalweg {

bool MemoryBudget::Fits(uint64_t bytes) const {
  const uint64_t used = used_.load(std::memory_order_relaxed);
  return used <= limit_ && bytes <= limit_ - used;
}

void MemoryBudget::Reclaim() {
  // A thread that is reclaiming gives back; it asks for nothing.
  std::lock_guard lock(reclaim_mu_);
  if (reclaim_) reclaim_();
}

void MemoryBudget::SetReclaim(std::function<void()> reclaim) {
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

Status MemoryBudget::TooMany(uint64_t bytes) const {
  return ResourceExhausted(bytes, " bytes more are too many: the session holds ", used(), " of the ", limit_,
                           " bytes of its memory_limit; raise the limit or use less");
}

Status MemoryBudget::Check(uint64_t bytes) {
  if (Fits(bytes)) return Status();
  Reclaim();
  return Fits(bytes) ? Status() : TooMany(bytes);
}

Status MemoryBudget::Take(uint64_t bytes) {
  if (TryTake(bytes)) return Status();
  Reclaim();
  return TryTake(bytes) ? Status() : TooMany(bytes);
}

Status MemoryBudget::Charge(Buffer* buffer) {
  if (!buffer || !buffer->pool || buffer->release) return Status();  // a pool's own only
  RETURN_IF_ERROR(Take(buffer->bytes));
  Retain();
  buffer->ChargeTo(this);
  return Status();
}

Status MemoryBudget::Charge(tw_tensor* tensor) {
  if (!tensor->buffer || !tensor->buffer->pool || IsShared(*tensor)) return Status();
  RETURN_IF_ERROR(Charge(tensor->buffer));
  if (BaseType(tensor->view.dtype) != TW_STRING || !tensor->view.data) return Status();
  uint64_t bytes = 0;
  const auto* s = static_cast<const tw_string*>(tensor->view.data);
  for (uint64_t i = 0; i < tensor->view.count; ++i) bytes += s[i].size;
  // Released with the tensor whether or not they fit.
  Status fits = Check(bytes);
  used_.fetch_add(bytes, std::memory_order_relaxed);
  return fits;
}

}  // namespace thalweg
