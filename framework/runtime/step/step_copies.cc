// The device queue operations of a step: copies between memories, enqueueing of kernels, and
// tensors that are shared with a variable meanwhile.
#include "framework/runtime/devices/recordings.h"
#include "framework/runtime/step/step.h"

namespace thalweg {

void StepState::InitShares() {
  const auto is_share = [&](const PlanNode& n, int32_t v) {
    const PlanValue& value = plan_->values[size_t(v)];
    return n.kind == PlanNode::kKernel && n.given && !n.run.open_read.empty() && value.kind == PlanValue::kHeld && value.location &&
           !value.fetched;
  };
  share_until_.assign(plan_->values.size(), -1);
  for (size_t i = 0; i < plan_->nodes.size(); ++i) {
    for (int32_t v : plan_->nodes[i].out) {
      if (is_share(plan_->nodes[i], v)) share_until_[size_t(v)] = int32_t(i);
    }
  }
  for (size_t i = 0; i < plan_->nodes.size(); ++i) {
    const PlanNode& n = plan_->nodes[i];
    for (size_t k = 0; k < n.in.size(); ++k) {
      int32_t& until = share_until_[size_t(n.in[k])];
      if (until < 0) continue;
      const bool there = n.kind == PlanNode::kKernel && !n.run.host_in[k] && n.run.device == DeviceOf(n.in[k]);
      until = there ? int32_t(i) : -1;
    }
  }
}

// Shares that a queue keeps are dropped once nobody else holds the value. If somebody does, the
// variable gets other memory and kernels still read this.
int32_t StepState::OwnShares(const KernelFrame& writer, const Tensor& value) {
  DeviceQueues* queues = QueuesOf(writer.run->device);
  if (!queues || share_until_.empty()) return 0;
  const auto node = int32_t(&writer - frames_.data());
  int32_t own = 0;
  for (size_t v = 0; !plan_->runs.empty() && v < share_until_.size(); ++v) {
    if (share_until_[v] < 0 || share_until_[v] >= node) continue;
    own += slots_[v].held.get() == value.get() && plan_->devices[size_t(plan_->values[v].location) - 1] == writer.run->device;
  }
  const int32_t kept = queues->CountShares(value);
  if (value.get()->refs.load(std::memory_order_acquire) == 1 + own + kept) queues->LetGoShares(value);
  return own;
}

// Enqueues a kernel. Its locks, and a variable's previous value, are released only when the device
// is done with them.
Status StepState::Enqueue(size_t i) {
  const PlanNode& n = plan_->nodes[i];
  KernelFrame& f = frames_[i];
  DeviceQueues* queues = QueuesOf(n.run.device);
  Stream* stream = queues->compute();
  Status s;
  {
    const auto in_order = TracedOrder();
    {
      std::lock_guard lock(stream->mutex());
      s = stream->c() ? FromC(n.run.kernel->def.execute(&f.c)) : stream->timeline()->failure();
    }
    if (trace && s.ok()) {
      if (auto mark = stream->Mark(); mark.ok()) trace->EndsWith(i, stream->c(), stream->timeline(), *mark);
    }
  }
  if (n.run.opens()) queues->CloseWhenOver(&f);
  return s;
}

// ---- Copies ----

static DeviceQueues::Which QueueOf(const PlanNode& copy) { return copy.kind == PlanNode::kCopyIn ? DeviceQueues::kIn : DeviceQueues::kOut; }

Status StepState::RunCopy(const PlanNode& n) {
  const tw_view& from = slots_[size_t(n.in[0])].view;
  Slot& to = slots_[size_t(n.out[0])];
  if (from.rank < 0) return Internal("nothing to copy");
  if (to.view.rank < 0) {
    Device* there = DeviceOf(n.out[0]);
    MemoryPool* memory = there ? there->pool() : n.run.device->staging();
    const auto make = [&] { return Tensor::Make(from.dtype, from.dims, from.rank, memory, budget); };
    ASSIGN_OR_RETURN(Tensor t, MakeHeld(recordings_.get(), n.out[0], from.dims, from.rank, [&] { return MakeOn(there, make); }));
    to.Hold(std::move(t));
  }
  DeviceQueues* queues = QueuesOf(n.run.device);
  if (queues) marks_[size_t(n.out[0])] = {};
  RETURN_IF_ERROR(AwaitCopies(n, queues, QueueOf(n)));
  if (from.bytes == 0) return Status();
  return queues ? EnqueueCopy(n, queues, from, to.view) : CopyNow(n, from, to.view, nullptr);
}

Status StepState::CopyNow(const PlanNode& n, const tw_view& from, const tw_view& to, Stream* stream) {
  Device* d = n.run.device;
  switch (n.kind) {
    case PlanNode::kCopyIn: return d->CopyIn(static_cast<const char*>(from.data) + from.offset, to.data, to.offset, from.bytes, stream);
    case PlanNode::kCopyOut: return d->CopyOut(from.data, from.offset, static_cast<char*>(to.data) + to.offset, from.bytes, stream);
    default: return d->CopyToPeer(from, *DeviceOf(n.out[0]), to, stream);
  }
}

// Enqueues a copy on a queue of its own: behind the kernels that make the value, and behind those
// that may still use the target memory.
Status StepState::EnqueueCopy(const PlanNode& n, DeviceQueues* queues, const tw_view& from, const tw_view& to) {
  const DeviceQueues::Which which = QueueOf(n);
  const auto behind_kernels = [&](DeviceQueues* of) -> Status {
    ASSIGN_OR_RETURN(const QueueMark mark, of->Mark(DeviceQueues::kCompute));
    return queues->Order(which, mark);
  };
  ASSIGN_OR_RETURN(Stream * stream, queues->Queue(which));
  if (which == DeviceQueues::kOut) RETURN_IF_ERROR(behind_kernels(queues));
  DeviceQueues* there = QueuesOf(DeviceOf(n.out[0]));
  if (there && plan_->values[size_t(n.out[0])].kind == PlanValue::kBlock) RETURN_IF_ERROR(behind_kernels(there));
  QueueMark mark;
  {
    const auto in_order = TracedOrder();
    RETURN_IF_ERROR(CopyNow(n, from, to, stream));
    ASSIGN_OR_RETURN(mark, queues->Mark(which));
  }
  if (trace) trace->EndsWith(size_t(&n - plan_->nodes.data()), stream->c(), mark.line, mark.value);
  marks_[size_t(n.out[0])] = mark;
  return KeepSource(n.in[0], queues, mark);
}

// Keeps the source of a copy unchanged until the mark is reached. Feeds and constants do not change
// anyway.
Status StepState::KeepSource(int32_t v, DeviceQueues* queues, const QueueMark& mark) {
  const PlanValue& value = plan_->values[size_t(v)];
  if (value.kind == PlanValue::kBlock) {
    return value.location ? queues->Order(DeviceQueues::kCompute, mark) : mark.line->Wait(mark.value);
  }
  if (value.kind == PlanValue::kHeld && value.location == 0) queues->Keep(Tensor::Share(slots_[size_t(v)].view.tensor));
  return Status();
}

// Makes the copied inputs of the node available to work enqueued from now on. Waits for copies that
// the host reads when it calls a kernel.
Status StepState::AwaitCopies(const PlanNode& n, DeviceQueues* queues, DeviceQueues::Which which) {
  for (int32_t v : n.copied_in) {
    const QueueMark mark = marks_.empty() ? QueueMark() : marks_[size_t(v)];
    if (!mark.line) continue;
    const bool by_host = !queues || (n.kind == PlanNode::kKernel && plan_->values[size_t(v)].location == 0);
    if (by_host) {
      const WaitNote note(trace, TW_STEP_WAIT_DEVICE, "", "a copy");
      RETURN_IF_ERROR(mark.line->Wait(mark.value));
    } else {
      RETURN_IF_ERROR(queues->Order(which, mark));
    }
  }
  return Status();
}

// Returns true for a copy to the host that is in flight and has readers, if the engine can go on
// meanwhile.
bool StepState::EndsLater(const PlanNode& n) const {
  if (n.kind != PlanNode::kCopyOut || !plan_->counted || marks_.empty() || plan_->values[size_t(n.out[0])].readers == 0) return false;
  const QueueMark& mark = marks_[size_t(n.out[0])];
  return mark.line && mark.line->value() < mark.value;
}

void StepState::TellEnd(size_t i) {
  const QueueMark mark = marks_[size_t(plan_->nodes[i].out[0])];
  mark.line->When(
      mark.value,
      [](void* arg, const tw_status* why) {
        const auto* end = static_cast<const CopyEnd*>(arg);
        end->step->listener->Ended(end->node, why ? why->status : Status());
      },
      &copy_ends_[i]);
}

}  // namespace thalweg
