#include "framework/runtime/state/variant.h"

#include <string>
#include <string_view>

#include "framework/base/dtype.h"
#include "framework/runtime/devices/carrier.h"
#include "framework/runtime/step/frame.h"
#include "framework/tensor/memory_budget.h"

namespace thalweg {

Variant::Variant(const tw_variant_type* type, void* object, const tw_host* host, std::shared_ptr<const void> plugin, MemoryBudget* budget,
                 uint64_t bytes)
    : type_(type), object_(object), host_(host), plugin_(std::move(plugin)), budget_(budget), bytes_(bytes) {
  if (budget_) budget_->Retain();
}

Variant::~Variant() {
  if (object_) type_->destroy(host_, object_);
  if (!budget_) return;
  budget_->Give(bytes_);
  budget_->Release();
}

namespace {

std::string_view NameOf(const tw_variant_type* t) { return {t->name, t->name_len}; }

// Returns elements [i, i + n) of a view.
StatusOr<Handle**> Elements(const tw_view* v, uint64_t i, uint64_t n) {
  const uint32_t dtype = BaseType(v->dtype);
  if (dtype != TW_VARIANT && dtype != TW_RESOURCE) return InvalidArgument("a tensor of ", DTypeName(v->dtype), " refers to no objects");
  if (v->rank < 0 || i > v->count || n > v->count - i) {
    return InvalidArgument("elements ", i, " to ", i + n, " are not in a tensor of ", v->rank < 0 ? 0 : v->count);
  }
  return reinterpret_cast<Handle**>(static_cast<char*>(v->data) + v->offset) + i;
}

StatusOr<Handle**> VariantElement(const tw_view* v, uint64_t i) {
  if (BaseType(v->dtype) != TW_VARIANT) return InvalidArgument("a tensor of ", DTypeName(v->dtype), " holds no variants");
  return Elements(v, i, 1);
}

// Stores a handle in the element; takes over the reference.
void Put(Handle** element, Handle* h) {
  if (Handle* old = std::exchange(*element, h)) old->Release();
}

Handle* Retained(Handle* h) {
  if (h) h->Retain();
  return h;
}

// Makes the object the element's. On failure the caller keeps the object.
Status MakeAt(const KernelFrame& f, Handle** element, const tw_variant_type* type, void* object, uint64_t bytes) {
  MemoryBudget* budget = f.step->budget;
  if (budget) RETURN_IF_ERROR(budget->Take(bytes));
  Variant* made = new (std::nothrow) Variant(type, object, f.run->kernel->host, f.run->kernel->in_plans.lock(), budget, bytes);
  if (!made) {
    if (budget) budget->Give(bytes);
    return ResourceExhausted("out of host memory");
  }
  Put(element, made);
  return Status();
}

tw_status* Make(const tw_frame* frame, const tw_view* to, uint64_t i, const tw_variant_type* type, void* object, uint64_t bytes) {
  return Guard([&]() -> Status {
    ASSIGN_OR_RETURN(Handle * *element, VariantElement(to, i));
    return MakeAt(*KernelFrame::Of(frame), element, type, object, bytes);
  });
}

tw_status* Get(const tw_host*, const tw_view* v, uint64_t i, const tw_variant_type* type, const void** out) {
  return Guard([&]() -> Status {
    ASSIGN_OR_RETURN(Handle * *element, VariantElement(v, i));
    if (!*element) return InvalidArgument("a variant is empty, but must be a ", NameOf(type));
    const auto* variant = static_cast<const Variant*>(*element);
    if (variant->type() != type) {
      const bool same_name = NameOf(variant->type()) == NameOf(type);
      return InvalidArgument("a variant is a ", NameOf(variant->type()), same_name ? " of another plugin" : "", ", not a ", NameOf(type));
    }
    *out = variant->object();
    return Status();
  });
}

void* Own(const tw_frame* frame, uint32_t in, uint64_t i, const tw_variant_type* type) {
  const KernelFrame& f = *KernelFrame::Of(frame);
  if (in >= f.c.n_in) return nullptr;
  const Slot* slot = f.in(in);
  if (BaseType(slot->view.dtype) != TW_VARIANT || i >= slot->view.count) return nullptr;
  if (!f.step->IsLastReader(slot) || !slot->held.unique()) return nullptr;
  for (uint32_t k = 0; k < f.c.n_in; ++k) {
    if (k != in && f.in(k) == slot) return nullptr;
  }
  Handle*& element = slot->held.as<Handle*>()[i];
  auto* variant = static_cast<Variant*>(element);
  if (!variant || variant->type() != type || variant->refs() != 1) return nullptr;
  element = nullptr;
  void* object = variant->Take();
  variant->Release();
  return object;
}

tw_status* Copy(const tw_host*, const tw_view* from, uint64_t a, const tw_view* to, uint64_t b, uint64_t n) {
  return Guard([&]() -> Status {
    if (BaseType(from->dtype) != BaseType(to->dtype)) {
      return InvalidArgument("elements of ", DTypeName(from->dtype), " cannot become those of a tensor of ", DTypeName(to->dtype));
    }
    ASSIGN_OR_RETURN(Handle * *source, Elements(from, a, n));
    ASSIGN_OR_RETURN(Handle * *target, Elements(to, b, n));
    for (uint64_t k = 0; k < n; ++k) Put(target + k, Retained(source[k]));
    return Status();
  });
}

tw_status* Add(const tw_frame* frame, const tw_view* x, const tw_view* y, const tw_view* to, uint64_t i) {
  return Guard([&]() -> Status {
    ASSIGN_OR_RETURN(Handle * *a, VariantElement(x, i));
    ASSIGN_OR_RETURN(Handle * *b, VariantElement(y, i));
    ASSIGN_OR_RETURN(Handle * *sum, VariantElement(to, i));
    if (!*a || !*b) {
      Put(sum, Retained(*a ? *a : *b));
      return Status();
    }
    const auto *left = static_cast<const Variant*>(*a), *right = static_cast<const Variant*>(*b);
    const tw_variant_type* type = left->type();
    if (type != right->type()) return InvalidArgument("a ", NameOf(type), " and a ", NameOf(right->type()), " have no sum");
    if (!TW_HAS(type, add) || !type->add) return Unimplemented("variants of type ", NameOf(type), " have no sum");
    void* object = nullptr;
    uint64_t bytes = 0;
    RETURN_IF_ERROR(FromC(type->add(frame, left->object(), right->object(), &object, &bytes)));
    Status s = MakeAt(*KernelFrame::Of(frame), sum, type, object, bytes);
    if (!s.ok()) type->destroy(frame->host, object);
    return s;
  });
}

tw_status* Zeros(const tw_frame* frame, const tw_view* x, const tw_view* to, uint64_t i) {
  return Guard([&]() -> Status {
    ASSIGN_OR_RETURN(Handle * *a, VariantElement(x, i));
    ASSIGN_OR_RETURN(Handle * *zero, VariantElement(to, i));
    if (!*a) {
      Put(zero, nullptr);
      return Status();
    }
    const auto* like = static_cast<const Variant*>(*a);
    const tw_variant_type* type = like->type();
    if (!TW_HAS(type, zeros) || !type->zeros) return Unimplemented("variants of type ", NameOf(type), " have no zero");
    void* object = nullptr;
    uint64_t bytes = 0;
    RETURN_IF_ERROR(FromC(type->zeros(frame, like->object(), &object, &bytes)));
    Status s = MakeAt(*KernelFrame::Of(frame), zero, type, object, bytes);
    if (!s.ok()) type->destroy(frame->host, object);
    return s;
  });
}

tw_status* MakeTensor(const tw_frame* frame, uint32_t dtype, const int64_t* dims, uint32_t rank, tw_tensor** out) {
  return Guard([&]() -> Status {
    if (rank > uint32_t(kMaxRank)) return InvalidArgument("rank ", rank, " is more than ", kMaxRank);
    ASSIGN_OR_RETURN(Tensor t, Tensor::Make(dtype, dims, int32_t(rank), nullptr, KernelFrame::Of(frame)->step->budget));
    *out = t.release();
    return Status();
  });
}

// ---- Tensors that objects hold ----

tw_status* PutAway(const tw_frame* frame, uint32_t in, tw_tensor** out) {
  return Guard([&]() -> Status {
    tw_tensor* kept = nullptr;
    RETURN_IF_ERROR(FromC(frame->host->tensor->keep(frame, in, &kept)));
    Tensor t = Tensor::Adopt(kept);
    if (Carrier* carrier = KernelFrame::Of(frame)->step->carrier()) {
      ASSIGN_OR_RETURN(t, carrier->PutAway(t));
    }
    *out = t.release();
    return Status();
  });
}

tw_status* Bring(const tw_frame* frame, uint32_t o, tw_tensor* t, tw_tensor** out) {
  return Guard([&]() -> Status {
    const KernelFrame& f = *KernelFrame::Of(frame);
    Tensor brought = Tensor::Share(t);
    Carrier* carrier = f.step->carrier();
    if (carrier && o < f.run->lands.size()) {
      ASSIGN_OR_RETURN(brought, carrier->Bring(f.run->lands[o], brought));
    }
    *out = brought.release();
    return Status();
  });
}

tw_status* ToHost(const tw_frame* frame, tw_tensor* t, tw_tensor** out) {
  return Guard([&]() -> Status {
    Tensor here = Tensor::Share(t);
    QueueMark mark;
    if (Carrier* carrier = KernelFrame::Of(frame)->step->carrier()) {
      ASSIGN_OR_RETURN(here, carrier->To(nullptr, here, &mark));
    } else if (Device* device = HoldingDevice(*t)) {
      ASSIGN_OR_RETURN(here, device->ToHost(here));
    }
    *out = here.release();
    return Status();
  });
}

constexpr tw_variant_api kApi = {TW_SIZED(tw_variant_api), Make, Get, Own, Copy, Add, Zeros, MakeTensor, PutAway, Bring, ToHost};

}  // namespace

const tw_variant_api* VariantSet() { return &kApi; }

}  // namespace thalweg
