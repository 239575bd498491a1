// Selects the nodes of a plan that are fused.
#ifndef THALWEG_PLUGINS_CPU_FUSE_CLAIM_H_
#define THALWEG_PLUGINS_CPU_FUSE_CLAIM_H_

#include "fuse/catalogue.h"
#include "fuse/fuse.h"

namespace thalweg::cpu {

// Returns true if any node reads or writes a tensor that is large enough for fusion to pay. Looks
// at shapes only.
bool HasLargeTensors(const tw_part& part);

// Claims sets of nodes. For each node that the catalogue knows and no set takes, reports the
// reason.
void ClaimSets(const tw_part& part, const Catalogue& catalogue, const FuseKinds& kinds, tw_claims* to);

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_FUSE_CLAIM_H_
