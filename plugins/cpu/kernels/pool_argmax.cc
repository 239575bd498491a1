// MaxPoolWithArgmax and its gradients, which move elements by the places that it found.
#include "kernels/common/arithmetic.h"
#include "kernels/common/temp.h"
#include "kernels/register.h"
#include "kernels/volume.h"

namespace thalweg::cpu {
namespace {

void SetIndex(const tw_view* v, int64_t i, int64_t x) {
  if (v->dtype == TW_INT32)
    reinterpret_cast<int32_t*>(Bytes(v))[i] = int32_t(x);
  else
    reinterpret_cast<int64_t*>(Bytes(v))[i] = x;
}

template <class T>
class WithArgmax : VolumeAttrs {
 public:
  explicit WithArgmax(const tw::Node& n) : VolumeAttrs(n), of_batch_(n.b("include_batch_in_index")) {}
  void operator()(tw::Frame f, tw::In<T> input, tw::Out<T> output, tw::Out<tw::Any> argmax) const {
    const Volumes g(*this, input.dims(), input.rank());
    g.Want(input.v, output.v());
    const int64_t of_entry = g.in_places() * g.channels;
    if (argmax.v()->dtype == TW_INT32 && (of_batch_ ? int64_t(input.size()) : of_entry) > INT32_MAX)
      Invalid("images " + DimsText(input.v) + " have too many elements for 32-bit places; ask for int64");
    ForWindows(f.f, g, [&](int64_t entry, int64_t slice, int64_t at) {
      const Channels<const T> in = ChannelsOf(g, input.data(), g.in_places(), entry, slice);
      const Channels<T> out = ChannelsOf(g, output.data(), g.out_places(), entry, slice);
      Wide<T> best[64];
      int64_t where[64];
      LargestUnder(g, in, at, best, where);
      for (int64_t c = 0; c < out.count; ++c) {
        const int64_t channel = slice * g.together() + c;
        out.data[at * out.step + c] = T(best[c]);
        SetIndex(argmax.v(), (entry * g.out_places() + at) * g.channels + channel,
                 where[c] * g.channels + channel + (of_batch_ ? entry * of_entry : 0));
      }
    });
  }

 private:
  bool of_batch_;
};

// The places of elements in the images, checked.
class Places {
 public:
  explicit Places(const tw::Node& n) : of_batch_(n.b("include_batch_in_index")) {}

 protected:
  // images, pooled: tensors of the shapes of the images and of the result.
  int64_t At(const tw_view* images, const tw_view* pooled, const tw_view* argmax, int64_t i) const {
    const int64_t batch = std::max<int64_t>(1, images->dims[0]), of_entry = int64_t(images->count) / batch;
    const int64_t at = IndexAt(argmax, uint64_t(i)), most = of_batch_ ? int64_t(images->count) : of_entry;
    if (at < 0 || at >= most)
      Invalid("argmax" + PositionText(argmax, uint64_t(i)) + " is " + tw::text(at) + "; it must be in [0, " + tw::text(most) + ")");
    return of_batch_ ? at : at + i / (int64_t(pooled->count) / batch) * of_entry;
  }
  static void Want(const tw_view* images, const tw_view* pooled, const tw_view* argmax) {
    if (argmax->count != pooled->count || images->rank != 4 || pooled->rank != 4 || images->dims[0] != pooled->dims[0])
      Invalid("images " + DimsText(images) + ", gradient " + DimsText(pooled) + " and argmax " + DimsText(argmax) + " do not fit together");
  }

 private:
  bool of_batch_;
};

template <class T>
class Backward : Places {
 public:
  using Places::Places;
  void operator()(tw::Frame f, tw::In<T> input, tw::In<T> grad, tw::In<tw::Any> argmax, tw::Out<T> output) const {
    Want(input.v, grad.v, argmax.v);
    const TempArray<Wide<T>> sums(f.f, input.size());
    std::fill_n(sums.get(), input.size(), Wide<T>(0));
    for (uint64_t i = 0; i < grad.size(); ++i) {
      Wide<T>& sum = sums[size_t(At(input.v, grad.v, argmax.v, int64_t(i)))];
      sum = Plus(sum, Wide<T>(grad[i]));
    }
    for (uint64_t i = 0; i < input.size(); ++i) output[i] = T(sums[i]);
  }
};

class Again : Places {
 public:
  using Places::Places;
  void operator()(tw::Frame f, tw::In<tw::Any> input, tw::In<tw::Any> grad, tw::In<tw::Any> argmax, tw::Out<tw::Any> output) const {
    Want(input.v, output.v(), argmax.v);
    if (grad.size() != input.size()) Invalid("input " + DimsText(input.v) + " and grad " + DimsText(grad.v) + " do not fit together");
    BySize(ElementBytes(grad.v->dtype), [&](auto zero) {
      using T = decltype(zero);
      const T* from = reinterpret_cast<const T*>(grad.data());
      T* to = reinterpret_cast<T*>(output.data());
      ParallelFor(f.f, int64_t(output.size()), 4, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) to[i] = from[At(input.v, output.v(), argmax.v, i)];
      });
    });
  }
};

template <class... T>
void Add(tw::Plugin& p) {
  p.kernel<WithArgmax<T>...>("MaxPoolWithArgmax @CPU");
  p.kernel<Backward<T>...>("MaxPoolGradWithArgmax @CPU");
}

}  // namespace

void register_pool_argmax(tw::Plugin& p) {
  Add<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(p);
  p.kernel<Again>("MaxPoolGradGradWithArgmax @CPU");
}

}  // namespace thalweg::cpu
