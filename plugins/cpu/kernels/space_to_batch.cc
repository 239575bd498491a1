// SpaceToBatchND, BatchToSpaceND and their forms for square blocks of images: one copy for each
// place of a block. It moves between the elements at that place of all blocks and a run of the
// batch.
#include "kernels/common/copy.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

struct Blocks {
  Ints sizes, before;  // one entry per axis of a block: its size, and the padding or crop before it

  Blocks(const Ints& block, const tw_view* edges) : sizes(block) {
    if (edges->count != 2 * uint64_t(block.n)) Invalid("a block of " + tw::text(block.n) + " axes needs as many rows of paddings or crops");
    for (int k = 0; k < block.n; ++k) {
      if (sizes[k] < 1) Invalid("block size " + tw::text(sizes[k]) + " must be at least 1");
      before.push(IndexAt(edges, uint64_t(2 * k)));
      if (before[k] < 0) Invalid("a padding or crop of " + tw::text(before[k]) + " must not be negative");
    }
  }
};

// Moves all elements. space: the tensor with whole axes. batch: the one with the places of blocks
// in its batch. kToSpace: which of them is written.
template <bool kToSpace>
void Move(const tw_frame* f, const Blocks& blocks, const tw_view* space, const tw_view* batch) {
  const int axes = blocks.sizes.n, rank = space->rank;
  if (rank < axes + 1 || batch->rank != rank) Invalid("input " + DimsText(space) + " has too few axes for the blocks");
  const tw_view *from = kToSpace ? batch : space, *to = kToSpace ? space : batch;
  if (to->count == 0) return;
  const Ints of_space = DenseStrides(space->dims, rank), of_batch = DenseStrides(batch->dims, rank);
  const int64_t entries = space->dims[0], places = Product(blocks.sizes.at, 0, axes);
  if (batch->dims[0] != entries * places)
    Invalid("a batch of " + tw::text(batch->dims[0]) + " is not " + tw::text(entries) + " entries for each of " + tw::text(places) +
            " places");
  if (!kToSpace) FillZero(f, to);
  for (int64_t place = 0; place < places; ++place) {
    Box box;
    const auto add = [&box](int64_t n, int64_t in_space, int64_t in_batch) {
      box.Add(n, kToSpace ? in_batch : in_space, kToSpace ? in_space : in_batch);
    };
    add(entries, of_space[0], of_batch[0]);
    int64_t at_space = 0, at_batch = place * entries * of_batch[0], behind = places, rest = place;
    bool empty = false;
    for (int k = 0; k < axes; ++k) {
      // Block i has this place at element i * size + at of the axis.
      const int64_t size = blocks.sizes[k], n = space->dims[k + 1];
      behind /= size;
      const int64_t at = rest / behind - blocks.before[k];
      rest %= behind;
      const int64_t first = at < 0 ? (size - 1 - at) / size : 0, end = std::min(batch->dims[k + 1], at < n ? (n - 1 - at) / size + 1 : 0);
      if (end <= first) {
        empty = true;
        break;
      }
      add(end - first, size * of_space[k + 1], of_batch[k + 1]);
      at_space += (first * size + at) * of_space[k + 1];
      at_batch += first * of_batch[k + 1];
    }
    if (empty) continue;
    for (int k = axes + 1; k < rank; ++k) add(space->dims[k], of_space[k], of_batch[k]);
    CopyBox(f, box, from, kToSpace ? at_batch : at_space, to, kToSpace ? at_space : at_batch);
  }
}

void ToBatch(tw::Frame f, tw::In<tw::Any> input, tw::In<tw::Any> block_shape, tw::In<tw::Any> paddings, tw::Out<tw::Any> output) {
  Move<false>(f.f, Blocks(ReadInts(block_shape.v, "block_shape"), paddings.v), input.v, output.v());
}
void ToSpace(tw::Frame f, tw::In<tw::Any> input, tw::In<tw::Any> block_shape, tw::In<tw::Any> crops, tw::Out<tw::Any> output) {
  Move<true>(f.f, Blocks(ReadInts(block_shape.v, "block_shape"), crops.v), output.v(), input.v);
}

template <bool kToSpace>
class Squares {
 public:
  explicit Squares(const tw::Node& n) {
    for (int k = 0; k < 2; ++k) sizes_.push(n.i("block_size"));
  }
  void operator()(tw::Frame f, tw::In<tw::Any> input, tw::In<tw::Any> edges, tw::Out<tw::Any> output) const {
    Move<kToSpace>(f.f, Blocks(sizes_, edges.v), kToSpace ? output.v() : input.v, kToSpace ? input.v : output.v());
  }

 private:
  Ints sizes_;
};

}  // namespace

void register_space_to_batch(tw::Plugin& p) {
  p.kernel<ToBatch>("SpaceToBatchND @CPU");
  p.kernel<ToSpace>("BatchToSpaceND @CPU");
  p.kernel<Squares<false>>("SpaceToBatch @CPU");
  p.kernel<Squares<true>>("BatchToSpace @CPU");
}

}  // namespace thalweg::cpu
