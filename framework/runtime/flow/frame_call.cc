#include "framework/runtime/flow/frame_call.h"

#include <algorithm>

#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/graph/shape_inference.h"
#include "framework/runtime/state/waiting_calls.h"
#include "framework/runtime/step/check_results.h"
#include "framework/runtime/step/evaluate.h"

namespace thalweg {

void FrameCalls::Begin(StepState* step, Listener* listener) {
  StepBase::operator=(*step);
  step_ = step;
  has_queues_ = std::any_of(p_.devices.begin(), p_.devices.end(), [](const Device* d) { return d->has_streams(); });
  shapes_ = step->shapes();
  listener_ = listener;
}

FrameCall* FrameCalls::CallOf(const tw_frame* f) {
  KernelFrame* frame = KernelFrame::Of(f);
  return dynamic_cast<FrameCalls*>(frame->step) ? reinterpret_cast<FrameCall*>(frame) : nullptr;
}

FrameCall* FrameCalls::Take(int32_t node) {
  std::vector<FrameCall*>& free = free_[size_t(node)];
  if (free.empty()) {
    all_.push_back(Make(node));
    free.reserve(all_.size());  // so that GiveBack needs no memory
    return all_.back().get();
  }
  FrameCall* c = free.back();
  free.pop_back();
  return c;
}

void FrameCalls::LetGo(Tensor t) {
  if (!has_queues_ || !t || !t.get()->buffer) return;
  MemoryPool* home = t.get()->buffer->home();
  DeviceQueues* queues = home ? step_->QueuesOf(static_cast<const Device*>(home->place())) : nullptr;
  if (queues) queues->Keep(std::move(t));
}

void FrameCalls::GiveBack(FrameCall* c, const std::vector<Tensor>& outputs) {
  for (uint32_t i = 0; i < c->frame.c.n_in; ++i) {
    Tensor& t = c->in(i).held;
    const auto shares = [&](const Tensor& output) { return output && t.get()->buffer == output.get()->buffer; };
    if (has_queues_ && t && std::none_of(outputs.begin(), outputs.end(), shares)) LetGo(std::move(t));
    c->in(i).Clear();
  }
  for (uint32_t o = 0; o < c->frame.c.n_out; ++o) {
    LetGo(std::move(c->out(o).held));
    c->out(o).Clear();
  }
  LetGo(std::move(c->scratch));
  c->scratch.reset();
  c->allocated = 0;
  c->failed = c->dead = false;
  c->began = c->left = c->ended = 0;
  c->dims.clear();
  c->frame.waits = false;
  c->frame.c.memo = 0;
  free_[size_t(c->node)].push_back(c);
}

std::unique_ptr<FrameCall> FrameCalls::Make(int32_t node) {
  const PlanNode& n = p_.nodes[size_t(node)];
  const size_t n_in = n.in.size(), n_out = n.out.size();
  auto c = std::make_unique<FrameCall>();
  c->node = node;
  c->slots.resize(n_in + n_out + (n.run.opens() ? n_in : 0));
  c->opened.assign(n.run.opens() ? n_in : 0, nullptr);
  c->shapes.resize(n_out);
  for (size_t k = 0; k < c->slots.size(); ++k) {
    Slot& s = c->slots[k];
    s.view = {};
    s.view.size = sizeof(tw_view);
    s.view.rank = -1;
    if (k < n_in + n_out) s.view.dtype = p_.values[size_t(k < n_in ? n.in[k] : n.out[k - n_in])].dtype;
    c->views.push_back(&s.view);
    if (k < n_in) c->source.push_back(&s);
  }
  for (uint32_t i : n.run.open_read) c->views[i] = &c->slots[n_in + n_out + i].view;
  for (uint32_t i : n.run.open_update) c->views[i] = &c->slots[n_in + n_out + i].view;
  KernelFrame& f = c->frame;
  f.run = &n.run;
  f.step = this;
  f.source = c->source.data();
  f.opened = n.run.opens() ? c->opened.data() : nullptr;
  f.c.size = sizeof(tw_frame);
  f.c.in = c->views.data();
  f.c.out = c->views.data() + n_in;
  f.c.n_in = uint32_t(n_in);
  f.c.n_out = uint32_t(n_out);
  if (n.kind != PlanNode::kKernel) return c;
  if (DeviceQueues* queues = step_->QueuesOf(n.run.device)) f.c.stream = queues->compute()->c();
  f.c.host = n.run.host ? n.run.host : n.run.kernel->host;
  f.c.state = n.run.state;
  f.c.device = n.run.device->self();
  f.c.in_at = n.run.node->in_at().data();
  f.c.out_at = n.run.node->out_at().data();
  return c;
}

Status FrameCalls::Run(FrameCall* c, bool* pending) {
  Status s;
  try {
    s = Execute(c, pending);
    if (*pending) return s;
  } catch (...) {  // thrown by a kernel, or by this code if memory is short
    s = Thrown();
    *pending = false;
    if (c->frame.run->opens()) CloseResources(&c->frame);
  }
  if (!s.ok()) StopWaiting(c);
  return s;
}

Status FrameCalls::Execute(FrameCall* c, bool* pending) {
  const PlanNode& n = p_.nodes[size_t(c->node)];
  if (n.kind != PlanNode::kKernel) return RunCopy(c, pending);
  KernelFrame& f = c->frame;
  f.c.token = 0;
  if (n.run.opens()) RETURN_IF_ERROR(OpenResources(&f, &c->slots[f.c.n_in + f.c.n_out]));
  Status s = f.waits ? Status() : AllocateOutputs(c);
  if (s.ok() && n.run.async) {
    s = StartAsyncCall(&c->frame, TagOf(c), pending);
    if (*pending) return s;
  } else if (s.ok()) {
    s = f.c.stream ? Enqueue(c) : FromC(n.run.kernel->def.execute(&f.c));
  }
  if (s.ok()) return End(c);
  if (n.run.opens()) CloseResources(&f);
  return s;
}

Status FrameCalls::Enqueue(FrameCall* c) {
  DeviceQueues* queues = step_->QueuesOf(c->frame.run->device);
  Stream* stream = queues->compute();
  Status s;
  {
    std::lock_guard lock(stream->mutex());
    s = stream->c() ? FromC(c->frame.run->kernel->def.execute(&c->frame.c)) : stream->timeline()->failure();
  }
  if (c->frame.run->opens()) queues->CloseWhenOver(&c->frame);
  return s;
}

// ---- Copies ----

Status FrameCalls::RunCopy(FrameCall* c, bool* pending) {
  const PlanNode& n = p_.nodes[size_t(c->node)];
  const tw_view& from = c->in(0).view;
  const int32_t location = p_.values[size_t(n.out[0])].location;
  Device* d = n.run.device;
  Device* there = location ? p_.devices[size_t(location) - 1] : nullptr;
  MemoryPool* memory = there ? there->pool() : d->staging();
  ASSIGN_OR_RETURN(Tensor t, step_->MakeOn(there, [&] { return Tensor::Make(from.dtype, from.dims, from.rank, memory, budget); }));
  c->allocated += t.bytes();
  c->out(0).Hold(std::move(t));
  if (from.bytes == 0) return Status();
  const tw_view& to = c->out(0).view;
  if (DeviceQueues* queues = step_->QueuesOf(d)) return EnqueueCopy(c, queues, there, pending);
  if (n.kind == PlanNode::kCopyPeer) return d->CopyToPeer(from, *there, to, nullptr);
  return there ? d->CopyIn(static_cast<const char*>(from.data) + from.offset, to.data, to.offset, from.bytes, nullptr)
               : d->CopyOut(from.data, from.offset, static_cast<char*>(to.data) + to.offset, from.bytes, nullptr);
}

// Enqueues a copy in order with the device's kernels. A copy to the host ends like an asynchronous
// call, so that other iterations go on meanwhile.
Status FrameCalls::EnqueueCopy(FrameCall* c, DeviceQueues* queues, Device* there, bool* pending) {
  const tw_view &from = c->in(0).view, &to = c->out(0).view;
  Device* d = queues->device();
  Stream* stream = queues->compute();
  switch (p_.nodes[size_t(c->node)].kind) {
    case PlanNode::kCopyIn:
      RETURN_IF_ERROR(d->CopyIn(static_cast<const char*>(from.data) + from.offset, to.data, to.offset, from.bytes, stream));
      queues->Keep(Tensor::Share(from.tensor));
      return Status();
    case PlanNode::kCopyOut: {
      RETURN_IF_ERROR(d->CopyOut(from.data, from.offset, static_cast<char*>(to.data) + to.offset, from.bytes, stream));
      ASSIGN_OR_RETURN(const QueueMark mark, queues->Mark(DeviceQueues::kCompute));
      *pending = true;
      mark.line->When(mark.value, TellEnd, c);
      return Status();
    }
    default: {
      DeviceQueues* others = step_->QueuesOf(there);
      RETURN_IF_ERROR(d->CopyToPeer(from, *there, to, stream));
      ASSIGN_OR_RETURN(const QueueMark mark, queues->Mark(DeviceQueues::kCompute));
      return others->Order(DeviceQueues::kCompute, mark);
    }
  }
}

void FrameCalls::TellEnd(void* call, const tw_status* why) {
  auto* c = static_cast<FrameCall*>(call);
  c->frame.step->Complete(TagOf(c), why ? why->status : Status());
}

Status FrameCalls::ArrivesWith(const Slot* slot, const QueueMark& mark) {
  if (!mark.line) return Status();
  DeviceQueues* queues = step_->QueuesOf(HoldingDevice(*slot->view.tensor));
  return queues ? queues->Order(DeviceQueues::kCompute, mark) : mark.line->Wait(mark.value);
}

void FrameCalls::StopWaiting(FrameCall* c) {
  if (!c->frame.waits) return;
  c->frame.waits = false;
  c->frame.c.memo = 0;
  WaitingCalls::Get().Leave(this, TagOf(c));
}

// Called on any thread on which the kernel completes. Locks are released here, because all threads
// of the step may be waiting for one of them.
void FrameCalls::Complete(uint64_t tag, Status s) {
  FrameCall* c = Of(tag);
  if (c->frame.run->opens()) CloseResources(&c->frame);
  listener_->Ended(c, std::move(s));
}

Status FrameCalls::End(FrameCall* c) {
  const PlanNode& n = p_.nodes[size_t(c->node)];
  if (p_.check != ValueCheck::kOff && !c->dead && n.kind == PlanNode::kKernel) [[unlikely]] {
    if (Status s = CheckResults(p_.check, c->frame, c->frame.c.stream ? step_->QueuesOf(n.run.device) : nullptr); !s.ok()) {
      if (n.run.opens()) CloseResources(&c->frame);
      return s;
    }
  }
  if (n.run.opens()) CloseResources(&c->frame);
  for (uint32_t o = 0; o < c->frame.c.n_out && !c->dead; ++o) {
    const tw_view& out = c->out(o).view;
    if (!out.tensor) return NoValue(*c->frame.run, o);
    const Shape& shape = shapes_->values[size_t(n.out[o])].shape;
    if (!shape.Admits(out.dims, out.rank)) {
      return InvalidArgument("output ", o, " has shape ", ShapeText(out.dims, out.rank), ", but ", shape.text(), " was planned");
    }
  }
  StopWaiting(c);
  return Status();
}

// ---- Outputs ----

// Puts the output into the memory of an input that has no further reader.
bool FrameCalls::TakeOver(FrameCall* c, uint32_t o, const Shape& shape) {
  if (p_.check != ValueCheck::kOff) return false;
  const KernelFrame& f = c->frame;
  const Node& node = *f.run->node;
  size_t argument = 0;
  while (node.out_at()[argument + 1] <= o) ++argument;
  for (int32_t a : f.run->kernel->inplace[argument]) {
    if (f.run->kernel->keep[size_t(a)]) continue;
    const uint32_t i = node.in_at()[size_t(a)];
    if (node.in_at()[size_t(a) + 1] != i + 1) continue;
    Slot& in = c->in(i);
    if (!in.held || in.view.dtype != f.run->types[f.c.n_in + o] || !in.held.unique()) continue;
    if (!shape.Is(in.view.dims, in.view.rank)) continue;
    if (f.run->host_in[i] != f.run->host_out[o]) continue;
    c->out(o).Hold(in.held);
    return true;
  }
  return false;
}

Status FrameCalls::Allocate(FrameCall* c, uint32_t o, const Shape& shape) {
  if (p_.nodes[size_t(c->node)].given) {
    c->out(o).view.dims = shape.dims().data();
    c->out(o).view.rank = shape.rank();
    return Status();
  }
  if (TakeOver(c, o, shape)) return Status();
  const NodeRun& run = *c->frame.run;
  ASSIGN_OR_RETURN(Tensor t, step_->MakeOn(run.device, [&] { return MakeOutput(run, o, shape.dims().data(), shape.rank(), budget); }));
  c->allocated += t.bytes();
  c->out(o).Hold(std::move(t));
  return Status();
}

Status FrameCalls::AllocateOutputs(FrameCall* c) {
  const PlanNode& n = p_.nodes[size_t(c->node)];
  if (n.dynamic) return InferOutputs(c);
  for (uint32_t o = 0; o < c->frame.c.n_out; ++o) {
    if (c->out(o).view.dtype == TW_RESOURCE) continue;
    RETURN_IF_ERROR(Allocate(c, o, shapes_->values[size_t(n.out[o])].shape));
  }
  return TakeScratch(c, shapes_->scratch[size_t(c->node)].bytes);
}

Status FrameCalls::InferOutputs(FrameCall* c) {
  KernelFrame& f = c->frame;
  ShapeAnswer answer;
  RETURN_IF_ERROR(InferFrameShapes(f, &answer));
  bool all_known = true;
  for (uint32_t o = 0; o < f.c.n_out; ++o) {
    c->shapes[o] = std::move(answer.shapes[o]);
    all_known = all_known && c->shapes[o].known();
    if (!c->shapes[o].known() || c->out(o).view.dtype == TW_RESOURCE) continue;
    RETURN_IF_ERROR(Allocate(c, o, c->shapes[o]));
  }
  if (!f.run->kernel->def.prepare || !all_known) return Status();
  std::vector<tw_shape> shapes;
  for (uint32_t i = 0; i < f.c.n_in; ++i) shapes.push_back({c->in(i).view.dims, c->in(i).view.rank, 0});
  for (const Shape& s : c->shapes) shapes.push_back(s.c());
  ASSIGN_OR_RETURN(const uint64_t bytes, PrepareScratch(*f.run, shapes));
  return TakeScratch(c, bytes);
}

Status FrameCalls::TakeScratch(FrameCall* c, uint64_t bytes) {
  c->frame.c.scratch = nullptr;
  if (bytes == 0) return Status();
  const int64_t size = int64_t(bytes);
  Device* d = c->frame.run->device;
  ASSIGN_OR_RETURN(c->scratch, step_->MakeOn(d, [&] { return Tensor::Make(TW_UINT8, &size, 1, d->pool(), budget); }));
  c->frame.c.scratch = c->scratch.view().data;
  c->frame.c.scratch_offset = c->scratch.view().offset;
  c->allocated += bytes;
  return Status();
}

Status FrameCalls::Describe(FrameCall* c, const Status& s, std::string_view where) const {
  step_->NoteFailure();
  const PlanNode& n = p_.nodes[size_t(c->node)];
  std::string shapes;
  for (uint32_t i = 0; CallsLeft(s) == 0 && i < c->frame.c.n_in; ++i) {  // shapes of the node that failed, not of the calls around it
    const tw_view& v = c->in(i).view;
    if (v.dtype == TW_RESOURCE) continue;
    shapes += StrCat(shapes.empty() ? "" : ", ", DTypeName(v.dtype), ShapeText(v.dims, v.rank));
    if (p_.check != ValueCheck::kOff && n.kind == PlanNode::kKernel) shapes += InputRange(c->frame, i);
  }
  std::string after = shapes.empty() ? "" : StrCat("inputs: ", shapes);
  if (!where.empty()) after += StrCat(after.empty() ? "" : "; ", where);
  Status out = Prefix(s, n.title);
  if (!after.empty()) out = WithMessage(out, StrCat(Message(out), " (", after, ")"));
  return OfNode(*n.run.node, out);
}

}  // namespace thalweg
