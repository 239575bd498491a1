// Conv2D and its gradients, channels last, of float and, if the processor has instructions for it,
// bfloat16. If the library would not be faster, the CPU plugin's own kernels compute them.
#include "kernels/conv2d.h"

#include "kernels/conv2d_backprop.h"
#include "kernels/plans.h"
#include "register.h"

namespace thalweg::onednn {
namespace {

using cpu::bfloat16;
using cpu::ConvGeometry;
using cpu::ShapeOf;

Sizes SizesOf(const ConvGeometry& g) { return {g.batch, g.in_channels, g.out_channels, g.groups, false, {g.h, g.w}}; }

// Own: the CPU plugin's kernel. Its inputs x and y are those of the pass; `sizes` may be between
// them.
template <class T, class Own, Pass kPass>
class Kernel : public Own {
 public:
  Kernel(const tw::Node& n, const Library& library) : Own(n), plans_(library, kPass, kType<T>) {}

 protected:
  // Returns true if the library has computed the result.
  bool Run(const tw::Frame& frame, const ConvGeometry& g, const void* first, const void* second, void* to) const {
    if (g.format.channels_first) return false;
    const std::shared_ptr<const Convolution> plan = plans_.Of(SizesOf(g));
    if (!plan) return false;
    cpu::Workspace work(frame.f, plan->scratch());
    plan->Run(frame.f, first, second, {}, to, work.data());
    return true;
  }
  uint64_t Scratch(const ConvGeometry& g, uint64_t own) const {
    const std::shared_ptr<const Convolution> plan = g.format.channels_first ? nullptr : plans_.Of(SizesOf(g));
    return plan ? plan->scratch() : own;
  }

 private:
  Plans plans_;
};

template <class T>
class Conv2D : public Kernel<T, cpu::Conv2D<T>, Pass::kForward> {
  using Own = cpu::Conv2D<T>;

 public:
  using Kernel<T, Own, Pass::kForward>::Kernel;
  uint64_t scratch(const tw::Node& n) const {
    const tw_shape* s = n.node->shapes;
    return this->Scratch(ConvGeometryOf(this->attrs_, s[0], s[1], s[2]), Own::scratch(n));
  }
  void operator()(tw::Frame frame, tw::In<T> input, tw::In<T> filter, tw::Out<T> output) const {
    const ConvGeometry g = ConvGeometryOf(this->attrs_, ShapeOf(input), ShapeOf(filter), ShapeOf(output));
    if (!this->Run(frame, g, input.data(), filter.data(), output.data())) Own::operator()(frame, input, filter, output);
  }
};

template <class T>
class Conv2DBackpropInput : public Kernel<T, cpu::Conv2DBackpropInput<T>, Pass::kInput> {
  using Own = cpu::Conv2DBackpropInput<T>;

 public:
  using Kernel<T, Own, Pass::kInput>::Kernel;
  uint64_t scratch(const tw::Node& n) const {
    const tw_shape* s = n.node->shapes;
    return this->Scratch(ConvGeometryOf(this->attrs_, s[3], s[1], s[2]), Own::scratch(n));
  }
  void operator()(tw::Frame frame, tw::In<int32_t> sizes, tw::In<T> filter, tw::In<T> grad, tw::Out<T> output) const {
    const ConvGeometry g = ConvGeometryOf(this->attrs_, ShapeOf(output), ShapeOf(filter), ShapeOf(grad));
    if (!this->Run(frame, g, filter.data(), grad.data(), output.data())) Own::operator()(frame, sizes, filter, grad, output);
  }
};

template <class T>
class Conv2DBackpropFilter : public Kernel<T, cpu::Conv2DBackpropFilter<T>, Pass::kFilter> {
  using Own = cpu::Conv2DBackpropFilter<T>;

 public:
  using Kernel<T, Own, Pass::kFilter>::Kernel;
  uint64_t scratch(const tw::Node& n) const {
    const tw_shape* s = n.node->shapes;
    return this->Scratch(ConvGeometryOf(this->attrs_, s[0], s[3], s[2]), Own::scratch(n));
  }
  void operator()(tw::Frame frame, tw::In<T> input, tw::In<int32_t> sizes, tw::In<T> grad, tw::Out<T> output) const {
    const ConvGeometry g = ConvGeometryOf(this->attrs_, ShapeOf(input), ShapeOf(output), ShapeOf(grad));
    if (!this->Run(frame, g, input.data(), grad.data(), output.data())) Own::operator()(frame, input, sizes, grad, output);
  }
};

// The kernels do not compute other orders of axes.
constexpr char kOrder[] = "; ?prefers NHWC";

}  // namespace

void register_conv2d(tw::Plugin& p, const Library& library) {
  AddKernel<Conv2D<float>>(p, "Conv2D", library, kOrder);
  AddKernel<Conv2DBackpropInput<float>>(p, "Conv2DBackpropInput", library, kOrder);
  AddKernel<Conv2DBackpropFilter<float>>(p, "Conv2DBackpropFilter", library, kOrder);
  if (!MultipliesBfloat16()) return;
  AddKernel<Conv2D<bfloat16>>(p, "Conv2D", library, kOrder);
  AddKernel<Conv2DBackpropInput<bfloat16>>(p, "Conv2DBackpropInput", library, kOrder);
  AddKernel<Conv2DBackpropFilter<bfloat16>>(p, "Conv2DBackpropFilter", library, kOrder);
}

}  // namespace thalweg::onednn
