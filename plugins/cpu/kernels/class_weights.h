// Random choice of a class by weights that stay fixed, and by weights that grow.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_CLASS_WEIGHTS_H_
#define THALWEG_PLUGINS_CPU_KERNELS_CLASS_WEIGHTS_H_

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

namespace thalweg::cpu {

// Walker's alias method ("An efficient method for generating discrete random variables", 1977).
// Each class has a bucket. The bucket holds part of the class's own weight; the rest of the bucket
// belongs to one other class. Buckets are paired as in TensorFlow, so draws agree with
// TensorFlow's.
class AliasTable {
 public:
  // Bytes per class, and additional bytes per class while the table is built.
  static constexpr uint64_t kPerClass = 8, kWhileBuilt = sizeof(double) + 4 * sizeof(uint32_t);
  explicit AliasTable(const std::vector<float>& weights) : buckets_(weights.size()) {
    double sum = 0;
    for (float w : weights) sum += w;
    std::vector<double> share(weights.size());
    std::vector<uint32_t> light, heavy;
    for (size_t k = 0; k < weights.size(); ++k) {
      share[k] = double(weights[k] * float(weights.size())) / sum;
      buckets_[k] = {float(share[k]), uint32_t(k)};
      (share[k] < 1 ? light : heavy).push_back(uint32_t(k));
    }
    while (!light.empty() && !heavy.empty()) {
      const uint32_t l = light.back(), h = heavy.back();
      light.pop_back();
      heavy.pop_back();
      buckets_[l] = {float(share[l]), h};
      share[h] -= 1 - share[l];
      buckets_[h].own = float(share[h]);
      (share[h] < 1 ? light : heavy).push_back(h);
    }
    // The remaining classes have a share of 1 apart from rounding; each gets its whole bucket.
    for (const auto* rest : {&light, &heavy})
      for (uint32_t k : *rest) buckets_[k] = {1, k};
  }
  // place: a random number in [0, 1); bucket: a random number in [0, size()).
  int64_t Choose(float place, uint32_t bucket) const { return place < buckets_[bucket].own ? int64_t(bucket) : buckets_[bucket].other; }
  uint32_t size() const { return uint32_t(buckets_.size()); }

 private:
  struct Bucket {
    float own;
    uint32_t other;
  };
  std::vector<Bucket> buckets_;
};

// Integer weights, each 1 at first, in a Fenwick tree ("A new data structure for cumulative
// frequency tables", 1994). Node k sums the growth of as many classes as the lowest set bit of k
// says, up to class k - 1. The memory is allocated zeroed (calloc) and stays untouched until a
// class needs it.
class GrowingWeights {
 public:
  static constexpr uint64_t kPerClass = 2 * sizeof(int32_t);
  explicit GrowingWeights(int64_t classes) : classes_(classes), total_(classes), tree_(Zeros(classes + 1)), own_(Zeros(classes)) {
    while (step_ <= classes / 2) step_ *= 2;
  }
  int64_t total() const { return total_; }
  int64_t at(int64_t k) const { return 1 + own_[size_t(k)]; }
  void Grow(int64_t k) {
    ++total_;
    ++own_[size_t(k)];
    for (int64_t node = k + 1; node <= classes_; node += node & -node) ++tree_[size_t(node)];
  }
  // Returns the class whose part of the sum of all weights, in the order of classes, contains
  // `place`. REQUIRES: 0 <= place < total().
  int64_t Choose(int64_t place) const {
    int64_t k = 0;
    for (int64_t step = step_; step > 0; step /= 2) {
      if (k + step > classes_) continue;
      const int64_t weight = step + tree_[size_t(k + step)];
      if (place < weight) continue;
      place -= weight;
      k += step;
    }
    return k;
  }

 private:
  struct Free {
    void operator()(int32_t* p) const { std::free(p); }
  };
  using Counts = std::unique_ptr<int32_t[], Free>;
  static Counts Zeros(int64_t n) {
    Counts counts(static_cast<int32_t*>(std::calloc(size_t(n), sizeof(int32_t))));
    if (!counts) throw std::bad_alloc();
    return counts;
  }

  int64_t classes_, total_, step_ = 1;
  Counts tree_, own_;
};

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_CLASS_WEIGHTS_H_
