// Fuses products with additions. A graph compiler takes a MatMul of float or double together with
// the addition that reads it, if no other node reads the product. The kernel adds each tile of the
// product as soon as it is computed, in place if the other term may be overwritten. A sum of weight
// gradients that a loop keeps is then read and written once a round, not three times. The results
// have the same bits as those of the single nodes.
#ifndef THALWEG_PLUGINS_CPU_FUSE_PRODUCT_SUM_H_
#define THALWEG_PLUGINS_CPU_FUSE_PRODUCT_SUM_H_

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cpu {

void RegisterProductSums(tw::Plugin& p);

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_FUSE_PRODUCT_SUM_H_
