// QuantizedMatMul, and its forms with a bias whose results are sums, floats or numbers of 8 bits.
#include <cstring>

#include "kernels/factor.h"
#include "kernels/int8_product.h"
#include "kernels/int8_result.h"
#include "kernels/quantised.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

class ProductOf8 {
 public:
  explicit ProductOf8(const tw::Node& n)
      : table_(Int8TableFor(n.host())), trans_a_(n.b("transpose_a")), trans_b_(n.b("transpose_b")), slots_(WorkerSlots()) {}

  uint64_t scratch(const tw::Node& n) const {
    const tw_shape *a = n.node->shapes, *b = a + 1;
    if (HasNoElements(n.node->shapes[n.node->n_in])) return 0;
    const Factor fa = FactorOf(a->dims, a->rank, trans_a_, "a"), fb = FactorOf(b->dims, b->rank, trans_b_, "b");
    return Int8Scratch(table_, fa.outer(), fb.transposed ? fb.rows : fb.columns, fa.inner()).bytes(slots_);
  }

 protected:
  // result(i, j, n, sums): as of MultiplyInt8.
  template <class A, class B, class Result>
  void Run(const tw_frame* f, const tw_view* a, const tw_view* b, const tw_view* out, int64_t zero_a, int64_t zero_b,
           Result&& result) const {
    const Factor fa = FactorOf(a->dims, a->rank, trans_a_, "a"), fb = FactorOf(b->dims, b->rank, trans_b_, "b");
    CheckSizes(fa, fb, out->dims, out->rank);
    if (out->count == 0) return;
    Int8Product p{};
    p.m = fa.outer();
    p.k = fa.inner();
    p.n = fb.transposed ? fb.rows : fb.columns;
    p.b = reinterpret_cast<const uint8_t*>(Bytes(b));
    p.b_row = fb.transposed ? 1 : fb.columns;
    p.b_column = fb.transposed ? fb.columns : 1;
    p.signed_a = kSignedWhole<A>;
    p.signed_b = kSignedWhole<B>;
    p.zero_a = uint32_t(zero_a);
    p.zero_b = uint32_t(zero_b);
    const auto* from = reinterpret_cast<const uint8_t*>(Bytes(a));
    const int64_t step = fa.columns, k = p.k;
    const bool turned = fa.transposed;
    const auto row = [from, step, k, turned](int64_t i, uint8_t* room) {
      if (!turned) return from + i * step;
      for (int64_t q = 0; q < k; ++q) room[q] = from[q * step + i];
      return static_cast<const uint8_t*>(room);
    };
    const Workspace work(f, Int8Scratch(table_, p.m, p.n, p.k).bytes(slots_));
    MultiplyInt8(table_, f, p, slots_, work.data(), row, result);
  }

  const Int8Table& table_;
  bool trans_a_, trans_b_;
  int slots_;
};

template <class A, class B>
class QuantizedMatMul : public ProductOf8 {
 public:
  using ProductOf8::ProductOf8;

  void operator()(tw::Frame frame, tw::In<A> a, tw::In<B> b, tw::In<float> min_a, tw::In<float> max_a, tw::In<float> min_b,
                  tw::In<float> max_b, tw::Out<qint32> out, tw::Out<float> min_out, tw::Out<float> max_out) const {
    const FloatRange ra = WideRangeOf(min_a.v, max_a.v, "min_a", "max_a"), rb = WideRangeOf(min_b.v, max_b.v, "min_b", "max_b");
    auto* to = reinterpret_cast<int32_t*>(Bytes(out.v()));
    const int64_t columns = out.dim(-1);
    Run<A, B>(frame.f, a.v, b.v, out.v(), ZeroPointOf<A>(ra, "min_a", "max_a"), ZeroPointOf<B>(rb, "min_b", "max_b"),
              [to, columns](int64_t i, int64_t j, int64_t n, const int32_t* sums) {
                std::memcpy(to + i * columns + j, sums, size_t(n) * sizeof *sums);
              });
    const FloatRange r = ProductRange(StepOf<A>(ra), StepOf<B>(rb));
    min_out[0] = r.min;
    max_out[0] = r.max;
  }
};

// The forms with a bias. a's range is read as `input_quant_mode` says; b's and the result's are
// SCALED.
class WithBias : public ProductOf8 {
 public:
  explicit WithBias(const tw::Node& n) : ProductOf8(n), scaled_(n.s("input_quant_mode") == "SCALED") {}

 protected:
  template <class A, class Bias>
  void RunWithBias(const tw_frame* f, const tw::In<A>& a, const tw::In<qint8>& b, const tw::In<Bias>& bias, const tw::In<float>& min_a,
                   const tw::In<float>& max_a, const tw::In<float>& min_b, const tw::In<float>& max_b, const tw::In<float>& min_out,
                   const tw::In<float>& max_out, const tw_view* out, bool relu) const {
    const int64_t columns = out->dims[1];
    Int8ResultArgs args{columns, 0, bias.v, min_b.v, max_b.v, "min_b", "max_b", min_out.v, max_out.v};
    const int64_t zero = ReadRangeOfA<A>(min_a.v, max_a.v, &args);
    const Int8Result results(table_, f, args, out->dtype, relu);
    void* to = const_cast<void*>(static_cast<const void*>(Bytes(out)));
    if (out->dtype == TW_FLOAT) {
      Run<A, qint8>(f, a.v, b.v, out, zero, 0, [&results, to, columns](int64_t i, int64_t j, int64_t n, const int32_t* sums) {
        results.ToFloats(j, n, sums, static_cast<float*>(to) + i * columns + j);
      });
    } else {
      Run<A, qint8>(f, a.v, b.v, out, zero, 0, [&results, to, columns](int64_t i, int64_t j, int64_t n, const int32_t* sums) {
        results.ToBytes(j, n, sums, static_cast<uint8_t*>(to) + i * columns + j);
      });
    }
  }

