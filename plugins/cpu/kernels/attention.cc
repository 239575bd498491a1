// Scaled dot-product attention, forward and backward, in blocks of queries and keys. A block of
// scores stays in the second-level cache, and the full score matrix is never formed (online
// softmax, Milakov and Gimelshein 2018; Dao 2023). Half and bfloat16 are computed in float. Blocks,
// tasks and the order of sums depend only on shapes, so results have the same bits on any number of
// threads.
#include "kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/batch_matmul.h"
#include "kernels/common/element.h"
#include "kernels/factor.h"
#include "kernels/gemm.h"
#include "kernels/register.h"
#include "kernels/slots.h"
#include "kernels/widen.h"

namespace thalweg::cpu {
namespace {

constexpr int64_t kQueries = 128, kKeys = 256;  // the size of a block
constexpr int64_t kTaskWork = 1 << 19;          // the multiply-adds that are worth a task
constexpr int64_t kTasks = 8;                   // the wanted number of tasks; fewer batches are also divided by key

struct Tables {
  GemmTables gemm;
  const AttentionTable* rows;
};

// The sizes of a call and the parameters of the scores, for any element type.
struct Sizes {
  int64_t batch, queries, keys, depth, width;
  double scale;
  bool causal;

  Sizes(const tw_shape& query, const tw_shape& key, const tw_shape& value, double given, bool is_causal)
      : Sizes(query.dims, query.rank, key.dims, value.dims, given, is_causal) {}
  Sizes(const int64_t* q, int32_t rank, const int64_t* k, const int64_t* v, double given, bool is_causal)
      : batch(Product(q, 0, rank - 2)), queries(q[rank - 2]), keys(k[rank - 2]), depth(q[rank - 1]), width(v[rank - 1]), causal(is_causal) {
    scale = given != 0 ? given : 1 / std::sqrt(double(std::max<int64_t>(depth, 1)));
  }
  bool empty() const { return batch == 0 || queries == 0 || keys == 0; }
  int64_t query_blocks() const { return (queries + kQueries - 1) / kQueries; }
  int64_t key_blocks() const { return (keys + kKeys - 1) / kKeys; }
  int64_t most_queries() const { return std::min(queries, kQueries); }
  int64_t most_keys() const { return std::min(keys, kKeys); }
  // Returns the number of keys that the queries before i1 see.
  int64_t seen(int64_t i1) const { return causal ? std::min(keys, i1) : keys; }
};

// Rows [first, first + rows) of the keys or of the queries of one batch.
struct Span {
  int64_t first, rows;
};
Span BlockOf(int64_t number, int64_t size, int64_t all) { return {number * size, std::min(size, all - number * size)}; }

// A bias that broadcasts to the scores.
template <class T>
struct Bias {
  const T* data = nullptr;
  const tw_view* view = nullptr;
  const int64_t* scores = nullptr;  // the dims of the scores, without the last
  int32_t rank = 0;                 // the rank of the scores
  int64_t rows = 1, columns = 1;

