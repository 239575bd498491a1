// Scaled dot-product attention and its gradient. It processes rows of scores in blocks that fit
// into a limited buffer: the rows of several matrices, or of some queries of one.
#include "kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "kernels/copy.h"
#include "kernels/matmul.h"
#include "kernels/register.h"

namespace thalweg::opencl {
namespace {

constexpr uint64_t kMostScores = uint64_t{1} << 24;  // bytes per block, unless kLeastRows rows are more
constexpr Size kLeastRows = 64;                      // rows of a matrix that are worth a product

// Returns the type of the scores for an element type.
uint32_t WideType(uint32_t type) { return type == TW_DOUBLE ? TW_DOUBLE : TW_FLOAT; }

// sums: the type of the logsumexp output.
std::string Text(const tw::Node& n, uint32_t sums) {
  const uint32_t type = n.type_in(0);
  return ProgramText({{"T", tw::dtype_text(type)}, {"W", tw::dtype_text(WideType(type))}, {"U", tw::dtype_text(sums)}}, {"attention.h"});
}
std::string Text(const tw::Node& n) { return Text(n, WideType(n.type_in(0))); }

// A bias that broadcasts to the scores; without a bias, `at` is any place.
struct Bias {
  Bias(const tw_frame* f, const Place& any) : at(any), steps(1) {
    const uint32_t first = f->in_at[3];
    if (f->in_at[4] == first) return;
    const tw_view *v = f->in[first], *q = f->in[0], *k = f->in[1];
    Dims scores = DimsOf(q);
    scores.back() = k->dims[k->rank - 2];
    Dims all = BroadcastSteps(DimsOf(v), scores);
    column = all.back();
    scores.pop_back(), all.pop_back();
    Layout rows(scores, {all});
    rows.PushInner();
    at = At(v);
    axes = rows.axes;
    steps = rows.steps;
    there = true;
  }
  Place at;
  bool there = false;
  Size column = 0;
  Axes axes{};
  std::vector<Steps> steps;
};

// Calls the device's vendor library, if it has one that can do this.
template <class D>
bool AttendsByItsLibrary(D& device, const tw_frame* f, const AttentionCall& call) {
  if constexpr (requires { device.dnn(); })
    return AttendsByLibrary(device, f, call);
  else
    return static_cast<void>(f), static_cast<void>(call), false;
}
template <class D>
bool AttentionGradientsByItsLibrary(D& device, const tw_frame* f, const AttentionCall& call) {
  if constexpr (requires { device.dnn(); })
    return AttentionGradientsByLibrary(device, f, call);
  else
    return static_cast<void>(f), static_cast<void>(call), false;
}

class Attention {
 public:
  explicit Attention(const tw::Node& n)
      : type_(n.type_in(0)),
        wide_(WideType(type_)),
        given_(n.f("scale")),
        causal_(n.b("is_causal")),
        device_(*static_cast<Device*>(n.node->device)),
        matmul_(n, wide_),
        copy_(n, type_),
        shares_(n, Text(n), "shares"),
        widen_(n, Text(n), "widen"),
        narrow_(n, Text(n), "narrow") {}

 protected:
  AttentionCall CallOf(const tw_frame* f) const {
    const tw_view *q = f->in[0], *k = f->in[1], *v = f->in[2];
    AttentionCall c{};
    c.type = type_;
    const Dims dims = DimsOf(q);
    c.heads = q->rank > 3 ? q->dims[q->rank - 3] : 1;
    c.batch = Count(Dims(dims.begin(), dims.end() - 2));
    c.queries = q->dims[q->rank - 2];
    c.keys = k->dims[k->rank - 2];
    c.depth = q->dims[q->rank - 1];
    c.width = v->dims[v->rank - 1];
    c.scale = given_ != 0 ? given_ : 1 / std::sqrt(double(std::max<Size>(c.depth, 1)));
    c.causal = causal_;
    c.query = At(q), c.key = At(k), c.value = At(v);
    return c;
  }

