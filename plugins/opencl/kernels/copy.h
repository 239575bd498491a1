// Copies elements unchanged, for any element type.
#ifndef THALWEG_PLUGINS_OPENCL_KERNELS_COPY_H_
#define THALWEG_PLUGINS_OPENCL_KERNELS_COPY_H_

#include "kernels/layout.h"

namespace thalweg::opencl {

// Returns a type of the same size, in which the kernels copy the elements.
const char* MovedAs(uint32_t dtype);

class Copy {
 public:
  Copy(const tw::Node& n, uint32_t dtype) : Copy(n.host(), *static_cast<Device*>(n.node->device), dtype) {}
  Copy(const tw_host* host, Device& device, uint32_t dtype)
      : copy_(host, device, ProgramText({{"T", MovedAs(dtype)}}, {"copy.h"}), "copy") {}

  // y[...] = x[...] over these axes.
  void Run(const tw_frame* f, const Dims& dims, Place x, const Dims& x_steps, Place y, const Dims& y_steps) const {
    const Layout l(dims, {x_steps, y_steps});
    const Size n = Count(dims);
    copy_.RunTasks(f, n, Size(1), x, y, n, l.inner, l.by[0], l.by[1], l.axes, l.steps[0], l.steps[1]);
  }
  void Dense(const tw_frame* f, Size count, Place x, Place y) const { Run(f, {count}, x, {1}, y, {1}); }
  // Sets every element to *value.
  void Fill(const tw_frame* f, Size count, Place value, Place y) const { Run(f, {count}, value, {0}, y, {1}); }
  void Zero(const tw_frame* f, Size count, Place y) const {
    const Temporary zero(copy_.device(), std::vector<uint64_t>(2, 0));
    Fill(f, count, zero.place(), y);
  }
  Device& device() const { return copy_.device(); }

 private:
  Kernel copy_;
};

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_KERNELS_COPY_H_
