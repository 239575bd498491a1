#include "kernels/layout.h"

namespace thalweg::opencl {

int64_t Count(const Dims& dims) {
  int64_t count = 1;
  for (int64_t d : dims) count *= d;
  return count;
}

Dims DenseSteps(const Dims& dims) {
  Dims steps(dims.size());
  int64_t step = 1;
  for (size_t k = dims.size(); k-- > 0; step *= dims[k]) steps[k] = step;
  return steps;
}

bool Broadcasts(const Dims& dims, const Dims& to) {
  if (dims.size() > to.size()) return false;
  for (size_t k = 0; k < dims.size(); ++k)
    if (dims[k] != 1 && dims[k] != to[k + to.size() - dims.size()]) return false;
  return true;
}

Dims BroadcastSteps(const Dims& dims, const Dims& to) {
  if (!Broadcasts(dims, to))
    Invalid("shape " + tw::text(dims.data(), int32_t(dims.size())) + " does not broadcast to " + tw::text(to.data(), int32_t(to.size())));
  Dims steps(to.size(), 0);
  const Dims dense = DenseSteps(dims);
  for (size_t k = 0; k < dims.size(); ++k)
    if (dims[k] != 1) steps[k + to.size() - dims.size()] = dense[k];
  return steps;
}

namespace {

[[noreturn]] void TooManyAxes() {
  throw tw::Error{TW_UNIMPLEMENTED, "the shapes change more than " + std::to_string(MOST_AXES) +
                                        " times between axes that are walked differently; reshape them, or place the op on a CPU"};
}

}  // namespace

Layout::Layout(const Dims& dims, const std::vector<Dims>& all) : steps(all.size()), by(all.size(), 0) {
  std::vector<Size> size;
  std::vector<Dims> step;  // [axis][tensor], innermost axis first
  for (size_t k = dims.size(); k-- > 0;) {
    if (dims[k] == 1) continue;
    Dims here;
    for (const Dims& s : all) here.push_back(s[k]);
    bool joins = !size.empty();
    for (size_t t = 0; joins && t < all.size(); ++t) joins = here[t] == step.back()[t] * size.back();
    if (joins) {
      size.back() *= dims[k];
      continue;
    }
    size.push_back(dims[k]);
    step.push_back(here);
  }
  if (size.size() > MOST_AXES + 1) TooManyAxes();
  if (size.empty()) return;
  inner = size[0];
  for (size_t t = 0; t < all.size(); ++t) by[t] = step[0][t];
  axes.count = Size(size.size()) - 1;
  for (size_t k = 1; k < size.size(); ++k) {
    axes.size[k - 1] = size[k];
    for (size_t t = 0; t < all.size(); ++t) steps[t].by[k - 1] = step[k][t];
  }
}

void Layout::PushInner() {
  if (axes.count == MOST_AXES) TooManyAxes();
  for (Size k = axes.count++; k >= 0; --k) {
    axes.size[k] = k ? axes.size[k - 1] : inner;
    for (size_t t = 0; t < steps.size(); ++t) steps[t].by[k] = k ? steps[t].by[k - 1] : by[t];
  }
  inner = 1;
  by.assign(by.size(), 0);
}

}  // namespace thalweg::opencl
