// The layout of the values of a fused set over its domain. The domain is the largest shape of the
// set; its last few axes form a row.
#ifndef THALWEG_PLUGINS_CPU_FUSE_DOMAIN_H_
#define THALWEG_PLUGINS_CPU_FUSE_DOMAIN_H_

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cpu {

// The layout of a value. kFull: one element per element of the domain. kRow: one row, shared by all
// rows. kColumn: one element per row. kOne: a single number.
enum class Lie : uint8_t { kNone, kFull, kRow, kColumn, kOne };

struct Domain {
  tw_shape shape{};
  int32_t inner = 0;  // the number of axes that form a row, as few as possible; 0 if nothing depends on rows

  int64_t count() const;
  int64_t columns() const;  // elements of a row; all elements if there are no rows
};

bool Known(const tw_shape& s);
bool Same(const tw_shape& a, const tw_shape& b);
// REQUIRES: the shape is known.
int64_t CountOf(const tw_shape& s);

// Returns kNone if no layout applies. Returns kRow or kColumn only if the domain has rows.
Lie LieOf(const tw_shape& s, const Domain& d);

// Returns the number of inner axes with which `s` is a row or a column of the domain, or 0 if `s`
// can be neither. REQUIRES: `s` is neither full nor one number.
int32_t InnerFor(const tw_shape& s, const tw_shape& domain);

// Returns the number of inner axes that a reduction over `axes` reduces, or 0 if it does not reduce
// whole rows. `axes` is an int32 or int64 tensor.
int32_t InnerOfReduction(const tw_view* axes, const tw_shape& domain);

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_FUSE_DOMAIN_H_
