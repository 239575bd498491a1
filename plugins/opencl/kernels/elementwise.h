// A function that computes element by element, with inputs that broadcast. What it computes is written in C, see
// plugins/common/device/elementwise_text.h.
#ifndef THALWEG_PLUGINS_OPENCL_KERNELS_ELEMENTWISE_H_
#define THALWEG_PLUGINS_OPENCL_KERNELS_ELEMENTWISE_H_

#include "kernels/layout.h"

namespace thalweg::opencl {

// An input: where it lies and how far apart its neighbours along each axis of the result are; along the innermost one 1 or 0.
struct Operand {
  Place at;
  Dims steps;
};
inline Operand Broadcast(const tw_view* v, const Dims& to) { return {At(v), BroadcastSteps(DimsOf(v), to)}; }

// `value`, a name of element type `from`, as one of type `to`, in C. truncate: without the bits that the result has no room for.
std::string CastText(uint32_t from, uint32_t to, const std::string& value, bool truncate);

class Elementwise {
 public:
  // Element types of inputs and outputs; functions: what the statements call; statements: y0 = ..., of x0, x1, ...
  Elementwise(const tw::Node& n, const std::vector<uint32_t>& in, const std::vector<uint32_t>& out, const std::string& functions,
              const std::string& statements)
      : Elementwise(n.host(), *static_cast<Device*>(n.node->device), in, out, functions, statements) {}
  Elementwise(const tw_host* host, Device& device, const std::vector<uint32_t>& in, const std::vector<uint32_t>& out,
              const std::string& functions, const std::string& statements);

  // y[k] = ... for all elements of `dims`; outputs are dense.
  void Run(const tw_frame* f, const Dims& dims, const std::vector<Operand>& in, const std::vector<Place>& out) const;
  Device& device() const { return kernel_.device(); }

 private:
  Kernel kernel_;
};

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_KERNELS_ELEMENTWISE_H_
