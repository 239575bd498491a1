// Sorts the elements of rows: the largest first, NaN before all; of equal elements, the earlier one
// first.
#ifndef THALWEG_PLUGINS_OPENCL_KERNELS_ORDER_H_
#define THALWEG_PLUGINS_OPENCL_KERNELS_ORDER_H_

#include "kernels/layout.h"

namespace thalweg::opencl {

// AHEAD(a, b), as plugins/common/device/sort.h requires.
inline Define GoesAhead() { return {"AHEAD(a, b)", "((a) > (b) || ((a) != (a) && (b) == (b)))"}; }

class Order {
 public:
  static constexpr Size kRun = 8;  // elements sorted by one task

  // Returns the program text for an input of the node's first type. places: the type of the indices
  // that other functions than those of the sort write.
  static std::string Text(const tw::Node& n, uint32_t places) {
    return ProgramText({{"T", tw::dtype_text(n.type_in(0))}, {"I", tw::dtype_text(places)}, {"RUN", std::to_string(kRun)}, GoesAhead()},
                       {"sort.h"});
  }
  Order(const tw::Node& n, uint32_t places) : runs_(n, Text(n, places), "sort_runs"), merge_(n, Text(n, places), "merge_runs") {}

  // Sorts rows of n elements at x, then calls take(places), which reads the sorted positions of the
  // elements: int64, row by row.
  template <class Take>
  void Run(const tw_frame* f, Place x, Size rows, Size n, Take&& take) const {
    constexpr Size kSearch = 64;  // cost of a search for a place
    const uint64_t bytes = uint64_t(rows * n) * sizeof(int64_t);
    const Temporary one(runs_.device(), bytes), other(runs_.device(), n > kRun ? bytes : sizeof(int64_t));
    const Temporary *from = &one, *to = &other;
    runs_.RunTasks(f, rows * ((n + kRun - 1) / kRun), kRun * kRun, x, from->place(), rows, n);
    for (Size width = kRun; width < n; width *= 2) {
      merge_.RunTasks(f, rows * n, kSearch, x, from->place(), to->place(), rows, n, width);
      std::swap(from, to);
    }
    take(from->place());
  }
  Device& device() const { return runs_.device(); }

 private:
  Kernel runs_, merge_;
};

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_KERNELS_ORDER_H_
