// Shared parts of ops that reduce rows by segment: gradients that flow from segments back to rows.
// For gradient callbacks only.
#pragma once
#include "ops/common/grad.h"

namespace thalweg::ops {

// The segments of rows: ids, input 1 or another, has one number per row. Rows with negative
// numbers, if these are possible, are in no segment.
struct RowsOfSegments {
  const tw::Grad& g;
  tw_edge ids;
  bool negative;  // whether numbers may be negative and have more than one axis

  // Returns for each row the entry of e for its segment; zeros if it has none.
  tw_edge Take(tw_edge e) const;
  // Sums rows by segment; the result has as many segments as e.
  tw_edge Sum(tw_edge rows, tw_edge e) const;
  // Returns the number of rows of e, one per segment: an int32 scalar.
  tw_edge Count(tw_edge e) const;
  // Divides e, one row per segment, by the number of rows in the segment, or by its root; empty
  // segments stay unchanged.
  tw_edge Divide(tw_edge e, bool root) const;
};

// The gradients of rows for the largest or smallest of a segment (equal rows share evenly) and for
// the product.
tw_edge ExtremeOfRows(const RowsOfSegments& rows);
tw_edge ProductOfRows(const RowsOfSegments& rows);

}  // namespace thalweg::ops
