// AddN and ZerosLike for variants, which gradients use, and the addition of lists of tensors.
#include "kernels/common/arithmetic.h"
#include "kernels/common/copy.h"
#include "kernels/common/parallel.h"
#include "kernels/common/types.h"
#include "kernels/register.h"
#include "kernels/tensor_list.h"

namespace thalweg::cpu {
namespace {

template <class T>
T Sum(T x, T y) {
  if constexpr (kIsSmallFloat<T>)
    return T(float(x) + float(y));
  else if constexpr (std::is_integral_v<T>)
    return Plus(x, y);
  else
    return x + y;
}

template <class T>
void AddElements(const tw_frame* f, const tw_view* x, const tw_view* y, const tw_view* z) {
  const auto *a = reinterpret_cast<const T*>(Bytes(x)), *b = reinterpret_cast<const T*>(Bytes(y));
  auto* to = reinterpret_cast<T*>(Bytes(z));
  ParallelFor(f, int64_t(z->count), 1, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = Sum(a[i], b[i]);
  });
}

void AddVariants(const tw_frame* f, const tw_view* x, const tw_view* y, const tw_view* z) {
  for (uint64_t i = 0; i < x->count; ++i) tw::check(tw::variants(f->host).add(f, x, y, z, i));
}

void AddTensors(const tw_frame* f, const tw_view* x, const tw_view* y, const tw_view* z) {
  switch (x->dtype) {
    case TW_FLOAT: return AddElements<float>(f, x, y, z);
    case TW_DOUBLE: return AddElements<double>(f, x, y, z);
    case TW_HALF: return AddElements<half>(f, x, y, z);
    case TW_BFLOAT16: return AddElements<bfloat16>(f, x, y, z);
    case TW_COMPLEX64: return AddElements<complex64>(f, x, y, z);
    case TW_COMPLEX128: return AddElements<complex128>(f, x, y, z);
    case TW_INT8: return AddElements<int8_t>(f, x, y, z);
    case TW_INT16: return AddElements<int16_t>(f, x, y, z);
    case TW_INT32: return AddElements<int32_t>(f, x, y, z);
    case TW_INT64: return AddElements<int64_t>(f, x, y, z);
    case TW_UINT8: return AddElements<uint8_t>(f, x, y, z);
    case TW_UINT16: return AddElements<uint16_t>(f, x, y, z);
    case TW_UINT32: return AddElements<uint32_t>(f, x, y, z);
    case TW_UINT64: return AddElements<uint64_t>(f, x, y, z);
    case TW_VARIANT: return AddVariants(f, x, y, z);
    default: throw tw::Error{TW_UNIMPLEMENTED, "lists of " + TypeText(x->dtype) + " have no sum"};
  }
}

void ZeroVariants(const tw_frame* f, const tw_view* x, const tw_view* y) {
  for (uint64_t i = 0; i < x->count; ++i) tw::check(tw::variants(f->host).zeros(f, x, y, i));
}

void ZerosLike(tw::Frame f, tw::In<tw::Any> x, tw::Out<tw::Any> y) { ZeroVariants(f.f, x.v, y.v()); }

void AddN(tw::Frame f, tw::Many<tw::Any> inputs, tw::Out<tw::Any> sum) {
  for (uint32_t k = 1; k < inputs.size(); ++k)
    if (!SameDims(inputs[k].v, inputs[0].v))
      Invalid("input " + std::to_string(k) + " is " + DimsText(inputs[k].v) + ", not " + DimsText(inputs[0].v));
  tw::check(tw::variants(f.f->host).copy(f.f->host, inputs[0].v, 0, sum.v(), 0, sum.size()));
  for (uint32_t k = 1; k < inputs.size(); ++k) AddVariants(f.f, sum.v(), inputs[k].v, sum.v());
}

}  // namespace

Kept SumOf(const tw_frame* f, const tw_view* x, const tw_view* y) {
  Kept z = NewTensor(f, x->dtype, x->dims, x->rank);
  AddTensors(f, x, y, z.view());
  return z;
}

Kept ZerosOf(const tw_frame* f, const tw_view* like) {
  Kept z = NewTensor(f, like->dtype, like->dims, like->rank);
  if (like->dtype == TW_VARIANT)
    ZeroVariants(f, like, z.view());
  else
    FillZero(f, z.view());
  return z;
}

TensorList TensorList::plus(const tw_frame* f, const TensorList& o) const {
  if (dtype != o.dtype) Invalid("a list of " + TypeText(dtype) + " and one of " + TypeText(o.dtype) + " have no sum");
  if (elements.size() != o.elements.size())
    Invalid("lists of " + std::to_string(elements.size()) + " and " + std::to_string(o.elements.size()) + " elements have no sum");
  TensorList sum;
  sum.dtype = dtype;
  sum.shape = Known(o.shape);
  for (size_t k = 0; k < elements.size(); ++k) {
    const Kept &x = elements[k], &y = o.elements[k];
    if (!x || !y) {
      sum.elements.push_back(x ? x : y);
      continue;
    }
    if (!SameDims(x.view(), y.view()))
      Invalid("elements " + std::to_string(k) + " of two lists are " + DimsText(x.view()) + " and " + DimsText(y.view()) +
              ": they have no sum");
    sum.elements.push_back(SumOf(f, OnHost(f, x).view(), OnHost(f, y).view()));
  }
  return sum;
}

TensorList TensorList::zeros(const tw_frame* f) const {
  TensorList zero;
  zero.dtype = dtype;
  zero.shape = shape;
  zero.elements.resize(elements.size());
  for (size_t k = 0; k < elements.size(); ++k) {
    if (elements[k]) zero.elements[k] = ZerosOf(f, elements[k].view());
  }
  return zero;
}

void register_variant(tw::Plugin& p) {
  p.kernel<AddN>("AddN(variant -> variant) @CPU");
  p.kernel<ZerosLike>("ZerosLike(variant -> variant) @CPU; priority 1");
}

}  // namespace thalweg::cpu
