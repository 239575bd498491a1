// Attention as one graph of cuDNN: softmax(scale q k') v, for tensors [..., length, depth] with one
// or two batch axes, without a mask. Applies only if no other node reads the values in between, as
// a gradient would.
#include "kernels/patterns.h"

namespace thalweg::opencl {
namespace {

using Operation = DnnCall::Operation;
using Axes = DnnCall::Axes;

class Attention : public Pattern {
 public:
  struct Nodes {
    uint32_t scores, softmax, mixed;  // scores: the first product; mixed: the second
    std::optional<uint32_t> scaled;
    float scale;
    std::vector<uint32_t> All() const {
      return scaled ? std::vector<uint32_t>{scores, softmax, mixed, *scaled} : std::vector<uint32_t>{scores, softmax, mixed};
    }
  };
  Attention(const tw_host* host, Device& device, const PartView& part, const Nodes& n)
      : device_(device),
        type_(part.type_out(n.scores)),
        copy_(host, device, type_),
        scale_(n.scale),
        turned_(Adjoint(part.node(n.scores), "adj_y")),
        q_at_(part.InputAt(n.scores, 0)),
        k_at_(part.InputAt(n.scores, 1)),
        v_at_(part.InputAt(n.mixed, 1)) {}

  static std::optional<Nodes> Match(const PartView& part, uint32_t first) {
    const auto product = [&](uint32_t i) {
      return (part.op(i) == "BatchMatMulV2" || part.op(i) == "BatchMatMul") && !Adjoint(part.node(i), "adj_x");
    };
    const uint32_t type = part.node(first).n_out ? part.type_out(first) : 0;
    if (!product(first) || (type != TW_HALF && type != TW_BFLOAT16)) return {};
    Nodes n{first, 0, 0, {}, 1};
    std::optional<uint32_t> next = part.OnlyReader(first);
    if (next && (part.op(*next) == "Mul" || part.op(*next) == "RealDiv")) {
      const bool divides = part.op(*next) == "RealDiv";
      const uint32_t other = part.node(*next).in[0].node == int32_t(first) ? 1 : 0;
      const std::optional<float> by = part.NumberIn(*next, other);
      if (!by || (divides && (other == 0 || *by == 0))) return {};
      n.scaled = next;
      n.scale = divides ? 1 / *by : *by;
      next = part.OnlyReader(*next);
    }
    if (!next || part.op(*next) != "Softmax") return {};
    n.softmax = *next;
    next = part.OnlyReader(n.softmax);
    if (!next || !product(*next) || Adjoint(part.node(*next), "adj_y") || part.node(*next).in[0].node != int32_t(n.softmax)) return {};
    n.mixed = *next;
    return n;
  }

  bool Serves(const tw_host* host, const PartView& part, uint32_t first) const override {
    const std::optional<Nodes> n = Match(part, first);
    if (!n) return false;
    const tw_shape &q = part.shape_in(n->scores, 0), &k = part.shape_in(n->scores, 1), &v = part.shape_in(n->mixed, 1);
    if (!AllKnown(q) || !AllKnown(k) || !AllKnown(v) || (q.rank != 3 && q.rank != 4) || k.rank != q.rank || v.rank != q.rank) return false;
    const Axes of_q = AxesOf(q.dims, q.rank), of_k = AxesOf(k.dims, k.rank), of_v = AxesOf(v.dims, v.rank);
    const bool fits = of_q[0] == of_k[0] && of_q[0] == of_v[0] && of_q[1] == of_k[1] && of_q[1] == of_v[1];
    return fits && CallFor(of_q, of_k, of_v, {}, {}, {}, {}).Find(device_, host) != nullptr;
  }

  void Run(const tw_frame* f) const override {
    const tw_view *q = f->in[q_at_], *k = f->in[k_at_], *v = f->in[v_at_], *y = f->out[0];
    const auto axes = [](const tw_view* t) { return AxesOf(t->dims, t->rank); };
    const Aligned queries(copy_, q), keys(copy_, k), values(copy_, v), results(copy_, y);
    const DnnCall call = CallFor(axes(q), axes(k), axes(v), queries.place(), keys.place(), values.place(), results.place());
    const DnnCall::Way way = call.Find(device_, f->host);
    if (!way) throw tw::Error{TW_INTERNAL, "cuDNN has lost the engine of attention"};
    queries.Fetch(f), keys.Fetch(f), values.Fetch(f);
    call.Run(device_, f, "cuDNN attention", way);
    results.Leave(f);
  }

 private:
  static bool Adjoint(const tw_part_node& n, const char* name) { return tw::Attrs{n.attrs, n.n_attrs}.b(name); }
  static Axes AxesOf(const int64_t* dims, int32_t rank) {
    return {rank == 4 ? dims[0] : 1, dims[rank - 3], dims[rank - 2], dims[rank - 1]};
  }

  DnnCall CallFor(const Axes& q_axes, const Axes& k_axes, const Axes& v_axes, const Place& q, const Place& k, const Place& v,
                  const Place& y) const {
    DnnCall call;
    const auto stored = [&](const Axes& axes, const Axes& steps, const Place& at) { return call.Stored(type_, axes, steps, at, kAligned); };
    // The keys as a matrix [depth, length]: as stored, or the transpose of the stored rows.
    Axes keys = k_axes, key_steps = cuda::Dense(k_axes);
    if (turned_) std::swap(keys[2], keys[3]), std::swap(key_steps[2], key_steps[3]);
    const Axes scores = {q_axes[0], q_axes[1], q_axes[2], keys[3]}, rows = {q_axes[0], q_axes[1], q_axes[2], 1},
               mixed = {q_axes[0], q_axes[1], q_axes[2], v_axes[3]};
    const auto inside = [&](const Axes& axes, uint32_t type = TW_FLOAT) { return call.Inside(type, axes, cuda::Dense(axes)); };
    const uint32_t from = stored(q_axes, cuda::Dense(q_axes), q), by = stored(keys, key_steps, k), scale = call.Number(scale_);
    const uint32_t product = inside(scores), scaled = inside(scores), most = inside(rows), less = inside(scores), grown = inside(scores),
                   sum = inside(rows), shares = inside(scores, type_);
    const uint32_t of = stored(v_axes, cuda::Dense(v_axes), v), to = stored(mixed, cuda::Dense(mixed), y);
    call.Compute(Operation::kProduct, {from, by, product});
    call.Compute(Operation::kMultiply, {product, scale, scaled});
    call.Compute(Operation::kLargest, {scaled, most});
    call.Compute(Operation::kSubtract, {scaled, most, less});
    call.Compute(Operation::kExponential, {less, grown});
    call.Compute(Operation::kSum, {grown, sum});
    call.Compute(Operation::kDivide, {grown, sum, shares});
    call.Compute(Operation::kProduct, {shares, of, to});
    return call;
  }

  Device& device_;
  const uint32_t type_;
  const Copy copy_;
  const float scale_;
  const bool turned_;
  const uint32_t q_at_, k_at_, v_at_;
};

}  // namespace

std::unique_ptr<Pattern> FindAttention(const tw_host* host, Device& device, const PartView& part, uint32_t first,
                                       std::vector<uint32_t>* nodes) {
  return FindPattern<Attention>(host, device, part, first, nodes);
}

}  // namespace thalweg::opencl
