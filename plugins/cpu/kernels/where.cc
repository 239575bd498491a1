// Where: the positions of all elements that are not zero, in row-major order. Their number is known
// only at run time.
#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/common/temp.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

constexpr int64_t kBlock = 16384;  // elements that one piece counts and later writes

// Returns the bits that make an element differ from zero; the sign bit of a floating-point type
// does not.
uint64_t ValueBits(uint32_t dtype) {
  switch (dtype) {
    case TW_HALF:
    case TW_BFLOAT16: return 0x7fff;
    case TW_FLOAT: return 0x7fffffff;
    case TW_DOUBLE:
    case TW_COMPLEX128: return 0x7fffffffffffffff;
    case TW_COMPLEX64: return 0x7fffffff7fffffff;
    case TW_STRING:
    case TW_RESOURCE:
    case TW_VARIANT:
      throw tw::Error{TW_UNIMPLEMENTED, "elements of type " + TypeText(dtype) + " are neither zero nor not; compare them first"};
    default: return ~uint64_t(0);
  }
}

template <class Unit>
struct NonZero {
  const Unit* data;
  Unit mask;
  int width;  // the units of an element: 2 for complex128
  bool operator()(int64_t i) const { return width == 1 ? (data[i] & mask) != 0 : ((data[2 * i] | data[2 * i + 1]) & mask) != 0; }
};

template <class Unit>
void Find(const tw::Frame& f, const tw::In<tw::Any>& input, const tw::Out<int64_t>& index) {
  const NonZero<Unit> nonzero{reinterpret_cast<const Unit*>(input.data()), Unit(ValueBits(input.v->dtype)),
                              int(ElementBytes(input.v->dtype) / sizeof(Unit))};
  const int64_t n = int64_t(input.size()), blocks = (n + kBlock - 1) / kBlock;
  tw::TempVector<int64_t> first(size_t(blocks + 1), 0, f);  // per block, the index of its first position in the result
  ParallelFor(f.f, blocks, kBlock, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b)
      for (int64_t i = b * kBlock; i < std::min(n, (b + 1) * kBlock); ++i) first[size_t(b + 1)] += nonzero(i);
  });
  std::partial_sum(first.begin(), first.end(), first.begin());
  const int64_t rank = input.rank(), dims[] = {first.back(), rank};
  Allocate(index, dims, 2);
  int64_t* out = index.data();
  ParallelFor(f.f, blocks, kBlock * 4, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      int64_t row = first[size_t(b)];
      const int64_t last = first[size_t(b) + 1];
      for (int64_t i = b * kBlock; i < std::min(n, (b + 1) * kBlock); ++i) {
        if (!nonzero(i)) continue;
        if (row == last) break;  // another thread has written to the input since the count
        int64_t rest = i;
        for (int axis = int(rank); axis-- > 0; rest /= input.dim(axis)) out[row * rank + axis] = rest % input.dim(axis);
        ++row;
      }
      std::fill(out + row * rank, out + last * rank, int64_t{0});  // for the same reason
    }
  });
}

void Where(tw::Frame f, tw::In<tw::Any> input, tw::Out<int64_t> index) {
  ValueBits(input.v->dtype);  // throws for types without a zero
  switch (ElementBytes(input.v->dtype)) {
    case 1: return Find<uint8_t>(f, input, index);
    case 2: return Find<uint16_t>(f, input, index);
    case 4: return Find<uint32_t>(f, input, index);
    default: return Find<uint64_t>(f, input, index);
  }
}

}  // namespace

void register_where(tw::Plugin& p) { p.kernel<Where>("Where @CPU"); }

}  // namespace thalweg::cpu