  // A tensor in the wide type: the tensor itself, or a copy for the duration of a call.
  class Widened {
   public:
    Widened(const Attention& a, Place of, Size n) : owner_(a), of_(of), n_(n), at_(of) {
      if (a.type_ == a.wide_ || n == 0) return;
      memory_ = std::make_unique<Temporary>(a.device_, uint64_t(n) * ElementBytes(a.wide_));
      at_ = memory_->place();
    }
    const Widened& Fetch(const tw_frame* f) const {
      if (memory_) owner_.widen_->RunTasks(f, n_, Size(1), of_, at_, n_);
      return *this;
    }
    void Leave(const tw_frame* f) const {
      if (memory_) owner_.narrow_->RunTasks(f, n_, Size(1), at_, of_, n_);
    }
    Place After(Size elements) const { return at_.After(elements); }

   private:
    const Attention& owner_;
    const Place of_;
    const Size n_;
    Place at_;
    std::unique_ptr<Temporary> memory_;
  };

  // A block of scores computed at once: all scores of `matrices` matrices, or those of some queries
  // of one.
  struct Block {
    Size matrix, matrices, query, queries, keys;
    Size first, rows;  // among the rows of all matrices
  };
  class Blocks {
   public:
    Blocks(const AttentionCall& c, uint32_t element_bytes) : c_(c) {
      const uint64_t row = uint64_t(c.keys) * element_bytes, all = uint64_t(c.queries) * row;
      matrices_ = std::clamp<Size>(Size(kMostScores / all), 1, c.batch);
      queries_ =
          all <= kMostScores ? c.queries : std::min(c.queries, std::max(kLeastRows, Size(kMostScores / row) / kLeastRows * kLeastRows));
    }
    Size rows() const { return matrices_ * queries_; }  // maximum per block
    // The last queries of a matrix come first and see all keys that any query sees. With a causal
    // mask, other blocks get only the keys that they see.
    template <class F>
    void Each(F&& f) const {
      for (Size b = 0; b < c_.batch; b += matrices_) {
        const Size n = std::min(matrices_, c_.batch - b);
        for (Size end = c_.queries; end > 0;) {
          const Size begin = (end - 1) / queries_ * queries_, count = end - begin;
          const Size keys = c_.causal && end < c_.queries ? std::min(c_.keys, end) : c_.keys;
          f(Block{b, n, begin, count, keys, b * c_.queries + begin, n * count});
          end = begin;
        }
      }
    }

   private:
    const AttentionCall& c_;
    Size matrices_, queries_;
  };
  uint64_t ScoreBytes(const AttentionCall& c, const Blocks& blocks) const { return uint64_t(blocks.rows() * c.keys) * ElementBytes(wide_); }

  // Sets `to` to a b for `batch` consecutive matrices in all three; with `more`, adds a b to it.
  void Multiply(const tw_frame* f, Size batch, const MatrixSizes& s, const Place& a, bool a_turned, const Place& b, bool b_turned,
                const Place& to, bool more = false) const {
    const Matrix x = a_turned ? Transposed(RowMajor(a, s.m)) : RowMajor(a, s.depth);
    const Matrix y = b_turned ? Transposed(RowMajor(b, s.depth)) : RowMajor(b, s.n);
    matmul_.RunBatch(f, s, x, y, to, s.n, more, {batch}, {s.m * s.depth}, {s.depth * s.n}, {s.m * s.n});
  }

  // Calls `kernel`, which works on rows of scores, with their common arguments.
  template <class... Before>
  void OverRows(const Kernel& kernel, const tw_frame* f, const AttentionCall& c, const Bias& bias, Size tasks, Size cost, const Block& b,
                const Before&... before) const {
    const auto run = [&](auto scale) {
      kernel.RunTasks(f, tasks, cost, before..., b.first, b.rows, c.queries, b.keys, scale, Size(c.causal), Size(bias.there), bias.column,
                      bias.axes, bias.steps);
    };
    if (wide_ == TW_DOUBLE)
      run(c.scale);
    else
      run(float(c.scale));
  }
  // factors: true if a factor per row follows the shifts of the rows.
  void Share(const tw_frame* f, const AttentionCall& c, const Bias& bias, const Place& scores, const Block& b, const Place& shifts,
             bool factors) const {
    OverRows(shares_, f, c, bias, b.rows * b.keys, 20, b, scores, bias.at, shifts, Size(factors));
  }

