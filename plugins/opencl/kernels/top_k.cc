// TopKV2 and NthElement, by sorting the positions of each row.
#include "kernels/order.h"
#include "kernels/register.h"

namespace thalweg::opencl {
namespace {

Size RowsOf(const tw_view* v, Size n) { return n ? Size(v->count) / n : 0; }

class TopK {
 public:
  explicit TopK(const tw::Node& n)
      : order_(n, n.type_out(1)),
        take_(n, Order::Text(n, n.type_out(1)), n.b("sorted") ? "take_first" : "take_standing"),
        sorted_(n.b("sorted")),
        most_(n.type_out(1) == TW_INT32 ? INT32_MAX : INT64_MAX) {}
  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const tw_view* x = f->in[0];
    std::vector<int64_t> k;
    tw::integers(f->in[1], &k);
    if (x->rank < 1) Invalid("input is a scalar; it must have rows");
    const Size n = x->dims[x->rank - 1], wanted = k.at(0);
    if (wanted < 0 || wanted > n)
      Invalid("k is " + tw::text(wanted) + "; it must be in [0, " + tw::text(n) + "], the size of the last axis");
    if (n - 1 > most_) Invalid("the last axis of " + tw::text(x->dims, x->rank) + " is too long for indices of this type; ask for int64");
    Dims dims = DimsOf(x);
    dims.back() = wanted;
    for (uint32_t o = 0; o < 2; ++o)
      if (f->out[o]->rank < 0) tw::check(f->host->tensor->allocate(f, o, dims.data(), uint32_t(dims.size())));
    if (f->out[0]->count == 0) return;
    const Size rows = RowsOf(x, n);
    order_.Run(f, At(x), rows, n, [&](Place order) {
      take_.RunTasks(f, sorted_ ? rows * wanted : rows, sorted_ ? Size(4) : 4 * n, At(x), order, At(f->out[0]), At(f->out[1]), rows, n,
                     wanted);
    });
  }

 private:
  Order order_;
  Kernel take_;
  bool sorted_;
  Size most_;  // largest value of an index
};

class NthElement {
 public:
  explicit NthElement(const tw::Node& n) : order_(n, TW_INT64), take_(n, Order::Text(n, TW_INT64), "take_nth"), reverse_(n.b("reverse")) {}
  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    const tw_view* x = f->in[0];
    std::vector<int64_t> place;
    tw::integers(f->in[1], &place);
    if (x->rank < 1 || place.size() != 1)
      Invalid("input " + tw::text(x->dims, x->rank) + " must have rows and n " + tw::text(f->in[1]->dims, f->in[1]->rank) + " be a scalar");
    const Size n = x->dims[x->rank - 1];
    if (place[0] < 0 || place[0] >= n)
      Invalid("n is " + tw::text(place[0]) + "; the rows of input " + tw::text(x->dims, x->rank) + " have places in [0, " + tw::text(n) +
              ")");
    const Size rows = RowsOf(x, n);
    if (rows == 0) return;
    order_.Run(f, At(x), rows, n, [&](Place order) {
      take_.RunTasks(f, rows, Size(4), At(x), order, At(f->out[0]), rows, n, reverse_ ? place[0] : n - 1 - place[0]);
    });
  }

 private:
  Order order_;
  Kernel take_;
  bool reverse_;
};

}  // namespace

void register_top_k(tw::Plugin& p) {
  for (const std::string t : {"float", "double", "half", "bfloat16", "int32", "int64"}) {
    for (const std::string k : {"int32", "int64"})
      for (const std::string i : {"int32", "int64"}) p.kernel<TopK>("TopKV2(" + t + ", " + k + " -> " + t + ", " + i + ") @OPENCL; host k");
    p.kernel<NthElement>("NthElement(" + t + ", int32 -> " + t + ") @OPENCL; host n");
  }
}

}  // namespace thalweg::opencl
