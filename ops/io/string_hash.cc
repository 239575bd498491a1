// StringToHashBucketFast and StringToHashBucketStrong hash each string to a bucket number.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void StrongRule(const tw::Shape& s) {
  const uint32_t n = s.at("key").count;
  if (n != 2) Fail("'key' has " + std::to_string(n) + " numbers; give two of 64 bits");
  Set(s, 0, In(s, 0));
}

}  // namespace

void register_string_hash(tw::Plugin& p) {
  p.op(R"(
      StringToHashBucketFast(input: string [*s]) -> (output: int64 [*s]); num_buckets: int >= 1;
      no_gradient "text has no derivative";
      doc "the remainder of FarmHash's 64-bit fingerprint of each text: the same everywhere, forever")");
  p.op<nullptr, StrongRule>(R"(
      StringToHashBucketStrong(input: string [*s]) -> (output: int64 [*s]); num_buckets: int >= 1; key: list(int);
      no_gradient "text has no derivative";
      doc "the remainder of each text's SipHash-2-4 with a key of two numbers: who does not know it cannot fill one bucket")");
}

}  // namespace thalweg::ops
