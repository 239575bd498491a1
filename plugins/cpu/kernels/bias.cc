// BiasAdd and BiasAddGrad: one value per channel, the channels last (NHWC) or right after the batch (NCHW), at any rank from 2.
#include <algorithm>

#include "kernels/common/copy.h"
#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/register.h"
#include "kernels/slots.h"
#include "kernels/widen.h"

namespace thalweg::cpu {
namespace {

// A tensor as [outer, channels, inner]. With channels last, inner is 1.
struct Channels {
  int64_t outer = 1, channels = 0, inner = 1;
};

bool ChannelsFirst(const tw::Attrs& n) {
  const std::string_view format = n.s("data_format");
  if (format != "NHWC" && format != "NCHW") Invalid("data_format is '" + std::string(format) + "'; known: NHWC, NCHW");
  return format == "NCHW";
}

Channels ChannelsOf(const int64_t* dims, int32_t rank, bool channels_first) {
  if (rank < 2) throw tw::Error{TW_INTERNAL, "the tensor must have rank 2 at least, but its shape is " + tw::text(dims, rank)};
  const int32_t axis = channels_first ? 1 : rank - 1;
  Channels c;
  for (int32_t i = 0; i < axis; ++i) c.outer *= dims[i];
  c.channels = dims[axis];
  for (int32_t i = axis + 1; i < rank; ++i) c.inner *= dims[i];
  return c;
}

// y[r, c] = x[r, c] + bias[c].
template <class T>
void AddRows(const VectorTable& v, const T* x, const T* bias, T* y, int64_t rows, int64_t columns) {
  if constexpr (std::is_same_v<T, float>) {
    v.add_bias(x, bias, y, rows, columns);
  } else {
    for (; rows > 0; --rows, x += columns, y += columns)
      for (int64_t c = 0; c < columns; ++c) y[c] = T(Wide<T>(x[c]) + Wide<T>(bias[c]));
  }
}

template <class T>
void Add(const tw_frame* f, const VectorTable& v, const Channels& c, const void* value, const void* bias, void* output) {
  const T *x = static_cast<const T*>(value), *b = static_cast<const T*>(bias);
  T* y = static_cast<T*>(output);
  if (c.inner == 1) {
    return ParallelFor(f, c.outer, c.channels, [&](int64_t begin, int64_t end) {
      AddRows(v, x + begin * c.channels, b, y + begin * c.channels, end - begin, c.channels);
    });
  }
  ParallelFor(f, c.outer * c.channels, c.inner, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      const Wide<T> more = Wide<T>(b[plane % c.channels]);
      const T* from = x + plane * c.inner;
      T* to = y + plane * c.inner;
      for (int64_t i = 0; i < c.inner; ++i) to[i] = T(Wide<T>(from[i]) + more);
    }
  });
}

// sum[c] += column c of [rows, columns], in the order of the rows.
template <class T>
void SumRows(const VectorTable& v, const T* x, Wide<T>* sum, int64_t rows, int64_t columns) {
  if constexpr (std::is_same_v<T, float>) {
    v.sum_rows(x, sum, rows, columns);
  } else {
    for (; rows > 0; --rows, x += columns)
      for (int64_t c = 0; c < columns; ++c) sum[c] = Wide<T>(sum[c] + Wide<T>(x[c]));
  }
}

template <class T>
Wide<T> SumRun(const VectorTable& v, const T* x, int64_t n) {
  if constexpr (std::is_same_v<T, float>) {
    return v.sum(x, n);
  } else {
    Wide<T> sum{};
    for (int64_t i = 0; i < n; ++i) sum = Wide<T>(sum + Wide<T>(x[i]));
    return sum;
  }
}

// Rows are summed in chunks, and the chunks are added in order. The number of chunks depends only
// on the sizes.
int64_t Chunks(const Channels& c) { return std::clamp<int64_t>(c.outer * c.channels / kGrain, 1, 64); }

template <class T>
uint64_t SumBytes(const Channels& c) {
  return c.inner == 1 ? RoundUp64(uint64_t(Chunks(c) * c.channels) * sizeof(Wide<T>)) : 0;
}

template <class T>
void Sum(const tw_frame* f, const VectorTable& v, const Channels& c, const void* out_backprop, void* output) {
  const T* x = static_cast<const T*>(out_backprop);
  T* y = static_cast<T*>(output);
  if (c.inner != 1) {
    return ParallelFor(f, c.channels, c.outer * c.inner, [&](int64_t begin, int64_t end) {
      for (int64_t channel = begin; channel < end; ++channel) {
        Wide<T> sum{};
        for (int64_t o = 0; o < c.outer; ++o) sum = Wide<T>(sum + SumRun(v, x + (o * c.channels + channel) * c.inner, c.inner));
        y[channel] = T(sum);
      }
    });
  }
  Workspace work(f, SumBytes<T>(c));
  Wide<T>* sums = reinterpret_cast<Wide<T>*>(work.data());
  const int64_t chunks = Chunks(c);
  ParallelFor(f, chunks, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * c.outer / chunks, last = (i + 1) * c.outer / chunks;
      std::fill(sums + i * c.channels, sums + (i + 1) * c.channels, Wide<T>{});
      SumRows(v, x + first * c.channels, sums + i * c.channels, last - first, c.channels);
    }
  });
  SumRows(v, sums + c.channels, sums, chunks - 1, c.channels);
  for (int64_t i = 0; i < c.channels; ++i) y[i] = T(sums[i]);
}

