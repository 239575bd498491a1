// Which nodes of a plan are fused.
#ifndef THALWEG_PLUGINS_CPU_FUSE_CLAIM_H_
#define THALWEG_PLUGINS_CPU_FUSE_CLAIM_H_

#include "fuse/catalogue.h"
#include "fuse/fuse.h"

namespace thalweg::cpu {

// Whether any node makes or reads enough for fusion to pay. Looks at shapes alone.
bool HasLargeTensors(const tw_part& part);

// Takes sets, and says of nodes that it knows and leaves why.
void ClaimSets(const tw_part& part, const Catalogue& catalogue, const FuseKinds& kinds, tw_claims* to);

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_FUSE_CLAIM_H_
