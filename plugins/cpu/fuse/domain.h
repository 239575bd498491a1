// How the values of a fused set lie over its domain: the axes of its largest shape, the last few of which make a row.
#ifndef THALWEG_PLUGINS_CPU_FUSE_DOMAIN_H_
#define THALWEG_PLUGINS_CPU_FUSE_DOMAIN_H_

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cpu {

// kFull: an element for each of the domain. kRow: one row, for all rows. kColumn: an element for each row. kOne: a single number.
enum class Lie : uint8_t { kNone, kFull, kRow, kColumn, kOne };

struct Domain {
  tw_shape shape{};
  int32_t inner = 0;  // axes of a row, as few as make it; 0: nothing depends on rows

  int64_t count() const;
  int64_t columns() const;  // of a row; everything without rows
};

bool Known(const tw_shape& s);
bool Same(const tw_shape& a, const tw_shape& b);
// Of a shape that is known.
int64_t CountOf(const tw_shape& s);

// kNone: it lies in no such way. Without rows nothing is kRow or kColumn.
Lie LieOf(const tw_shape& s, const Domain& d);

// The inner axes that make `s`, which is neither full nor one number, a row or a column of the domain; 0: it cannot be either.
int32_t InnerFor(const tw_shape& s, const tw_shape& domain);

// The inner axes where these are reduced; 0: what is reduced are not whole rows. axes: an int32 or int64 tensor.
int32_t InnerOfReduction(const tw_view* axes, const tw_shape& domain);

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_FUSE_DOMAIN_H_
