#include "dnn_values.h"

#include <algorithm>
#include <cmath>

namespace dnn_stub {

void ForEach(const Index& dims, const std::function<void(const Index&)>& body) {
  Index i(dims.size(), 0);
  for (int64_t d : dims)
    if (d == 0) return;
  for (;;) {
    body(i);
    size_t k = dims.size();
    while (k > 0 && ++i[k - 1] == dims[k - 1]) i[--k] = 0;
    if (k == 0) return;
  }
}

namespace {

// Calls body(index in images, in filter, in results) for every product.
void ForProducts(const Window& w, const Index& images, const Index& filter, const Index& results,
                 const std::function<void(const Index&, const Index&, const Index&)>& body) {
  ForEach(results, [&](const Index& r) {
    ForEach({filter[1], filter[2], filter[3]}, [&](const Index& f) {
      int64_t y, x;
      if (w.At(images, r[2], r[3], f[1], f[2], &y, &x)) body({r[0], f[0], y, x}, {r[1], f[0], f[1], f[2]}, r);
    });
  });
}

// i: the index of the result.
double Pointwise(const DnnStubOperation& o, const std::vector<const Value*>& in, const Index& i) {
  const double a = (*in[0])(i), b = in[1] ? (*in[1])(i) : 0;
  switch (o.mode) {
    case CUDNN_POINTWISE_ADD: return a + b;
    case CUDNN_POINTWISE_SUB: return a - b;
    case CUDNN_POINTWISE_MUL: return a * b;
    case CUDNN_POINTWISE_DIV: return a / b;
    case CUDNN_POINTWISE_EXP: return std::exp(a);
    case CUDNN_POINTWISE_LOG: return std::log(a);
    case CUDNN_POINTWISE_GEN_INDEX: return double(i[size_t(o.axis)]);
    case CUDNN_POINTWISE_CMP_GE: return a >= b;
    case CUDNN_POINTWISE_BINARY_SELECT: return (*in[2])(i) != 0 ? a : b;
    default: return a > 0 || a != a ? a : 0;
  }
}

class Computation {
 public:
  Computation(const DnnStubOperation& o, std::vector<const Value*> in, std::vector<Value*> out)
      : o_(o), in_(std::move(in)), out_(std::move(out)) {}

  void Run() {
    switch (o_.type) {
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        return ForProducts(Window(o_), in_[0]->dims, in_[1]->dims, out_[0]->dims,
                           [&](const Index& x, const Index& f, const Index& y) { (*out_[0])(y) += (*in_[0])(x) * (*in_[1])(f); });
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        return ForProducts(Window(o_), out_[0]->dims, in_[1]->dims, in_[0]->dims,
                           [&](const Index& x, const Index& f, const Index& y) { (*out_[0])(x) += (*in_[0])(y) * (*in_[1])(f); });
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        return ForProducts(Window(o_), in_[0]->dims, out_[0]->dims, in_[1]->dims,
                           [&](const Index& x, const Index& f, const Index& y) { (*out_[0])(f) += (*in_[0])(x) * (*in_[1])(y); });
      case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        return ForEach(out_[0]->dims, [&](const Index& i) { (*out_[0])(i) = Pointwise(o_, in_, i); });
      case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR: return Reduce();
      case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR: return Multiply();
      case CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR: return Pool();
      case CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR: return PoolBack();
      case CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR: return Normalise();
      default: return NormaliseBack();
    }
  }

 private:
  void Reduce() {
    const bool sum = o_.mode == CUDNN_REDUCE_TENSOR_ADD;
    if (!sum) std::fill(out_[0]->at.begin(), out_[0]->at.end(), -INFINITY);
    ForEach(in_[0]->dims, [&](const Index& i) {
      double &to = (*out_[0])(i), v = (*in_[0])(i);
      to = sum ? to + v : v > to || v != v ? v : to;
    });
  }
  void Multiply() {
    const int64_t depth = in_[0]->dims.back();
    ForEach(out_[0]->dims, [&](const Index& i) {
      Index a = i, b = i;
      for (int64_t k = 0; k < depth; ++k) {
        a[a.size() - 1] = k, b[b.size() - 2] = k;
        (*out_[0])(i) += (*in_[0])(a) * (*in_[1])(b);
      }
    });
  }
  // Calls body(index in images) for the places under window r.
  void ForTaps(const Index& images, const Index& r, const std::function<void(const Index&)>& body) const {
    const Window w(o_);
    for (int64_t a = 0; a < w.size(0); ++a)
      for (int64_t b = 0; b < w.size(1); ++b) {
        int64_t y, x;
        if (w.At(images, r[2], r[3], a, b, &y, &x)) body({r[0], r[1], y, x});
      }
  }
  void Pool() {
    ForEach(out_[0]->dims, [&](const Index& r) {
      double most = -INFINITY, sum = 0;
      int places = 0;
      ForTaps(in_[0]->dims, r, [&](const Index& i) {
        const double v = (*in_[0])(i);
        most = v > most || v != v ? v : most;
        sum += v;
        ++places;
      });
      (*out_[0])(r) = o_.mode == CUDNN_RESAMPLE_MAXPOOL ? most : sum / places;
    });
  }
  void PoolBack() {
    ForEach(in_[0]->dims, [&](const Index& r) {
      int places = 0;
      ForTaps(out_[0]->dims, r, [&](const Index&) { ++places; });
      ForTaps(out_[0]->dims, r, [&](const Index& i) { (*out_[0])(i) += (*in_[0])(r) / places; });
    });
  }
  double PerChannel() const { return double(in_[0]->at.size()) / double(in_[0]->dims[1]); }
  void Normalise() {
    const Value &x = *in_[0], &scale = *in_[1], &offset = *in_[2];
    Value &mean = *out_[0], &inverse = *out_[1], &y = *out_[2];
    ForEach(x.dims, [&](const Index& i) { mean(i) += x(i) / PerChannel(); });
    ForEach(x.dims, [&](const Index& i) { inverse(i) += (x(i) - mean(i)) * (x(i) - mean(i)) / PerChannel(); });
    for (double& v : inverse.at) v = 1 / std::sqrt(v + in_[3]->at[0]);
    ForEach(x.dims, [&](const Index& i) { y(i) = (x(i) - mean(i)) * inverse(i) * scale(i) + offset(i); });
  }
  void NormaliseBack() {
    const Value &x = *in_[0], &mean = *in_[1], &inverse = *in_[2], &dy = *in_[3], &scale = *in_[4];
    Value &d_scale = *out_[0], &d_offset = *out_[1], &dx = *out_[2];
    ForEach(x.dims, [&](const Index& i) {
      d_offset(i) += dy(i);
      d_scale(i) += dy(i) * (x(i) - mean(i)) * inverse(i);
    });
    ForEach(x.dims, [&](const Index& i) {
      const double shift = d_offset(i) / PerChannel(), tilt = (x(i) - mean(i)) * inverse(i) * d_scale(i) / PerChannel();
      dx(i) = scale(i) * inverse(i) * (dy(i) - shift - tilt);
    });
  }

  const DnnStubOperation& o_;
  const std::vector<const Value*> in_;
  const std::vector<Value*> out_;
};

}  // namespace

void Compute(const DnnStubOperation& o, const std::vector<const Value*>& in, const std::vector<Value*>& out) {
  Computation(o, in, out).Run();
}

}  // namespace dnn_stub
