// Relu and ReluGrad of float tensors. See relu.cl.
#include "kernels/map.h"
#include "kernels/register.h"

namespace thalweg::opencl {
namespace {

class Relu {
 public:
  explicit Relu(const tw::Node& n) : map_(n, "relu") {}
  void operator()(tw::In<float> x, tw::Out<float> y, tw::Frame frame) const { map_.Run(frame.f, y.size(), x.v, y.v()); }

 private:
  Map map_;
};

class ReluGrad {
 public:
  explicit ReluGrad(const tw::Node& n) : map_(n, "relu_grad") {}
  void operator()(tw::In<float> dy, tw::In<float> x, tw::Out<float> dx, tw::Frame frame) const {
    map_.Run(frame.f, dx.size(), dy.v, x.v, dx.v());
  }

 private:
  Map map_;
};

}  // namespace

void register_relu(tw::Plugin& p) {
  p.kernel<Relu>("Relu @OPENCL; inplace activations=features");
  p.kernel<ReluGrad>("ReluGrad @OPENCL; inplace backprops=gradients");
}

}  // namespace thalweg::opencl
