// TopKV2: the largest elements of each row and their positions. NaN counts as larger than all
// numbers; of equal elements the first comes first. Without `sorted` the selected elements keep
// their order.
#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/common/temp.h"
#include "kernels/common/types.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// An element of a row, read once: a sort of memory that another thread writes would leave its
// bounds.
template <class T, class Position>
struct Entry {
  T value;
  Position at;
};

// Orders entries by their elements. The order is total, so the result does not depend on the
// algorithm.
struct Before {
  template <class T, class Position>
  bool operator()(const Entry<T, Position>& x, const Entry<T, Position>& y) const {
    const Wide<T> a(x.value), b(y.value);
    if (a == b || (a != a && b != b)) return x.at < y.at;
    return b < a || a != a;
  }
};

// Sets `order` to the k largest entries. It grows to about 2 k entries; an element that does not
// beat the worst of k others is dropped. REQUIRES: 0 < k <= n.
template <class T, class Position>
void Choose(const T* row, int64_t n, int64_t k, bool sorted, tw::TempVector<Entry<T, Position>>& order) {
  const Before before;
  const size_t keep = size_t(k), most = size_t(std::min(n, std::max<int64_t>(2 * k, 256)));
  const auto cut = [&] {
    std::nth_element(order.begin(), order.begin() + k - 1, order.end(), before);  // the worst of them stands last
    order.resize(keep);
  };
  order.clear();
  order.reserve(most);
  bool crowded = false;
  for (int64_t i = 0; i < n; ++i) {
    const Entry<T, Position> entry{row[i], Position(i)};
    if (crowded && !before(entry, order[keep - 1])) continue;
    order.push_back(entry);
    if (order.size() < most) continue;
    cut();
    crowded = true;
  }
  if (order.size() > keep) cut();
  if (sorted)
    std::sort(order.begin(), order.end(), before);
  else
    std::sort(order.begin(), order.end(), [](const auto& x, const auto& y) { return x.at < y.at; });
}

template <class T, class I>
class TopK {
 public:
  explicit TopK(const tw::Node& n) : sorted_(n.b("sorted")) {}
  void operator()(tw::Frame f, tw::In<T> input, tw::In<tw::Any> k_value, tw::Out<T> values, tw::Out<I> indices) const {
    const int64_t k = IndexAt(k_value.v, 0);
    if (input.rank() < 1) throw tw::Error{TW_INTERNAL, "input is a scalar; it must have rows"};
    const int64_t n = input.dim(-1);
    if (k < 0 || k > n)
      throw tw::Error{TW_INTERNAL,
                      "k is " + std::to_string(k) + "; it must be in [0, " + std::to_string(n) + "], the size of the last axis"};
    if (n - 1 > int64_t(std::numeric_limits<I>::max()))
      Invalid("the last axis of " + DimsText(input.v) + " is too long for indices of this type; ask for int64");
    Ints dims;
    for (int i = 0; i + 1 < input.rank(); ++i) dims.push(input.dim(i));
    dims.push(k);
    Allocate(values, dims.at, dims.n);
    Allocate(indices, dims.at, dims.n);
    if (values.size() == 0) return;
    const int64_t rows = Product(dims.at, 0, dims.n - 1);
    if (n <= std::numeric_limits<int32_t>::max())
      Run<int32_t>(f.f, rows, n, k, input.data(), values.data(), indices.data());
    else
      Run<int64_t>(f.f, rows, n, k, input.data(), values.data(), indices.data());
  }

 private:
  template <class Position>
  void Run(const tw_frame* f, int64_t rows, int64_t n, int64_t k, const T* input, T* values, I* indices) const {
    ParallelFor(f, rows, Cost(n, 8), [&](int64_t begin, int64_t end) {
      tw::TempVector<Entry<T, Position>> order(f);
      for (int64_t r = begin; r < end; ++r) {
        const T* row = input + r * n;
        Choose(row, n, k, sorted_, order);
        for (int64_t i = 0; i < k; ++i) {
          values[r * k + i] = order[size_t(i)].value;
          indices[r * k + i] = I(order[size_t(i)].at);
        }
      }
    });
  }

  bool sorted_;
};

template <class... T>
void AddTypes(tw::Plugin& p) {
  p.kernel<TopK<T, int16_t>...>("TopKV2 @CPU");
  p.kernel<TopK<T, int32_t>...>("TopKV2 @CPU");
  p.kernel<TopK<T, int64_t>...>("TopKV2 @CPU");
}

// Sets precision to true if fewer than k classes are predicted above the target, and to false if
// that cannot be decided.
template <class T>
void InTopK(tw::Frame f, tw::In<float> predictions, tw::In<T> targets, tw::In<T> k_value, tw::Out<bool> precision) {
  if (predictions.rank() != 2 || targets.rank() != 1 || targets.dim(0) != predictions.dim(0))
    throw tw::Error{TW_INTERNAL, "predictions of shape " + DimsText(predictions.v) + " and targets of shape " + DimsText(targets.v) +
                                     " do not have equal rows"};
  constexpr int64_t kCounted = 1 << 20;
  const int64_t classes = predictions.dim(1), k = int64_t(k_value[0]);
  ParallelFor(f.f, int64_t(targets.size()), Cost(classes + 1), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const int64_t target = int64_t(targets[uint64_t(r)]);
      const float* row = predictions.data() + r * classes;
      const bool inside = 0 <= target && target < classes;
      const float value = inside ? row[target] : 0;
      int64_t above = 0;
      int32_t infinite = !inside;
      for (int64_t c = 0; c < classes; c += kCounted) {  // in short counters, for the vectoriser
        const int64_t stop = std::min(classes, c + kCounted);
        int32_t some = 0;
        for (int64_t i = c; i < stop; ++i) {
          infinite |= row[i] - row[i] != 0;
          some += row[i] > value;
        }
        above += some;
      }
      precision[uint64_t(r)] = !infinite && above < k;
    }
  });
}

}  // namespace

void register_top_k(tw::Plugin& p) {
  AddTypes<float, double, half, bfloat16, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t>(p);
  p.kernel<InTopK<int32_t>, InTopK<int64_t>>("InTopKV2 @CPU");
}

}  // namespace thalweg::cpu
