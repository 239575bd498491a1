// TopKV2: the largest elements of each row and their positions. NaN counts as larger than all
// numbers; of equal elements the first comes first. Without `sorted` the selected elements keep
// their order.
#include <algorithm>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/common/temp.h"
#include "kernels/common/types.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// The type in which elements are compared: it keeps their values and order, and types that share
// it share the code of the sorts.
template <class T>
using Key = std::conditional_t<std::is_integral_v<T> && sizeof(T) < sizeof(int32_t), int32_t, Wide<T>>;

// An element of a row, read once: a sort of memory that another thread writes would leave its
// bounds.
template <class K, class Position>
struct Entry {
  K value;
  Position at;
};

// Orders entries by their elements. The order is total, so the result does not depend on the
// algorithm.
struct Before {
  template <class K, class Position>
  bool operator()(const Entry<K, Position>& a, const Entry<K, Position>& b) const {
    if (a.value == b.value || (a.value != a.value && b.value != b.value)) return a.at < b.at;
    return b.value < a.value || a.value != a.value;
  }
};

template <class K, class Position>
using Entries = tw::TempVector<Entry<K, Position>>;

// Cuts `order` down to the `keep` largest entries; the worst of them stands last.
template <class K, class Position>
[[gnu::noinline]] void KeepLargest(Entries<K, Position>& order, size_t keep) {
  std::nth_element(order.begin(), order.begin() + int64_t(keep) - 1, order.end(), Before());
  order.resize(keep);
}

template <class K, class Position>
[[gnu::noinline]] void Sort(Entries<K, Position>& order, bool by_value) {
  if (by_value)
    std::sort(order.begin(), order.end(), Before());
  else
    std::sort(order.begin(), order.end(), [](const auto& x, const auto& y) { return x.at < y.at; });
}

// Sets `order` to the k largest entries. It grows to about 2 k entries; an element that does not
// beat the worst of k others is dropped. REQUIRES: 0 < k <= n.
template <class T, class Position>
void Choose(const T* row, int64_t n, int64_t k, bool sorted, Entries<Key<T>, Position>& order) {
  const Before before;
  const size_t keep = size_t(k), most = size_t(std::min(n, std::max<int64_t>(2 * k, 256)));
  order.clear();
  order.reserve(most);
  bool crowded = false;
  for (int64_t i = 0; i < n; ++i) {
    const Entry<Key<T>, Position> entry{Key<T>(row[i]), Position(i)};
    if (crowded && !before(entry, order[keep - 1])) continue;
    order.push_back(entry);
    if (order.size() < most) continue;
    KeepLargest(order, keep);
    crowded = true;
  }
  if (order.size() > keep) KeepLargest(order, keep);
  Sort(order, sorted);
}

// Writes the positions of k entries as a row of the output `indices`, in its type.
template <class K, class Position>
[[gnu::noinline]] void StoreIndices(const Entries<K, Position>& order, int64_t row, int64_t k, const tw::Out<tw::Any>& indices) {
  const auto store = [&](auto* to) {
    for (int64_t i = 0; i < k; ++i) to[row * k + i] = std::remove_reference_t<decltype(*to)>(order[size_t(i)].at);
  };
  switch (indices.v()->dtype) {
    case TW_INT16: return store(reinterpret_cast<int16_t*>(indices.data()));
    case TW_INT32: return store(reinterpret_cast<int32_t*>(indices.data()));
    default: return store(reinterpret_cast<int64_t*>(indices.data()));
  }
}

struct Sizes {
  int64_t rows, n, k;
};

// Checks the arguments and allocates the outputs. `most`: the largest index that the type of
// `indices` has.
Sizes Prepare(const tw_view* input, const tw_view* k_value, int64_t most, const tw::Out<tw::Any>& values, const tw::Out<tw::Any>& indices) {
  const int64_t k = IndexAt(k_value, 0);
  if (input->rank < 1) throw tw::Error{TW_INTERNAL, "input is a scalar; it must have rows"};
  const int64_t n = input->dims[input->rank - 1];
  if (k < 0 || k > n)
    throw tw::Error{TW_INTERNAL, "k is " + std::to_string(k) + "; it must be in [0, " + std::to_string(n) + "], the size of the last axis"};
  if (n - 1 > most) Invalid("the last axis of " + DimsText(input) + " is too long for indices of this type; ask for int64");
  Ints dims;
  for (int i = 0; i + 1 < input->rank; ++i) dims.push(input->dims[i]);
  dims.push(k);
  Allocate(values, dims.at, dims.n);
  Allocate(indices, dims.at, dims.n);
  return {Product(dims.at, 0, dims.n - 1), n, k};
}

template <class T, class Position>
void Run(const tw_frame* f, const Sizes& size, bool sorted, const T* input, T* values, const tw::Out<tw::Any>& indices) {
  ParallelFor(f, size.rows, Cost(size.n, 8), [&](int64_t begin, int64_t end) {
    Entries<Key<T>, Position> order(f);
    for (int64_t r = begin; r < end; ++r) {
      const T* row = input + r * size.n;
      Choose(row, size.n, size.k, sorted, order);
      for (int64_t i = 0; i < size.k; ++i) {
        if constexpr (kIsSmallFloat<T>)
          values[r * size.k + i] = row[order[size_t(i)].at];  // as a float, a NaN has lost its bits
        else
          values[r * size.k + i] = T(order[size_t(i)].value);
      }
      StoreIndices(order, r, size.k, indices);
    }
  });
}

template <class T>
[[gnu::noinline]] void Largest(const tw_frame* f, const Sizes& size, bool sorted, const T* input, T* values,
                               const tw::Out<tw::Any>& indices) {
  if (size.n <= std::numeric_limits<int32_t>::max())
    Run<T, int32_t>(f, size, sorted, input, values, indices);
  else
    Run<T, int64_t>(f, size, sorted, input, values, indices);
}

template <class T, class I>
class TopK {
 public:
  explicit TopK(const tw::Node& n) : sorted_(n.b("sorted")) {}
  void operator()(tw::Frame f, tw::In<T> input, tw::In<tw::Any> k, tw::Out<T> values, tw::Out<I> indices) const {
    const tw::Out<tw::Any> any_indices{indices.f, indices.o};
    const Sizes size = Prepare(input.v, k.v, int64_t(std::numeric_limits<I>::max()), {values.f, values.o}, any_indices);
    if (values.size() != 0) Largest(f.f, size, sorted_, input.data(), values.data(), any_indices);
  }

 private:
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
