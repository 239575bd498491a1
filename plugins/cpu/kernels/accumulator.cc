// Conditional accumulators. Whoever takes waits at the resource until enough is there, each in its turn.
#include <algorithm>
#include <cstring>
#include <memory>

#include "kernels/common/element.h"
#include "kernels/common/types.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

constexpr char kType[] = "org.thalweg.accumulator";

struct Options {
  explicit Options(const tw::Node& n) : dtype(n.type("dtype")), mean(n.s("reduction_type") == "MEAN") {
    const tw_shape& s = n.shape("shape");
    ranked = s.rank >= 0;
    if (ranked) dims.assign(s.dims, s.dims + s.rank);
  }
  uint32_t dtype;
  bool mean, ranked;
  std::vector<int64_t> dims;  // -1: any size
};

struct Accumulator {
  const Options options;
  std::vector<int64_t> dims;       // of the sum
  std::vector<unsigned char> sum;  // elements of options.dtype
  int64_t count = 0, step = 0;
};
Accumulator& At(const tw::Var<tw::Any>& handle) { return *static_cast<Accumulator*>(handle.handle()); }

class Handle {
 public:
  explicit Handle(const tw::Node& n) : options_(n), container_(n.s("container")), name_(n.s("shared_name")) {
    if (name_.empty()) name_ = n.name();
  }
  void operator()(tw::Frame f, tw::Out<tw::Any> handle) const {
    const tw_resource_key key{TW_SIZED(tw_resource_key), TW_S(kType), container_.data(), container_.size(), name_.data(), name_.size()};
    const auto make = [](const tw_host* h, void* options, void** out) {
      return tw::guard(h, [&] { *out = new Accumulator{*static_cast<const Options*>(options), {}, {}}; });
    };
    tw::check(f.f->host->resource->open(f.f, &key, make, const_cast<Options*>(&options_), handle.o));
  }

 private:
  const Options options_;
  std::string container_, name_;
};

void CheckType(const Accumulator& a, uint32_t dtype) {
  if (a.options.dtype != dtype) Invalid("the accumulator is of " + TypeText(a.options.dtype) + ", not " + TypeText(dtype));
}

bool Fits(const std::vector<int64_t>& want, const tw_view* v) {
  if (int32_t(want.size()) != v->rank) return false;
  return std::equal(want.begin(), want.end(), v->dims, [](int64_t w, int64_t is) { return w < 0 || w == is; });
}

// What has the accumulator's shape, and that of the gradients that are there.
void CheckShape(const Accumulator& a, const tw_view* gradient) {
  const bool first = a.count == 0;
  if ((a.options.ranked && !Fits(a.options.dims, gradient)) || (!first && !Fits(a.dims, gradient))) {
    const std::vector<int64_t>& want = first ? a.options.dims : a.dims;
    Invalid("gradient has shape " + DimsText(gradient) + ", but the accumulator has " + tw::text(want.data(), int32_t(want.size())));
  }
}

template <class T>
void Apply(tw::Var<tw::Any> handle, tw::In<int64_t> local_step, tw::In<T> gradient) {
  Accumulator& a = At(handle);
  CheckType(a, gradient.v->dtype);
  if (local_step[0] < a.step) return;
  CheckShape(a, gradient.v);
  const uint64_t bytes = gradient.size() * sizeof(T);
  if (a.count == 0) {
    a.dims.assign(gradient.dims(), gradient.dims() + gradient.rank());
    a.sum.resize(bytes);
    if (bytes) std::memcpy(a.sum.data(), gradient.data(), bytes);
  } else {
    T* sum = reinterpret_cast<T*>(a.sum.data());
    for (uint64_t i = 0; i < gradient.size(); ++i) sum[i] = T(Wide<T>(sum[i]) + Wide<T>(gradient[i]));
  }
  ++a.count;
}

template <class T>
void Take(tw::Frame f, tw::Var<tw::Any> handle, tw::In<int32_t> num_required, tw::Out<T> average) {
  Accumulator& a = At(handle);
  CheckType(a, average.v()->dtype);
  if (num_required[0] < 1) Invalid("num_required is " + std::to_string(num_required[0]) + ", but must be at least 1");
  if (f.waiting(0, 0) > 0 || a.count < num_required[0]) return f.wait(0, 0, 0);
  Allocate(average, a.dims.data(), int(a.dims.size()));
  const T* sum = reinterpret_cast<const T*>(a.sum.data());
  const Wide<T> parts = a.options.mean ? Wide<T>(T(float(a.count))) : Wide<T>(1);
  for (uint64_t i = 0; i < average.size(); ++i) average[i] = a.options.mean ? T(Wide<T>(sum[i]) / parts) : sum[i];
  a.count = 0;
  ++a.step;
  f.complete();
}

void NumAccumulated(tw::Var<tw::Any> handle, tw::Out<int32_t> count) { count[0] = int32_t(At(handle).count); }
void SetGlobalStep(tw::Var<tw::Any> handle, tw::In<int64_t> step) { At(handle).step = step[0]; }

}  // namespace

void register_accumulator(tw::Plugin& p) {
  p.resource({TW_SIZED(tw_resource_def), TW_S(kType), 1, nullptr, [](const tw_host*, void* a) { delete static_cast<Accumulator*>(a); },
              nullptr, nullptr});
  p.kernel<Handle>("ResourceConditionalAccumulator @CPU");
  p.kernel<Apply<half>, Apply<bfloat16>, Apply<float>, Apply<double>>("ResourceAccumulatorApplyGradient @CPU; update handle");
  p.kernel<Take<half>, Take<bfloat16>, Take<float>, Take<double>>(
      "ResourceAccumulatorTakeGradient @CPU; async; update handle; nondeterministic");
  p.kernel<NumAccumulated>("ResourceAccumulatorNumAccumulated @CPU; read handle");
  p.kernel<SetGlobalStep>("ResourceAccumulatorSetGlobalStep @CPU; update handle");
}

}  // namespace thalweg::cpu
