#include "framework/runtime/step/evaluate.h"

#include <algorithm>
#include <memory>

#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/base/local_memory.h"
#include "framework/runtime/choose_kernel.h"
#include "framework/runtime/node_record.h"
#include "framework/runtime/runtime.h"
#include "framework/runtime/state/resource.h"
#include "framework/runtime/step/async_calls.h"
#include "framework/runtime/step/one_call_step.h"
#include "framework/tensor/payer.h"

namespace thalweg {

void ResolveArguments(NodeRun* run) {
  const Node& n = *run->node;
  const KernelDef& k = *run->kernel;
  run->async = k.spec.async;
  run->host_in.assign(size_t(n.n_in()), run->device->host_memory());
  run->host_out.assign(size_t(n.n_out()), run->device->host_memory());
  auto flat = [](const std::vector<uint32_t>& at, size_t a, auto&& f) {
    for (uint32_t i = at[a]; i < at[a + 1]; ++i) f(i);
  };
  for (size_t a = 0; a < n.op().inputs.size(); ++a) {
    flat(n.in_at(), a, [&](uint32_t i) {
      const DTypeInfo* info = FindDType(n.in_type(int32_t(i)));
      if (k.host_in[a] || !info || !info->plain) run->host_in[i] = 1;
      if (k.read[a]) run->open_read.push_back(i);
      if (k.update[a]) run->open_update.push_back(i);
      if (k.replace[a]) run->open_replace.push_back(i);
      if (!k.anywhere_in.empty() && k.anywhere_in[a]) {
        run->anywhere_in.resize(size_t(n.n_in()));
        run->anywhere_in[i] = 1;
      }
      if (!n.op().inputs[a].resource.empty()) {
        run->resources.resize(size_t(n.n_in()));
        run->resources[i] = n.op().inputs[a].resource;
      }
    });
  }
  for (size_t a = 0; a < n.op().outputs.size(); ++a) {
    flat(n.out_at(), a, [&](uint32_t o) {
      const DTypeInfo* info = FindDType(n.out_type(int32_t(o)));
      if (k.host_out[a] || !info || !info->plain) run->host_out[o] = 1;
      if (!k.anywhere_out.empty() && k.anywhere_out[a]) {
        run->anywhere_out.resize(size_t(n.n_out()));
        run->anywhere_out[o] = 1;
      }
    });
  }
}

Status CheckHandles(const NodeRun& run) {
  const Node& node = *run.node;
  const OpSchema& op = node.op();
  if (!run.kernel->gives.empty()) return Status();
  for (size_t a = 0; a < op.outputs.size(); ++a) {
    const ArgSpec& y = op.outputs[a];
    if (y.type_attr.empty() || node.out_at()[a] == node.out_at()[a + 1] || run.kernel->view[a] >= 0) continue;
    if (node.out_type(int32_t(node.out_at()[a])) != TW_RESOURCE) continue;
    const auto same = [&](const ArgSpec& x) { return x.type_attr == y.type_attr; };
    const auto x = std::find_if(op.inputs.begin(), op.inputs.end(), same);
    if (x == op.inputs.end()) continue;
    return InvalidArgument("'", x->name, "' is of type resource; handles can only be passed on as they are: read what they lead to first");
  }
  return Status();
}

Status CreateState(const NodeRun& run, const std::vector<tw_shape>& shapes, MemoryBudget* budget, void** out_state) {
  if (!run.kernel->def.create) {
    *out_state = run.kernel->def.user;
    return Status();
  }
  NodeRecord node(run, *run.device, shapes);
  const PaysFor pays(budget);
  Status s = FromC(run.kernel->def.create(&node.c, out_state));
  return s.ok() ? s : OfNode(*run.node, Prefix(s, run.node->title() + ":"));
}

void DestroyState(const KernelDef& kernel, void* state) {
  if (kernel.def.create && kernel.def.destroy) kernel.def.destroy(kernel.host, state);
}

StatusOr<uint64_t> PrepareScratch(const NodeRun& run, const std::vector<tw_shape>& shapes) {
  if (!run.kernel->def.prepare) return uint64_t{0};
  NodeRecord node(run, *run.device, shapes);
  uint64_t bytes = 0;
  Status s = FromC(run.kernel->def.prepare(&node.c, run.state, &bytes));
  if (!s.ok()) return OfNode(*run.node, Prefix(s, run.node->title() + ":"));
  return bytes;
}

Status InferFrameShapes(const KernelFrame& f, ShapeAnswer* out) {
  const Node& n = *f.run->node;
  CAttrs attrs;
  n.FillC(&attrs);
  LocalMemory<512> memory;
  std::pmr::vector<tw_shape> shapes(f.c.n_in, memory.get());
  std::pmr::vector<const tw_view*> values(f.c.n_in, memory.get());
  std::pmr::vector<const HandleInfo*> handles(f.c.n_in, memory.get());
  std::pmr::vector<HandleInfo> infos(f.c.n_in, memory.get());
  // A variable that is replaced may get another shape, if the graph allows it.
  const auto replaces = [&](uint32_t i) {
    const std::vector<uint32_t>& replaced = f.run->open_replace;
    return std::find(replaced.begin(), replaced.end(), i) != replaced.end();
  };
  const auto declared = [&](uint32_t i) { return f.run->variables.empty() ? Shape() : f.run->variables[i]; };
  for (uint32_t i = 0; i < f.c.n_in; ++i) {
    const tw_view& v = f.source[i]->view;
    shapes[i] = {v.dims, v.rank, 0};
    values[i] = f.run->host_in[i] && (v.data || v.bytes == 0) ? &v : nullptr;
    const Resource* r = f.opened ? f.opened[i] : nullptr;
    if (r && r->is_variable() && r->value()) infos[i] = {r->value().dtype(), replaces(i) ? declared(i) : r->value().shape()};
    handles[i] = &infos[i];
  }
  ShapeQuery q;
  q.op = &n.op();
  q.node = n.name();
  q.attrs = &attrs;
  q.types = f.run->types;
  q.in_at = n.in_at().data();
  q.out_at = n.out_at().data();
  q.n_in = f.c.n_in;
  q.n_out = f.c.n_out;
  q.in = shapes.data();
  q.values = values.data();
  q.handles = handles.data();
  return InferShapes(q, out);
}

StatusOr<std::vector<Tensor>> CallOnce(Runtime& runtime, const Node& node, const KernelDef& kernel, Device* device,
                                       std::span<const tw_shape> in_shapes, std::span<const Tensor> values, const std::string& container,
                                       MemoryBudget* budget) {
  uint32_t n_in = uint32_t(node.n_in()), n_out = uint32_t(node.n_out());
  NodeRun run;
  run.node = &node;
  run.kernel = &kernel;
  run.device = device;
  run.types = node.types().data();
  ResolveArguments(&run);

  LocalMemory<1024> memory;
  std::pmr::vector<Slot> slots(n_in + n_out + n_in, memory.get());
  std::pmr::vector<Slot*> source(n_in, memory.get());
  std::pmr::vector<const tw_view*> in(n_in, memory.get()), out(n_out, memory.get());
  std::pmr::vector<Resource*> opened(n_in, memory.get());
  for (uint32_t i = 0; i < n_in; ++i) {
    Slot& s = slots[i];
    s.view = {};
    s.view.size = sizeof(tw_view);
    if (values[i]) {
      s.Hold(values[i]);
    } else {  // only the shape is read
      ASSIGN_OR_RETURN(int64_t count, [&]() -> StatusOr<int64_t> {
        int64_t c = 1;
        for (int32_t k = 0; k < in_shapes[i].rank; ++k) {
          if (!__builtin_mul_overflow(c, in_shapes[i].dims[k], &c)) continue;
          return InvalidArgument("shape ", ShapeText(in_shapes[i].dims, in_shapes[i].rank), " has more than 2^63-1 elements");
        }
        return c;
      }());
      s.view.dims = in_shapes[i].dims;
      s.view.rank = in_shapes[i].rank;
      s.view.dtype = node.in_type(int32_t(i));
      s.view.count = uint64_t(count);
    }
    source[i] = &s;
    in[i] = &s.view;
  }
  for (uint32_t i : run.open_read) in[i] = &slots[n_in + n_out + i].view;
  for (uint32_t i : run.open_update) in[i] = &slots[n_in + n_out + i].view;
  for (uint32_t o = 0; o < n_out; ++o) {
    Slot& s = slots[n_in + o];
    s.view = {};
    s.view.size = sizeof(tw_view);
    s.view.dtype = node.out_type(int32_t(o));
    s.Clear();
    out[o] = &s.view;
  }

  OneCallStep step;
  step.runtime = &runtime;
  step.container = &container;
  step.budget = budget;
  KernelFrame f{};
  f.c.size = sizeof(tw_frame);
  f.c.host = kernel.host;
  f.c.in = in.data();
  f.c.out = out.data();
  f.c.in_at = node.in_at().data();
  f.c.out_at = node.out_at().data();
  f.c.n_in = n_in;
  f.c.n_out = n_out;
  f.run = &run;
  f.step = &step;
  f.source = source.data();
  f.opened = opened.data();

  const auto of_node = [&](Status s) { return s.ok() ? s : OfNode(node, Prefix(s, node.title() + ":")); };
  if (run.opens()) RETURN_IF_ERROR(of_node(OpenResources(&f, &slots[n_in + n_out])));
  struct Closer {
    KernelFrame* f;
    ~Closer() { CloseResources(f); }
  } closer{&f};
  ShapeAnswer answer;
  RETURN_IF_ERROR(of_node(InferFrameShapes(f, &answer)));
  // Allocates every output whose shape the rule knows; only outputs with shapes known at run time
  // are left to the call.
  constexpr uint64_t kMost = 256u << 20;
  std::vector<tw_shape> all_shapes;
  all_shapes.reserve(n_in + n_out);
  for (uint32_t i = 0; i < n_in; ++i) all_shapes.push_back({source[i]->view.dims, source[i]->view.rank, 0});
  for (uint32_t o = 0; o < n_out; ++o) {
    const Shape& s = answer.shapes[o];
    all_shapes.push_back(s.c());
    if (!s.known() || node.out_type(int32_t(o)) == TW_RESOURCE) continue;
    ASSIGN_OR_RETURN(int64_t bytes, CountBytes(s.dims().data(), s.rank(), node.out_type(int32_t(o))));
    if (uint64_t(bytes) > kMost) return of_node(ResourceExhausted("a value of ", bytes, " bytes is too large to compute while planning"));
    ASSIGN_OR_RETURN(Tensor t, MakeOutput(run, o, s.dims().data(), s.rank(), budget));
    slots[n_in + o].Hold(std::move(t));
  }
  RETURN_IF_ERROR(CreateState(run, all_shapes, budget, &run.state));
  struct Destroyer {
    const NodeRun& run;
    ~Destroyer() { DestroyState(*run.kernel, run.state); }
  } destroyer{run};
  f.c.state = run.state;
  f.c.device = device->self();
  Tensor scratch;
  bool known = true;
  for (const tw_shape& s : all_shapes) known = known && Shape(s).known();
  if (known) {
    ASSIGN_OR_RETURN(uint64_t bytes, PrepareScratch(run, all_shapes));
    if (bytes) {
      int64_t n = int64_t(bytes);
      ASSIGN_OR_RETURN(scratch, Tensor::Make(TW_UINT8, &n, 1, device->pool(), budget));
      f.c.scratch = scratch.view().data;
    }
  }
  if (kernel.spec.async) f.c.token = AsyncCalls::Get().Begin(&step, 0);
  Status s = FromC(kernel.def.execute(&f.c));
  if (kernel.spec.async) {
    // A call that fails after it was completed may still use the frame on another thread.
    if (s.ok() || !AsyncCalls::Get().Cancel(f.c.token)) s = step.Wait();
  }
  RETURN_IF_ERROR(of_node(std::move(s)));
  std::vector<Tensor> results;
  results.reserve(n_out);
  for (uint32_t o = 0; o < n_out; ++o) {
    Slot& slot = slots[n_in + o];
    if (slot.view.rank < 0 || !slot.held) return of_node(NoValue(run, o));
    results.push_back(slot.held);
  }
  return results;
}

StatusOr<std::vector<Tensor>> EvaluateOnHost(Runtime& runtime, const Node& node, std::span<const tw_shape> shapes,
                                             std::span<const Tensor> values, MemoryBudget* budget) {
  ASSIGN_OR_RETURN(Device * host, runtime.host_device());
  ASSIGN_OR_RETURN(const KernelDef* kernel, ChooseKernel(runtime.registry(), *host, {node, shapes, values}));
  if (!kernel) return NotFound(node.title(), " has no kernel on ", host->kind());
  if (kernel->spec.may_block || kernel->spec.async || kernel->spec.nondeterministic)
    return FailedPrecondition(node.title(), " cannot run while planning");
  // The size of objects is unlimited, and a shape says nothing about it.
  if (std::find(node.types().begin(), node.types().end(), TW_VARIANT) != node.types().end()) {
    return FailedPrecondition(node.title(), " works on variants, which planning does not make");
  }
  static const std::string kNoContainer;
  return CallOnce(runtime, node, *kernel, host, shapes, values, kNoContainer, budget);
}

}  // namespace thalweg
