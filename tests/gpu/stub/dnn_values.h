// Computes one operation of a graph. Threads: any.
#pragma once
#include <functional>

#include "dnn_graph.h"

namespace dnn_stub {

using Index = std::vector<int64_t>;

struct Value {
  Index dims;
  std::vector<double> at;
  double& operator()(const Index& i) { return at[size_t(Place(i))]; }
  double operator()(const Index& i) const { return at[size_t(Place(i))]; }
  // Broadcasts along axes of size 1.
  int64_t Place(const Index& i) const {
    int64_t place = 0;
    for (size_t k = 0; k < dims.size(); ++k) place = place * dims[k] + (dims[k] == 1 ? 0 : i[k]);
    return place;
  }
};

void ForEach(const Index& dims, const std::function<void(const Index&)>& body);

// Windows along height and width.
struct Window {
  explicit Window(const DnnStubOperation& o) : w(o.window) {}
  int64_t size(size_t k) const { return w[k]; }
  int64_t stride(size_t k) const { return w[2 + k]; }
  int64_t dilation(size_t k) const { return w[4 + k]; }
  int64_t before(size_t k) const { return w[6 + k]; }
  int64_t after(size_t k) const { return w[8 + k]; }
  // Computes the place of tap (a, b) of window (oy, ox); returns false if it is outside.
  bool At(const Index& dims, int64_t oy, int64_t ox, int64_t a, int64_t b, int64_t* y, int64_t* x) const {
    *y = oy * stride(0) + a * dilation(0) - before(0);
    *x = ox * stride(1) + b * dilation(1) - before(1);
    return *y >= 0 && *x >= 0 && *y < dims[2] && *x < dims[3];
  }
  const std::vector<int64_t>& w;
};

// in and out are in the order of Forms (dnn_graph.cc); NULL: the input is absent. REQUIRES: the
// outputs are 0.
void Compute(const DnnStubOperation& o, const std::vector<const Value*>& in, const std::vector<Value*>& out);

}  // namespace dnn_stub
