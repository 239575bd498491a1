// The helpers that the kernels share: outputs, rows of pieces, handles to models. Threads: any.
#ifndef THALWEG_PLUGINS_TEXT_KERNELS_H_
#define THALWEG_PLUGINS_TEXT_KERNELS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chars.h"

namespace thalweg::text {

// Allocates the output, unless its shape was known before.
template <class T>
void Allocate(const tw::Out<T>& out, const std::vector<int64_t>& dims) {
  if (out.rank() < 0) out.allocate(dims);
  bool same = out.rank() == int32_t(dims.size());
  for (int32_t i = 0; same && i < out.rank(); ++i) same = out.dim(i) == dims[size_t(i)];
  if (!same) {
    throw tw::Error{TW_INTERNAL, "the output was planned as " + tw::text(out.dims(), out.rank()) + " but is " +
                                     tw::text(dims.data(), int32_t(dims.size()))};
  }
}

// Writes the splits of rows. Returns the number of elements of all rows.
template <class Rows, class Size>
int64_t PutSplits(const tw::Out<tw::Any>& splits, const Rows& rows, const Size& size) {
  Allocate(splits, {int64_t(rows.size()) + 1});
  uint64_t n = 0;
  PutSplit(splits, 0, 0);
  for (size_t i = 0; i < rows.size(); ++i) PutSplit(splits, i + 1, n += size(rows[i]));
  return int64_t(n);
}

// The only element of an input.
template <class T>
const T& One(const tw::In<T>& in, const char* name) {
  if (in.size() != 1) Invalid("'" + std::string(name) + "' is " + tw::text(in.dims(), in.rank()) + "; it must be a scalar");
  return in[0];
}

// The object behind a handle that the kernel's spec reads.
template <class T>
const T& Opened(const tw::Var<tw::Any>& handle) {
  return *static_cast<const T*>(handle.handle());
}

template <class T>
void Destroy(const tw_host*, void* object) {
  delete static_cast<T*>(object);
}

// A kernel that makes a T, of the resource type T::kResource, from the attribute `model`, when the
// first step asks for its handle.
template <class T>
class OpenModel {
 public:
  explicit OpenModel(const tw::Node& n)
      : container_(n.s("container")), name_(n.s("shared_name").empty() ? n.name() : n.s("shared_name")), model_(n.s("model")) {}
  void operator()(tw::Frame f) const {
    const tw_resource_key key = {TW_SIZED(tw_resource_key), TW_S(T::kResource), container_.data(),
                                 container_.size(),         name_.data(),       name_.size()};
    struct Call {
      const OpenModel* self;
      const tw_frame* frame;
    } call = {this, f.f};
    const auto make = [](const tw_host* h, void* arg, void** out) {
      return tw::guard(h, [&] {
        const Call& c = *static_cast<const Call*>(arg);
        *out = new T(tw::Frame{c.frame}, c.self->model_);
      });
    };
    tw::check(f.f->host->resource->open(f.f, &key, make, &call, 0));
  }

 private:
  const std::string container_, name_, model_;
};

}  // namespace thalweg::text

#endif  // THALWEG_PLUGINS_TEXT_KERNELS_H_