  const uint32_t type_, wide_;
  const double given_;
  const bool causal_;
  Device& device_;
  const MatMul matmul_;
  const Copy copy_;
  const Kernel shares_;
  const LateKernel widen_, narrow_;
};

class Forward : Attention {
 public:
  explicit Forward(const tw::Node& n)
      : Attention(n),
        logarithms_(n, Text(n, n.type_out(1)), "logarithms"),
        clear_unseen_(n, Text(n), "clear_unseen"),
        piece_sums_(n, Text(n), "piece_sums"),
        join_pieces_(n, Text(n, n.type_out(1)), "join_pieces") {}

  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    AttentionCall c = CallOf(f);
    c.output = At(f->out[0]), c.logsumexp = At(f->out[1]);
    const Size all = c.batch * c.queries;
    if (all == 0) return;
    const Bias bias(f, c.query);
    if (c.keys == 0) {
      if (c.width > 0) copy_.Zero(f, all * c.width, c.output);
      const Temporary parts(device_, 2 * uint64_t(all) * ElementBytes(wide_));
      return OverRows(logarithms_, f, c, bias, all, 1, {0, c.batch, 0, c.queries, 0, 0, all}, parts.place(), bias.at, c.logsumexp,
                      parts.place());
    }
    if (!bias.there && AttendsByItsLibrary(device_, f, c)) return;
    const Widened query(*this, c.query, all * c.depth), key(*this, c.key, c.batch * c.keys * c.depth),
        value(*this, c.value, c.batch * c.keys * c.width), output(*this, c.output, all * c.width);
    query.Fetch(f), key.Fetch(f), value.Fetch(f);
    const Blocks blocks(c, ElementBytes(wide_));
    const Temporary memory(device_, ScoreBytes(c, blocks)), parts_memory(device_, 2 * uint64_t(blocks.rows()) * ElementBytes(wide_));
    const Place scores = memory.place(), parts = parts_memory.place();
    blocks.Each([&](const Block& b) {
      Multiply(f, b.matrices, {b.queries, b.keys, c.depth}, query.After(b.first * c.depth), false, key.After(b.matrix * c.keys * c.depth),
               true, scores);
      const Place mixed = output.After(b.first * c.width);
      Logarithms(f, c, bias, scores, b, parts);
      Share(f, c, bias, scores, b, parts, true);
      Multiply(f, b.matrices, {b.queries, c.width, b.keys}, scores, false, value.After(b.matrix * c.keys * c.width), false, mixed);
      clear_unseen_.RunTasks(f, b.rows, Size(1), parts.After(b.rows), mixed, b.rows, c.width);
    });
    output.Leave(f);
  }

 private:
  // A few long rows are cut into pieces. If a task reads consecutive elements best, the pieces are
  // consecutive; otherwise they interleave, so that neighbouring tasks read neighbours.
  void Logarithms(const tw_frame* f, const AttentionCall& c, const Bias& bias, const Place& scores, const Block& b,
                  const Place& parts) const {
    constexpr Size kEnough = 1 << 15, kLeast = 256;  // rows that fill a device; keys per piece
    const Size pieces = std::min(kEnough / b.rows, b.keys / kLeast);
    const Place sums = c.logsumexp.After(b.first);
    if (pieces < 2) return OverRows(logarithms_, f, c, bias, b.rows, 20 * b.keys, b, scores, bias.at, sums, parts);
    const Temporary memory(device_, 2 * uint64_t(b.rows * pieces) * ElementBytes(wide_));
    const Place found = memory.place();
    const Size length = (b.keys + pieces - 1) / pieces, step = device_.blocked() ? 1 : pieces;
    OverRows(*piece_sums_, f, c, bias, b.rows * pieces, 20 * length, b, scores, bias.at, found, pieces, length, step);
    join_pieces_->RunTasks(f, b.rows, 20 * pieces, found, sums, parts, pieces, b.rows);
  }

  const Kernel logarithms_, clear_unseen_;
  const LateKernel piece_sums_, join_pieces_;
};

class Backward : Attention {
 public:
  explicit Backward(const tw::Node& n) : Attention(n), row_dots_(n, Text(n), "row_dots"), slopes_(n, Text(n), "slopes") {}