  Bias(tw::Many<T> bias, const tw_view* query) {
    if (bias.size() == 0) return;
    view = bias[0].v, data = bias[0].data();
    scores = query->dims, rank = query->rank;
    if (view->rank > 0) columns = view->dims[view->rank - 1];
    if (view->rank > 1) rows = view->dims[view->rank - 2];
  }
  explicit operator bool() const { return data != nullptr; }
  // Returns the bias elements for row i of the batch from column j on; they are `step` apart.
  const T* At(int64_t batch, int64_t i, int64_t j) const {
    const int64_t matrix = FactorIndex(batch, scores, rank, view->dims, view->rank);
    return data + (matrix * rows + (rows > 1 ? i : 0)) * columns + (columns > 1 ? j : 0);
  }
  int64_t step() const { return columns > 1; }
};

double StatisticAt(const tw_view* v, int64_t i) {
  return v->dtype == TW_DOUBLE ? reinterpret_cast<const double*>(Bytes(v))[i] : double(reinterpret_cast<const float*>(Bytes(v))[i]);
}
void SetStatistic(const tw_view* v, int64_t i, double value) {
  if (v->dtype == TW_DOUBLE)
    reinterpret_cast<double*>(Bytes(v))[i] = value;
  else
    reinterpret_cast<float*>(Bytes(v))[i] = float(value);
}

// Pieces of a worker's scratch, each on separate cache lines.
template <class W>
class Room {
 public:
  uint64_t Add(int64_t elements) {
    const uint64_t at = bytes_;
    bytes_ += RoundUp64(uint64_t(elements) * sizeof(W));
    return at;
  }
  void AddBytes(uint64_t bytes) { bytes_ += RoundUp64(bytes); }
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t bytes_ = 0;
};
template <class W>
W* Piece(char* scratch, uint64_t at) {
  return reinterpret_cast<W*>(scratch + at);
}

// The operations on blocks that both directions share.
template <class T>
class Blocks {
 public:
  using W = Wide<T>;
  Blocks(const Tables& t, const Sizes& sizes) : t_(t), rows_(t.rows->entries<W>()), sizes_(sizes) {}

  // c[m, n] = a b, dense. a is [m, k], or [k, m] if turned; b likewise.
  static MatrixProduct<W> ProductOf(int64_t m, int64_t n, int64_t k, const W* a, bool a_turned, const W* b, bool b_turned, W* c) {
    return {m, n, k, a, a_turned ? m : k, b, b_turned ? k : n, c, n, a_turned, b_turned, nullptr};
  }
  void Multiply(const MatrixProduct<W>& p, char* scratch) const { MultiplyCell(t_.gemm, p, 0, p.m, 0, p.n, scratch); }

  // Returns the elements in the type of the computation: in place, or widened into `room`.
  const W* Take(const T* from, int64_t n, W* room) const {
    if constexpr (std::is_same_v<T, W>) {
      return from;
    } else {
      Widen(*t_.gemm.vector, from, room, n);
      return room;
    }
  }
  void TakeScaled(const T* from, int64_t n, W* to) const {
    const W* wide = Take(from, n, to);
    rows_.scale(wide, W(sizes_.scale), to, n);
  }

  // Computes the scores of the scaled queries of one span with the keys of another.
  void Scores(const Bias<T>& bias, int64_t batch, const Span& of, const W* query, const Span& among, const W* key, W* scores, W* room,
              char* scratch) const {
    Multiply(ProductOf(of.rows, among.rows, sizes_.depth, query, false, key, true, scores), scratch);
    if (bias) {
      for (int64_t r = 0; r < of.rows; ++r) {
        const W* row = Take(bias.At(batch, of.first + r, among.first), bias.step() ? among.rows : 1, room);
        rows_.add(row, bias.step(), scores + r * among.rows, among.rows);
      }
    }
    if (!sizes_.causal) return;
    for (int64_t r = 0; r < of.rows; ++r) {
      const int64_t seen = std::clamp<int64_t>(of.first + r + 1 - among.first, 0, among.rows);
      std::fill(scores + r * among.rows + seen, scores + (r + 1) * among.rows, -std::numeric_limits<W>::infinity());
    }
  }

 protected:
  const Tables& t_;
  const AttentionEntries<W>& rows_;
  const Sizes& sizes_;
};

template <class T>
class Forward : Blocks<T> {
 public:
  using W = Wide<T>;
  using Base = Blocks<T>;
  Forward(const Tables& t, const Sizes& sizes) : Base(t, sizes) {
    const int64_t m = sizes.most_queries(), n = sizes.most_keys();
    query_ = room_.Add(m * sizes.depth);
    key_ = room_.Add(n * std::max(sizes.depth, sizes.width));
    scores_ = room_.Add(m * n);
    part_ = room_.Add(m * sizes.width);
    sums_ = room_.Add(m * sizes.width);
    bias_ = room_.Add(n);
    rows_at_ = room_.Add(3 * m);
    product_ = room_.bytes();
    room_.AddBytes(std::max(ProductScratch(Base::ProductOf(m, n, sizes.depth, nullptr, false, nullptr, true, nullptr)),
                            ProductScratch(Base::ProductOf(m, sizes.width, n, nullptr, false, nullptr, false, nullptr))));
  }
  uint64_t bytes() const { return room_.bytes(); }

