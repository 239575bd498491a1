// Rows of tensors: taking one out, and stacking values into one tensor.
#ifndef THALWEG_PLUGINS_DATA_ROWS_H_
#define THALWEG_PLUGINS_DATA_ROWS_H_

#include "dataset.h"

namespace thalweg::data {

// Returns a copy of row `row` of a tensor of rank 1 or more.
Ref Row(const Call& c, const tw_view& v, int64_t row);
// Copies all elements of `from`, of equal type, to those of `to` from number `at` on. to: not yet
// shared. Threads: several may write different places.
void CopyInto(const Call& c, const tw_view& from, const Ref& to, uint64_t at);
// Stacks component k of the elements along a new first axis. Throws INVALID_ARGUMENT if their
// shapes differ.
Ref Stacked(const Call& c, const std::vector<Element>& elements, size_t k);

}  // namespace thalweg::data

#endif  // THALWEG_PLUGINS_DATA_ROWS_H_
