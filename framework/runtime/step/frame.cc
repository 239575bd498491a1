#include "framework/runtime/step/frame.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/runtime/devices/device_queues.h"
#include "framework/runtime/runtime.h"
#include "framework/runtime/state/resource.h"
#include "framework/runtime/trace/step_trace.h"
#include "framework/tensor/memory_budget.h"

namespace thalweg {

Status StepBase::ArrivesWith(const Slot*, const QueueMark& mark) { return mark.line ? mark.line->Wait(mark.value) : Status(); }

Status StepInterrupted(const StepBase& step) {
  if (step.cancel && step.cancel->cancelled()) return Status(absl::StatusCode::kCancelled, "the step was cancelled");
  if (step.deadline && MonotonicNs() > step.deadline) {
    return Status(absl::StatusCode::kDeadlineExceeded, "the step's deadline has passed");
  }
  return Status();
}

Status WaitInterrupted(const StepBase& step) {
  if (step.closing && step.closing->cancelled()) return Status(absl::StatusCode::kCancelled, "the session was closed");
  return StepInterrupted(step);
}

StatusOr<Resource*> ResourceOf(const KernelFrame& f, uint32_t i) {
  if (i >= f.c.n_in) return InvalidArgument("input ", i, " of ", f.c.n_in, " does not exist");
  if (f.opened && f.opened[i]) return f.opened[i];
  const tw_view& v = f.source[i]->view;
  if (v.dtype != TW_RESOURCE) return InvalidArgument("input ", i, " is ", DTypeName(v.dtype), ", not a resource");
  if (v.count != 1 || !v.data) return InvalidArgument("input ", i, " must be one resource but has shape ", ShapeText(v.dims, v.rank));
  auto* r = dynamic_cast<Resource*>(static_cast<Handle**>(v.data)[0]);
  if (!r) return InvalidArgument("input ", i, " is a null resource");
  return r;
}

Status NoValue(const NodeRun& run, uint32_t o) {
  const Node& node = *run.node;
  if (run.types[size_t(node.n_in()) + o] != TW_RESOURCE) return Internal("the kernel left output ", o, " without a value");
  const auto& at = node.out_at();
  const size_t argument = size_t(std::upper_bound(at.begin(), at.end(), o) - at.begin()) - 1;
  return InvalidArgument(
      "output '", node.op().outputs[argument].name,
      "' would be of type resource; handles can only be passed on as they are: ", "read the variable that the handle leads to first");
}

StatusOr<Tensor> MakeOutput(const NodeRun& run, uint32_t o, const int64_t* dims, int32_t rank, MemoryBudget* budget) {
  uint32_t dtype = run.types[size_t(run.node->n_in()) + o];
  const DTypeInfo* info = FindDType(dtype);
  // Strings and references are in host memory, on whatever device the kernel runs.
  bool host = run.host_out[o] || !info || !info->plain;
  return Tensor::Make(dtype, dims, rank, host ? nullptr : run.device->pool(), budget);
}

namespace {

// Returns true if only the writer's own step refers to the tensor, and the kernels of that step
// that read it precede the writer on the queue.
bool IsOwn(const Tensor& value, const KernelFrame& writer) {
  const Buffer* buffer = value.get()->buffer;
  if (!buffer || !buffer->Unique() || buffer->read_only) return false;
  const int32_t own = writer.step->OwnShares(writer, value);
  return value.get()->refs.load(std::memory_order_acquire) == 1 + own;
}

// Copies the variable's memory if others hold it, so that the writer does not disturb them.
Status Unshare(Resource* r, const KernelFrame& writer) {
  MemoryBudget* budget = writer.step->budget;
  if (!r->value() || r->value().unique() || IsOwn(r->value(), writer)) return Status();
  Device* d = FindDType(r->value().dtype())->plain ? r->device() : nullptr;  // types that are not plain are in host memory on every device
  if (d && !d->host_memory()) {
    ASSIGN_OR_RETURN(Tensor copy, d->Clone(r->value(), budget));
    r->set_value(std::move(copy));
    return Status();
  }
  const tw_view& value = r->value().view();
  ASSIGN_OR_RETURN(Tensor copy, Tensor::Make(value.dtype, value.dims, value.rank, d ? d->pool() : nullptr, budget));
  if (copy.bytes() && FindDType(copy.dtype())->plain) {
    std::memcpy(copy.data(), r->value().data(), copy.bytes());
  } else {
    ASSIGN_OR_RETURN(copy, r->value().Clone());
    if (budget) RETURN_IF_ERROR(budget->Charge(copy.get()));
  }
  r->set_value(std::move(copy));
  return Status();
}

bool Replaces(const NodeRun& run, uint32_t input) {
  return std::find(run.open_replace.begin(), run.open_replace.end(), input) != run.open_replace.end();
}

void ShowVariable(const Resource& r, Slot* slot) {
  slot->view.size = sizeof(tw_view);
  if (r.value()) {
    slot->view = r.value().view();
  } else {
    slot->Clear();
  }
}

std::string_view ArgumentName(const KernelFrame& f, uint32_t i) {
  const Node& n = *f.run->node;
  size_t a = 0;
  while (n.in_at()[a + 1] <= i) ++a;
  return n.op().inputs[a].name;
}

// Checks the type of the resource at input i against the op's schema.
Status CheckType(const Resource& r, const KernelFrame& f, uint32_t i) {
  if (f.run->resources.empty() || f.run->resources[i].empty() || f.run->resources[i] == r.type()) return Status();
  return InvalidArgument("'", ArgumentName(f, i), "' is a handle of the ", r.type(), " '", Shown(r.name()), "', but must be one of a ",
                         f.run->resources[i]);
}

// Shows a plugin's object. An object is meaningful only to the plugin that made it; another plugin
// would misread it.
Status ShowObject(const Resource& r, const KernelFrame& f, uint32_t i, Slot* slot) {
  const std::string& owner = r.def()->plugin;
  if (owner != f.run->kernel->plugin) {
    return InvalidArgument("'", Shown(r.name()), "' is a ", r.type(), " of plugin '", owner, "', which a kernel of plugin '",
                           f.run->kernel->plugin, "' cannot open; give the op a handle of the kind that it is made for");
  }
  if (!r.def()->only && (f.run->resources.empty() || f.run->resources[i].empty())) {
    return FailedPrecondition("'", ArgumentName(f, i), "' is the ", r.type(), " '", Shown(r.name()),
                              "', which is no variable: it has no value to read, fetch or assign; use what the ops on it give, such as ",
                              "an element or a size (an op that is made for it says so with a clause `resource` in its schema)");
  }
  if (!r.object()) return FailedPrecondition(r.type(), " '", Shown(r.name()), "' has no contents; initialise it first");
  slot->Clear();
  slot->view.size = sizeof(tw_view);
  slot->view.dtype = TW_RESOURCE;  // distinguishes it from a variable
  slot->view.data = r.object();
  return Status();
}

// Moves a variable on another device to the node's device. REQUIRES: the update lock is held.
Status TakeAlong(const KernelFrame& f, Resource* r) {
  const Device* from = r->device();
  if (!from || !r->is_variable() || !r->Away(f.run->device)) return Status();
  RETURN_IF_ERROR(r->MoveTo(f.run->device, f.step->budget));
  f.step->runtime->Log(1, StrCat("variable '", Shown(r->name()), "' moved from ", from->name(), " to ", f.run->device->name()));
  return Status();
}

// Locks and shows the resources. A resource is in f->opened from the moment its lock is held, so
// that CloseResources releases what a failure leaves. *away: the failure is that a variable is on
// another device, which only a lock holder can tell.
Status LockAndShow(KernelFrame* f, Slot* slots, bool* away) {
  *away = false;
  struct Want {
    Resource* r;
    uint32_t input;
    bool update;
  };
  constexpr size_t kFew = 64;
  Want few[kFew];
  std::vector<Want> many;
  size_t n = 0;
  const NodeRun& run = *f->run;
  if (run.open_read.size() + run.open_update.size() > kFew) many.resize(run.open_read.size() + run.open_update.size());
  Want* const wants = many.empty() ? few : many.data();
  auto add = [&](uint32_t i, bool update) -> Status {
    f->opened[i] = nullptr;
    ASSIGN_OR_RETURN(Resource * r, ResourceOf(*f, i));
    wants[n++] = {r, i, update};
    return Status();
  };
  for (uint32_t i : run.open_read) RETURN_IF_ERROR(add(i, false));
  for (uint32_t i : run.open_update) RETURN_IF_ERROR(add(i, true));
  std::sort(wants, wants + n, [](const Want& a, const Want& b) { return a.r != b.r ? a.r < b.r : a.update > b.update; });
  Status s;
  size_t locked = 0;
  for (; locked < n; ++locked) {
    const Want& w = wants[locked];
    if (locked && wants[locked - 1].r == w.r) {
      if (!wants[locked - 1].update) {  // two readers share the lock
        f->opened[w.input] = w.r;
        continue;
      }
      s = InvalidArgument("inputs ", wants[locked - 1].input, " and ", w.input, " are the same resource '", Shown(w.r->name()),
                          "', and one of them is to be updated");
      break;
    }
    if (!(w.update ? w.r->TryUpdate() : w.r->TryRead())) {
      const WaitNote note(f->step->trace, TW_STEP_WAIT_LOCK, f->run->node->name(), w.r->name());
      if (w.update) {
        w.r->LockUpdate();
      } else {
        w.r->LockRead();
      }
    }
    f->opened[w.input] = w.r;
  }
  for (size_t k = 0; s.ok() && k < n; ++k) {
    if (f->step->moves_state && wants[k].update) s = TakeAlong(*f, wants[k].r);
    if (s.ok()) s = ShowResource(f, wants[k].input, wants[k].update, &slots[wants[k].input]);
    *away = !s.ok() && wants[k].r->is_variable() && wants[k].r->Away(run.device);
  }
  return s;
}

// Moves variables that are on another device and are only read, because a read lock does not allow
// a move.
Status BringHere(const KernelFrame& f) {
  for (uint32_t i : f.run->open_read) {
    ASSIGN_OR_RETURN(Resource * r, ResourceOf(f, i));
    if (!r->is_variable() || !r->Away(f.run->device)) continue;
    r->LockUpdate();
    Status s = TakeAlong(f, r);
    r->UnlockUpdate();
    RETURN_IF_ERROR(s);
  }
  return Status();
}

}  // namespace

Status ShowResource(KernelFrame* f, uint32_t input, bool update, Slot* slot) {
  Resource* r = f->opened[input];
  const NodeRun& run = *f->run;
  RETURN_IF_ERROR(CheckType(*r, *f, input));
  if (!r->is_variable()) return ShowObject(*r, *f, input, slot);
  if (r->device() != run.device) RETURN_IF_ERROR(r->LiveOn(run.device));  // the variable was destroyed, and is on another device since
  if (!update && !r->value()) {
    return FailedPrecondition("variable '", Shown(r->name()), "' is not initialised; run its initializer or restore a checkpoint first");
  }
  if (const Shape* declared = run.variables.empty() ? nullptr : &run.variables[input]; declared && !update) {
    if (!declared->Admits(r->value().view().dims, r->value().rank())) {
      return InvalidArgument("variable '", Shown(r->name()), "' holds ", r->value().shape().text(), ", but this graph declares ",
                             declared->text(), "; give one of the two another name or container");
    }
  }
  if (update && !Replaces(run, input)) RETURN_IF_ERROR(Unshare(r, *f));
  ShowVariable(*r, slot);
  return Status();
}

Status OpenResources(KernelFrame* f, Slot* slots) {
  constexpr int kTries = 10'000;  // other steps may take a variable to another device again and again
  try {
    for (int k = 0;; ++k) {
      if (f->step->moves_state) RETURN_IF_ERROR(BringHere(*f));
      bool away = false;
      Status s = LockAndShow(f, slots, &away);
      if (s.ok()) return s;
      CloseResources(f);
      if (k == kTries || !f->step->moves_state || !away) return s;
      RETURN_IF_ERROR(StepInterrupted(*f->step));
      std::this_thread::yield();
    }
  } catch (...) {  // no memory
    CloseResources(f);
    throw;
  }
}

void CloseResources(KernelFrame* f, bool changed) {
  for (uint32_t i : f->run->open_read) {
    Resource* r = f->opened[i];
    f->opened[i] = nullptr;
    bool shared = false;  // with an input that is still to be closed
    for (uint32_t k : f->run->open_read) shared = shared || (r && f->opened[k] == r);
    if (r && !shared) r->UnlockRead();
  }
  for (uint32_t i : f->run->open_update) {
    Resource* r = f->opened[i];
    if (r) r->UnlockUpdate(changed && (r->assigned() || !Replaces(*f->run, i)));
    f->opened[i] = nullptr;
  }
}

}  // namespace thalweg
