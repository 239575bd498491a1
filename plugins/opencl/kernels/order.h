// The elements of rows in order, as a building block: the largest first, NaN before all, of equals the one that stands first.
#ifndef THALWEG_PLUGINS_OPENCL_KERNELS_ORDER_H_
#define THALWEG_PLUGINS_OPENCL_KERNELS_ORDER_H_

#include "kernels/layout.h"

namespace thalweg::opencl {

// AHEAD(a, b), as plugins/common/device/sort.h asks for it.
inline Define GoesAhead() { return {"AHEAD(a, b)", "((a) > (b) || ((a) != (a) && (b) == (b)))"}; }

class Order {
 public:
  static constexpr Size kRun = 8;  // sorted by one task

  // Program text for an input of the node's first type; places: the type of indices that functions beside those of the order write.
  static std::string Text(const tw::Node& n, uint32_t places) {
    return ProgramText({{"T", tw::dtype_text(n.type_in(0))}, {"I", tw::dtype_text(places)}, {"RUN", std::to_string(kRun)}, GoesAhead()},
                       {"sort.h"});
  }
  Order(const tw::Node& n, uint32_t places) : runs_(n, Text(n, places), "sort_runs"), merge_(n, Text(n, places), "merge_runs") {}

  // take(places) reads where the elements of rows of n at x stand, in order: int64, row by row.
  template <class Take>
  void Run(const tw_frame* f, Place x, Size rows, Size n, Take&& take) const {
    constexpr Size kSearch = 64;  // what finding a place costs
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