  // Sets the step of a, and returns the number that stands for 0.
  template <class A>
  int64_t ReadRangeOfA(const tw_view* min_a, const tw_view* max_a, Int8ResultArgs* args) const {
    if (scaled_) {
      args->step_a = ScaledStep(RangeAt(min_a, max_a, 0, "min_a", "max_a"), kSignedWhole<A>);
      return 0;
    }
    const FloatRange r = WideRangeOf(min_a, max_a, "min_a", "max_a");
    args->step_a = double(r.max - r.min) / double(kMostWhole<A> - kLeastWhole<A>);
    return ZeroPointOf<A>(r, "min_a", "max_a");
  }

 private:
  bool scaled_;
};

template <class A, class Bias, bool kRelu>
class Summed : public WithBias {
 public:
  using WithBias::WithBias;

  void operator()(tw::Frame frame, tw::In<A> a, tw::In<qint8> b, tw::In<Bias> bias, tw::In<float> min_a, tw::In<float> max_a,
                  tw::In<float> min_b, tw::In<float> max_b, tw::Out<qint32> out, tw::Out<float> min_out, tw::Out<float> max_out) const {
    const int64_t columns = out.dim(-1);
    Int8ResultArgs args{columns, 0, bias.v, min_b.v, max_b.v, "min_b", "max_b", nullptr, nullptr};
    const int64_t zero = ReadRangeOfA<A>(min_a.v, max_a.v, &args);
    const Int8Sums results(frame.f, args, kRelu);
    auto* to = reinterpret_cast<int32_t*>(Bytes(out.v()));
    Run<A, qint8>(frame.f, a.v, b.v, out.v(), zero, 0, [&results, to, columns](int64_t i, int64_t j, int64_t n, const int32_t* sums) {
      results.Write(j, n, sums, to + i * columns + j);
    });
    WriteRangesOfSums(args, min_out, max_out);
  }
};

template <class A, class Bias, class Q, bool kRelu>
class Requantized : public WithBias {
 public:
  using WithBias::WithBias;

  void operator()(tw::Frame frame, tw::In<A> a, tw::In<qint8> b, tw::In<Bias> bias, tw::In<float> min_a, tw::In<float> max_a,
                  tw::In<float> min_b, tw::In<float> max_b, tw::In<float> min_freezed, tw::In<float> max_freezed, tw::Out<Q> out,
                  tw::Out<float> min_out, tw::Out<float> max_out) const {
    RunWithBias(frame.f, a, b, bias, min_a, max_a, min_b, max_b, min_freezed, max_freezed, out.v(), kRelu);
    min_out[0] = min_freezed[0];
    max_out[0] = max_freezed[0];
  }
};

template <class A, class Bias>
class Dequantized : public WithBias {
 public:
  using WithBias::WithBias;

  void operator()(tw::Frame frame, tw::In<A> a, tw::In<qint8> b, tw::In<Bias> bias, tw::In<float> min_a, tw::In<float> max_a,
                  tw::In<float> min_b, tw::In<float> max_b, tw::In<float> min_freezed, tw::In<float> max_freezed,
                  tw::Out<float> out) const {
    RunWithBias(frame.f, a, b, bias, min_a, max_a, min_b, max_b, min_freezed, max_freezed, out.v(), false);
  }
};

template <bool kRelu, class Bias>
void RegisterRequantized(tw::Plugin& p, const char* spec) {
  p.kernel<Requantized<quint8, Bias, quint8, kRelu>, Requantized<quint8, Bias, qint8, kRelu>>(spec);
  p.kernel<Requantized<qint8, Bias, quint8, kRelu>, Requantized<qint8, Bias, qint8, kRelu>>(spec);
}

}  // namespace

void register_quantized_matmul(tw::Plugin& p) {
  p.kernel<QuantizedMatMul<quint8, quint8>, QuantizedMatMul<quint8, qint8>>("QuantizedMatMul @CPU");
  p.kernel<QuantizedMatMul<qint8, quint8>, QuantizedMatMul<qint8, qint8>>("QuantizedMatMul @CPU");
  p.kernel<Summed<quint8, float, false>, Summed<quint8, qint32, false>>("QuantizedMatMulWithBias @CPU");
  p.kernel<Summed<qint8, float, false>, Summed<qint8, qint32, false>>("QuantizedMatMulWithBias @CPU");
  p.kernel<Summed<quint8, float, true>, Summed<qint8, float, true>>("QuantizedMatMulWithBiasAndRelu @CPU");
  RegisterRequantized<false, float>(p, "QuantizedMatMulWithBiasAndRequantize @CPU");
  RegisterRequantized<false, qint32>(p, "QuantizedMatMulWithBiasAndRequantize @CPU");
  RegisterRequantized<true, float>(p, "QuantizedMatMulWithBiasAndReluAndRequantize @CPU");
  RegisterRequantized<true, qint32>(p, "QuantizedMatMulWithBiasAndReluAndRequantize @CPU");
  p.kernel<Dequantized<quint8, float>, Dequantized<quint8, qint32>>("QuantizedMatMulWithBiasAndDequantize @CPU");
  p.kernel<Dequantized<qint8, float>, Dequantized<qint8, qint32>>("QuantizedMatMulWithBiasAndDequantize @CPU");
}

}  // namespace thalweg::cpu