  void operator()(tw::Frame frame) const {
    const tw_frame* f = frame.f;
    AttentionCall c = CallOf(f);
    const uint32_t output = f->in_at[4];
    c.output = At(f->in[output]), c.logsumexp = At(f->in[output + 1]), c.grad_output = At(f->in[output + 2]);
    c.grad_query = At(f->out[0]), c.grad_key = At(f->out[1]), c.grad_value = At(f->out[2]);
    const Size all = c.batch * c.queries, keys = c.batch * c.keys;
    if (all == 0 || keys == 0) {
      for (uint32_t o = 0; o < 3; ++o)
        if (f->out[o]->count > 0) copy_.Zero(f, Size(f->out[o]->count), At(f->out[o]));
      return;
    }
    const Bias bias(f, c.query);
    if (!bias.there && AttentionGradientsByItsLibrary(device_, f, c)) return;
    const Widened query(*this, c.query, all * c.depth), key(*this, c.key, keys * c.depth), value(*this, c.value, keys * c.width),
        grad_output(*this, c.grad_output, all * c.width), grad_query(*this, c.grad_query, all * c.depth),
        grad_key(*this, c.grad_key, keys * c.depth), grad_value(*this, c.grad_value, keys * c.width);
    for (const Widened* t : {&query, &key, &value, &grad_output}) t->Fetch(f);
    const Blocks blocks(c, ElementBytes(wide_));
    const Temporary scores_memory(device_, ScoreBytes(c, blocks)), slopes_memory(device_, ScoreBytes(c, blocks)),
        dots_memory(device_, uint64_t(all) * ElementBytes(wide_));
    const Place scores = scores_memory.place(), slopes = slopes_memory.place(), dots = dots_memory.place();
    row_dots_.RunTasks(f, all, 2 * c.width, c.grad_output, c.output, dots, all, c.width);
    blocks.Each([&](const Block& b) {
      const Size at = b.matrix * c.keys, n = b.matrices;
      const bool more = b.query + b.queries < c.queries;  // keys already have slopes from other queries
      const Place q = query.After(b.first * c.depth), k = key.After(at * c.depth), v = value.After(at * c.width),
                  dy = grad_output.After(b.first * c.width);
      Multiply(f, n, {b.queries, b.keys, c.depth}, q, false, k, true, scores);
      Share(f, c, bias, scores, b, c.logsumexp.After(b.first), false);
      Multiply(f, n, {b.keys, c.width, b.queries}, scores, true, dy, false, grad_value.After(at * c.width), more);
      Multiply(f, n, {b.queries, b.keys, c.width}, dy, false, v, true, slopes);
      Slope(f, c, b, scores, dots.After(b.first), slopes);
      Multiply(f, n, {b.queries, c.depth, b.keys}, slopes, false, k, false, grad_query.After(b.first * c.depth));
      Multiply(f, n, {b.keys, c.depth, b.queries}, slopes, true, q, false, grad_key.After(at * c.depth), more);
    });
    for (const Widened* t : {&grad_query, &grad_key, &grad_value}) t->Leave(f);
  }

 private:
  void Slope(const tw_frame* f, const AttentionCall& c, const Block& b, const Place& shares, const Place& dots, const Place& to) const {
    const auto run = [&](auto scale) { slopes_.RunTasks(f, b.rows * b.keys, Size(3), shares, dots, to, b.rows, b.keys, scale); };
    if (wide_ == TW_DOUBLE)
      run(c.scale);
    else
      run(float(c.scale));
  }

  const Kernel row_dots_, slopes_;
};

}  // namespace

void register_attention(tw::Plugin& p) {
  for (const std::string t : {"float", "double", "half", "bfloat16"}) {
    const std::string operands = t + ", " + t + ", " + t + ", " + t, sums = t == "double" ? "double" : "float";
    p.kernel<Forward>("ScaledDotProductAttention(" + operands + " -> " + t + ", " + sums + ") @OPENCL");
    p.kernel<Backward>("ScaledDotProductAttentionGrad(" + operands + ", " + t + ", " + sums + ", " + t + " -> " + t + ", " + t + ", " + t +
                       ") @OPENCL");
  }
  p.kernel<Forward>("ScaledDotProductAttention(double, double, double, double -> double, float) @OPENCL");
}

}  // namespace thalweg::opencl
