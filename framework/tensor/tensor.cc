#include "framework/tensor/tensor.h"

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/tensor/memory_budget.h"
#include "framework/tensor/texts.h"

namespace thalweg {
namespace {

// Tensor headers are kept for reuse, so that a warm step makes no heap call. The list holds at most
// kKeep headers.
class HeaderPool {
 public:
  tw_tensor* Get() {
    {
      std::lock_guard lock(mu_);
      if (tw_tensor* t = head_) {
        head_ = t->next;
        --kept_;
        return t;
      }
    }
    return static_cast<tw_tensor*>(std::malloc(sizeof(tw_tensor)));
  }
  void Put(tw_tensor* t) {
    {
      std::lock_guard lock(mu_);
      if (kept_ < kKeep) {
        t->next = head_;
        head_ = t;
        ++kept_;
        return;
      }
    }
    std::free(t);
  }

 private:
  static constexpr uint32_t kKeep = 4096;
  std::mutex mu_;
  tw_tensor* head_ = nullptr;
  uint32_t kept_ = 0;
};

HeaderPool& Headers() {
  static HeaderPool* pool = new HeaderPool;  // never destroyed: tensors may be released at exit
  return *pool;
}

bool IsPlain(uint32_t dtype) {
  const DTypeInfo* info = FindDType(dtype);
  return info && info->plain;
}

void FreeElements(tw_tensor* t) {
  if (BaseType(t->view.dtype) == TW_STRING) {
    auto* s = static_cast<tw_string*>(t->view.data);
    Texts& texts = TextsOf(t);
    const uint64_t bytes = texts.bytes();
    texts.Free(s, t->view.count);
    if (t->buffer->budget) t->buffer->budget->Give(bytes);
  } else {
    auto* h = static_cast<Handle**>(t->view.data);
    for (uint64_t i = 0; i < t->view.count; ++i) {
      if (h[i]) h[i]->Release();
    }
  }
}

}  // namespace

Texts& TextsOf(tw_tensor* t) {
  const tw_view& owner = (t->strings_of ? t->strings_of : t)->view;
  return *reinterpret_cast<Texts*>(static_cast<char*>(owner.data) + owner.bytes);
}

void SetViewShape(tw_view* v, int64_t* storage, uint32_t dtype, const int64_t* dims, int32_t rank, uint64_t count, uint64_t bytes) {
  if (rank > 0) std::memmove(storage, dims, size_t(rank) * sizeof(int64_t));
  v->dims = rank > 0 ? storage : nullptr;
  v->strides = nullptr;
  v->rank = rank;
  v->dtype = dtype;
  v->count = count;
  v->bytes = bytes;
}

void RetainTensor(tw_tensor* t) { t->refs.fetch_add(1, std::memory_order_relaxed); }

void ReleaseTensor(tw_tensor* t) {
  if (!t || t->refs.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (t->strings_of) {
    ReleaseTensor(t->strings_of);
  } else if (!IsPlain(t->view.dtype) && t->view.data) {
    FreeElements(t);
  }
  if (t->charged) t->buffer->budget->GiveBuffer(t->charged);
  if (t->buffer) t->buffer->Release();
  std::free(t->heap_dims);
  Headers().Put(t);
}

Status SetString(tw_tensor* t, uint64_t i, std::string_view s) {
  if (BaseType(t->view.dtype) != TW_STRING) return InvalidArgument("a tensor of ", DTypeName(t->view.dtype), " holds no strings");
  if (i >= t->view.count) return InvalidArgument("string ", i, " is past the end of a tensor of ", t->view.count, " elements");
  auto& e = static_cast<tw_string*>(t->view.data)[i];
  return TextsOf(t).Set(&e, s, t->view.count, t->buffer->budget);
}

Tensor Tensor::Share(tw_tensor* t) {
  if (t) RetainTensor(t);
  return Adopt(t);
}
Tensor::Tensor(const Tensor& o) : t_(o.t_) {
  if (t_) RetainTensor(t_);
}
void Tensor::reset() { ReleaseTensor(std::exchange(t_, nullptr)); }

StatusOr<Tensor> Tensor::Wrap(Buffer* buffer, uint64_t offset, uint32_t dtype, const int64_t* dims, int32_t rank) {
  auto count = CountElements(dims, rank);
  auto bytes = count.ok() ? CountBytes(dims, rank, dtype) : count;
  tw_tensor* t = bytes.ok() && rank <= kMaxRank ? Headers().Get() : nullptr;
  int64_t* heap = nullptr;
  if (t && rank > kInlineRank && !(heap = static_cast<int64_t*>(std::malloc(size_t(rank) * sizeof(int64_t))))) {
    Headers().Put(t);
    t = nullptr;
  }
  if (!t) {
    if (buffer) buffer->Release();
    if (!bytes.ok()) return bytes.status();
    if (rank > kMaxRank) return InvalidArgument("rank ", rank, " is more than ", kMaxRank);
    return ResourceExhausted("out of host memory");
  }
  new (t) tw_tensor;
  t->heap_dims = heap;
  t->view.size = sizeof(tw_view);
  t->view.flags = 0;
  t->view.data = buffer ? buffer->data : nullptr;
  t->view.offset = offset;
  t->view.tensor = t;
  t->buffer = buffer;
  SetViewShape(&t->view, heap ? heap : t->inline_dims, dtype, dims, rank, uint64_t(*count), uint64_t(*bytes));
  return Adopt(t);
}

StatusOr<Tensor> Tensor::Make(uint32_t dtype, const int64_t* dims, int32_t rank, MemoryPool* pool, MemoryBudget* budget) {
  ASSIGN_OR_RETURN(int64_t bytes, CountBytes(dims, rank, dtype));
  const uint64_t all = uint64_t(bytes) + (BaseType(dtype) == TW_STRING ? sizeof(Texts) : 0);
  ASSIGN_OR_RETURN(Buffer * buffer, (pool ? pool : MemoryPool::Host())->Allocate(all, budget));
  if (!IsPlain(dtype)) std::memset(buffer->data, 0, size_t(all));
  return Wrap(buffer, 0, dtype, dims, rank);
}

// Returns a tensor that begins where this one does. Its record is charged: lists and queues may
// keep any number of such tensors of one buffer.
StatusOr<Tensor> Tensor::Sharing(uint32_t dtype, const int64_t* dims, int32_t rank) const {
  constexpr uint64_t kRecord = sizeof(tw_tensor) + 16;
  if (t_->buffer) t_->buffer->Retain();
  ASSIGN_OR_RETURN(Tensor out, Wrap(t_->buffer, t_->view.offset, dtype, dims, rank));
  if (t_->buffer && t_->buffer->budget) {
    RETURN_IF_ERROR(t_->buffer->budget->TakeBuffer(kRecord));
    out.t_->charged = kRecord;
  }
  out.t_->view.data = t_->view.data;
  if (!IsPlain(dtype)) {
    out.t_->strings_of = t_->strings_of ? t_->strings_of : t_;
    RetainTensor(out.t_->strings_of);
  }
  return out;
}

StatusOr<Tensor> Tensor::Reshape(const int64_t* dims, int32_t rank) const {
  ASSIGN_OR_RETURN(int64_t n, CountElements(dims, rank));
  if (uint64_t(n) != count()) {
    return InvalidArgument("a tensor of shape ", shape().text(), " cannot take the shape ", ShapeText(dims, rank));
  }
  return Sharing(dtype(), dims, rank);
}

StatusOr<Tensor> Tensor::Part(uint64_t bytes, uint32_t dtype, const int64_t* dims, int32_t rank, bool handle) const {
  ASSIGN_OR_RETURN(Tensor out, Sharing(dtype, dims, rank));
  tw_view& view = out.t_->view;
  if (handle) {
    view.offset += bytes;
  } else if (view.data) {
    view.data = static_cast<char*>(view.data) + bytes;  // in host memory, offsets are 0
  }
  return out;
}

StatusOr<Tensor> Tensor::Clone() const {
  ASSIGN_OR_RETURN(Tensor out, Make(dtype(), view().dims, rank()));
  if (IsPlain(dtype())) {
    if (bytes()) std::memcpy(out.data(), data(), bytes());
  } else if (BaseType(dtype()) == TW_STRING) {
    for (uint64_t i = 0; i < count(); ++i) RETURN_IF_ERROR(out.SetString(i, str(i)));
  } else {
    for (uint64_t i = 0; i < count(); ++i) {
      Handle* h = as<Handle*>()[i];
      if (h) h->Retain();
      out.as<Handle*>()[i] = h;
    }
  }
  return out;
}

bool IsShared(const tw_tensor& t) {
  return t.refs.load(std::memory_order_acquire) != 1 || (t.buffer && !t.buffer->Unique()) || t.strings_of;
}

bool Tensor::unique() const { return !IsShared(*t_) && !(t_->buffer && t_->buffer->read_only); }

Status Tensor::SetString(uint64_t i, std::string_view s) { return thalweg::SetString(t_, i, s); }

}  // namespace thalweg
