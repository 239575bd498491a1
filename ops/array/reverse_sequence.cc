// ReverseSequence reverses the first elements of each row; the row's length says how many.
#include "ops/common/grad.h"
#include "ops/common/types.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

void Rule(const tw::Shape& s) {
  WantVector(s, 1, "seq_lengths");
  const MaybeDims input = In(s, 0);
  const int64_t along = s.i("seq_dim"), batch = s.i("batch_dim");
  if (along < 0 || batch < 0 || along == batch)
    Fail("seq_dim is " + tw::text(along) + " and batch_dim " + tw::text(batch) + "; they must be two axes, counted from the front");
  if (!input) return s.unknown(0);
  const int64_t rank = static_cast<int64_t>(input->size());
  for (const auto& [axis, name] : {std::pair{along, "seq_dim"}, {batch, "batch_dim"}})
    if (axis >= rank)
      Fail(std::string(name) + " is " + tw::text(axis) + ", but 'input' " + Text(input) + " has " + tw::text(rank) + " axes");
  Dims out = *input;
  int64_t& rows = out[static_cast<size_t>(batch)];
  rows = MergeSize(s, rows, s.known(1) ? s.dim(1, 0) : -1, "the size of 'input' along batch_dim and the length of 'seq_lengths'");
  const int64_t most = out[static_cast<size_t>(along)];
  Dims lengths;
  if (s.value(1, &lengths))
    for (int64_t length : lengths)
      if (length < 0 || (Known(most) && length > most))
        Fail("'seq_lengths' holds " + tw::text(length) + "; it must be in [0, " +
             (Known(most) ? tw::text(most) : "the size along seq_dim") + "]");
  s.out(0, out);
}

void Gradient(const tw::Grad& g) {
  g.dx(0, g.op("ReverseSequence", {g.dy(), g.x(1)}, {{"seq_dim", g.i("seq_dim")}, {"batch_dim", g.i("batch_dim")}}));
}

}  // namespace

void register_reverse_sequence(tw::Plugin& p) {
  p.op<Gradient, Rule>(
      "ReverseSequence(input: T, seq_lengths: Tlen) -> (output: T); seq_dim: int; batch_dim: int = 0; T: type; Tlen: " OPS_INDEX
      " = int64; ?data input; doc \"the first seq_lengths[b] elements along seq_dim in reverse order, for each b along batch_dim\"");
}

}  // namespace thalweg::ops
