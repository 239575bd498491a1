// Images of another size.
#include <iterator>

#include "../graph.h"

namespace thalweg::tflite {
namespace {

void Resize(Graph& g, Node& n, const char* op, bool corners, bool centers) {
  n.out(g.op(op, {n.in(0), n.in(1)}, {{"align_corners", corners}, {"half_pixel_centers", centers}}));
}

void Bilinear(Graph& g, Node& n) { Resize(g, n, "ResizeBilinear", n.flag(2), n.flag(3)); }
void Nearest(Graph& g, Node& n) { Resize(g, n, "ResizeNearestNeighbor", n.flag(0), n.flag(1)); }

constexpr Entry kTable[] = {{23, "RESIZE_BILINEAR", &Bilinear}, {97, "RESIZE_NEAREST_NEIGHBOR", &Nearest}};

}  // namespace

Family image_translators() { return {std::begin(kTable), std::end(kTable)}; }

}  // namespace thalweg::tflite
