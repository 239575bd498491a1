#include "kernels/images.h"

#include <algorithm>

namespace thalweg::opencl {
namespace {

constexpr Size kMost = INT32_MAX;  // limit along an axis, so that no product of two sizes overflows

}  // namespace

Images::Images(const tw::Attrs& n) : Channels(n.s("data_format") == "NCHW") {
  if (!first() && n.s("data_format") != "NHWC")
    Invalid("data_format is '" + std::string(n.s("data_format")) + "'; kernels exist for NHWC and NCHW");
  if (n.find("strides")) Read(n, "strides", stride_);
  if (n.find("dilations")) Read(n, "dilations", dilation_);
  if (n.find("ksize")) Read(n, "ksize", ksize_);
  padding_ = n.s("padding") == "SAME" ? kSame : n.s("padding") == "VALID" ? kValid : kExplicit;
  if (padding_ != kExplicit) return;
  const std::vector<int64_t> all = n.ints("explicit_paddings");
  if (all.size() != 8) Invalid("explicit_paddings needs 8 entries, before and after each axis");
  for (int64_t v : all)
    if (v < 0 || v > kMost) Invalid("an explicit padding is " + tw::text(v) + "; it must lie in [0, 2147483647]");
  const size_t height = first() ? 2 : 1;
  for (size_t axis : {size_t(0), size_t(first() ? 1 : 3)})
    if (all[2 * axis] || all[2 * axis + 1]) Invalid("explicit_paddings must be 0 along batch and channels");
  for (size_t k = 0; k < 2; ++k) before_[k] = all[2 * (height + k)], after_[k] = all[2 * (height + k) + 1];
}

void Images::Read(const tw::Attrs& n, const char* name, Size* to) const { Set(n.ints(name), name, to); }

void Images::Set(const std::vector<int64_t>& v, const char* name, Size* to) const {
  if (v.size() != 4) Invalid(std::string(name) + " needs one entry per axis, 4");
  for (int64_t s : v)
    if (s < 1 || s > kMost)
      Invalid(std::string(name) + " is " + tw::text(v.data(), 4) + "; every entry must be at least 1 and fit in 31 bits");
  if (v[0] != 1 || v[first() ? 1 : 3] != 1)
    Invalid(std::string(name) + " is " + tw::text(v.data(), 4) + "; along batch and channels it must be 1");
  to[0] = v[first() ? 2 : 1];
  to[1] = v[first() ? 3 : 2];
}

Images Images::With(const tw_view* ksize, const tw_view* strides) const {
  Images with = *this;
  std::vector<int64_t> sizes;
  tw::integers(ksize, &sizes);
  with.Set(sizes, "ksize", with.ksize_);
  sizes.clear();
  tw::integers(strides, &sizes);
  with.Set(sizes, "strides", with.stride_);
  return with;
}

Window Images::Of(const Dims& images, Size filter_height, Size filter_width, const Dims& out) const {
  if (images.size() != 4 || out.size() != 4) Invalid("images must have rank 4");
  const Dims x = Last(images), y = Last(out);
  const Size filter[2] = {filter_height, filter_width};
  Size found[2], before[2];
  for (size_t k = 0; k < 2; ++k) {
    const Size reach = std::max<Size>(0, (filter[k] - 1) * dilation_[k] + 1);
    if (padding_ == kSame) {
      found[k] = (x[1 + k] + stride_[k] - 1) / stride_[k];
      before[k] = std::max<Size>(0, (found[k] - 1) * stride_[k] + reach - x[1 + k]) / 2;
    } else {
      const Size room = x[1 + k] + before_[k] + after_[k] - reach;
      found[k] = room < 0 ? 0 : room / stride_[k] + 1;
      before[k] = before_[k];
    }
  }
  if (x[0] != y[0] || y[1] != found[0] || y[2] != found[1])
    Invalid("images " + tw::text(images.data(), 4) + " under these windows belong to " + tw::text(x[0]) + " results of " +
            tw::text(found[0]) + " x " + tw::text(found[1]) + ", but those are " + tw::text(out.data(), 4));
  return {x[0],         x[1],       x[2],       x[3],         x[3],         found[0],  found[1], filter_height,
          filter_width, stride_[0], stride_[1], dilation_[0], dilation_[1], before[0], before[1]};
}

Place Channels::Call::In(const tw_view* v) {
  if (!channels_.first() || v->count == 0) return At(v);
  const Dims dims = channels_.Last(DimsOf(v));
  memory_.emplace_back(copy_.device(), v->bytes);
  copy_.Run(f_, dims, At(v), channels_.Last(DenseSteps(DimsOf(v))), memory_.back().place(), DenseSteps(dims));
  return memory_.back().place();
}

Place Channels::Call::Out(const tw_view* v) {
  if (!channels_.first() || v->count == 0) return At(v);
  memory_.emplace_back(copy_.device(), v->bytes);
  results_.emplace_back(v, memory_.back().place());
  return memory_.back().place();
}

void Channels::Call::Finish() {
  for (const auto& [v, from] : results_) {
    const Dims dims = channels_.Last(DimsOf(v));
    copy_.Run(f_, dims, from, DenseSteps(dims), At(v), channels_.Last(DenseSteps(DimsOf(v))));
  }
}

}  // namespace thalweg::opencl