  // Computes one block of queries of one batch.
  void Run(const T* q, const T* k, const T* v, const Bias<T>& bias, int64_t batch, int64_t block, T* output, const tw_view* logsumexp,
           char* scratch) const {
    const Sizes& s = this->sizes_;
    const Span of = BlockOf(block, kQueries, s.queries);
    const int64_t first = batch * s.queries + of.first;
    W *query = Piece<W>(scratch, query_), *room = Piece<W>(scratch, key_), *scores = Piece<W>(scratch, scores_);
    W *part = Piece<W>(scratch, part_), *sums = Piece<W>(scratch, sums_), *bias_row = Piece<W>(scratch, bias_);
    W *most = Piece<W>(scratch, rows_at_), *sum = most + of.rows, *keep = sum + of.rows;
    char* products = scratch + product_;
    this->TakeScaled(q + first * s.depth, of.rows * s.depth, query);
    std::fill(most, most + of.rows, -std::numeric_limits<W>::infinity());
    std::fill(sum, sum + of.rows, W(0));
    std::fill(sums, sums + of.rows * s.width, W(0));
    const int64_t seen = s.seen(of.first + of.rows);
    for (int64_t j = 0; j * kKeys < seen; ++j) {
      const Span among = BlockOf(j, kKeys, seen);
      const int64_t at = batch * s.keys + among.first;
      const W* key = this->Take(k + at * s.depth, among.rows * s.depth, room);
      this->Scores(bias, batch, of, query, among, key, scores, bias_row, products);
      this->rows_.grow({of.rows, among.rows, among.rows}, scores, most, sum, keep);
      const W* value = this->Take(v + at * s.width, among.rows * s.width, room);
      this->Multiply(Base::ProductOf(of.rows, s.width, among.rows, scores, false, value, false, part), products);
      this->rows_.add_rows(of.rows, s.width, part, keep, sums);
    }
    for (int64_t r = 0; r < of.rows; ++r) {
      W* row = sums + r * s.width;
      if (sum[r] == 0)  // a row that sees no key, whatever the values are
        std::fill(row, row + s.width, W(0));
      else
        this->rows_.scale(row, W(1) / sum[r], row, s.width);
      SetStatistic(logsumexp, first + r,
                   sum[r] == 0 ? -std::numeric_limits<double>::infinity() : double(most[r]) + std::log(double(sum[r])));
    }
    Narrow(*this->t_.gemm.vector, sums, output + first * s.width, of.rows * s.width);
  }

 private:
  Room<W> room_;
  uint64_t query_, key_, scores_, part_, sums_, bias_, rows_at_, product_;
};

template <class T>
class Backward : Blocks<T> {
 public:
  using W = Wide<T>;
  using Base = Blocks<T>;
  // The inputs of a call.
  struct Inputs {
    const T *query, *key, *value;
    Bias<T> bias;
    const T* output;
    const tw_view* logsumexp;
    const T* grad_output;
  };

