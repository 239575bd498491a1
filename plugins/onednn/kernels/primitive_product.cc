#include "kernels/primitive_product.h"

#include <algorithm>

namespace thalweg::onednn {

PrimitiveProduct::Kind PrimitiveProduct::Make(int64_t m, int64_t n) const {
  const auto& [rows, columns, k, trans_a, trans_b, type] = sizes_;
  Kind kind{m, n, {}, {}, {}, nullptr};
  kind.a = LayoutOf(api_, type, {m, k}, {trans_a ? 1 : k, trans_a ? rows : 1});
  kind.b = LayoutOf(api_, type, {k, n}, {trans_b ? 1 : columns, trans_b ? k : 1});
  kind.c = LayoutOf(api_, type, {m, n}, {columns, 1});
  dnnl_matmul_desc_t op;
  Check(api_.dnnl_matmul_desc_init(&op, &kind.a, &kind.b, nullptr, &kind.c), "describing a product");
  kind.primitive = std::make_unique<Primitive>(Description(api_, &op, Attributes(api_)));
  return kind;
}

PrimitiveProduct::PrimitiveProduct(const Api& api, const Sizes& sizes)
    : api_(api), sizes_(sizes), cells_(CellsOf(api, sizes.m, sizes.n, sizes.k)) {
  for (int64_t i = 0; i < cells_.count(); ++i) {
    const Cell c = CellAt(cells_, i, sizes.m, sizes.n);
    if (std::none_of(kinds_.begin(), kinds_.end(), [&](const Kind& k) { return k.m == c.m && k.n == c.n; }))
      kinds_.push_back(Make(c.m, c.n));
  }
  for (const Kind& k : kinds_) room_ = std::max(room_, cpu::RoundUp64(k.primitive->scratch()));
}

uint64_t PrimitiveProduct::scratch() const { return room_ * uint64_t(std::min<int64_t>(slots_, cells_.count())); }

const PrimitiveProduct::Kind& PrimitiveProduct::KindOf(const Cell& cell) const {
  return *std::find_if(kinds_.begin(), kinds_.end(), [&](const Kind& k) { return k.m == cell.m && k.n == cell.n; });
}

void PrimitiveProduct::Run(const tw_frame* f, const void* a, const void* b, void* c, char* scratch) const {
  const int64_t size = sizes_.type == dnnl_f32 ? sizeof(float) : sizeof(uint16_t);
  std::atomic<dnnl_status_t> failed{dnnl_success};
  cpu::ForEachTask(f, cells_.count(), slots_, [&](int64_t task, int slot) {
    const Cell at = CellAt(cells_, task, sizes_.m, sizes_.n);
    const Kind& k = KindOf(at);
    const auto* from_a = static_cast<const char*>(a) + (sizes_.trans_a ? at.i : at.i * sizes_.k) * size;
    const auto* from_b = static_cast<const char*>(b) + (sizes_.trans_b ? at.j * sizes_.k : at.j) * size;
    const dnnl_status_t s = k.primitive->Run({{DNNL_ARG_SRC, k.a, from_a},
                                              {DNNL_ARG_WEIGHTS, k.b, from_b},
                                              {DNNL_ARG_DST, k.c, static_cast<char*>(c) + (at.i * sizes_.n + at.j) * size}},
                                             scratch + room_ * uint64_t(slot));
    if (s != dnnl_success) failed = s;
  });
  Check(failed, "a product");
}

}  // namespace thalweg::onednn
