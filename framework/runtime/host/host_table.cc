#include "framework/runtime/host/host_table.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/files/file_system.h"
#include "framework/graph/builder.h"
#include "framework/graph/shown_part.h"
#include "framework/registry/seal.h"
#include "framework/runtime/devices/carrier.h"
#include "framework/runtime/devices/timeline.h"
#include "framework/runtime/host/callback_set.h"
#include "framework/runtime/host/checkpoint_set.h"
#include "framework/runtime/host/file_set.h"
#include "framework/runtime/host/function_set.h"
#include "framework/runtime/host/group_set.h"
#include "framework/runtime/host/host_function_set.h"
#include "framework/runtime/host/memory_set.h"
#include "framework/runtime/host/rendezvous_set.h"
#include "framework/runtime/host/summary_set.h"
#include "framework/runtime/host/timeline_set.h"
#include "framework/runtime/runtime.h"
#include "framework/runtime/state/container.h"
#include "framework/runtime/state/held_resource.h"
#include "framework/runtime/state/resource.h"
#include "framework/runtime/state/saved_resource.h"
#include "framework/runtime/state/variant.h"
#include "framework/runtime/state/waiting_calls.h"
#include "framework/runtime/step/async_calls.h"
#include "framework/runtime/step/frame.h"
#include "framework/runtime/thread_pool.h"
#include "framework/runtime/trace/step_trace.h"
#include "framework/tensor/lent.h"
#include "framework/tensor/memory_budget.h"
#include "framework/tensor/payer.h"
#include "thalweg/plugin/checkpoint.h"
#include "thalweg/plugin/memory.h"
#include "thalweg/plugin/variant.h"

