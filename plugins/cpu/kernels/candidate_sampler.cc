// Candidate samplers, and the search for true classes among the drawn ones. Draws equal
// TensorFlow's for the same seeds: each call reserves 512 blocks of the node's stream for every
// class to be drawn, and takes 32-bit numbers from these blocks one by one.
#include <cfloat>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "kernels/class_weights.h"
#include "kernels/common/element.h"
#include "kernels/common/temp.h"
#include "kernels/distributions.h"
#include "kernels/random_stream.h"
#include "kernels/register.h"
#include "kernels/vocabulary.h"

namespace thalweg::cpu {
namespace {

constexpr uint64_t kBlocksPerSample = 512;

// Reads the numbers of a stream one by one.
class Numbers {
 public:
  explicit Numbers(const Philox& stream) : stream_(stream) {}
  uint32_t Bits() {
    if (used_ == bits_.size()) {
      bits_ = stream_.Next();
      used_ = 0;
    }
    return bits_[used_++];
  }
  float Float() { return ToFloat(Bits()); }
  double Double() {
    const uint32_t high = Bits();
    return ToDouble(high, Bits());
  }
  // Returns a uniform number below n. Draws again for numbers that would favour small results.
  // REQUIRES: n > 0.
  uint32_t Below(uint32_t n) {
    return Even<uint32_t>(n, [this] { return Bits(); });
  }
  uint64_t Below(uint64_t n) {
    return Even<uint64_t>(n, [this] {
      const uint64_t low = Bits();
      return low | (uint64_t{Bits()} << 32);
    });
  }

 private:
  template <class U, class Draw>
  static U Even(U n, Draw draw) {
    if ((n & (n - 1)) == 0) return U(draw() & (n - 1));
    const U odd = U(std::numeric_limits<U>::max() % n + 1);
    U x = draw();
    while (x < odd) x = draw();
    return x % n;
  }
  Philox stream_;
  Philox::Block bits_{};
  size_t used_ = std::tuple_size_v<Philox::Block>;
};

// ---- The distributions of samplers: Draw and Probability, and Learn, which receives the true
// classes of a call ----

struct Classes {
  explicit Classes(int64_t n) : range(n) {}
  int64_t range;
  int64_t choices() const { return range; }  // the number of classes that can be drawn
  void Learn(const tw::In<int64_t>&) {}
};

struct Evenly : Classes {
  explicit Evenly(const tw::Node& n) : Classes(n.i("range_max")), each(float(1.0 / double(range))) {}
  int64_t Draw(Numbers& numbers) const { return int64_t(numbers.Below(uint64_t(range))); }
  float Probability(int64_t) const { return each; }
  float each;
};

struct Zipf : Classes {
  explicit Zipf(const tw::Node& n) : Classes(n.i("range_max")), log_range(std::log1p(double(range))) {}
  int64_t Draw(Numbers& numbers) const {
    constexpr double kMost = 0x1.fffffffffffffp62;  // rounding may exceed the range, and int64
    return (int64_t(std::min(std::exp(numbers.Double() * log_range), kMost)) - 1) % range;
  }
  float Probability(int64_t k) const { return float(std::log((double(k) + 2.0) / (double(k) + 1.0)) / log_range); }
  double log_range;
};

struct Learned : Classes {
  explicit Learned(const tw::Node& n) : Classes(n.i("range_max")), weights(Held(n, &held, Bounded(range))) {}
  int64_t Draw(Numbers& numbers) const { return weights.Choose(numbers.Below(uint32_t(weights.total()))); }
  float Probability(int64_t k) const { return float(weights.at(k)) / float(weights.total()); }
  // Weights stop growing before their sum needs more than 31 bits.
  void Learn(const tw::In<int64_t>& true_classes) {
    for (uint64_t i = 0; i < true_classes.size() && weights.total() < std::numeric_limits<int32_t>::max(); ++i)
      weights.Grow(true_classes[i]);
  }
  static int64_t Held(const tw::Node& n, tw::Holding* held, int64_t classes) {
    held->set(tw::Payer(n.host()), uint64_t(classes) * GrowingWeights::kPerClass);
    return classes;
  }
  static int64_t Bounded(int64_t range) {
    if (range >= std::numeric_limits<int32_t>::max())
      Invalid("range_max is " + tw::text(range) + "; weights are kept for fewer than 2^31 - 1 classes");
    return range;
  }
  tw::Holding held;  // declared before the object that it pays for
  GrowingWeights weights;
};

struct Fixed : Classes {
  explicit Fixed(const tw::Node& n)
      : Classes(n.i("range_max")), building(std::in_place, tw::Payer(n.host())), weights(Weights(n, &*building, &held)), alias(weights) {
    for (float w : weights) total += w, likely += w > 0;
    building.reset();
  }
  int64_t Draw(Numbers& numbers) const {
    const float place = numbers.Float();
    return alias.Choose(place, numbers.Below(alias.size()));
  }
  float Probability(int64_t k) const { return weights[size_t(k)] / total; }
  int64_t choices() const { return likely; }

