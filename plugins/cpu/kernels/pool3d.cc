// MaxPool3D, AvgPool3D and their gradients. half and bfloat16 are summed in float. One task adds all
// gradients of an element in the order of windows, so results have the same bits for any number of
// threads.
#include "kernels/common/arithmetic.h"
#include "kernels/common/temp.h"
#include "kernels/register.h"
#include "kernels/volume.h"

namespace thalweg::cpu {
namespace {

// Sums of the elements of a slice, in the type to sum in: written at the end, rounded once.
template <class T>
class Sums {
 public:
  Sums(const tw_frame* f, const Volumes& g) : data_(f, size_t(g.in_places() * g.together())), places_(g.in_places()) {}
  void Clear(int64_t count) {
    count_ = count;
    std::fill_n(data_.get(), places_ * count, Wide<T>(0));
  }
  Wide<T>* at(int64_t place) { return data_.get() + place * count_; }
  void Write(const Channels<T>& to) {
    for (int64_t place = 0; place < places_; ++place)
      for (int64_t c = 0; c < count_; ++c) to.data[place * to.step + c] = T(at(place)[c]);
  }

 private:
  TempArray<Wide<T>> data_;
  int64_t places_, count_ = 0;
};

template <class T>
class Max : VolumeAttrs {
 public:
  using VolumeAttrs::VolumeAttrs;
  void operator()(tw::Frame f, tw::In<T> input, tw::Out<T> output) const {
    const Volumes g(*this, input.dims(), input.rank());
    g.Want(input.v, output.v());
    ForWindows(f.f, g, [&](int64_t entry, int64_t slice, int64_t at) {
      const Channels<const T> in = ChannelsOf(g, input.data(), g.in_places(), entry, slice);
      const Channels<T> out = ChannelsOf(g, output.data(), g.out_places(), entry, slice);
      Wide<T> best[64];
      int64_t where[64];
      LargestUnder(g, in, at, best, where);
      for (int64_t c = 0; c < out.count; ++c) out.data[at * out.step + c] = T(best[c]);
    });
  }
};

// In: the type of the volumes; T: of the gradients.
template <class In, class T>
class MaxGrad : VolumeAttrs {
 public:
  using VolumeAttrs::VolumeAttrs;
  void operator()(tw::Frame f, tw::In<In> input, tw::In<In> pooled, tw::In<T> grad, tw::Out<T> output) const {
    const Volumes g(*this, input.dims(), input.rank());
    g.Want(input.v, pooled.v);
    g.Want(output.v(), grad.v);
    ForSlices(f.f, g, [&](int64_t entry, int64_t slice) {
      const Channels<const In> in = ChannelsOf(g, input.data(), g.in_places(), entry, slice);
      const Channels<const T> dy = ChannelsOf(g, grad.data(), g.out_places(), entry, slice);
      Sums<T> sums(f.f, g);
      sums.Clear(in.count);
      Wide<In> best[64];
      int64_t where[64];
      for (int64_t at = 0; at < g.out_places(); ++at) {
        LargestUnder(g, in, at, best, where);
        for (int64_t c = 0; c < in.count; ++c)
          if (where[c] >= 0) sums.at(where[c])[c] += Wide<T>(dy.data[at * dy.step + c]);
      }
      sums.Write(ChannelsOf(g, output.data(), g.in_places(), entry, slice));
    });
  }
};

template <class T>
class MaxGradGrad : VolumeAttrs {
 public:
  using VolumeAttrs::VolumeAttrs;
  void operator()(tw::Frame f, tw::In<T> input, tw::In<T> pooled, tw::In<T> grad, tw::Out<T> output) const {
    const Volumes g(*this, input.dims(), input.rank());
    g.Want(input.v, pooled.v);
    g.Want(grad.v, output.v());
    ForWindows(f.f, g, [&](int64_t entry, int64_t slice, int64_t at) {
      const Channels<const T> in = ChannelsOf(g, input.data(), g.in_places(), entry, slice);
      const Channels<const T> from = ChannelsOf(g, grad.data(), g.in_places(), entry, slice);
      const Channels<T> out = ChannelsOf(g, output.data(), g.out_places(), entry, slice);
      Wide<T> best[64];
      int64_t where[64];
      LargestUnder(g, in, at, best, where);
      for (int64_t c = 0; c < out.count; ++c) out.data[at * out.step + c] = where[c] < 0 ? T(0) : from.data[where[c] * from.step + c];
    });
  }
};

template <class T>
class Avg : VolumeAttrs {
 public:
  using VolumeAttrs::VolumeAttrs;
  void operator()(tw::Frame f, tw::In<T> input, tw::Out<T> output) const {
    const Volumes g(*this, input.dims(), input.rank());
    g.Want(input.v, output.v());
    ForWindows(f.f, g, [&](int64_t entry, int64_t slice, int64_t at) {
      const Channels<const T> in = ChannelsOf(g, input.data(), g.in_places(), entry, slice);
      const Channels<T> out = ChannelsOf(g, output.data(), g.out_places(), entry, slice);
      Wide<T> sum[64];
      std::fill_n(sum, in.count, Wide<T>(0));
      const int64_t count = ForPlaces(g, at, [&](int64_t place) {
        for (int64_t c = 0; c < in.count; ++c) sum[c] += Wide<T>(in.data[place * in.step + c]);
      });
      for (int64_t c = 0; c < out.count; ++c) out.data[at * out.step + c] = T(sum[c] / Wide<T>(count));
    });
  }
};

template <class T>
class AvgGrad : VolumeAttrs {
 public:
  using VolumeAttrs::VolumeAttrs;
  void operator()(tw::Frame f, tw::In<int32_t> shape, tw::In<T> grad, tw::Out<T> output) const {
    const Ints dims = ReadInts(shape.v, "orig_input_shape");
    Allocate(output, dims.at, dims.n);
    const Volumes g(*this, dims.at, dims.n);
    g.Want(output.v(), grad.v);
    ForSlices(f.f, g, [&](int64_t entry, int64_t slice) {
      const Channels<const T> dy = ChannelsOf(g, grad.data(), g.out_places(), entry, slice);
      Sums<T> sums(f.f, g);
      sums.Clear(dy.count);
      for (int64_t at = 0; at < g.out_places(); ++at) {
        const Wide<T> count = Wide<T>(ForPlaces(g, at, [](int64_t) {}));
        ForPlaces(g, at, [&](int64_t place) {
          for (int64_t c = 0; c < dy.count; ++c) sums.at(place)[c] += Wide<T>(dy.data[at * dy.step + c]) / count;
        });
      }
      sums.Write(ChannelsOf(g, output.data(), g.in_places(), entry, slice));
    });
  }
};

}  // namespace

void register_pool3d(tw::Plugin& p) {
  p.kernel<Max<float>, Max<half>, Max<bfloat16>>("MaxPool3D @CPU");
  p.kernel<MaxGrad<float, float>, MaxGrad<float, half>, MaxGrad<float, bfloat16>, MaxGrad<half, float>, MaxGrad<half, half>,
           MaxGrad<half, bfloat16>, MaxGrad<bfloat16, float>, MaxGrad<bfloat16, half>, MaxGrad<bfloat16, bfloat16>>("MaxPool3DGrad @CPU");
  p.kernel<MaxGradGrad<float>, MaxGradGrad<double>, MaxGradGrad<half>, MaxGradGrad<bfloat16>, MaxGradGrad<int8_t>, MaxGradGrad<int16_t>,
           MaxGradGrad<int32_t>, MaxGradGrad<int64_t>, MaxGradGrad<uint8_t>, MaxGradGrad<uint16_t>, MaxGradGrad<uint32_t>,
           MaxGradGrad<uint64_t>>("MaxPool3DGradGrad @CPU");
  p.kernel<Avg<float>, Avg<double>, Avg<half>, Avg<bfloat16>>("AvgPool3D @CPU");
  p.kernel<AvgGrad<float>, AvgGrad<double>, AvgGrad<half>, AvgGrad<bfloat16>>("AvgPool3DGrad @CPU");
}

}  // namespace thalweg::cpu