namespace thalweg {
namespace {

struct HostTable {
  tw_host c;  // must be first; its self is the Runtime, or NULL once the runtime is gone (see PluginLoader)
  std::string id, path;
  FileSystem* files = nullptr;       // NULL: the runtime's
  std::weak_ptr<const void> plugin;  // keeps the plugin's code while it is locked; empty: the code stays by itself
};
const HostTable& Of(const tw_host* h) { return *reinterpret_cast<const HostTable*>(h); }

Status PutText(tw_sink* to, std::string_view text) { return FromC(to->put(to, text.data(), text.size())); }

// ---- status ----
tw_status* StatusMake(const tw_host*, uint32_t code, const char* text, uint64_t len, tw_status* cause) {
  try {
    if (code == 0 || code > TW_UNAUTHENTICATED) code = TW_UNKNOWN;
    constexpr size_t kLongest = 4096;  // limits what a plugin quotes, and nested causes
    std::string message = Shown({text, len}, kLongest);
    Status why = FromC(cause);
    if (!why.ok()) message = StrCat(Message(why).size() < kLongest ? message + ": " : "", Message(why));
    Status made(absl::StatusCode(code), AbslView(message));
    why.ForEachPayload([&](absl::string_view key, const absl::Cord& value) { made.SetPayload(key, value); });  // failed node, call depth
    return ToC(std::move(made));
  } catch (...) {
    return ToC(Thrown());
  }
}
uint32_t StatusCodeOf(const tw_status* s) { return s ? uint32_t(s->status.code()) : uint32_t{TW_OK}; }
tw_status* StatusText(const tw_status* s, tw_sink* to) {
  return Guard([&] { return PutText(to, s ? std::string_view(s->text) : std::string_view()); });
}
void StatusRelease(tw_status* s) { (void)FromC(s); }

// ---- tensors ----
// Makes a tensor of memory that the plugin lends. Its code stays until the memory is released.
StatusOr<Tensor> TensorOf(const HostTable& host, const tw_tensor_config& c) {
  struct Pinned {
    std::shared_ptr<const void> plugin;
    void (*release)(void*);
    void* user;
  };
  const DTypeInfo* type = FindDType(c.dtype);
  if (!type || !type->plain) return InvalidArgument("memory cannot hold elements of type ", DTypeName(c.dtype));
  ASSIGN_OR_RETURN(const int64_t needed, CountBytes(c.dims, int32_t(c.rank), c.dtype));
  if (uint64_t(needed) != c.bytes) {
    return InvalidArgument("a tensor of ", type->name, " and shape ", ShapeText(c.dims, int32_t(c.rank)), " needs ", needed, " bytes, not ",
                           c.bytes);
  }
  if (const uint32_t align = AlignmentOf(c.dtype); reinterpret_cast<uintptr_t>(c.data) % align != 0) {
    return InvalidArgument("the memory of a tensor of ", type->name, " must be aligned to ", align, " bytes");
  }
  auto pinned = std::make_unique<Pinned>(Pinned{host.plugin.lock(), nullptr, c.user});
  Pinned* const kept = pinned.get();
  Lent lent(
      [](void* p) {
        const std::unique_ptr<Pinned> owned(static_cast<Pinned*>(p));
        if (owned->release) owned->release(owned->user);
      },
      pinned.release());
  ASSIGN_OR_RETURN(Tensor t, LendTensor(c.dtype, c.dims, int32_t(c.rank), c.data, c.bytes, /*read_only=*/true, std::move(lent)));
  kept->release = c.release;  // only now: after a failure the memory is still the caller's
  return t;
}

tw_status* TensorMake(const tw_host* h, const tw_tensor_config* config, tw_tensor** out) {
  return Guard([&]() -> Status {
    tw_tensor_config c;
    RETURN_IF_ERROR(Seal(config, "tw_tensor_config", &c));
    if (c.rank > uint32_t(kMaxRank)) return InvalidArgument("rank ", c.rank, " is more than ", kMaxRank);
    if (!c.data && (c.bytes || c.release)) return InvalidArgument("bytes or release are given, but no data");
    ASSIGN_OR_RETURN(Tensor t, c.data ? TensorOf(Of(h), c) : Tensor::Make(c.dtype, c.dims, int32_t(c.rank), nullptr, PayerOfThread()));
    *out = t.release();
    return Status();
  });
}
uint32_t TensorTypeOf(const tw_host*, const char* word, uint64_t len) { return DTypeByName({word, len}); }
tw_status* TensorReshape(const tw_host*, tw_tensor* t, const int64_t* dims, uint32_t rank, tw_tensor** out) {
  return Guard([&]() -> Status {
    if (rank > uint32_t(kMaxRank)) return InvalidArgument("rank ", rank, " is more than ", kMaxRank);
    ASSIGN_OR_RETURN(Tensor r, Tensor::Share(t).Reshape(dims, int32_t(rank)));
    *out = r.release();
    return Status();
  });
}
const tw_view* TensorView(tw_tensor* t) { return &t->view; }
void TensorRetain(tw_tensor* t) { RetainTensor(t); }
void TensorRelease(tw_tensor* t) { ReleaseTensor(t); }
tw_status* TensorSetString(tw_tensor* t, uint64_t i, const char* data, uint64_t len) {
  return Guard([&]() -> Status {
    if (!t) return InvalidArgument("there is no tensor to put a string into");
    return SetString(t, i, {data, len});
  });
}

Status CheckOutput(const KernelFrame& f, uint32_t o, uint32_t dtype) {
  if (o >= f.c.n_out) return InvalidArgument("output ", o, " of ", f.c.n_out, " does not exist");
  uint32_t want = f.run->types[f.c.n_in + o];
  if (dtype && dtype != want) return InvalidArgument("output ", o, " must be ", DTypeName(want), ", not ", DTypeName(dtype));
  return Status();
}

void RunParallel(const tw_frame* frame, uint64_t n, uint64_t grain, void (*part)(void*, uint64_t, uint64_t), void* arg);

// Copies with the threads of the step. The ranges are identical or disjoint.
void CopyInHost(const KernelFrame& f, const char* from, char* to, uint64_t bytes) {
  constexpr uint64_t kGrain = 1 << 18;
  if (from == to) return;
  auto copy = [from, to](uint64_t begin, uint64_t end) { std::memcpy(to + begin, from + begin, end - begin); };
  RunParallel(
      &f.c, bytes, kGrain, [](void* arg, uint64_t begin, uint64_t end) { (*static_cast<decltype(copy)*>(arg))(begin, end); }, &copy);
}

// Copies bytes between two places in the memory of the kernel's device, or both in host memory.
Status CopyBytes(const KernelFrame& f, const tw_view& from, const tw_view& to, bool in_host) {
  if (from.bytes == 0) return Status();
  if (in_host) {
    CopyInHost(f, static_cast<const char*>(from.data) + from.offset, static_cast<char*>(to.data) + to.offset, from.bytes);
    return Status();
  }
  tw_copy copy = CopyOf(from, to);
  copy.stream = f.c.stream;
  const DeviceKind& kind = f.run->device->def();
  return FromC(kind.def.copy(kind.host, f.run->device->self(), &copy));
}

// Checks that an output whose dims are known gets no others.
Status CheckDims(const Slot& out, uint32_t o, const int64_t* dims, int32_t rank) {
  const tw_view& v = out.view;
  if (v.rank < 0 || (rank == v.rank && std::equal(dims, dims + rank, v.dims))) return Status();
  return InvalidArgument("output ", o, " has shape ", ShapeText(v.dims, v.rank), "; a tensor of shape ", ShapeText(dims, rank),
                         " cannot be it");
}

// Makes the tensor the output. If the output's memory is the plan's, copies the elements there
// instead.
Status PutOutput(const KernelFrame& f, uint32_t o, Tensor t) {
  Slot* out = f.out(o);
  RETURN_IF_ERROR(CheckDims(*out, o, t.view().dims, t.rank()));
  if (f.step->IsPlanMemory(out)) return CopyBytes(f, t.view(), out->view, f.run->host_out[o] || f.run->device->host_memory());
  out->Hold(std::move(t));
  return Status();
}

tw_status* TensorAllocate(const tw_frame* frame, uint32_t o, const int64_t* dims, uint32_t rank) {
  return Guard([&]() -> Status {
    KernelFrame& f = *KernelFrame::Of(frame);
    RETURN_IF_ERROR(CheckOutput(f, o, 0));
    if (f.c.out[o]->rank >= 0) return FailedPrecondition("output ", o, " is allocated already");
    if (rank > uint32_t(kMaxRank)) return InvalidArgument("rank ", rank, " is more than ", kMaxRank);
    ASSIGN_OR_RETURN(Tensor t, MakeOutput(*f.run, o, dims, int32_t(rank), f.step->budget));
    f.out(o)->Hold(std::move(t));
    return Status();
  });
}
// Gives a tensor that may be in any memory: brings it to the memory where the plan has the output.
Status LandOutput(KernelFrame& f, uint32_t o, Tensor t) {
  Device* there = f.run->lands.empty() ? nullptr : f.run->lands[o];
  QueueMark mark;
  if (Carrier* carrier = f.step->carrier()) {
    ASSIGN_OR_RETURN(t, carrier->To(there, t, &mark));
  } else if (Device* here = HoldingDevice(*t.get())) {
    ASSIGN_OR_RETURN(t, here->ToHost(t));
  }
  Status put = PutOutput(f, o, std::move(t));
  if (put.ok()) return f.step->ArrivesWith(f.out(o), mark);
  if (mark.line) (void)mark.line->Wait(mark.value);  // its memory is released here
  return put;
}

tw_status* TensorGive(const tw_frame* frame, uint32_t o, tw_tensor* t) {
  return Guard([&]() -> Status {
    KernelFrame& f = *KernelFrame::Of(frame);
    if (!t) return InvalidArgument("there is no tensor to give as output ", o);
    RETURN_IF_ERROR(CheckOutput(f, o, t->view.dtype));
    if (!f.run->host_out[o] && !f.run->device->host_memory()) {
      return Unimplemented("output ", o, " lives on ", f.run->device->name(), ": write into it instead of giving a host tensor");
    }
    if (f.step->budget) RETURN_IF_ERROR(f.step->budget->Charge(t));
    if (!f.run->anywhere_out.empty() && f.run->anywhere_out[o]) return LandOutput(f, o, Tensor::Share(t));
    return PutOutput(f, o, Tensor::Share(t));
  });
}

// Copies a slot whose memory will be reused to a new tensor.
StatusOr<Tensor> CopySlot(const KernelFrame& f, const tw_view& v, bool host) {
  Device* device = f.run->device;
  ASSIGN_OR_RETURN(Tensor t, Tensor::Make(v.dtype, v.dims, v.rank, host ? nullptr : device->pool(), f.step->budget));
  RETURN_IF_ERROR(CopyBytes(f, v, t.view(), host || device->host_memory()));
  return t;
}

StatusOr<Tensor> KeepSlot(const KernelFrame& f, uint32_t i) {
  const tw_view& v = *f.c.in[i];
  if (v.rank < 0) return FailedPrecondition("input ", i, " has no value");
  if (v.tensor) return Tensor::Share(v.tensor);
  return CopySlot(f, v, f.run->host_in[i]);
}

tw_status* TensorForward(const tw_frame* frame, uint32_t i, uint32_t o, const int64_t* dims, uint32_t rank) {
  return Guard([&]() -> Status {
    KernelFrame& f = *KernelFrame::Of(frame);
    if (i >= f.c.n_in) return InvalidArgument("input ", i, " of ", f.c.n_in, " does not exist");
    const tw_view& v = *f.c.in[i];
    RETURN_IF_ERROR(CheckOutput(f, o, BaseType(v.dtype)));
    ASSIGN_OR_RETURN(Tensor t, KeepSlot(f, i));
    if (dims) {
      ASSIGN_OR_RETURN(t, t.Reshape(dims, int32_t(rank)));
    }
    return PutOutput(f, o, std::move(t));
  });
}

// Position and size of a part of an input, in bytes.
struct Part {
  uint64_t at = 0, bytes = 0;
};
StatusOr<Part> PartOf(const tw_view& from, uint64_t first, uint32_t dtype, const int64_t* dims, uint32_t rank) {
  if (rank > uint32_t(kMaxRank)) return InvalidArgument("rank ", rank, " is more than ", kMaxRank);
  const uint32_t is = BaseType(from.dtype);
  if (is != dtype && !(FindDType(is)->plain && FindDType(dtype)->plain)) {
    return InvalidArgument("elements of ", DTypeName(is), " cannot become ", DTypeName(dtype));
  }
  ASSIGN_OR_RETURN(int64_t bytes, CountBytes(dims, int32_t(rank), dtype));
  const uint64_t each = DTypeBytes(dtype), there = from.bytes / each, wanted = uint64_t(bytes) / each;
  if (first > there || wanted > there - first) {
    return InvalidArgument(wanted, " elements from number ", first, " on were asked of an input that has ", there);
  }
  return Part{first * each, uint64_t(bytes)};
}

// Returns true if the output may share the part. Its readers may rely on the alignment that whole
// tensors have. Elements of types that are not plain are read one by one.
bool MayShare(const tw_view& from, const Part& part, uint32_t dtype) {
  constexpr uint64_t kAlign = 64;
  if (!from.tensor) return false;
  if (!FindDType(dtype)->plain) return true;
  return part.at % kAlign == 0 && (BaseType(from.dtype) == dtype || (uintptr_t(from.data) + from.offset) % kAlign == 0);
}

tw_status* TensorForwardPart(const tw_frame* frame, uint32_t i, uint64_t first, uint32_t o, const int64_t* dims, uint32_t rank) {
  return Guard([&]() -> Status {
    KernelFrame& f = *KernelFrame::Of(frame);
    if (i >= f.c.n_in) return InvalidArgument("input ", i, " of ", f.c.n_in, " does not exist");
    RETURN_IF_ERROR(CheckOutput(f, o, 0));
    const bool host = f.run->host_in[i] != 0;
    if (host != (f.run->host_out[o] != 0)) return InvalidArgument("input ", i, " and output ", o, " lie in different memory");
    tw_view from = *f.c.in[i];
    if (from.rank < 0) return FailedPrecondition("input ", i, " has no value");
    Slot* out = f.out(o);
    const uint32_t dtype = BaseType(f.run->types[f.c.n_in + o]);
    ASSIGN_OR_RETURN(const Part part, PartOf(from, first, dtype, dims, rank));
    RETURN_IF_ERROR(CheckDims(*out, o, dims, int32_t(rank)));
    const bool planned = f.step->IsPlanMemory(out);
    if (!planned && MayShare(from, part, dtype)) {
      ASSIGN_OR_RETURN(Tensor shared, Tensor::Share(from.tensor).Part(part.at, dtype, dims, int32_t(rank), !host));
      out->Hold(std::move(shared));
      return Status();
    }
    if (!FindDType(dtype)->plain) return FailedPrecondition("input ", i, " is open and cannot be shared");
    if (!planned && !out->view.tensor) {
      ASSIGN_OR_RETURN(Tensor t, MakeOutput(*f.run, o, dims, int32_t(rank), f.step->budget));
      out->Hold(std::move(t));
    }
    if (host) from.data = static_cast<char*>(from.data) + part.at;
    if (!host) from.offset += part.at;
    from.bytes = part.bytes;
    return CopyBytes(f, from, out->view, host);
  });
}

tw_status* TensorKeep(const tw_frame* frame, uint32_t i, tw_tensor** out) {
  return Guard([&]() -> Status {
    KernelFrame& f = *KernelFrame::Of(frame);
    if (i >= f.c.n_in) return InvalidArgument("input ", i, " of ", f.c.n_in, " does not exist");
    ASSIGN_OR_RETURN(Tensor t, KeepSlot(f, i));
    *out = t.release();
    return Status();
  });
}

// ---- resources ----
tw_status* ResourceOpen(const tw_frame* frame, const tw_resource_key* k, tw_status* (*make)(const tw_host*, void*, void**), void* arg,
                        uint32_t o) {
  return Guard([&]() -> Status {
    KernelFrame& f = *KernelFrame::Of(frame);
    RETURN_IF_ERROR(CheckOutput(f, o, TW_RESOURCE));
    const std::string_view type(k->type, k->type_len), name(k->name, k->name_len);
    ASSIGN_OR_RETURN(const std::string_view container, ContainerOf(f, {k->container, k->container_len}, type, name));
    ASSIGN_OR_RETURN(Resource * r, f.step->runtime->resources().Open(container, type, name));
    if (Status made = make ? r->MakeObject(f.c.host, make, arg) : Status(); !made.ok()) {
      r->Release();
      return made;
    }
    if (r->is_variable()) (void)r->LiveOn(f.run->device);  // if the variable is on another device, the error comes when it is opened
    auto t = Tensor::Make(TW_RESOURCE, nullptr, 0);
    if (!t.ok()) {
      r->Release();
      return t.status();
    }
    t->as<Handle*>()[0] = r;  // takes over the reference
    f.out(o)->Hold(*std::move(t));
    return Status();
  });
}
tw_status* ResourceDrop(const tw_frame* frame, uint32_t i) {
  return Guard([&]() -> Status {
    KernelFrame& f = *KernelFrame::Of(frame);
    ASSIGN_OR_RETURN(Resource * r, ResourceOf(f, i));
    return f.step->runtime->resources().Drop(r->container(), r->name());
  });
}
uint32_t ResourceExists(const tw_frame* frame, uint32_t i) {
  auto r = ResourceOf(*KernelFrame::Of(frame), i);
  return r.ok() && (*r)->exists() ? 1 : 0;
}

StatusOr<Resource*> Updating(const KernelFrame& f, uint32_t i) {
  ASSIGN_OR_RETURN(Resource * r, ResourceOf(f, i));
  for (uint32_t u : f.run->open_update) {
    if (u == i) return r;
  }
  return FailedPrecondition("resource input ", i, " is not open for update; the kernel's spec must say `update`");
}
tw_status* ResourceSwap(const tw_frame* frame, uint32_t i, void* object) {
  return Guard([&]() -> Status {
    KernelFrame& f = *KernelFrame::Of(frame);
    ASSIGN_OR_RETURN(Resource * r, Updating(f, i));
    if (r->is_variable()) return InvalidArgument("'", Shown(r->name()), "' is a variable; use assign");
    r->set_object(object);
    f.in(i)->view.data = object;
    return Status();
  });
}
tw_status* ResourceAssign(const tw_frame* frame, uint32_t i, tw_tensor* value) {
  return Guard([&]() -> Status {
    KernelFrame& f = *KernelFrame::Of(frame);
    ASSIGN_OR_RETURN(Resource * r, Updating(f, i));
    if (!r->is_variable()) return InvalidArgument("'", Shown(r->name()), "' is a ", r->type(), ", not a variable");
    if (!value) return InvalidArgument("there is no tensor to assign");
    r->set_value(Tensor::Share(value));
    f.in(i)->view = value->view;
    return Status();
  });
}

tw_status* ResourceWait(const tw_frame* frame, uint32_t i, uint64_t condition, uint64_t memo) {
  return Guard([&]() -> Status {
    KernelFrame& f = *KernelFrame::Of(frame);
    WaitWish* wish = WaitWish::Of(&f);
    if (!wish)
      return FailedPrecondition("only a call of an asynchronous kernel in a step can wait at a resource, and inside of its execute");
    ASSIGN_OR_RETURN(wish->at, Updating(f, i));
    wish->condition = condition;
    wish->memo = memo;
    return Status();
  });
}
uint64_t ResourceWaiting(const tw_frame* frame, uint32_t i, uint64_t condition) {
  const KernelFrame& f = *KernelFrame::Of(frame);
  auto r = Updating(f, i);
  return r.ok() ? WaitingCalls::Get().Count(*r, condition, WaitWish::Of(&f)) : 0;
}

Status CheckOpensNothing(const KernelFrame& f, std::string_view entry) {
  if (!f.run->opens()) return Status();
  return FailedPrecondition("kernel '", f.run->kernel->spec.text, "' opens resources and asks the host to ", entry,
                            " one, which locks it; leave `read` and `update` out of its spec");
}
tw_status* ResourceSave(const tw_frame* frame, uint32_t i, uint32_t o) {
  return Guard([&]() -> Status {
    KernelFrame& f = *KernelFrame::Of(frame);
    RETURN_IF_ERROR(CheckOpensNothing(f, "save"));
    RETURN_IF_ERROR(CheckOutput(f, o, TW_STRING));
    ASSIGN_OR_RETURN(Resource * r, ResourceOf(f, i));
    ASSIGN_OR_RETURN(Tensor saved, SaveResource(r, f.step->budget));
    return PutOutput(f, o, std::move(saved));
  });
}
tw_status* ResourceRestore(const tw_frame* frame, uint32_t i, uint32_t saved, uint32_t n) {
  return Guard([&]() -> Status {
    KernelFrame& f = *KernelFrame::Of(frame);
    RETURN_IF_ERROR(CheckOpensNothing(f, "restore"));
    if (uint64_t{i} + n > f.c.n_in || uint64_t{saved} + n > f.c.n_in) {
      return InvalidArgument("inputs ", i, " and ", saved, " are not each followed by ", n, " of ", f.c.n_in);
    }
    std::vector<Resource*> resources(n);
    for (uint32_t k = 0; k < n; ++k) {
      ASSIGN_OR_RETURN(resources[k], ResourceOf(f, i + k));
    }
    return RestoreResources(resources, {f.c.in + saved, f.c.in + saved + n}, f.step->budget);
  });
}

// ---- timelines ----
void TimelineRetain(tw_timeline* t) { t->Retain(); }
void TimelineRelease(tw_timeline* t) {
  if (t) t->Release();
}
void TimelineSignal(tw_timeline* t, uint64_t value) { t->Signal(value); }
void TimelineFail(tw_timeline* t, tw_status* why) { t->Fail(FromC(why)); }
void TimelineWhen(tw_timeline* t, uint64_t value, void (*done)(void*, const tw_status*), void* arg) { t->When(value, done, arg); }

// ---- running ----
void RunComplete(const tw_host*, tw_token t, tw_status* s) { AsyncCalls::Get().Complete(t, FromC(s)); }
tw_status* RunCancelled(const tw_frame* frame) {
  return Guard([&] { return StepInterrupted(*KernelFrame::Of(frame)->step); });
}
void RunParallel(const tw_frame* frame, uint64_t n, uint64_t grain, void (*part)(void*, uint64_t, uint64_t), void* arg) {
  const StepBase& step = *KernelFrame::Of(frame)->step;
  if (n == 0) return;
  if (!step.pool || n <= grain) return part(arg, 0, n);
  step.pool->Parallel(n, grain ? grain : 1, part, arg, step.share);
}
uint32_t RunThreads(const tw_frame* frame) {
  const StepBase& step = *KernelFrame::Of(frame)->step;
  if (!step.pool) return 1;
  return step.share ? std::min(step.pool->threads(), step.share->threads()) : step.pool->threads();
}
void RunLog(const tw_host* h, uint32_t level, const char* text, uint64_t len) {
  const HostTable& t = Of(h);
  try {
    if (auto* runtime = static_cast<Runtime*>(h->self)) runtime->Log(level, StrCat("plugin '", t.id, "': ", std::string_view(text, len)));
  } catch (...) {  // a log line that finds no memory is dropped
  }
}

int64_t RunNow(const tw_host*) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The three entries of minor 1 do nothing in a step that is not traced.
uint64_t RunTrace(const tw_frame* f) {
  const StepTrace* trace = KernelFrame::Of(f)->step->trace;
  return trace ? trace->id() : 0;
}
void RunSpan(const tw_frame* frame, const tw_span* given) {
  constexpr int64_t kLatest = int64_t{1} << 62;  // so that differences of times fit into 64 bits; messages of tasks have the same bound
  const KernelFrame& f = *KernelFrame::Of(frame);
  tw_span s;
  if (!f.step->trace || !Seal(given, "tw_span", &s).ok() || !s.name || s.name_len == 0) return;
  if (s.begin < 0 || s.end < s.begin || s.end > kLatest) return;  // not the times of `now`
  f.step->trace->Span(*f.run, s);
}
void RunCount(const tw_frame* frame, const char* name, uint64_t len, int64_t value) {
  const KernelFrame& f = *KernelFrame::Of(frame);
  if (f.step->trace && name && len > 0) f.step->trace->Count(*f.run, {name, len}, value);
}

const void* Query(const tw_host*, const char* set, uint64_t len, uint32_t version) {
  if (std::string_view(set, len) == TW_MEMORY_SET && version == 1)
    return MemorySet();  // first: each call of a kernel that counts memory asks for it
  if (std::string_view(set, len) == TW_CALLBACK_SET && version == 1) return CallbackSet();
  if (std::string_view(set, len) == TW_CHECKPOINT_SET && version == 1) return CheckpointSet();
  if (std::string_view(set, len) == TW_FILES_SET && version == 1) return FileSet();
  if (std::string_view(set, len) == TW_VARIANT_SET && version == 1) return VariantSet();
  if (std::string_view(set, len) == TW_FUNCTION_SET && version == 1) return FunctionSet();
  if (std::string_view(set, len) == TW_GROUP_SET && version == 1) return GroupSet();
  if (std::string_view(set, len) == TW_HELD_RESOURCE_SET && version == 1) return HeldResourceSet();
  if (std::string_view(set, len) == TW_HOST_FUNCTION_SET && version == 1) return HostFunctionSet();
  if (std::string_view(set, len) == TW_LIMITS_SET && version == 1) return LimitsSet();
  if (std::string_view(set, len) == TW_RENDEZVOUS_SET && version == 1) return RendezvousSet();
  if (std::string_view(set, len) == TW_SUMMARY_SET && version == 1) return SummarySet();
  if (std::string_view(set, len) == TW_TIMELINE_SET && version == 1) return TimelineSet();
  return nullptr;
}
tw_status* Setting(const tw_host* h, const char* key, uint64_t len, tw_sink* to) {
  return Guard([&]() -> Status {
    const HostTable& t = Of(h);
    std::string_view name(key, len);
    if (name == "path") return PutText(to, t.path);
    if (!h->self) return FailedPrecondition("the runtime is gone");
    ASSIGN_OR_RETURN(std::string value, static_cast<Runtime*>(h->self)->Setting(t.id, name));
    return PutText(to, value);
  });
}

constexpr tw_status_api kStatus = {sizeof(tw_status_api), 0, StatusMake, StatusCodeOf, StatusText, StatusRelease};
constexpr tw_tensor_api kTensor = {
    sizeof(tw_tensor_api), 0,          TensorMake,    TensorReshape, TensorView,        TensorRetain, TensorRelease, TensorSetString,
    TensorAllocate,        TensorGive, TensorForward, TensorKeep,    TensorForwardPart, TensorTypeOf};
constexpr tw_resource_api kResource = {sizeof(tw_resource_api),
                                       0,
                                       ResourceOpen,
                                       ResourceDrop,
                                       ResourceExists,
                                       ResourceSwap,
                                       ResourceAssign,
                                       ResourceSave,
                                       ResourceRestore,
                                       ResourceWait,
                                       ResourceWaiting};
constexpr tw_timeline_api kTimeline = {
    sizeof(tw_timeline_api), 0, TimelineRetain, TimelineRelease, TimelineSignal, TimelineFail, TimelineWhen};
constexpr tw_run_api kRun = {sizeof(tw_run_api), 0,       RunComplete, RunCancelled, RunParallel, RunThreads, RunLog, RunNow,
                             RunTrace,           RunSpan, RunCount};

}  // namespace

std::unique_ptr<tw_host, void (*)(tw_host*)> MakeHostTable(Runtime* runtime, std::string_view id, std::string_view path, uint32_t minor,
                                                           std::weak_ptr<const void> plugin) {
  auto* t = new HostTable{{}, std::string(id), std::string(path), nullptr, std::move(plugin)};
  t->c = {sizeof(tw_host), 0, TW_EPOCH, minor, runtime, &kStatus, &kTensor, GraphApi(), &kResource, &kTimeline, &kRun, Query, Setting};
  return {&t->c, [](tw_host* h) { delete reinterpret_cast<HostTable*>(h); }};
}

std::shared_ptr<const void> PinOf(const tw_host* host) { return Of(host).plugin.lock(); }

std::unique_ptr<tw_host, void (*)(tw_host*)> ConfinedHost(const tw_host* host, FileSystem* files) {
  auto* t = new HostTable(Of(host));
  t->files = files;
  return {&t->c, [](tw_host* h) { delete reinterpret_cast<HostTable*>(h); }};
}

FileSystem& FilesOf(const tw_host* host) {
  if (FileSystem* files = Of(host).files) return *files;
  auto* runtime = static_cast<Runtime*>(host->self);
  return runtime ? runtime->files() : LocalFiles();
}

}  // namespace thalweg