  // Classes are assigned to shards in turn. A shard keeps only its own classes; reserved classes
  // get a weight of 0.
  static std::vector<float> Weights(const tw::Node& n, tw::Charge* building, tw::Holding* held) {
    const int64_t shards = n.i("num_shards"), shard = n.i("shard"), reserved = n.i("num_reserved_ids"), range = n.i("range_max");
    const std::vector<float> given = Given(n, building);
    const float distortion = float(n.f("distortion"));
    std::vector<float> weights;
    const int64_t own = reserved / shards + (reserved % shards > shard);
    if (own > Learned::Bounded(range))
      Invalid("range_max is " + tw::text(range) + ", but num_reserved_ids makes " + tw::text(own) + " classes");
    const uint64_t most = uint64_t(own) + given.size() / uint64_t(shards) + 1;
    held->set(tw::Payer(n.host()), most * (sizeof(float) + AliasTable::kPerClass));
    building->add(most * AliasTable::kWhileBuilt);
    weights.reserve(size_t(most));
    weights.resize(size_t(own));
    int64_t id = own;  // as in TensorFlow: numbered from the shard's own reserved classes
    double sum = 0;
    for (float w : given) {
      if (id++ % shards != shard) continue;
      weights.push_back(std::pow(w, distortion));
      sum += weights.back();
      if (!(weights.back() >= 0)) Invalid("weight " + std::to_string(w) + " to the power of distortion must not be negative");
    }
    if (int64_t(weights.size()) != range)
      Invalid("range_max is " + tw::text(range) + ", but there are weights for " + tw::text(int64_t(weights.size())) + " classes");
    if (!(sum > 0 && sum <= double(FLT_MAX)))
      Invalid("weights to the power of distortion add up to " + std::to_string(sum) + "; it must be a finite number above 0");
    return weights;
  }
  static std::vector<float> Given(const tw::Node& n, tw::Charge* charge) {
    const std::string_view file = n.s("vocab_file");
    const tw_attr& list = n.at("unigrams");
    if (file.empty() == (list.count == 0))
      Invalid(std::string(file.empty() ? "neither of vocab_file and unigrams is" : "both vocab_file and unigrams are") + " set; give one");
    if (!file.empty()) return VocabularyWeights(n.host(), file, charge);
    auto* first = static_cast<const double*>(list.data);
    charge->add(list.count * sizeof(float));
    return {first, first + list.count};
  }

  tw::Holding held;                    // this and the next are declared before the object that they pay for
  std::optional<tw::Charge> building;  // charged until the table is built
  std::vector<float> weights;
  AliasTable alias;
  float total = 0;
  int64_t likely = 0;
};

// Returns the expected number of times that a class of probability p occurs among `count` draws, or
// among `count` different classes that took `tries` draws.
float ExpectedCount(float p, int64_t count, int64_t tries) {
  if (tries == count) return p * float(count);
  return -std::expm1(float(tries) * std::log1p(-p));
}

void CheckTrueClasses(const tw::In<int64_t>& true_classes, int64_t num_true, int64_t range) {
  if (true_classes.rank() != 2 || true_classes.dim(1) != num_true)
    Invalid("true_classes " + DimsText(true_classes.v) + " must be [batch, num_true], and num_true is " + tw::text(num_true));
  for (uint64_t i = 0; i < true_classes.size(); ++i)
    if (true_classes[i] < 0 || true_classes[i] >= range)
      Invalid("true_classes" + PositionText(true_classes.v, i) + " is " + tw::text(true_classes[i]) + "; classes are in [0, " +
              tw::text(range) + ")");
}

template <class Source>
class Sampler {
 public:
  explicit Sampler(const tw::Node& n)
      : num_true_(n.i("num_true")), num_sampled_(n.i("num_sampled")), unique_(n.b("unique")), stream_(n), source_(n) {
    if (unique_ && num_sampled_ > source_.choices())
      Invalid("num_sampled is " + tw::text(num_sampled_) + ", but only " + tw::text(source_.choices()) +
              " different classes can be drawn; unset unique");
  }

  void operator()(tw::Frame frame, tw::In<int64_t> true_classes, tw::Out<int64_t> sampled, tw::Out<float> true_count,
                  tw::Out<float> sampled_count) const {
    CheckTrueClasses(true_classes, num_true_, source_.range);
    const std::lock_guard<std::mutex> lock(mutex_);
    Numbers numbers(stream_.Take(kBlocksPerSample * uint64_t(num_sampled_)));
    const int64_t tries = unique_ ? DrawDifferent(frame, numbers, sampled) : Draw(numbers, sampled);
    const auto expected = [&](int64_t k) { return ExpectedCount(source_.Probability(k), num_sampled_, tries); };
    for (uint64_t i = 0; i < sampled.size(); ++i) sampled_count[i] = expected(sampled[i]);
    for (uint64_t i = 0; i < true_classes.size(); ++i) true_count[i] = expected(true_classes[i]);
    source_.Learn(true_classes);
  }

