#include "fuse/product_sum.h"

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <variant>

#include "fuse/domain.h"
#include "kernels/factor.h"

namespace thalweg::cpu {
namespace {

constexpr int32_t kPriority = -3;  // after the sets of fuse.h, which save more
constexpr uint32_t kNone = UINT32_MAX;
// Elements of the sum. Below this size, fusing saves less than a call costs.
constexpr int64_t kLarge = 4096;
// In a deeper product the addition is a small part of the cost. A product that is cut along k would
// also be added in another order.
constexpr int64_t kDeepest = 64;
static_assert(kDeepest <= kGemmDepth);

std::string_view OpOf(const tw_part_node& n) { return {n.op, n.op_len}; }

// Returns true for an addition of two values of one known shape.
bool IsSum(const tw_part_node& n) {
  const std::string_view op = OpOf(n);
  return (op == "Add" || op == "AddV2" || op == "AddN") && n.n_in == 2 && Known(n.shapes[0]) && Known(n.shapes[1]) &&
         Same(n.shapes[0], n.shapes[1]);
}

// Returns the product without its addresses. If the node cannot be fused, returns nothing and sets
// *why to the reason.
template <class T>
std::optional<MatrixProduct<T>> ProductIn(const tw_part_node& n, const char** why) {
  const tw_shape *a = n.shapes, *b = a + 1, *c = a + 2;
  if (!Known(*a) || !Known(*b) || !Known(*c)) {
    *why = "only running tells the shapes of the product";
    return std::nullopt;
  }
  const tw::Attrs attrs{n.attrs, n.n_attrs};
  const Factor fa = FactorOf(a->dims, a->rank, attrs.b("transpose_a"), "a"), fb = FactorOf(b->dims, b->rank, attrs.b("transpose_b"), "b");
  CheckSizes(fa, fb, c->dims, c->rank);
  const MatrixProduct<T> p = ProductOf<T>(fa, fb);
  if (p.m < 2 || p.n < 2 || p.k < 1 || CountOf(*c) < kLarge) {
    *why = "the sum is small, or of vectors";
  } else if (p.k > kDeepest) {
    *why = "the product is so deep that adding it costs little beside it";
  } else {
    return p;
  }
  return std::nullopt;
}

// Returns for each node the only node that reads it, or kNone if it has more readers or a reader
// outside the part.
std::vector<uint32_t> OnlyReaders(const tw_part& part) {
  std::vector<uint32_t> reads(part.n_nodes, 0), reader(part.n_nodes, kNone);
  const auto note = [&](int32_t node, uint32_t by) {
    if (node < 0) return;
    ++reads[size_t(node)];
    reader[size_t(node)] = by;
  };
  for (uint32_t i = 0; i < part.n_nodes; ++i) {
    const tw_part_node& n = *part.nodes[i];
    for (uint32_t k = 0; k < n.n_in; ++k) note(n.in[k].node, i);
    for (uint32_t k = 0; k < n.n_after; ++k) note(n.after[k], kNone);
  }
  for (uint32_t o = 0; o < part.n_out; ++o) note(part.out[o].node, kNone);
  for (uint32_t i = 0; i < part.n_nodes; ++i)
    if (reads[i] != 1) reader[i] = kNone;
  return reader;
}

tw_status* Claim(const tw_host* h, void*, void*, const tw_part* part, tw_claims* to) {
  return tw::guard(h, [&] {
    std::vector<uint32_t> readers;
    for (uint32_t i = 0; i < part->n_nodes; ++i) {
      const tw_part_node& n = *part->nodes[i];
      if (OpOf(n) != "MatMul" || (n.types[0] != TW_FLOAT && n.types[0] != TW_DOUBLE)) continue;
      if (readers.empty()) readers = OnlyReaders(*part);
      const uint32_t sum = readers[i];
      if (sum == kNone || part->nodes[sum]->n_after || !IsSum(*part->nodes[sum])) continue;
      const char* why = nullptr;
      if (n.types[0] == TW_FLOAT ? bool(ProductIn<float>(n, &why)) : bool(ProductIn<double>(n, &why))) {
        const uint32_t set[] = {i, sum};
        tw::check(to->take(to, set, 2, kPriority));
      } else {
        tw::check(to->refuse(to, i, why, std::strlen(why)));
      }
    }
  });
}

// A set, ready to run: c = term + a b. Inputs are indices into the frame.
struct Sum {
  GemmTables tables;
  std::variant<MatrixProduct<float>, MatrixProduct<double>> product;
  uint32_t a, b, term;
  int slots = WorkerSlots();

