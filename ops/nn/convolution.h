// The shape rules and gradients that Conv2D, Conv3D and DepthwiseConv2dNative share, for a
// convolution and its two backward ops.
//
// A family is a struct with
//   kRank                                     axes of an image, of a filter and of a result
//   Result(s, image, filter)                  the shape of the result
//   ImageSizes(s, filter, dy), FilterSizes(s) shapes from the size inputs of the backward ops
//   Emit(g, part, inputs)                     emits the op `part`: "" (forward), "BackpropInput" or
//                                             "BackpropFilter", with the attributes of g
#pragma once
#include <string>
#include <vector>

#include "ops/common/window.h"

namespace thalweg::ops {

// Returns the value of the size input i, with one entry per axis of the image. needs: the remedy in
// the error message.
inline MaybeDims SizesOf(const tw::Shape& s, uint32_t i, const char* name, size_t rank, const char* needs) {
  const MaybeDims sizes = ShapeValue(s, i, name);
  if (sizes && sizes->size() != rank) Fail("'" + std::string(name) + "' has " + std::to_string(sizes->size()) + " entries; " + needs);
  return sizes;
}

template <class Family>
struct Convolution {
  static constexpr int32_t kRank = Family::kRank;
  static constexpr char kFits[] = "the shape of 'out_backprop' and that of the convolution's result";

  static void Rule(const tw::Shape& s) {
    WantRank(s, 0, kRank, "input");
    WantRank(s, 1, kRank, "filter");
    s.out(0, Family::Result(s, In(s, 0), In(s, 1)));
  }

  static void BackInputRule(const tw::Shape& s) {
    WantRank(s, 1, kRank, "filter");
    WantRank(s, 2, kRank, "out_backprop");
    const MaybeDims image = Family::ImageSizes(s, In(s, 1), In(s, 2));
    Merge(s, In(s, 2), Family::Result(s, image, In(s, 1)), kFits);
    s.out(0, image.value_or(Dims(kRank, -1)));
  }

  static void BackFilterRule(const tw::Shape& s) {
    WantRank(s, 0, kRank, "input");
    WantRank(s, 2, kRank, "out_backprop");
    const MaybeDims filter = Family::FilterSizes(s);
    Merge(s, In(s, 2), Family::Result(s, In(s, 0), filter), kFits);
    s.out(0, filter.value_or(Dims(kRank, -1)));
  }

  // The three ops are the three products of one trilinear form in (image, filter, gradient). So the
  // gradients of each are the other two.
  static void Gradient(const tw::Grad& g) {
    g.dx(0, BackInput(g, g.x(1), g.dy()));
    g.dx(1, BackFilter(g, g.x(0), g.dy()));
  }
  static void BackInputGradient(const tw::Grad& g) {
    g.dx(1, BackFilter(g, g.dy(), g.x(2)));
    g.dx(2, Family::Emit(g, "", {g.dy(), g.x(1)}));
  }
  static void BackFilterGradient(const tw::Grad& g) {
    g.dx(0, BackInput(g, g.dy(), g.x(2)));
    g.dx(2, Family::Emit(g, "", {g.x(0), g.dy()}));
  }

 private:
  static tw_edge BackInput(const tw::Grad& g, tw_edge filter, tw_edge dy) {
    return Family::Emit(g, "BackpropInput", {g.shape(0), filter, dy});
  }
  static tw_edge BackFilter(const tw::Grad& g, tw_edge image, tw_edge dy) {
    return Family::Emit(g, "BackpropFilter", {image, g.shape(1), dy});
  }
};

}  // namespace thalweg::ops
