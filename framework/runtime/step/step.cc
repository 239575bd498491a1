#include "framework/runtime/step/step.h"

#include <algorithm>
#include <cstring>

#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/runtime/devices/recordings.h"
#include "framework/runtime/runtime.h"
#include "framework/runtime/state/waiting_calls.h"
#include "framework/runtime/step/check_results.h"
#include "framework/runtime/step/evaluate.h"
#include "framework/runtime/step/in_order.h"

namespace thalweg {

StepState::StepState(const Plan* plan) : plan_(plan), carrier_(this) {}

StatusOr<std::unique_ptr<StepState>> StepState::Create(const Plan* plan, Runtime* runtime, MemoryBudget* budget, BlockCount* blocks) {
  std::unique_ptr<StepState> s(new StepState(plan));
  s->budget = budget;
  s->block_count_ = blocks;
  RETURN_IF_ERROR(s->Init(runtime));
  return s;
}

StepState::~StepState() {
  queues_.clear();  // drains before memory is freed
  recordings_.reset();
  for (Buffer* b : blocks_) {
    if (b) b->Release();
  }
  if (!block_count_) return;
  for (uint64_t bytes : block_bytes_) block_count_->bytes.fetch_sub(bytes, std::memory_order_relaxed);
}

Status StepState::GrowBlocks(const std::vector<uint64_t>& bytes) {
  for (size_t l = 0; l < bytes.size(); ++l) {
    if (bytes[l] <= block_bytes_[l]) continue;
    if (blocks_[l]) blocks_[l]->Release();
    blocks_[l] = nullptr;
    if (block_count_) block_count_->bytes.fetch_sub(block_bytes_[l], std::memory_order_relaxed);
    block_bytes_[l] = 0;
    Device* d = l == 0 ? plan_->host : plan_->devices[l - 1];
    auto b = d->pool()->Allocate(bytes[l], budget);
    if (!b.ok()) {
      short_of_ = d;
      return Prefix(b.status(), StrCat("the plan's values on ", d->name(), " need ", bytes[l], " bytes:"));
    }
    blocks_[l] = *b;
    block_bytes_[l] = bytes[l];
    if (block_count_) block_count_->Add(bytes[l]);
  }
  return Status();
}

size_t StepState::LocationOf(const Device* device) const {
  for (size_t d = 0; d < plan_->devices.size(); ++d) {
    if (plan_->devices[d] == device) return d + 1;
  }
  return 0;
}

Status StepState::Bind(std::shared_ptr<const PlanShapes> shapes) {
  if (recordings_) recordings_->Forget();
  if (Status s = GrowBlocks(shapes->block_bytes); !s.ok()) {
    shapes_ = std::move(shapes);
    return TellMemory(s, short_of_.load());
  }
  shapes_ = std::move(shapes);
  texts.reset();
  paces.Turn(shapes_.get());
  for (size_t v = 0; v < plan_->values.size(); ++v) InitSlot(int32_t(v));
  for (size_t i = 0; i < plan_->nodes.size(); ++i) {
    if (plan_->nodes[i].kind == PlanNode::kKernel && !plan_->nodes[i].dynamic) ShowScratch(i);
  }
  return Status();
}

void StepState::ShowScratch(size_t i) {
  const PlanShapes::Scratch& scratch = shapes_->scratch[i];
  tw_frame& f = frames_[i].c;
  f.scratch = nullptr;
  f.scratch_offset = 0;
  if (scratch.bytes == 0) return;
  const Device& device = *plan_->nodes[i].run.device;
  const Buffer* memory = blocks_[LocationOf(&device)];
  if (!memory) return;  // in a plan with frames, where each call has its own scratch
  void* block = memory->data;
  f.scratch = device.host_memory() ? static_cast<char*>(block) + scratch.offset : block;
  f.scratch_offset = device.host_memory() ? 0 : scratch.offset;
}

Status StepState::Init(Runtime* rt) {
  runtime = rt;
  const Plan& p = *plan_;
  blocks_.assign(p.devices.size() + 1, nullptr);
  block_bytes_.assign(p.devices.size() + 1, 0);
  queues_.resize(p.devices.size());
  for (size_t d = 0; d < p.devices.size(); ++d) {
    if (!p.devices[d]->has_streams()) continue;
    ASSIGN_OR_RETURN(queues_[d], DeviceQueues::Create(p.devices[d]));
    marks_.resize(p.values.size());
    copy_ends_.resize(p.nodes.size());
  }
  for (size_t i = 0; i < copy_ends_.size(); ++i) copy_ends_[i] = {this, i};
  for (const PlanNode& n : p.nodes) {
    MemoryPool* staging = n.kind == PlanNode::kCopyIn ? n.run.device->staging() : nullptr;
    if (!staging || p.values[size_t(n.in[0])].kind != PlanValue::kHeld) continue;
    staging_.resize(p.values.size(), nullptr);
    staging_[size_t(n.in[0])] = staging;
  }

  size_t n_stand_ins = 0, n_in = 0, n_out = 0;
  opened_slots_.resize(p.nodes.size(), 0);
  for (size_t i = 0; i < p.nodes.size(); ++i) {
    n_in += p.nodes[i].in.size();
    n_out += p.nodes[i].out.size();
    if (!p.nodes[i].run.opens()) continue;
    opened_slots_[i] = p.values.size() + n_stand_ins;
    n_stand_ins += p.nodes[i].in.size();
  }
  slots_ = std::vector<Slot>(p.values.size() + n_stand_ins);
  for (Slot& s : slots_) {
    s.view = {};
    s.view.size = sizeof(tw_view);
    s.view.rank = -1;
  }
  readers_template_.resize(p.values.size());
  for (size_t v = 0; v < p.values.size(); ++v) readers_template_[v] = p.values[v].readers;
  readers_ = readers_template_;
  const auto passed = [&](int32_t v) { return v < 0 || p.values[size_t(v)].kind == PlanValue::kPassed; };
  passes_all_ = std::all_of(p.feeds.begin(), p.feeds.end(), passed) && std::all_of(p.fetches.begin(), p.fetches.end(), passed);

  in_.reserve(n_in);
  source_.reserve(n_in);
  out_.reserve(n_out);
  opened_.assign(n_in, nullptr);
  frames_ = std::vector<KernelFrame>(p.nodes.size());
  for (size_t i = 0; i < p.nodes.size(); ++i) {
    const PlanNode& n = p.nodes[i];
    KernelFrame& f = frames_[i];
    f = {};
    f.run = &n.run;
    f.step = this;
    f.c.size = sizeof(tw_frame);
    f.c.in = in_.data() + in_.size();
    f.c.out = out_.data() + out_.size();
    f.source = source_.data() + source_.size();
    f.opened = n.run.opens() ? opened_.data() + source_.size() : nullptr;
    f.c.n_in = uint32_t(n.in.size());
    f.c.n_out = uint32_t(n.out.size());
    for (int32_t v : n.in) {
      source_.push_back(&slots_[size_t(v)]);
      in_.push_back(&slots_[size_t(v)].view);
    }
    for (int32_t v : n.out) out_.push_back(&slots_[size_t(v)].view);
    if (n.kind != PlanNode::kKernel) continue;
    auto* in = const_cast<const tw_view**>(f.c.in);
    for (uint32_t k : n.run.open_read) in[k] = &slots_[opened_slots_[i] + k].view;
    for (uint32_t k : n.run.open_update) in[k] = &slots_[opened_slots_[i] + k].view;
    f.c.host = n.run.host ? n.run.host : n.run.kernel->host;
    f.c.state = n.run.state;
    f.c.device = n.run.device->self();
    f.c.in_at = n.run.node->in_at().data();
    f.c.out_at = n.run.node->out_at().data();
    const size_t location = LocationOf(n.run.device);
    if (location && queues_[location - 1]) f.c.stream = queues_[location - 1]->compute()->c();
  }
  feed_copies_.resize(p.copied_feeds.size());
  scratch_.resize(p.nodes.size());
  given_shapes_.resize(p.nodes.size());
  for (size_t v = 0; v < p.values.size(); ++v) {
    if (p.values[v].kind == PlanValue::kFeedView) feed_views_.push_back(int32_t(v));
    if (p.values[v].kind == PlanValue::kHeld && p.values[v].location != 0) device_held_.push_back(int32_t(v));
  }
  counts.resize(p.nodes.size());
  ready.reserve(p.nodes.size());
  if (!marks_.empty()) InitShares();
  if (!p.runs.empty()) recordings_ = std::make_unique<Recordings>(this);
  return Status();
}

// Resets a slot to its state before its value is made.
void StepState::InitSlot(int32_t v) {
  const PlanValue& value = plan_->values[size_t(v)];
  const PlanShapes::Value& sized = shapes_->values[size_t(v)];
  Slot& s = slots_[size_t(v)];
  s.held.reset();
  s.view.dtype = value.dtype;
  switch (value.kind) {
    case PlanValue::kConst: s.view = sized.constant.view(); break;
    case PlanValue::kBlock:
    case PlanValue::kPassed: {
      bool host = value.location == 0;
      Buffer* block = blocks_[size_t(value.location)];
      s.view.data = block ? (host ? static_cast<char*>(block->data) + sized.offset : block->data) : nullptr;
      s.view.offset = host ? 0 : sized.offset;
      s.view.dims = sized.shape.dims().data();
      s.view.strides = nullptr;
      s.view.rank = sized.shape.rank();
      s.view.count = sized.count;
      s.view.bytes = sized.bytes;
      s.view.tensor = nullptr;
      break;
    }
    default: s.Clear();
  }
}

StatusOr<Tensor> StepState::CopyOut(int32_t v) const {
  const tw_view& from = slots_[size_t(v)].view;
  ASSIGN_OR_RETURN(Tensor t, Tensor::Make(from.dtype, from.dims, from.rank, nullptr, budget));
  if (from.bytes) std::memcpy(t.data(), static_cast<const char*>(from.data) + from.offset, size_t(from.bytes));
  return t;
}

bool StepState::IsPlanMemory(const Slot* slot) const {
  const auto v = size_t(slot - slots_.data());
  return v < plan_->values.size() && (plan_->values[v].kind == PlanValue::kBlock || plan_->values[v].kind == PlanValue::kPassed);
}

bool StepState::IsLastReader(const Slot* slot) const {
  const auto v = size_t(slot - slots_.data());
  if (v >= plan_->values.size() || plan_->values[v].kind != PlanValue::kHeld || plan_->values[v].fetched || !slot->held) return false;
  return std::atomic_ref<int32_t>(const_cast<int32_t&>(readers_[v])).load(std::memory_order_acquire) == 1;
}

Status StepState::ArrivesWith(const Slot* slot, const QueueMark& mark) {
  if (!marks_.empty()) marks_[size_t(slot - slots_.data())] = mark;
  return Status();
}

// Called on any thread on which the kernel completes. Locks are released here, because all threads
// of the step may be waiting for one of them.
void StepState::Complete(uint64_t tag, Status s) {
  if (plan_->nodes[size_t(tag)].run.opens()) CloseResources(&frames_[size_t(tag)]);
  StopWaiting(size_t(tag));
  listener->Ended(size_t(tag), std::move(s));
}

// Shows the expected dims in an output that the kernel will give. The shape must outlive the call.
void StepState::ShowShape(Slot* s, const Shape& shape) {
  s->Clear();
  s->view.dims = shape.dims().data();
  s->view.rank = shape.rank();
}

StatusOr<Tensor> StepState::MakeOutputOf(const PlanNode& n, uint32_t o, const Shape& shape) {
  MemoryPool* staging = staging_.empty() ? nullptr : staging_[size_t(n.out[o])];
  const int64_t* dims = shape.dims().data();
  return MakeHeld(recordings_.get(), n.out[o], dims, shape.rank(), [&] {
    return MakeOn(n.run.device, [&]() -> StatusOr<Tensor> {
      if (!staging) return MakeOutput(n.run, o, dims, shape.rank(), budget);
      return Tensor::Make(plan_->values[size_t(n.out[o])].dtype, dims, shape.rank(), staging, budget);
    });
  });
}

// Makes output o of node i in the tensor of an input that nobody else holds or will read; so a
// loop's variable keeps its memory from iteration to iteration. This covers values without plan
// memory; for the others the planner decides (planner/emit/layout.h). REQUIRES: the node reads such values.
static bool TakeOver(StepState& s, size_t i, uint32_t o, const Shape& shape) {
  const PlanNode& n = s.plan().nodes[i];
  if (n.part || !n.run.device->host_memory() || s.plan().check != ValueCheck::kOff) return false;
  const Node& node = *n.run.node;
  const KernelFrame& f = s.frame(i);
  size_t argument = 0;
  while (node.out_at()[argument + 1] <= o) ++argument;
  for (int32_t a : n.run.kernel->inplace[argument]) {
    if (n.run.kernel->keep[size_t(a)]) continue;
    const uint32_t k = node.in_at()[size_t(a)];
    const Slot& in = *f.source[k];
    if (node.in_at()[size_t(a) + 1] != k + 1 || !s.IsLastReader(&in) || !in.held.unique()) continue;
    if (in.view.dtype != f.out(o)->view.dtype || !shape.Is(in.view.dims, in.view.rank) || !FindDType(in.view.dtype)->plain) continue;
    if (n.run.host_in[k] != n.run.host_out[o] || std::count(n.in.begin(), n.in.end(), n.in[k]) != 1) continue;
    f.out(o)->Hold(in.held);
    return true;
  }
  return false;
}

// Allocates outputs that have no memory yet: held ones of known shape, and those whose shape
// depends on the inputs of this step.
Status StepState::AllocateOutputs(size_t i) {
  const PlanNode& n = plan_->nodes[i];
  KernelFrame& f = frames_[i];
  if (n.dynamic) {
    ShapeAnswer answer;
    RETURN_IF_ERROR(InferFrameShapes(f, &answer));
    bool all_known = true;
    for (uint32_t o = 0; o < f.c.n_out; ++o) {
      all_known = all_known && answer.shapes[o].known();
      Slot* s = f.out(o);
      if (n.given && answer.shapes[o].known()) {
        given_shapes_[i].resize(f.c.n_out);
        given_shapes_[i][o] = answer.shapes[o];
        ShowShape(s, given_shapes_[i][o]);
      }
      if (s->view.rank >= 0 || n.given || !answer.shapes[o].known() || s->view.dtype == TW_RESOURCE) continue;
      const Shape& shape = answer.shapes[o];
      if (!n.held_in.empty() && TakeOver(*this, i, o, shape)) continue;
      ASSIGN_OR_RETURN(Tensor t, MakeOutputOf(n, o, shape));
      s->Hold(std::move(t));
    }
    if (n.run.kernel->def.prepare && all_known) {
      std::vector<tw_shape> shapes;
      for (uint32_t k = 0; k < f.c.n_in; ++k) shapes.push_back({f.source[k]->view.dims, f.source[k]->view.rank, 0});
      for (const Shape& s : answer.shapes) shapes.push_back(s.c());
      ASSIGN_OR_RETURN(uint64_t bytes, PrepareScratch(n.run, shapes));
      f.c.scratch = nullptr;
      if (bytes) {
        ASSIGN_OR_RETURN(Buffer * b, MakeOn(n.run.device, [&] { return n.run.device->pool()->Allocate(bytes, budget); }));
        f.c.scratch = b->data;
        f.c.scratch_offset = 0;
        // Kept until the node runs again.
        int64_t size = int64_t(bytes);
        ASSIGN_OR_RETURN(scratch_[i], Tensor::Wrap(b, 0, TW_UINT8, &size, 1));
      }
    }
    return Status();
  }
  for (uint32_t o = 0; o < f.c.n_out; ++o) {
    const PlanValue& v = plan_->values[size_t(n.out[o])];
    if (v.kind != PlanValue::kHeld || v.dtype == TW_RESOURCE) continue;
    const Shape& shape = shapes_->values[size_t(n.out[o])].shape;
    if (!shape.known()) continue;
    if (n.given) {
      ShowShape(f.out(o), shape);
      continue;
    }
    if (!n.held_in.empty() && TakeOver(*this, i, o, shape)) continue;
    ASSIGN_OR_RETURN(Tensor t, MakeOutputOf(n, o, shape));
    f.out(o)->Hold(std::move(t));
  }
  return Status();
}

DeviceQueues* StepState::QueuesOf(const Device* device) const {
  for (const auto& q : queues_) {
    if (q && q->device() == device) return q.get();
  }
  return nullptr;
}

// Returns the device of the value; NULL for host memory.
Device* StepState::DeviceOf(int32_t v) const {
  const int32_t location = plan_->values[size_t(v)].location;
  return location ? plan_->devices[size_t(location) - 1] : nullptr;
}

Status StepState::RunNode(size_t i, bool* pending) {
  try {
    return RunKernel(i, pending);
  } catch (...) {  // thrown by a kernel, or by this code if memory is short
    const PlanNode& n = plan_->nodes[i];
    Status s = Thrown();
    *pending = false;
    if (n.kind != PlanNode::kKernel) return Describe(i, s);
    if (n.run.opens()) CloseResources(&frames_[i]);
    StopWaiting(i);
    return Describe(i, s);
  }
}

void StepState::LeaveLine(size_t i) {
  frames_[i].waits = false;
  frames_[i].c.memo = 0;
  WaitingCalls::Get().Leave(this, i);
}

Status StepState::RunKernel(size_t i, bool* pending) {
  const PlanNode& n = plan_->nodes[i];
  KernelFrame& f = frames_[i];
  if (n.kind != PlanNode::kKernel) {
    Status s = RunCopy(n);
    if (!s.ok()) return Describe(i, s);
    if (!EndsLater(n)) return s;
    *pending = true;
    TellEnd(i);
    return s;
  }
  if (!n.copied_in.empty()) {
    if (Status s = AwaitCopies(n, QueuesOf(n.run.device), DeviceQueues::kCompute); !s.ok()) return Describe(i, s);
  }
  f.c.token = 0;
  if (n.run.opens()) {
    Status s = OpenResources(&f, &slots_[opened_slots_[i]]);
    if (!s.ok()) {
      StopWaiting(i);
      return Describe(i, s);
    }
  }
  Status s = f.waits ? Status() : AllocateOutputs(i);
  if (s.ok()) {
    if (n.run.async) {
      s = StartAsyncCall(&f, i, pending);
      if (*pending) return s;
    } else if (f.c.stream) {
      s = Enqueue(i);
    } else {
      s = FromC(n.run.kernel->def.execute(&f.c));
    }
  }
  if (!s.ok()) {
    if (n.run.opens()) CloseResources(&f);
    StopWaiting(i);
    return Describe(i, s);
  }
  return EndNode(i);
}

Status StepState::EndNode(size_t i) {
  const PlanNode& n = plan_->nodes[i];
  KernelFrame& f = frames_[i];
  if (plan_->check != ValueCheck::kOff) [[unlikely]] {
    if (Status s = CheckResults(plan_->check, f, f.c.stream ? QueuesOf(n.run.device) : nullptr); !s.ok()) {
      if (n.run.opens()) CloseResources(&f);
      return Describe(i, s);
    }
  }
  if (n.run.opens()) CloseResources(&f);
  for (uint32_t o = 0; o < f.c.n_out; ++o) {
    const PlanValue& v = plan_->values[size_t(n.out[o])];
    if (v.kind != PlanValue::kHeld) continue;
    const tw_view& out = *f.c.out[o];
    if (!out.tensor) return Describe(i, NoValue(n.run, o));
    const Shape& shape = shapes_->values[size_t(n.out[o])].shape;
    if (!shape.Admits(out.dims, out.rank)) {
      return Describe(i,
                      InvalidArgument("output ", o, " has shape ", ShapeText(out.dims, out.rank), ", but ", shape.text(), " was planned"));
    }
    if (v.readers > 0 || v.fetched) continue;
    if (trace) trace->Output(i, out.bytes, true);
    Drop(n.out[o]);
  }
  return Status();
}

// In a traced step a node's work and the mark behind it are enqueued without others in between, so
// that the device's timings are attributed to the node.
std::unique_lock<std::mutex> StepState::TracedOrder() const {
  return trace ? std::unique_lock(trace->enqueue_mutex()) : std::unique_lock<std::mutex>();
}

Status StepState::RunTraced(size_t i, bool* pending, int32_t after) {
  trace->Take(i, after);
  if (plan_->nodes[i].simple) {
    tw_status* failed = CallSimple(plan_->nodes[i], frames_[i]);
    trace->Leave(i, false, !failed);
    return failed ? Describe(i, FromC(failed)) : Status();
  }
  if (plan_->nodes[i].dynamic) NoteInputs(i);
  Status s = RunNode(i, pending);
  if (s.ok() && !*pending) NoteOutputs(i);
  trace->Leave(i, *pending, s.ok());
  return s;
}

static bool SharesMemory(const tw_view& a, const tw_view& b) {
  return (a.data == b.data && a.data) || (a.tensor && b.tensor && a.tensor->buffer == b.tensor->buffer);
}

void StepState::NoteInputs(size_t i) {
  std::vector<int64_t>& dims = trace->Dims(i);
  dims.clear();
  const KernelFrame& f = frames_[i];
  for (uint32_t k = 0; k < f.c.n_in; ++k) AddDims(f.source[k]->view.dtype, f.source[k]->view.dims, f.source[k]->view.rank, &dims);
  dims.push_back(kOutputsFollow);
}

// Records the outputs; memory that is not an input's was allocated for the node.
void StepState::NoteOutputs(size_t i) {
  const PlanNode& n = plan_->nodes[i];
  const KernelFrame& f = frames_[i];
  for (uint32_t o = 0; o < f.c.n_out; ++o) {
    const tw_view& out = *f.c.out[o];
    if (n.dynamic) AddDims(out.dtype, out.dims, out.rank, &trace->Dims(i));
    if (out.rank < 0) continue;  // dropped
    bool own = plan_->values[size_t(n.out[o])].kind == PlanValue::kHeld;
    for (uint32_t k = 0; own && k < f.c.n_in; ++k) own = !SharesMemory(*f.c.in[k], out);
    trace->Output(i, out.bytes, own);
  }
  if (scratch_[i]) trace->Scratch(i, scratch_[i].bytes());
}

// Drops a value. Enqueued work may still read device memory, so that is kept until the queues have
// passed it.
void StepState::Drop(int32_t v) {
  Slot& s = slots_[size_t(v)];
  const int32_t location = plan_->values[size_t(v)].location;
  if (recordings_ && recordings_->Spare(v, &s.held)) return s.Clear();
  if (DeviceQueues* queues = location ? queues_[size_t(location) - 1].get() : nullptr) {
    if (share_until_[size_t(v)] >= 0) {
      queues->KeepShare(std::move(s.held));
    } else {
      queues->Keep(std::move(s.held));
    }
  }
  s.Clear();
}

template <bool kAtomic>
void StepState::ReleaseInputs(size_t i) {
  for (int32_t v : plan_->nodes[i].held_in) {
    int32_t& count = readers_[size_t(v)];
    int32_t left;
    if constexpr (kAtomic) {
      left = std::atomic_ref<int32_t>(count).fetch_sub(1, std::memory_order_acq_rel) - 1;
    } else {
      left = --count;
    }
    if (left == 0 && !plan_->values[size_t(v)].fetched) Drop(v);
  }
}
template void StepState::ReleaseInputs<true>(size_t);
template void StepState::ReleaseInputs<false>(size_t);

bool StepState::broken() const {
  uint64_t at = 0;
  return std::any_of(queues_.begin(), queues_.end(), [&](const auto& q) { return q && !q->failure(&at).ok(); });
}

Status StepState::Fetch(size_t k, Tensor* fetch) {
  const int32_t v = plan_->fetches[k];
  if (plan_->values[size_t(v)].kind == PlanValue::kPassed) {
    if (leaves_passed) return Status();
    ASSIGN_OR_RETURN(*fetch, CopyOut(v));
    return Status();
  }
  const tw_view& view = slots_[size_t(v)].view;
  if (!view.tensor) return Internal("fetch ", k, " has no tensor of its own");
  *fetch = Tensor::Share(view.tensor);
  return Status();
}

Status StepState::Finish(Status status, Tensor* fetches) {
  const Plan& p = *plan_;
  for (const auto& q : queues_) {
    if (!q) continue;
    const int64_t since = trace ? trace->Now() : 0;
    Status s = q->Drain();
    if (trace) trace->Waited(since, q->device()->name());
    if (status.ok() && !s.ok()) status = Prefix(s, StrCat(q->device()->name(), " reported after the step's kernels were started:"));
  }
  carrier_.Reset();
  if (!status.ok()) status = RootFailure(std::move(status));
  if (const Device* device = short_of_.load(std::memory_order_relaxed)) status = TellMemory(status, device);
  short_of_.store(nullptr, std::memory_order_relaxed);
  failed_at_.store(0, std::memory_order_relaxed);
  if (!readers_.empty()) std::memcpy(readers_.data(), readers_template_.data(), readers_.size() * sizeof(int32_t));
  if (status.ok() && leaves_passed && passes_all_) return status;  // nothing is held
  for (size_t k = 0; status.ok() && k < p.fetches.size(); ++k) status = Fetch(k, &fetches[k]);
  if (!status.ok()) {
    for (size_t k = 0; k < p.fetches.size(); ++k) fetches[k].reset();
  }
  // After a successful step only fetched values and those of devices are still held.
  if (status.ok()) {
    for (int32_t v : p.fetches) {
      if (p.values[size_t(v)].kind == PlanValue::kHeld) slots_[size_t(v)].Clear();
    }
    for (int32_t v : device_held_) {
      if (recordings_) recordings_->Spare(v, &slots_[size_t(v)].held);
      slots_[size_t(v)].Clear();
    }
  } else {
    for (size_t v = 0; v < p.values.size(); ++v) {
      if (p.values[v].kind == PlanValue::kHeld) slots_[v].Clear();
    }
  }
  for (int32_t v : p.feeds) {
    if (v >= 0 && p.values[size_t(v)].kind != PlanValue::kPassed) slots_[size_t(v)].Clear();
  }
  if (!feed_copies_.empty()) DropLargeCopies();
  return status;
}

}  // namespace thalweg