  Backward(const Tables& t, const Sizes& sizes) : Base(t, sizes) {
    const int64_t m = sizes.most_queries(), n = sizes.most_keys(), most = std::max(sizes.depth, sizes.width);
    query_ = room_.Add(m * sizes.depth);
    grad_output_ = room_.Add(m * sizes.width);
    key_ = room_.Add(n * sizes.depth);
    value_ = room_.Add(n * sizes.width);
    grad_key_ = room_.Add(n * sizes.depth);
    grad_value_ = room_.Add(n * sizes.width);
    scores_ = room_.Add(m * n);
    slopes_ = room_.Add(m * n);
    part_ = room_.Add(std::max(m, n) * most);
    bias_ = room_.Add(n);
    rows_at_ = room_.Add(2 * m);
    product_ = room_.bytes();
    const auto needs = [](int64_t rows, int64_t columns, int64_t inner, bool a, bool b) {
      return ProductScratch(Base::ProductOf(rows, columns, inner, nullptr, a, nullptr, b, nullptr));
    };
    room_.AddBytes(
        std::max({needs(m, n, sizes.depth, false, true), needs(n, sizes.width, m, true, false), needs(m, n, sizes.width, false, true),
                  needs(m, sizes.depth, n, false, false), needs(n, sizes.depth, m, true, false)}));
  }
  uint64_t bytes() const { return room_.bytes(); }

  // Computes the gradients of keys [begin, end) and of their values (blocks of one batch), and
  // their contribution to grad_query, [queries, depth].
  void Run(const Inputs& in, int64_t batch, int64_t begin, int64_t end, W* grad_query, T* to_key, T* to_value, char* scratch) const {
    const Sizes& s = this->sizes_;
    W *room_key = Piece<W>(scratch, key_), *room_value = Piece<W>(scratch, value_);
    W *grad_key = Piece<W>(scratch, grad_key_), *grad_value = Piece<W>(scratch, grad_value_);
    std::fill(grad_query, grad_query + s.queries * s.depth, W(0));
    for (int64_t j = begin; j < end; ++j) {
      const Span among = BlockOf(j, kKeys, s.keys);
      const int64_t at = batch * s.keys + among.first;
      const W* key = this->Take(in.key + at * s.depth, among.rows * s.depth, room_key);
      const W* value = this->Take(in.value + at * s.width, among.rows * s.width, room_value);
      std::fill(grad_key, grad_key + among.rows * s.depth, W(0));
      std::fill(grad_value, grad_value + among.rows * s.width, W(0));
      for (int64_t i = s.causal ? among.first / kQueries : 0; i < s.query_blocks(); ++i)
        Add(in, batch, BlockOf(i, kQueries, s.queries), among, key, value, grad_query, grad_key, grad_value, scratch);
      Narrow(*this->t_.gemm.vector, grad_key, to_key + at * s.depth, among.rows * s.depth);
      Narrow(*this->t_.gemm.vector, grad_value, to_value + at * s.width, among.rows * s.width);
    }
  }

 private:
  // Adds the contribution of one block of queries and one block of keys to the gradients.
  void Add(const Inputs& in, int64_t batch, const Span& of, const Span& among, const W* key, const W* value, W* grad_query, W* grad_key,
           W* grad_value, char* scratch) const {
    const Sizes& s = this->sizes_;
    const int64_t first = batch * s.queries + of.first;
    W *query = Piece<W>(scratch, query_), *scores = Piece<W>(scratch, scores_), *slopes = Piece<W>(scratch, slopes_);
    W *part = Piece<W>(scratch, part_), *shift = Piece<W>(scratch, rows_at_), *row = shift + of.rows;
    char* products = scratch + product_;
    const ScoreRows block = {of.rows, among.rows, among.rows};
    this->TakeScaled(in.query + first * s.depth, of.rows * s.depth, query);
    const W* grad = this->Take(in.grad_output + first * s.width, of.rows * s.width, Piece<W>(scratch, grad_output_));
    for (int64_t r = 0; r < of.rows; ++r) {
      shift[r] = W(StatisticAt(in.logsumexp, first + r));
      row[r] = this->rows_.dot(grad + r * s.width, this->Take(in.output + (first + r) * s.width, s.width, part), s.width);
    }
    this->Scores(in.bias, batch, of, query, among, key, scores, Piece<W>(scratch, bias_), products);
    this->rows_.shares(block, scores, shift);
    this->Multiply(Base::ProductOf(among.rows, s.width, of.rows, scores, true, grad, false, part), products);
    this->rows_.add_rows(among.rows, s.width, part, nullptr, grad_value);
    this->Multiply(Base::ProductOf(of.rows, among.rows, s.width, grad, false, value, true, slopes), products);
    this->rows_.slopes(block, scores, slopes, row);
    this->Multiply(Base::ProductOf(among.rows, s.depth, of.rows, slopes, true, query, false, part), products);
    this->rows_.add_rows(among.rows, s.depth, part, nullptr, grad_key);
    this->Multiply(Base::ProductOf(of.rows, s.depth, among.rows, slopes, false, key, false, part), products);
    this->rows_.scale(part, W(s.scale), part, of.rows * s.depth);
    this->rows_.add_rows(of.rows, s.depth, part, nullptr, grad_query + of.first * s.depth);
  }

