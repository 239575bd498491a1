#include "framework/runtime/devices/carrier.h"

#include <algorithm>

#include "framework/runtime/step/step.h"

namespace thalweg {

bool Swapping::Wanted(const Device& device) const {
  const MemoryPool::Stats stats = device.pool()->stats();
  const uint64_t limit = stats.limit, all = device.memory();
  const uint64_t most = limit && all ? std::min(limit, all) : std::max(limit, all);
  const uint64_t from = above ? above : most / 4 * 3;
  return from && stats.in_use > from;
}

void Carrier::Note(std::vector<Copy>* all, const Tensor& to, const QueueMark& mark) {
  std::lock_guard lock(mu_);
  std::erase_if(*all, [](const Copy& c) { return c.mark.line->value() >= c.mark.value; });
  all->push_back({to.get()->buffer, mark});
  noted_.store(true, std::memory_order_release);
}

QueueMark Carrier::ArrivalOf(const Tensor& t, const std::vector<Copy>& by) {
  std::lock_guard lock(mu_);
  const auto copy = std::find_if(by.rbegin(), by.rend(), [&](const Copy& c) { return c.to == t.get()->buffer; });
  return copy == by.rend() ? QueueMark() : copy->mark;
}

// Waits until the copy of a value from a device is complete.
Status Carrier::AwaitHost(const Tensor& t) {
  if (!leaving_.load(std::memory_order_acquire)) return Status();
  const QueueMark mark = ArrivalOf(t, left_);
  return mark.line ? mark.line->Wait(mark.value) : Status();
}

StatusOr<Tensor> Carrier::To(Device* there, const Tensor& t, QueueMark* mark) {
  *mark = {};
  Device* here = HoldingDevice(*t.get());
  if (!here && !LiesOnHost(*t.get())) return FailedPrecondition("a value lies on a device that is no more; its runtime has ended");
  if (here == there) {
    if (!here) RETURN_IF_ERROR(AwaitHost(t));
    if (here) *mark = ArrivalOf(t, coming_);
    return t;
  }
  if (!here) return FromHost(there, t, mark);
  ASSIGN_OR_RETURN(Tensor on_host, ToHost(here, t, mark));
  if (mark->line) RETURN_IF_ERROR(mark->line->Wait(mark->value));
  *mark = {};
  return there ? FromHost(there, on_host, mark) : StatusOr<Tensor>(std::move(on_host));
}

// *mark says when the copy arrives; it is empty if the value is there.
StatusOr<Tensor> Carrier::ToHost(Device* here, const Tensor& t, QueueMark* mark) {
  auto made = Tensor::Make(t.dtype(), t.view().dims, t.rank(), here->staging(), step_->budget);
  if (!made.ok() && here->staging()) made = Tensor::Make(t.dtype(), t.view().dims, t.rank(), nullptr, step_->budget);
  ASSIGN_OR_RETURN(Tensor out, std::move(made));
  if (t.bytes() == 0) return out;
  DeviceQueues* queues = step_->QueuesOf(here);
  if (!queues) {
    RETURN_IF_ERROR(here->CopyOut(t.view().data, t.view().offset, out.data(), t.bytes(), nullptr));
    return out;
  }
  ASSIGN_OR_RETURN(Stream * stream, queues->Queue(DeviceQueues::kOut));
  ASSIGN_OR_RETURN(const QueueMark made_by, queues->Mark(DeviceQueues::kCompute));
  RETURN_IF_ERROR(queues->Order(DeviceQueues::kOut, made_by));
  if (const QueueMark coming = ArrivalOf(t, coming_); coming.line) RETURN_IF_ERROR(queues->Order(DeviceQueues::kOut, coming));
  RETURN_IF_ERROR(here->CopyOut(t.view().data, t.view().offset, out.data(), t.bytes(), stream));
  ASSIGN_OR_RETURN(*mark, queues->Mark(DeviceQueues::kOut));
  queues->Keep(t);
  queues->Keep(out);
  Note(&left_, out, *mark);
  leaving_.store(true, std::memory_order_release);
  return out;
}

StatusOr<Tensor> Carrier::FromHost(Device* there, const Tensor& t, QueueMark* mark) {
  RETURN_IF_ERROR(AwaitHost(t));
  ASSIGN_OR_RETURN(Tensor in,
                   step_->MakeOn(there, [&] { return Tensor::Make(t.dtype(), t.view().dims, t.rank(), there->pool(), step_->budget); }));
  if (t.bytes() == 0) return in;
  DeviceQueues* queues = step_->QueuesOf(there);
  if (!queues) {
    RETURN_IF_ERROR(there->CopyIn(t.data(), in.view().data, in.view().offset, t.bytes(), nullptr));
    return in;
  }
  ASSIGN_OR_RETURN(Stream * stream, queues->Queue(DeviceQueues::kIn));
  RETURN_IF_ERROR(there->CopyIn(t.data(), in.view().data, in.view().offset, t.bytes(), stream));
  ASSIGN_OR_RETURN(*mark, queues->Mark(DeviceQueues::kIn));
  queues->Keep(t);
  Note(&coming_, in, *mark);
  return in;
}

StatusOr<Tensor> Carrier::PutAway(const Tensor& t) {
  Device* here = HoldingDevice(*t.get());
  if (!here) return t;
  Swapping* swapping = step_->swapping;
  if (!swapping || !swapping->Wanted(*here)) {
    if (DeviceQueues* queues = step_->QueuesOf(here)) queues->Keep(t);  // the list may drop the tensor before it is computed
    return t;
  }
  QueueMark mark;
  ASSIGN_OR_RETURN(Tensor out, ToHost(here, t, &mark));
  swapping->out_bytes.fetch_add(t.bytes(), std::memory_order_relaxed);
  return out;
}

StatusOr<Tensor> Carrier::Bring(Device* there, const Tensor& t) {
  if (!there || HoldingDevice(*t.get())) return t;
  QueueMark mark;
  auto in = FromHost(there, t, &mark);
  if (!in.ok()) return in.status().code() == absl::StatusCode::kResourceExhausted ? StatusOr<Tensor>(t) : in;
  if (DeviceQueues* queues = step_->QueuesOf(there)) queues->Keep(*in);
  if (step_->swapping) step_->swapping->in_bytes.fetch_add(t.bytes(), std::memory_order_relaxed);
  return in;
}

Status Carrier::Settle() { return step_->AwaitDevices(StepState::kSettle); }

void Carrier::Reset() {
  if (!noted_.load(std::memory_order_acquire)) return;
  std::lock_guard lock(mu_);
  noted_.store(false, std::memory_order_relaxed);
  left_.clear();
  coming_.clear();
  leaving_.store(false);
}

}  // namespace thalweg
