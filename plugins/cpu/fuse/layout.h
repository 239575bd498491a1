// The layout of the nodes of a claimed set over one domain.
#ifndef THALWEG_PLUGINS_CPU_FUSE_LAYOUT_H_
#define THALWEG_PLUGINS_CPU_FUSE_LAYOUT_H_

#include <vector>

#include "fuse/fit.h"

namespace thalweg::cpu {

struct SetLayout {
  Domain domain;
  bool whole_rows = false;
  std::vector<const Operation*> operations;  // per node
  std::vector<Fit> fits;
};

// Errors: UNIMPLEMENTED if the nodes have no common domain.
SetLayout LayOutSet(const tw_part& part, const Catalogue& catalogue);

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_FUSE_LAYOUT_H_
