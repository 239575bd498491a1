#include "kernels/plans.h"

#include <algorithm>

namespace thalweg::onednn {
bool MultipliesBfloat16() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

// With few result channels the library's code leaves most lanes idle. Two kinds of float gradients
// are as fast without the library: gradients that are plain products, and gradients of filters over
// few points that are not cut by channels. The library would have to transpose the filter.
bool Pays(const Sizes& s, Pass pass, dnnl_data_type_t type, const Library& library) {
  double points = double(s.batch), taps = 1;
  for (const cpu::WindowAxis& a : s.axes) {
    points *= a.in > 0 ? double(a.out) : 0;
    taps *= double(a.window);
  }
  const double work = points * taps * double(s.in / s.groups) * double(s.out);
  if (work < std::max(1.0, library.least_work()) || s.groups > 1 || s.out < 16) return false;
  if (type != dnnl_f32 || library.least_work() <= 1) return true;
  return !(pass == Pass::kInput && taps == 1) && !(pass == Pass::kFilter && points < 1024 && s.out < 128);
}

std::shared_ptr<const Convolution> Plans::Of(const Sizes& sizes) const {
  const Api* api = Pays(sizes, pass_, type_, library_) ? library_.Open() : nullptr;
  if (!api) return nullptr;
  return latest_.Of(sizes, [&] { return MakeConvolution(*api, sizes, pass_, type_); });
}

}  // namespace thalweg::onednn
