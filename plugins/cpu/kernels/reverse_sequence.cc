// ReverseSequence: reverses the first elements of each row; seq_lengths says how many.
#include "kernels/common/slices.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

class ReverseSequence {
 public:
  explicit ReverseSequence(const tw::Node& n) : along_(n.i("seq_dim")), batch_(n.i("batch_dim")) {}

  void operator()(tw::Frame frame, tw::In<tw::Any> input, tw::In<tw::Any> seq_lengths, tw::Out<tw::Any> output) const {
    const int rank = input.rank();
    if (along_ < 0 || along_ >= rank || batch_ < 0 || batch_ >= rank || along_ == batch_)
      Invalid("seq_dim " + tw::text(along_) + " and batch_dim " + tw::text(batch_) + " must be two axes of input " + DimsText(input.v));
    const int along = int(along_), batch = int(batch_);
    const int64_t steps = input.dim(along), rows = input.dim(batch);
    CheckLengths(seq_lengths, rows, steps);
    if (input.size() == 0) return;
    // A slice is the elements after the later of the two axes. The number of a slice gives its
    // position on both axes.
    const int last = std::max(along, batch);
    const int64_t inner = Product(input.dims(), last + 1, rank), n = int64_t(input.size()) / inner;
    const int64_t step = Product(input.dims(), along + 1, last + 1), row = Product(input.dims(), batch + 1, last + 1);
    CopySlices(frame.f, input.v, output.v(), n, inner, [&](int64_t k) {
      const int64_t length = IndexAt(seq_lengths.v, uint64_t(k / row % rows)), at = k / step % steps;
      return (at < length ? k + (length - 1 - 2 * at) * step : k) * inner;
    });
  }

 private:
  static void CheckLengths(const tw::In<tw::Any>& lengths, int64_t rows, int64_t steps) {
    if (lengths.rank() != 1 || lengths.dim(0) != rows)
      Invalid("seq_lengths " + DimsText(lengths.v) + " must have an entry for each of the " + tw::text(rows) + " rows along batch_dim");
    for (uint64_t i = 0; i < lengths.size(); ++i)
      if (IndexAt(lengths.v, i) < 0 || IndexAt(lengths.v, i) > steps)
        Invalid("seq_lengths" + PositionText(lengths.v, i) + " is " + tw::text(IndexAt(lengths.v, i)) + "; it must be in [0, " +
                tw::text(steps) + "], the size along seq_dim");
  }

  int64_t along_, batch_;
};

}  // namespace

void register_reverse_sequence(tw::Plugin& p) { p.kernel<ReverseSequence>("ReverseSequence @CPU"); }

}  // namespace thalweg::cpu