  uint64_t scratch() const {
    return std::visit([](const auto& p) { return ProductScratch(p); }, product) * uint64_t(slots);
  }
};

template <class T>
MatrixProduct<T> Wanted(const tw_part_node& n) {
  const char* why = nullptr;
  const auto p = ProductIn<T>(n, &why);
  if (!p) throw tw::Error{TW_UNIMPLEMENTED, why};
  return *p;
}

void SetSizes(const tw_part& part, Sum* s) {
  if (!IsSum(*part.nodes[1])) throw tw::Error{TW_UNIMPLEMENTED, "the product is added to a value of another shape"};
  const tw_part_node& n = *part.nodes[0];
  if (n.types[0] == TW_FLOAT)
    s->product = Wanted<float>(n);
  else
    s->product = Wanted<double>(n);
}

tw_status* Compile(const tw_compile_call* c, void** out_state) {
  return tw::guard(c->host, [&] {
    const tw_part_node &product = *c->part->nodes[0], &sum = *c->part->nodes[1];
    auto s = std::make_unique<Sum>();
    s->tables = GemmTablesFor(c->host);
    s->a = product.in[0].port;
    s->b = product.in[1].port;
    s->term = sum.in[sum.in[0].node == 0 ? 1 : 0].port;
    SetSizes(*c->part, s.get());
    *out_state = s.release();
  });
}

void Destroy(const tw_host*, void* state) { delete static_cast<Sum*>(state); }

// If the sizes have changed, the set is compiled again.
tw_status* Prepare(const tw_compile_call* c, void* state, uint64_t* out_scratch) {
  return tw::guard(c->host, [&] {
    const Sum& s = *static_cast<const Sum*>(state);
    Sum now = s;
    SetSizes(*c->part, &now);
    const auto sizes = [](const auto& p) { return std::array{p.m, p.n, p.k}; };
    if (std::visit(sizes, now.product) != std::visit(sizes, s.product)) throw tw::Error{TW_UNIMPLEMENTED, "it was made for other sizes"};
    *out_scratch = s.scratch();
  });
}

uint32_t InPlace(const tw_host*, const void* state, uint32_t, uint32_t in) {
  const Sum& s = *static_cast<const Sum*>(state);
  return in == s.term && in != s.a && in != s.b;
}

tw_status* Execute(const tw_frame* f) {
  return tw::guard(f->host, [&] {
    const Sum& s = *static_cast<const Sum*>(f->state);
    const Workspace work(f, s.scratch());
    std::visit(
        [&](auto p) {
          using T = std::remove_pointer_t<decltype(p.c)>;
          p.a = static_cast<const T*>(f->in[s.a]->data);
          p.b = static_cast<const T*>(f->in[s.b]->data);
          p.c = static_cast<T*>(f->out[0]->data);
          p.term = static_cast<const T*>(f->in[s.term]->data);
          Multiply(s.tables, f, p, s.slots, work.data());
        },
        s.product);
  });
}

}  // namespace

void RegisterProductSums(tw::Plugin& p) {
  tw_compiler_def d{TW_SIZED(tw_compiler_def), TW_S("product_sum"), TW_S("CPU")};
  d.claim = Claim;
  d.compile = Compile;
  d.execute = Execute;
  d.destroy = Destroy;
  d.prepare = Prepare;
  d.inplace = InPlace;
  tw::check(tw_add_compiler(p.r, &d));
}

}  // namespace thalweg::cpu
