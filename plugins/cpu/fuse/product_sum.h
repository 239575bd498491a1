// Products that are added to something: a graph compiler that takes a MatMul of float or double with the addition behind it, where nobody
// else reads the product. It is added tile by tile as it is computed, in place where the other term may be overwritten: a sum that a loop
// keeps of gradients of weights is read and written once a round, not three times. The results have the bits of the single nodes.
#ifndef THALWEG_PLUGINS_CPU_FUSE_PRODUCT_SUM_H_
#define THALWEG_PLUGINS_CPU_FUSE_PRODUCT_SUM_H_

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cpu {

void RegisterProductSums(tw::Plugin& p);

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_FUSE_PRODUCT_SUM_H_