 private:
  int64_t Draw(Numbers& numbers, const tw::Out<int64_t>& sampled) const {
    for (uint64_t i = 0; i < sampled.size(); ++i) sampled[i] = source_.Draw(numbers);
    return num_sampled_;
  }
  // Returns the number of draws. If classes are very unlikely, this may not end.
  int64_t DrawDifferent(const tw::Frame& frame, Numbers& numbers, const tw::Out<int64_t>& sampled) const {
    const tw::Charge charge(frame, sampled.size() * 48);  // a bucket and a node for each class
    std::unordered_set<int64_t> seen;
    int64_t tries = 0;
    for (uint64_t i = 0; i < sampled.size();) {
      if (++tries % (1 << 16) == 0) tw::check(frame.f->host->run->cancelled(frame.f));
      if (tries == std::numeric_limits<int32_t>::max())
        Invalid("after 2^31 draws there were " + tw::text(int64_t(i)) + " different classes, not " + tw::text(num_sampled_) +
                "; unset unique");
      const int64_t k = source_.Draw(numbers);
      if (seen.insert(k).second) sampled[i++] = k;
    }
    return tries;
  }

  int64_t num_true_, num_sampled_;
  bool unique_;
  RandomStream stream_;
  mutable std::mutex mutex_;  // guards the learned weights
  mutable Source source_;
};

class All {
 public:
  explicit All(const tw::Node& n) : num_true_(n.i("num_true")), num_sampled_(n.i("num_sampled")) {}
  void operator()(tw::In<int64_t> true_classes, tw::Out<int64_t> sampled, tw::Out<float> true_count, tw::Out<float> sampled_count) const {
    CheckTrueClasses(true_classes, num_true_, num_sampled_);
    for (uint64_t i = 0; i < sampled.size(); ++i) sampled[i] = int64_t(i);
    std::fill_n(true_count.data(), true_count.size(), 1.0f);
    std::fill_n(sampled_count.data(), sampled_count.size(), 1.0f);
  }

 private:
  int64_t num_true_, num_sampled_;
};

// Of equal candidates the last one counts.
class AccidentalHits {
 public:
  explicit AccidentalHits(const tw::Node& n) : num_true_(n.i("num_true")) {}
  void operator()(tw::Frame frame, tw::In<int64_t> true_classes, tw::In<int64_t> sampled, tw::Out<int32_t> indices, tw::Out<int64_t> ids,
                  tw::Out<float> weights) const {
    if (true_classes.rank() != 2 || true_classes.dim(1) != num_true_ || sampled.rank() != 1)
      Invalid("true_classes " + DimsText(true_classes.v) + " must be [batch, num_true], where num_true is " + tw::text(num_true_) +
              ", and sampled_candidates " + DimsText(sampled.v) + " a vector");
    const tw::Charge charge(frame, sampled.size() * 56);  // a bucket and a node for each candidate
    std::unordered_map<int64_t, int64_t> place;
    for (uint64_t i = 0; i < sampled.size(); ++i) place[sampled[i]] = int64_t(i);
    tw::TempVector<std::pair<int32_t, int64_t>> hits(frame);
    for (uint64_t i = 0; i < true_classes.size(); ++i)
      if (const auto found = place.find(true_classes[i]); found != place.end())
        hits.emplace_back(int32_t(i / uint64_t(num_true_)), found->second);
    const auto n = int64_t(hits.size());
    Allocate(indices, &n, 1);
    Allocate(ids, &n, 1);
    Allocate(weights, &n, 1);
    for (size_t k = 0; k < hits.size(); ++k) {
      indices[k] = hits[k].first;
      ids[k] = hits[k].second;
      weights[k] = -FLT_MAX;
    }
  }

 private:
  int64_t num_true_;
};

}  // namespace

void register_candidate_sampler(tw::Plugin& p) {
  p.kernel<Sampler<Evenly>>("UniformCandidateSampler @CPU; nondeterministic");
  p.kernel<Sampler<Zipf>>("LogUniformCandidateSampler @CPU; nondeterministic");
  p.kernel<Sampler<Learned>>("LearnedUnigramCandidateSampler @CPU; nondeterministic");
  p.kernel<Sampler<Learned>>("ThreadUnsafeUnigramCandidateSampler @CPU; nondeterministic");
  p.kernel<Sampler<Fixed>>("FixedUnigramCandidateSampler @CPU; nondeterministic");
  p.kernel<All>("AllCandidateSampler @CPU");
  p.kernel<AccidentalHits>("ComputeAccidentalHits @CPU");
}

}  // namespace thalweg::cpu