  Room<W> room_;
  uint64_t query_, grad_output_, key_, value_, grad_key_, grad_value_, scores_, slopes_, part_, bias_, rows_at_, product_;
};

// Calls run(task, slot) for each task. `work` is the work of one task; small tasks run several at a
// time.
template <class F>
void Share(const tw_frame* f, int64_t tasks, int64_t work, int slots, F&& run) {
  const int64_t together = std::clamp<int64_t>(kTaskWork / std::max<int64_t>(1, work), 1, std::max<int64_t>(1, tasks));
  ForEachTask(f, (tasks + together - 1) / together, slots, [&](int64_t group, int slot) {
    for (int64_t task = group * together; task < std::min(tasks, (group + 1) * together); ++task) run(task, slot);
  });
}

// The attributes that both ops share.
struct Node {
  explicit Node(const tw::Node& n)
      : tables{GemmTablesFor(n.host()), &TW_CPU_FOR_ISA(DetectIsa(n.host()), Attention)},
        scale(n.f("scale")),
        causal(n.b("is_causal")),
        slots(WorkerSlots()) {}
  Sizes SizesOf(const tw::Node& n) const { return {n.node->shapes[0], n.node->shapes[1], n.node->shapes[2], scale, causal}; }
  template <class T>
  Sizes SizesOf(const tw::In<T>& q, const tw::In<T>& k, const tw::In<T>& v) const {
    return {q.dims(), q.rank(), k.dims(), v.dims(), scale, causal};
  }

  Tables tables;
  double scale;
  bool causal;
  int slots;
};

template <class T>
class Attention : Node {
 public:
  explicit Attention(const tw::Node& n) : Node(n) {}

  uint64_t scratch(const tw::Node& n) const {
    const Sizes sizes = SizesOf(n);
    return sizes.empty() ? 0 : Forward<T>(tables, sizes).bytes() * uint64_t(slots);
  }

  void operator()(tw::Frame frame, tw::In<T> query, tw::In<T> key, tw::In<T> value, tw::Many<T> bias, tw::Out<T> output,
                  tw::Out<tw::Any> logsumexp) const {
    const Sizes sizes = SizesOf(query, key, value);
    if (sizes.empty()) {
      std::fill(output.data(), output.data() + output.size(), T(0));
      for (uint64_t i = 0; i < logsumexp.size(); ++i) SetStatistic(logsumexp.v(), int64_t(i), -std::numeric_limits<double>::infinity());
      return;
    }
    const Forward<T> forward(tables, sizes);
    const Bias<T> added(bias, query.v);
    const int64_t blocks = sizes.query_blocks(), work = Work(sizes.most_queries(), sizes.keys, sizes.depth + sizes.width + 16);
    Workspace memory(frame.f, forward.bytes() * uint64_t(slots));
    Share(frame.f, sizes.batch * blocks, work, slots, [&](int64_t task, int slot) {
      forward.Run(query.data(), key.data(), value.data(), added, task / blocks, task % blocks, output.data(), logsumexp.v(),
                  memory.data() + uint64_t(slot) * forward.bytes());
    });
  }
};

template <class T>
class AttentionGrad : Node {
 public:
  using W = Wide<T>;
  explicit AttentionGrad(const tw::Node& n) : Node(n) {}

