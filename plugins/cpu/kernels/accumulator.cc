// Conditional accumulators. A call that takes a mean waits at the resource until enough gradients
// have arrived. Waiting calls are served in order.
#include "kernels/accumulator.h"

#include <algorithm>

#include "kernels/register.h"
#include "kernels/same_resource.h"

namespace thalweg::cpu {

AccumulatorOptions::AccumulatorOptions(const tw::Node& n, bool of_rows)
    : sparse(of_rows), dtype(n.type("dtype")), mean(n.s("reduction_type") == "MEAN") {
  const tw_shape& s = n.shape("shape");
  ranked = s.rank >= 0;
  if (ranked) dims.assign(s.dims, s.dims + s.rank);
}

void AccumulatorOptions::CheckSame(const AccumulatorOptions& asked, const std::string& name) const {
  const std::string title = "accumulator '" + name + "' is there already and ";
  if (asked.sparse != sparse)
    Invalid(title + "is " + (sparse ? "sparse" : "dense") + ", but was asked for as " + (sparse ? "dense" : "sparse"));
  if (asked.dtype != dtype) Invalid(title + "is of " + TypeText(dtype) + ", not " + TypeText(asked.dtype));
  if (asked.ranked == ranked && asked.dims == dims) return;
  const auto text = [](const AccumulatorOptions& o) { return tw::text(o.dims.data(), o.ranked ? int32_t(o.dims.size()) : -1); };
  Invalid(title + "has shape " + text(*this) + ", not " + text(asked));
}

void Accumulator::Check(uint32_t wanted, bool of_rows) const {
  if (options.sparse != of_rows) {
    Invalid(std::string("the accumulator is ") + (options.sparse ? "sparse: use the SparseAccumulator ops" : "dense: use the other ops"));
  }
  if (options.dtype != wanted) Invalid("the accumulator is of " + TypeText(options.dtype) + ", not " + TypeText(wanted));
}

template <bool kSparse>
AccumulatorHandle<kSparse>::AccumulatorHandle(const tw::Node& n)
    : options_(n, kSparse), container_(n.s("container")), name_(n.s("shared_name").empty() ? n.name() : n.s("shared_name")) {}

template <bool kSparse>
void AccumulatorHandle<kSparse>::operator()(tw::Frame f, tw::Out<tw::Any> handle) const {
  OpenSame<Accumulator>(f, ResourceKey(kAccumulatorType, container_, name_), handle.o, options_,
                        [&](const Accumulator& a) { a.options.CheckSame(options_, name_); });
}

template class AccumulatorHandle<false>;
template class AccumulatorHandle<true>;

bool HasEnough(tw::Frame f, const Accumulator& a, tw::In<int32_t> num_required) {
  if (num_required[0] < 1) Invalid("num_required is " + std::to_string(num_required[0]) + ", but must be at least 1");
  if (f.waiting(0, 0) == 0 && a.count >= num_required[0]) return true;
  f.wait(0, 0, 0);
  return false;
}

namespace {

bool Fits(const std::vector<int64_t>& want, const tw_view* v) {
  if (int32_t(want.size()) != v->rank) return false;
  return std::equal(want.begin(), want.end(), v->dims, [](int64_t w, int64_t is) { return w < 0 || w == is; });
}

// Throws unless the gradient's shape fits the accumulator's shape and that of the gradients it has
// received.
void CheckShape(const Accumulator& a, const tw_view* gradient) {
  const bool first = a.count == 0;
  if ((a.options.ranked && !Fits(a.options.dims, gradient)) || (!first && !Fits(a.dims, gradient))) {
    const std::vector<int64_t>& want = first ? a.options.dims : a.dims;
    Invalid("gradient has shape " + DimsText(gradient) + ", but the accumulator has " + tw::text(want.data(), int32_t(want.size())));
  }
}

template <class T>
void Apply(tw::Frame f, tw::Var<tw::Any> handle, tw::In<int64_t> local_step, tw::In<T> gradient) {
  Accumulator& a = AccumulatorAt(handle);
  a.Check(gradient.v->dtype, false);
  if (local_step[0] < a.step) return;
  CheckShape(a, gradient.v);
  a.held.set(f, std::max<uint64_t>(a.dense.values.capacity(), gradient.size() * sizeof(T)));
  if (a.count == 0) a.dims.assign(gradient.dims(), gradient.dims() + gradient.rank());
  a.dense.Add(gradient.data(), gradient.size(), a.options.mean);
  ++a.count;
}

template <class T>
void Take(tw::Frame f, tw::Var<tw::Any> handle, tw::In<int32_t> num_required, tw::Out<T> average) {
  Accumulator& a = AccumulatorAt(handle);
  a.Check(average.v()->dtype, false);
  if (!HasEnough(f, a, num_required)) return;
  Allocate(average, a.dims.data(), int(a.dims.size()));
  a.dense.Get(a.options.mean, average.data());
  a.Begin();
  f.complete();
}

void NumAccumulated(tw::Var<tw::Any> handle, tw::Out<int32_t> count) { count[0] = int32_t(AccumulatorAt(handle).count); }
void SetGlobalStep(tw::Var<tw::Any> handle, tw::In<int64_t> step) { AccumulatorAt(handle).step = step[0]; }

}  // namespace

void register_accumulator(tw::Plugin& p) {
  p.resource({TW_SIZED(tw_resource_def), TW_S(kAccumulatorType), 1, nullptr,
              [](const tw_host*, void* a) { delete static_cast<Accumulator*>(a); }, nullptr, nullptr});
  p.kernel<AccumulatorHandle<false>>("ResourceConditionalAccumulator @CPU");
  p.kernel<Apply<half>, Apply<bfloat16>, Apply<float>, Apply<double>>("ResourceAccumulatorApplyGradient @CPU; update handle");
  p.kernel<Take<half>, Take<bfloat16>, Take<float>, Take<double>>(
      "ResourceAccumulatorTakeGradient @CPU; async; update handle; nondeterministic");
  p.kernel<NumAccumulated>("ResourceAccumulatorNumAccumulated @CPU; read handle");
  p.kernel<SetGlobalStep>("ResourceAccumulatorSetGlobalStep @CPU; update handle");
}

}  // namespace thalweg::cpu
