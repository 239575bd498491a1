// Windows that slide over volumes, [batch, depth, height, width, channels] or with the channels
// second, for poolings. Images are volumes of depth 1.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_VOLUME_H_
#define THALWEG_PLUGINS_CPU_KERNELS_VOLUME_H_

#include <algorithm>
#include <limits>

#include "kernels/common/parallel.h"
#include "kernels/common/types.h"
#include "kernels/window.h"

namespace thalweg::cpu {

// The attributes of a pooling, with entries for depth, height and width.
struct VolumeAttrs {
  bool channels_first = false, same = false;
  int spaces = 3;
  int64_t window[3] = {1, 1, 1}, stride[3] = {1, 1, 1};

  explicit VolumeAttrs(const tw::Node& n) {
    const Dims ksize = n.ints("ksize"), strides = n.ints("strides");
    if (n.find("data_format")) channels_first = n.s("data_format")[1] == 'C';
    same = n.s("padding") == "SAME";
    spaces = int(ksize.size()) - 2;
    if (spaces < 2 || spaces > 3 || strides.size() != ksize.size()) Invalid("ksize and strides need an entry for each axis");
    for (int k = 0; k < spaces; ++k) {
      const size_t axis = size_t(k + (channels_first ? 2 : 1));
      window[k + 3 - spaces] = ksize[axis];
      stride[k + 3 - spaces] = strides[axis];
      if (ksize[axis] < 1 || strides[axis] < 1 || ksize[axis] > INT32_MAX || strides[axis] > INT32_MAX)
        Invalid("windows and strides must be at least 1 and fit in 31 bits");
    }
  }

 private:
  using Dims = std::vector<int64_t>;
};

struct Volumes {
  bool channels_first;
  int64_t batch, channels;
  WindowAxis axis[3];

  // in: dims of the volumes, as many as the attributes have entries.
  Volumes(const VolumeAttrs& attrs, const int64_t* in, int rank) : channels_first(attrs.channels_first) {
    if (rank != attrs.spaces + 2) Invalid("volumes " + tw::text(in, rank) + " must have " + tw::text(attrs.spaces + 2) + " axes");
    batch = in[0];
    channels = in[channels_first ? 1 : rank - 1];
    for (int k = 0; k < 3; ++k) {
      const int own = k - (3 - attrs.spaces);
      const int64_t size = own < 0 ? 1 : in[own + (channels_first ? 2 : 1)];
      WindowAxis& a = axis[k];
      a.in = size;
      a.window = attrs.window[k];
      a.stride = attrs.stride[k];
      if (attrs.same) {
        a.out = (size + a.stride - 1) / a.stride;
        a.before = std::max<int64_t>(0, (a.out - 1) * a.stride + a.window - size) / 2;
      } else {
        a.out = size < a.window ? 0 : (size - a.window) / a.stride + 1;
      }
    }
  }

  int64_t in_places() const { return axis[0].in * axis[1].in * axis[2].in; }
  int64_t out_places() const { return axis[0].out * axis[1].out * axis[2].out; }
  // A slice is some channels of one entry of the batch: one channel if they come first.
  int64_t together() const { return channels_first ? 1 : std::min<int64_t>(64, channels); }
  int64_t slices() const { return channels == 0 ? 0 : (channels + together() - 1) / together(); }
  int64_t cost() const {
    return Cost(std::min(axis[0].window, axis[0].in), std::min(axis[1].window, axis[1].in), std::min(axis[2].window, axis[2].in),
                together());
  }
  void Want(const tw_view* in, const tw_view* out) const {
    if (in->count != uint64_t(batch * channels * in_places()) || out->count != uint64_t(batch * channels * out_places()))
      Invalid("volumes " + DimsText(in) + " and their pooled form " + DimsText(out) + " do not fit together");
  }
};

// `count` channels: element (place, c) is at data[place * step + c].
template <class T>
struct Channels {
  T* data;
  int64_t step, count;
};
template <class T>
Channels<T> ChannelsOf(const Volumes& g, T* data, int64_t places, int64_t entry, int64_t slice) {
  if (g.channels_first) return {data + (entry * g.channels + slice) * places, 1, 1};
  const int64_t first = slice * g.together();
  return {data + entry * places * g.channels + first, g.channels, std::min(g.together(), g.channels - first)};
}

// Calls f(place) for each place under window number `at`, in order. Returns their number.
template <class F>
int64_t ForPlaces(const Volumes& g, int64_t at, F&& f) {
  int64_t begin[3], end[3], count = 1;
  for (int k = 3; k-- > 0; at /= g.axis[k].out) {
    const WindowAxis& a = g.axis[k];
    const int64_t first = at % a.out * a.stride - a.before;
    begin[k] = std::max<int64_t>(0, first);
    end[k] = std::min(a.in, first + a.window);
    count *= std::max<int64_t>(0, end[k] - begin[k]);
  }
  for (int64_t z = begin[0]; z < end[0]; ++z)
    for (int64_t y = begin[1]; y < end[1]; ++y)
      for (int64_t x = begin[2]; x < end[2]; ++x) f((z * g.axis[1].in + y) * g.axis[2].in + x);
  return count;
}

// Calls body(entry, slice, window) for every window of every slice, in parallel.
template <class F>
void ForWindows(const tw_frame* f, const Volumes& g, F&& body) {
  const int64_t slices = g.slices(), windows = g.out_places();
  if (windows == 0) return;
  ParallelFor(f, g.batch * slices * windows, g.cost(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i / windows / slices, i / windows % slices, i % windows);
  });
}
// Calls body(entry, slice) for every slice, in parallel.
template <class F>
void ForSlices(const tw_frame* f, const Volumes& g, F&& body) {
  const int64_t slices = g.slices();
  ParallelFor(f, g.batch * slices, Cost(g.out_places(), g.cost()), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i / slices, i % slices);
  });
}

// Sets best[c] to the largest element under a window and where[c] to its place; -1 if there is none.
// Nothing beats a NaN; of equal elements the first counts.
template <class T>
void LargestUnder(const Volumes& g, const Channels<const T>& in, int64_t window, Wide<T>* best, int64_t* where) {
  std::fill_n(best, in.count, Wide<T>(0));
  std::fill_n(where, in.count, int64_t{-1});
  ForPlaces(g, window, [&](int64_t place) {
    const T* from = in.data + place * in.step;
    for (int64_t c = 0; c < in.count; ++c) {
      const Wide<T> v(from[c]);
      const bool beats = where[c] < 0 || v > best[c] || (v != v && best[c] == best[c]);
      best[c] = beats ? v : best[c];
      where[c] = beats ? place : where[c];
    }
  });
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_VOLUME_H_
