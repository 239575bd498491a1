// A product of matrices of float or bfloat16, of known sizes, by oneDNN's primitive, which sums in
// float. It is cut into cells like products by sgemm. Threads: any number of Runs at once, each
// with scratch memory of its own.
#ifndef THALWEG_PLUGINS_ONEDNN_KERNELS_PRIMITIVE_PRODUCT_H_
#define THALWEG_PLUGINS_ONEDNN_KERNELS_PRIMITIVE_PRODUCT_H_

#include <memory>
#include <vector>

#include "kernels/product.h"
#include "primitive.h"

namespace thalweg::onednn {

class PrimitiveProduct {
 public:
  struct Sizes {
    int64_t m, n, k;
    bool trans_a, trans_b;
    dnnl_data_type_t type;
    bool operator==(const Sizes&) const = default;
  };

  // Throws UNIMPLEMENTED if the library has no fast code.
  PrimitiveProduct(const Api& api, const Sizes& sizes);

  uint64_t scratch() const;  // bytes
  // The matrices are dense, with the sizes given to the constructor.
  void Run(const tw_frame* f, const void* a, const void* b, void* c, char* scratch) const;

 private:
  struct Kind {  // cells of one size
    int64_t m, n;
    Layout a, b, c;
    std::unique_ptr<Primitive> primitive;
  };
  const Kind& KindOf(const Cell& cell) const;
  Kind Make(int64_t m, int64_t n) const;

  const Api& api_;
  Sizes sizes_;
  Cells cells_;
  std::vector<Kind> kinds_;
  const int slots_ = cpu::WorkerSlots();
  uint64_t room_ = 0;  // the scratch of one worker
};

}  // namespace thalweg::onednn

#endif  // THALWEG_PLUGINS_ONEDNN_KERNELS_PRIMITIVE_PRODUCT_H_