struct Loops {
  uint32_t dtype;
  const char* type;
  void (*add)(const tw_frame*, const VectorTable&, const Channels&, const void*, const void*, void*);
  void (*sum)(const tw_frame*, const VectorTable&, const Channels&, const void*, void*);
  uint64_t (*sum_bytes)(const Channels&);
};

template <class T>
constexpr Loops LoopsOf(uint32_t dtype, const char* type) {
  return {dtype, type, Add<T>, Sum<T>, SumBytes<T>};
}

// Sums of integers wrap around, so signed integers are added as unsigned ones.
constexpr Loops kLoops[] = {
    LoopsOf<float>(TW_FLOAT, "float"),
    LoopsOf<double>(TW_DOUBLE, "double"),
    LoopsOf<half>(TW_HALF, "half"),
    LoopsOf<bfloat16>(TW_BFLOAT16, "bfloat16"),
    LoopsOf<uint8_t>(TW_INT8, "int8"),
    LoopsOf<uint16_t>(TW_INT16, "int16"),
    LoopsOf<uint32_t>(TW_INT32, "int32"),
    LoopsOf<uint64_t>(TW_INT64, "int64"),
    LoopsOf<uint8_t>(TW_UINT8, "uint8"),
    LoopsOf<uint16_t>(TW_UINT16, "uint16"),
    LoopsOf<uint32_t>(TW_UINT32, "uint32"),
    LoopsOf<uint64_t>(TW_UINT64, "uint64"),
    LoopsOf<complex64>(TW_COMPLEX64, "complex64"),
    LoopsOf<complex128>(TW_COMPLEX128, "complex128"),
};

const Loops& LoopsFor(uint32_t dtype) {
  for (const Loops& l : kLoops)
    if (l.dtype == dtype) return l;
  throw tw::Error{TW_INTERNAL, "no loop for element type " + tw::text(int64_t(dtype))};
}

class BiasAdd {
 public:
  explicit BiasAdd(const tw::Node& n)
      : vector_(&TW_CPU_FOR_ISA(DetectIsa(n.host()), Vectors)), add_(LoopsFor(n.type_in(0)).add), channels_first_(ChannelsFirst(n)) {}

  void operator()(tw::Frame frame, tw::In<tw::Any> value, tw::In<tw::Any> bias, tw::Out<tw::Any> output) const {
    const Channels c = ChannelsOf(value.dims(), value.rank(), channels_first_);
    if (bias.rank() != 1 || bias.dim(0) != c.channels)
      throw tw::Error{TW_INTERNAL, "bias " + DimsText(bias.v) + " must have one value for each of the " + tw::text(c.channels) +
                                       " channels of value " + DimsText(value.v)};
    if (value.size() == 0) return;
    add_(frame.f, *vector_, c, value.data(), bias.data(), output.data());
  }

 private:
  const VectorTable* vector_;
  decltype(Loops::add) add_;
  bool channels_first_;
};

class BiasAddGrad {
 public:
  explicit BiasAddGrad(const tw::Node& n)
      : vector_(&TW_CPU_FOR_ISA(DetectIsa(n.host()), Vectors)), loops_(&LoopsFor(n.type_in(0))), channels_first_(ChannelsFirst(n)) {}

  uint64_t scratch(const tw::Node& n) const {
    const tw_shape& s = n.node->shapes[0];
    return loops_->sum_bytes(ChannelsOf(s.dims, s.rank, channels_first_));
  }

  void operator()(tw::Frame frame, tw::In<tw::Any> out_backprop, tw::Out<tw::Any> output) const {
    const Channels c = ChannelsOf(out_backprop.dims(), out_backprop.rank(), channels_first_);
    if (output.rank() != 1 || output.dim(0) != c.channels)
      throw tw::Error{TW_INTERNAL,
                      "the output " + DimsText(output.v()) + " must have one value for each of " + tw::text(c.channels) + " channels"};
    if (out_backprop.size() == 0) return FillZero(frame.f, output.v());
    loops_->sum(frame.f, *vector_, c, out_backprop.data(), output.data());
  }

 private:
  const VectorTable* vector_;
  const Loops* loops_;
  bool channels_first_;
};

}  // namespace

void register_bias(tw::Plugin& p) {
  for (const Loops& l : kLoops) {
    const std::string t = l.type;
    p.kernel<BiasAdd>("BiasAdd(" + t + ", " + t + " -> " + t + ") @CPU; inplace output=value");
    p.kernel<BiasAddGrad>("BiasAddGrad(" + t + " -> " + t + ") @CPU");
  }
}

}  // namespace thalweg::cpu
