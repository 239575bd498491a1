// Comparisons and logic on two tensors that broadcast. NaN is unequal to everything and unordered.
#include "kernels/common/broadcast.h"
#include "kernels/common/types.h"
#include "kernels/register.h"
#include "kernels/zip.h"

namespace thalweg::cpu {
namespace {

constexpr auto kEqual = [](auto x, auto y) { return x == y; };
constexpr auto kNotEqual = [](auto x, auto y) { return x != y; };
constexpr auto kLess = [](auto x, auto y) { return x < y; };
constexpr auto kLessEqual = [](auto x, auto y) { return x <= y; };
constexpr auto kGreater = [](auto x, auto y) { return y < x; };
constexpr auto kGreaterEqual = [](auto x, auto y) { return y <= x; };
constexpr auto kAnd = [](bool x, bool y) { return bool(x & y); };
constexpr auto kOr = [](bool x, bool y) { return bool(x | y); };

template <auto kFunction>
void AddOrder(tw::Plugin& p, std::string_view op, const BinaryKernel BinaryKernels::* small) {
  AddSmallFloats(p, op, TW_CPU_FOR_ISA(DetectIsa(p.h), ElementwiseTable), small);
  AddTest<kFunction, double, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(p, op);
}

// Quantised numbers of one range are equal if their codes are equal.
template <class Code>
void AddCodes(tw::Plugin& p, const std::string& type) {
  AddBinary(p, "Equal", type, "bool", kZip<kEqual, Code, bool, 1>);
  AddBinary(p, "NotEqual", type, "bool", kZip<kNotEqual, Code, bool, 1>);
}

template <bool kWanted>
void CompareStrings(tw::In<tw_string> x, tw::In<tw_string> y, tw::Out<bool> z) {
  if (z.size() == 0) return;
  if (Unlike(x.v, y.v, z.v())) {
    z[0] = !kWanted;
    return;
  }
  const Broadcast<2> walk(z.v(), {x.v, y.v});
  const int last = walk.rank - 1;
  walk.ForSegments(0, int64_t(z.size()), [&](const int64_t* from, int64_t to, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      const tw_string& a = x[uint64_t(from[0] + i * walk.step[0][last])];
      const tw_string& b = y[uint64_t(from[1] + i * walk.step[1][last])];
      z[uint64_t(to + i)] = (std::string_view(a.data, a.size) == std::string_view(b.data, b.size)) == kWanted;
    }
  });
}

}  // namespace

void register_compare(tw::Plugin& p) {
  AddOrder<kEqual>(p, "Equal", &BinaryKernels::equal);
  AddOrder<kNotEqual>(p, "NotEqual", &BinaryKernels::not_equal);
  AddOrder<kLess>(p, "Less", &BinaryKernels::less);
  AddOrder<kLessEqual>(p, "LessEqual", &BinaryKernels::less_equal);
  AddOrder<kGreater>(p, "Greater", &BinaryKernels::greater);
  AddOrder<kGreaterEqual>(p, "GreaterEqual", &BinaryKernels::greater_equal);
  AddTest<kEqual, bool, complex64, complex128>(p, "Equal");
  AddTest<kNotEqual, bool, complex64, complex128>(p, "NotEqual");
  AddCodes<int8_t>(p, "qint8");
  AddCodes<uint8_t>(p, "quint8");
  AddCodes<int16_t>(p, "qint16");
  AddCodes<uint16_t>(p, "quint16");
  AddCodes<int32_t>(p, "qint32");
  AddTest<kAnd, bool>(p, "LogicalAnd");
  AddTest<kOr, bool>(p, "LogicalOr");
  p.kernel<CompareStrings<true>>("Equal @CPU").kernel<CompareStrings<false>>("NotEqual @CPU");
}

}  // namespace thalweg::cpu
