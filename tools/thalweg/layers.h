// Where the boxes and arrows of a drawn graph go: in layers from top to bottom, after K. Sugiyama, S. Tagawa and M. Toda, "Methods for
// visual understanding of hierarchical system structures" (1981). Each box lies below all that it reads; within a layer boxes
// are ordered so that few arrows cross, and stand as near as they may to what they are connected with.
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
  // The result: straight down from a point to the next, then over to the one after that, and so on; from the lower edge of `from` to the
  // upper edge of `to`. Against the direction for an arrow that closes a cycle, which `upwards` says.
  std::vector<Point> points;
  bool upwards = false;
};

struct Layout {
  std::vector<LayoutBox> boxes;
  std::vector<LayoutArrow> arrows;
  double width = 0, height = 0;
};

// Fills in the results; the picture begins at (0, 0). An arrow from a box to itself is left without points.
void LayOut(Layout* layout);

}  // namespace thalweg::cli
