// What ops that reduce rows by segment share: gradients that flow from segments back to rows. For gradient callbacks only.
#pragma once
#include "ops/common/grad.h"

namespace thalweg::ops {

// How rows belong to segments: ids is input 1 or another one, one number per row; negative ones, where there may be any, belong to none.
struct RowsOfSegments {
  const tw::Grad& g;
  tw_edge ids;
  bool negative;  // whether there may be negative numbers, and numbers of more than one axis

  // For each row what e has for its segment; zeros where there is none.
  tw_edge Take(tw_edge e) const;
  // Rows added up by segment: as many as e has.
  tw_edge Sum(tw_edge rows, tw_edge e) const;
  // How many segments e has one row for each: an int32 scalar.
  tw_edge Count(tw_edge e) const;
  // e, one row per segment, divided by the number of rows in the segment, or by the root of that; empty segments are left as they are.
  tw_edge Divide(tw_edge e, bool root) const;
};

// The gradient of rows for the largest or smallest of a segment, equals sharing evenly, and for the product.
tw_edge ExtremeOfRows(const RowsOfSegments& rows);
tw_edge ProductOfRows(const RowsOfSegments& rows);

}  // namespace thalweg::ops
