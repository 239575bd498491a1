// Lays out the boxes and arrows of a drawn graph in layers from top to bottom, after K. Sugiyama,
// S. Tagawa and M. Toda, "Methods for visual understanding of hierarchical system structures"
// (1981). Each box lies below all boxes that it reads. Within a layer, boxes are ordered to have
// few crossings, and stand as near as possible to the boxes they are connected with.
#pragma once
#include <cstddef>
#include <vector>

namespace thalweg::cli {

struct Point {
  double x = 0, y = 0;
};

struct LayoutBox {
  double width = 0, height = 0;
  Point centre;  // the result
};

struct LayoutArrow {
  size_t from = 0, to = 0;
  // The result, from the lower edge of `from` to the upper edge of `to`: straight down from one
  // point to the next, then across to the one after it, and so on. If `upwards` is set, the arrow
  // closes a cycle and the points run against its direction.
  std::vector<Point> points;
  bool upwards = false;
};

struct Layout {
  std::vector<LayoutBox> boxes;
  std::vector<LayoutArrow> arrows;
  double width = 0, height = 0;
};

// Fills in the results; the picture starts at (0, 0). An arrow from a box to itself gets no points.
void LayOut(Layout* layout);

}  // namespace thalweg::cli
