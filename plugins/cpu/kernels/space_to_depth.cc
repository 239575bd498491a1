// SpaceToDepth, DepthToSpace: one copy over seven axes. The channels of a pixel in depth form are
// the rows of a block, its columns and the channels of its pixels.
#include <algorithm>

#include "kernels/common/copy.h"
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

// Sizes and strides of an image by the meaning of its axes. In NCHW_VECT_C, `channels` are groups
// of four, and the last axis is `four`.
struct Image {
  struct Line {
    int64_t size = 1, step = 0;
  };
  Line batch, height, width, channels, four;
  Image(const tw_view* v, std::string_view format) {
    const Ints step = DenseStrides(v->dims, v->rank);
    const auto line = [&](int i) { return Line{v->dims[i], step[i]}; };
    batch = line(0);
    channels = line(format == "NHWC" ? 3 : 1);
    height = line(format == "NHWC" ? 1 : 2);
    width = line(format == "NHWC" ? 2 : 3);
    if (format == "NCHW_VECT_C") four = line(4);
  }
};

class Blocks {
 public:
  explicit Blocks(const tw::Node& n)
      : block_(n.i("block_size")), format_(n.s("data_format")), to_depth_(n.node->op_len && n.node->op[0] == 'S') {}
  void operator()(tw::Frame f, tw::In<tw::Any> input, tw::Out<tw::Any> output) const {
    if (output.size() == 0) return;
    const Image space(to_depth_ ? input.v : output.v(), format_), depth(to_depth_ ? output.v() : input.v, format_);
    const int64_t c = space.channels.size * depth.channels.step;
    struct Axis {
      int64_t size, in_space, in_depth;
    } axes[] = {{space.batch.size, space.batch.step, depth.batch.step},
                {depth.height.size, block_ * space.height.step, depth.height.step},
                {block_, space.height.step, block_ * c},
                {depth.width.size, block_ * space.width.step, depth.width.step},
                {block_, space.width.step, c},
                {space.channels.size, space.channels.step, depth.channels.step},
                {space.four.size, space.four.step, depth.four.step}};
    // Axes are sorted into the order of the output.
    std::stable_sort(std::begin(axes), std::end(axes),
                     [&](const Axis& a, const Axis& b) { return to_depth_ ? a.in_depth > b.in_depth : a.in_space > b.in_space; });
    Box box;
    for (const Axis& a : axes) box.Add(a.size, to_depth_ ? a.in_space : a.in_depth, to_depth_ ? a.in_depth : a.in_space);
    CopyBox(f.f, box, input.v, 0, output.v(), 0);
  }

 private:
  int64_t block_;
  std::string format_;
  bool to_depth_;
};

}  // namespace

void register_space_to_depth(tw::Plugin& p) {
  p.kernel<Blocks>("SpaceToDepth @CPU");
  p.kernel<Blocks>("DepthToSpace @CPU");
}

}  // namespace thalweg::cpu
