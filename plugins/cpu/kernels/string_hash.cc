// StringToHashBucketFast: FarmHash Fingerprint64, whose values never change. StringToHashBucketStrong: SipHash-2-4 as in Aumasson and
// Bernstein, "SipHash: a fast short-input PRF" (2012).
#include <farmhash.h>

#include <bit>
#include <cstring>

#include "kernels/common/parallel.h"
#include "kernels/common/text.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

constexpr int64_t kTextCost = 64;  // the cost of a short text

// Returns eight bytes as a little-endian number.
uint64_t Word(const char* p) {
  uint64_t word;
  std::memcpy(&word, p, sizeof word);
  return std::endian::native == std::endian::little ? word : __builtin_bswap64(word);
}

class SipState {
 public:
  explicit SipState(const uint64_t (&key)[2])
      : v_{key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d, key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573} {}
  void Add(uint64_t word) {
    v_[3] ^= word;
    Rounds(2);
    v_[0] ^= word;
  }
  uint64_t Finish() {
    v_[2] ^= 0xff;
    Rounds(4);
    return v_[0] ^ v_[1] ^ v_[2] ^ v_[3];
  }

 private:
  void Rounds(int n) {
    for (; n > 0; --n) {
      v_[0] += v_[1];
      v_[2] += v_[3];
      v_[1] = std::rotl(v_[1], 13) ^ v_[0];
      v_[3] = std::rotl(v_[3], 16) ^ v_[2];
      v_[0] = std::rotl(v_[0], 32);
      v_[2] += v_[1];
      v_[0] += v_[3];
      v_[1] = std::rotl(v_[1], 17) ^ v_[2];
      v_[3] = std::rotl(v_[3], 21) ^ v_[0];
      v_[2] = std::rotl(v_[2], 32);
    }
  }

  uint64_t v_[4];
};

uint64_t SipHash(std::string_view text, const uint64_t (&key)[2]) {
  SipState state(key);
  const size_t whole = text.size() / 8 * 8;
  for (size_t at = 0; at < whole; at += 8) state.Add(Word(text.data() + at));
  char last[8] = {};
  if (text.size() > whole) std::memcpy(last, text.data() + whole, text.size() - whole);
  last[7] = char(text.size());
  state.Add(Word(last));
  return state.Finish();
}

template <class Hash>
void Buckets(const tw::Frame& f, const tw::In<tw_string>& input, const tw::Out<int64_t>& output, uint64_t buckets, Hash&& hash) {
  ParallelFor(f.f, int64_t(output.size()), kTextCost, [&](int64_t begin, int64_t end) {
    for (auto i = uint64_t(begin); i < uint64_t(end); ++i) output[i] = int64_t(hash(View(input[i])) % buckets);
  });
}

class Fast {
 public:
  explicit Fast(const tw::Node& n) : buckets_(uint64_t(n.i("num_buckets"))) {}
  void operator()(tw::Frame f, tw::In<tw_string> input, tw::Out<int64_t> output) const {
    Buckets(f, input, output, buckets_, [](std::string_view text) { return util::Fingerprint64(text.data(), text.size()); });
  }

 private:
  uint64_t buckets_;
};

class Strong {
 public:
  explicit Strong(const tw::Node& n) : buckets_(uint64_t(n.i("num_buckets"))) {
    const std::vector<int64_t> key = n.ints("key");
    for (size_t i = 0; i < 2; ++i) key_[i] = uint64_t(key.at(i));
  }
  void operator()(tw::Frame f, tw::In<tw_string> input, tw::Out<int64_t> output) const {
    Buckets(f, input, output, buckets_, [this](std::string_view text) { return SipHash(text, key_); });
  }

 private:
  uint64_t buckets_, key_[2];
};

}  // namespace

void register_string_hash(tw::Plugin& p) {
  p.kernel<Fast>("StringToHashBucketFast @CPU");
  p.kernel<Strong>("StringToHashBucketStrong @CPU");
}

}  // namespace thalweg::cpu
