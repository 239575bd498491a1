// An element-wise function with inputs that broadcast. Its statements are in C, see
// plugins/common/device/elementwise_text.h.
#ifndef THALWEG_PLUGINS_OPENCL_KERNELS_ELEMENTWISE_H_
#define THALWEG_PLUGINS_OPENCL_KERNELS_ELEMENTWISE_H_

#include "kernels/layout.h"

namespace thalweg::opencl {

// An input: its place, and the distance of neighbours along each axis of the result; along the
// innermost axis it is 1 or 0.
struct Operand {
  Place at;
  Dims steps;
};
inline Operand Broadcast(const tw_view* v, const Dims& to) { return {At(v), BroadcastSteps(DimsOf(v), to)}; }

// Returns C text that casts `value` from element type `from` to `to`. truncate: cut off the bits
// that do not fit, instead of rounding.
std::string CastText(uint32_t from, uint32_t to, const std::string& value, bool truncate);

class Elementwise {
 public:
  // in, out: element types. functions: C functions that the statements call. statements: y0 = ...,
  // of x0, x1, ...
  Elementwise(const tw::Node& n, const std::vector<uint32_t>& in, const std::vector<uint32_t>& out, const std::string& functions,
              const std::string& statements)
      : Elementwise(n.host(), *static_cast<Device*>(n.node->device), in, out, functions, statements) {}
  Elementwise(const tw_host* host, Device& device, const std::vector<uint32_t>& in, const std::vector<uint32_t>& out,
              const std::string& functions, const std::string& statements);

  // Computes y[k] = ... for all elements of `dims`; the outputs are dense.
  void Run(const tw_frame* f, const Dims& dims, const std::vector<Operand>& in, const std::vector<Place>& out) const;
  Device& device() const { return kernel_.device(); }

 private:
  Kernel kernel_;
};

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_KERNELS_ELEMENTWISE_H_
