// RandomShuffle, StatelessShuffle: the rows of a tensor in random order, equal to TensorFlow's for the same seeds.
// Fisher and Yates: each place but the last takes one of the remaining rows, with the index random
// number modulo the number of remaining rows.
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/common/slices.h"
#include "kernels/common/temp.h"
#include "kernels/key_counter.h"
#include "kernels/random_stream.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

tw::TempVector<int64_t> Shuffled(tw::Frame frame, int64_t n, Philox stream) {
  tw::TempVector<int64_t> order(static_cast<size_t>(n), frame);
  std::iota(order.begin(), order.end(), int64_t{0});
  Philox::Block bits{};
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    if (i % 4 == 0) bits = stream.Next();
    std::swap(order[i], order[i + bits[i % 4] % uint32_t(order.size() - i)]);
  }
  return order;
}

// take(blocks) returns the stream, of which the order uses so many blocks.
template <class Take>
void Shuffle(tw::Frame frame, const tw::In<tw::Any>& value, const tw::Out<tw::Any>& output, Take&& take) {
  if (value.rank() == 0 || value.dim(0) < 2) return CopyRun(frame.f, value.v, 0, output.v(), 0, int64_t(value.size()));
  if (value.size() == 0) return;
  const int64_t rows = value.dim(0), row = int64_t(value.size()) / rows;
  if (rows > int64_t{UINT32_MAX}) Invalid("value " + DimsText(value.v) + " has more rows than 32 random bits can tell apart");
  const tw::TempVector<int64_t> order = Shuffled(frame, rows, take(uint64_t(rows + 2) / 4));
  CopySlices(frame.f, value.v, output.v(), rows, row, [&](int64_t k) { return order[size_t(k)] * row; });
}

class RandomShuffle {
 public:
  explicit RandomShuffle(const tw::Node& n) : stream_(n) {}
  void operator()(tw::Frame frame, tw::In<tw::Any> value, tw::Out<tw::Any> output) const {
    Shuffle(frame, value, output, [this](uint64_t blocks) { return stream_.Take(blocks); });
  }

 private:
  RandomStream stream_;
};

void StatelessShuffle(tw::Frame frame, tw::In<tw::Any> value, tw::In<uint64_t> key, tw::In<uint64_t> counter, tw::In<int32_t> alg,
                      tw::Out<tw::Any> output) {
  const Philox stream = StreamOf(key, counter, alg);
  Shuffle(frame, value, output, [&stream](uint64_t) { return stream; });
}

}  // namespace

void register_random_shuffle(tw::Plugin& p) {
  p.kernel<RandomShuffle>("RandomShuffle @CPU; nondeterministic");
  p.kernel<StatelessShuffle>("StatelessShuffle @CPU");
}

}  // namespace thalweg::cpu
