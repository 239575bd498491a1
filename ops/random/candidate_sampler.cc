// Candidate samplers draw classes that stand for all classes that an example does not belong to,
// for losses over many classes. They also return how often each class is expected among the draws.
// ComputeAccidentalHits finds the drawn classes that are true ones.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void WantTrueClasses(const tw::Shape& s) {
  WantRank(s, 0, 2, "true_classes");
  if (s.known(0)) MergeSize(s, s.dim(0, 1), s.i("num_true"), "the columns of 'true_classes' and num_true");
}

// With `unique`, range_max must allow num_sampled different classes. Ops without range_max have no
// limit.
void WantRange(const tw::Shape& s) {
  if (!s.find("range_max")) return;
  const int64_t range = s.i("range_max"), sampled = s.i("num_sampled");
  if (s.b("unique") && sampled > range)
    Fail("num_sampled is " + tw::text(sampled) + ", but range_max allows only " + tw::text(range) + " different classes; unset unique");
}

void SamplerRule(const tw::Shape& s) {
  WantTrueClasses(s);
  WantRange(s);
  const Dims sampled = {s.i("num_sampled")};
  s.out(0, sampled);
  s.out(1, Dims{s.known(0) ? s.dim(0, 0) : -1, s.i("num_true")});
  s.out(2, sampled);
}

void FixedRule(const tw::Shape& s) {
  SamplerRule(s);
  if (s.i("num_reserved_ids") < 0) Fail("num_reserved_ids is " + tw::text(s.i("num_reserved_ids")) + "; it must not be negative");
  if (s.i("shard") >= s.i("num_shards"))
    Fail("shard is " + tw::text(s.i("shard")) + "; it must be below num_shards, " + tw::text(s.i("num_shards")));
}

void HitsRule(const tw::Shape& s) {
  WantTrueClasses(s);
  WantVector(s, 1, "sampled_candidates");
  for (uint32_t o = 0; o < 3; ++o) s.out(o, Dims{-1});
}

std::string Schema(const std::string& name, const std::string& attrs, const std::string& doc) {
  return name +
         "(true_classes: int64) -> (sampled_candidates: int64, true_expected_count: float, sampled_expected_count: float); "
         "num_true: int >= 1; num_sampled: int >= 1; unique: bool; " +
         attrs + "seed: int = 0; seed2: int = 0; stateful; no_gradient \"whole numbers\"; doc \"" + doc + "\"";
}

}  // namespace

void register_candidate_sampler(tw::Plugin& p) {
  const std::string range = "range_max: int >= 1; ";
  p.op<nullptr, SamplerRule>(Schema("UniformCandidateSampler", range, "classes drawn evenly"));
  p.op<nullptr, SamplerRule>(
      Schema("LogUniformCandidateSampler", range, "classes drawn with Zipf's law: k with log((k + 2) / (k + 1)) / log(range_max + 1)"));
  p.op<nullptr, SamplerRule>(Schema("LearnedUnigramCandidateSampler", range,
                                    "classes drawn as often as they were among the true ones of earlier calls, plus one"));
  p.op<nullptr, SamplerRule>(Schema("ThreadUnsafeUnigramCandidateSampler", range,
                                    "classes drawn as often as they were among the true ones of earlier calls, plus one"));
  p.op<nullptr, FixedRule>(Schema(
      "FixedUnigramCandidateSampler",
      range + "vocab_file: string = \"\"; distortion: float = 1.0; num_reserved_ids: int = 0; num_shards: int >= 1 = 1; shard: int >= 0 = "
              "0; unigrams: list(float) = []; touches files; ",
      "classes drawn by given weights"));
  p.op<nullptr, SamplerRule>(Schema("AllCandidateSampler", "", "all classes in their order"));
  p.op<nullptr, HitsRule>(
      "ComputeAccidentalHits(true_classes: int64, sampled_candidates: int64) -> (indices: int32, ids: int64, weights: float); num_true: "
      "int; "
      "seed: int = 0; seed2: int = 0; no_gradient \"whole numbers\"; doc \"where a sampled class is a true one of its row\"");
}

}  // namespace thalweg::ops