  uint64_t scratch(const tw::Node& n) const {
    const Sizes sizes = SizesOf(n);
    return sizes.empty() ? 0 : Bytes(sizes, Backward<T>(tables, sizes));
  }

  void operator()(tw::Frame frame, tw::In<T> query, tw::In<T> key, tw::In<T> value, tw::Many<T> bias, tw::In<T> output,
                  tw::In<tw::Any> logsumexp, tw::In<T> grad_output, tw::Out<T> grad_query, tw::Out<T> grad_key,
                  tw::Out<T> grad_value) const {
    const Sizes sizes = SizesOf(query, key, value);
    if (sizes.empty()) {
      for (const tw::Out<T>& o : {grad_query, grad_key, grad_value}) std::fill(o.data(), o.data() + o.size(), T(0));
      return;
    }
    const Backward<T> backward(tables, sizes);
    const typename Backward<T>::Inputs in = {query.data(),  key.data(),  value.data(),      Bias<T>(bias, query.v),
                                             output.data(), logsumexp.v, grad_output.data()};
    const int64_t parts = Parts(sizes), each = sizes.queries * sizes.depth, blocks = sizes.key_blocks();
    const int64_t work = Work(sizes.queries, (sizes.keys + parts - 1) / parts, 3 * sizes.depth + 2 * sizes.width + 16);
    Workspace memory(frame.f, Bytes(sizes, backward));
    W* sums = reinterpret_cast<W*>(memory.data() + backward.bytes() * uint64_t(slots));
    Share(frame.f, sizes.batch * parts, work, slots, [&](int64_t task, int slot) {
      const int64_t batch = task / parts, part = task % parts;
      W* sum = sums + (parts == 1 ? slot : task) * each;
      backward.Run(in, batch, part * blocks / parts, (part + 1) * blocks / parts, sum, grad_key.data(), grad_value.data(),
                   memory.data() + uint64_t(slot) * backward.bytes());
      if (parts == 1) Narrow(*tables.gemm.vector, sum, grad_query.data() + batch * each, each);
    });
    if (parts == 1) return;
    ParallelFor(frame.f, sizes.batch * sizes.queries, Cost(sizes.depth, parts), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        W* row = sums + (r / sizes.queries * parts * sizes.queries + r % sizes.queries) * sizes.depth;
        for (int64_t part = 1; part < parts; ++part) tables.rows->entries<W>().add_rows(1, sizes.depth, row + part * each, nullptr, row);
        Narrow(*tables.gemm.vector, row, grad_query.data() + r * sizes.depth, sizes.depth);
      }
    });
  }

 private:
  // Returns the number of tasks that share the keys of a batch. Each of them has a separate sum for
  // the queries.
  static int64_t Parts(const Sizes& s) { return std::clamp<int64_t>((kTasks + s.batch - 1) / s.batch, 1, s.key_blocks()); }
  uint64_t Bytes(const Sizes& s, const Backward<T>& backward) const {
    const int64_t parts = Parts(s), sums = parts == 1 ? slots : s.batch * parts;
    return backward.bytes() * uint64_t(slots) + uint64_t(sums) * uint64_t(s.queries * s.depth) * sizeof(W);
  }
};

}  // namespace

void register_attention(tw::Plugin& p) {
  p.kernel<Attention<float>, Attention<double>, Attention<half>, Attention<bfloat16>>("ScaledDotProductAttention @CPU");
  p.kernel<AttentionGrad<float>, AttentionGrad<double>, AttentionGrad<half>, AttentionGrad<bfloat16>>("ScaledDotProductAttentionGrad @CPU");
}

}  // namespace thalweg::cpu
