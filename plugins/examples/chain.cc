// A graph compiler in C++. It takes chains of element-wise float operations on the CPU and runs
// each chain as one program over tiles that stay in the cache; separate kernels would read and
// write whole tensors. Needs only the public headers:
//
//     c++ -std=c++17 -O2 -fno-trapping-math -shared -fPIC -I<prefix>/include chain.cc -o libchain.so
//
// The third option allows choices to be vectorised. Results are those of the single operations, bit
// for bit, except for Exp and Tanh, which are within 3 units in the last place of the exact value.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "thalweg/cpp/plugin.hpp"
#include "thalweg/plugin/limits.h"

namespace {

constexpr uint32_t kTile = 1024;
constexpr uint64_t kTilesAtOnce = 16;  // for a thread: about 100 us of work
constexpr uint32_t kMostNodes = 4096, kNone = UINT32_MAX;

// ---- The loops of an operation over a tile. A tile is always full: with a constant count the
// compiler uses vectors. ----

float Bits(uint32_t bits) {
  float f;
  std::memcpy(&f, &bits, sizeof f);
  return f;
}
uint32_t Bits(float f) {
  uint32_t bits;
  std::memcpy(&bits, &f, sizeof bits);
  return bits;
}

// 2^n e^r with n = round(x / ln 2). The polynomial is the minimax one of Cephes' expf. With 2^n in
// two factors, results can be subnormal.
inline float Exp(float x) {
  x = x < -105.0f ? -105.0f : x;
  x = x > 89.0f ? 89.0f : x;
  const float shifted = x * 1.44269504088896341f + 12582912.0f, n = shifted - 12582912.0f;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const int32_t k = int32_t(Bits(shifted)) - 0x4b400000, half = k >> 1;
  return p * Bits(uint32_t(half + 127) << 23) * Bits(uint32_t(k - half + 127) << 23);
}
inline float Tanh(float x) {
  const float z = x * x, a = std::fabs(x);
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  const float small = p * z * x + x;
  const float rest = 1.0f - 2.0f / (Exp(a + a) + 1.0f);
  const float large = Bits((Bits(rest) & 0x7fffffffu) | (Bits(x) & 0x80000000u));
  return a < 0.625f ? small : large;
}

using Loop = void (*)(const float* __restrict a, const float* __restrict b, float* __restrict y);

// Each loop is compiled for several processor levels, the lowest first.
#define LOOP_FOR(NAME, VALUE)                                                            \
  void NAME(const float* __restrict a, const float* __restrict b, float* __restrict y) { \
    (void)b;                                                                             \
    for (uint32_t i = 0; i < kTile; ++i) y[i] = VALUE;                                   \
  }
#ifdef __x86_64__
uint32_t Level() { return __builtin_cpu_supports("avx512f") ? 2 : __builtin_cpu_supports("avx2") ? 1 : 0; }
#define LOOP(NAME, VALUE)                                  \
  LOOP_FOR(NAME##0, VALUE)                                 \
  __attribute__((target("avx2"))) LOOP_FOR(NAME##1, VALUE) \
      __attribute__((target("avx512f"))) LOOP_FOR(NAME##2, VALUE) constexpr Loop k##NAME[] = {NAME##0, NAME##1, NAME##2};
#else
uint32_t Level() { return 0; }
#define LOOP(NAME, VALUE)  \
  LOOP_FOR(NAME##0, VALUE) \
  constexpr Loop k##NAME[] = {NAME##0};
#endif
LOOP(Add, a[i] + b[i])
LOOP(Sub, a[i] - b[i])
LOOP(Mul, a[i] * b[i])
LOOP(RealDiv, a[i] / b[i])
LOOP(Neg, -a[i])
LOOP(Square, a[i] * a[i])
LOOP(Relu, a[i] < 0 ? 0.0f : a[i])
LOOP(Exp, Exp(a[i]))
LOOP(Tanh, Tanh(a[i]))

constexpr struct Operation {
  std::string_view name;
  const Loop* loops;  // by processor level
} kOperations[] = {{"Add", kAdd}, {"AddV2", kAdd},     {"Sub", kSub},   {"Mul", kMul}, {"RealDiv", kRealDiv},
                   {"Neg", kNeg}, {"Square", kSquare}, {"Relu", kRelu}, {"Exp", kExp}, {"Tanh", kTanh}};

uint32_t Find(std::string_view op) {
  for (uint32_t k = 0; k < std::size(kOperations); ++k) {
    if (kOperations[k].name == op) return k;
  }
  return kNone;
}
std::string_view OpOf(const tw_part_node& n) { return {n.op, n.op_len}; }

// ---- Shapes: all tensors have one shape, or hold one number for all elements. If only running tells
// the shape, it is that of the one input that is not a single number. ----

bool Known(const tw_shape& s) {
  return s.rank >= 0 && std::all_of(s.dims, s.dims + s.rank, [](int64_t d) { return d >= 0; });
}
bool Same(const tw_shape& a, const tw_shape& b) { return a.rank == b.rank && std::equal(a.dims, a.dims + a.rank, b.dims); }
bool Fits(const tw_shape& in, const tw_shape& out) { return in.rank == 0 || Same(in, out); }
// Returns true if all inputs that are not single numbers are one value.
bool OfOneValue(const tw_part_node& n) {
  const tw_part_edge* only = nullptr;
  for (uint32_t i = 0; i < n.n_in; ++i) {
    if (n.shapes[i].rank == 0) continue;
    if (only && (only->node != n.in[i].node || only->port != n.in[i].port)) return false;
    only = &n.in[i];
  }
  return only != nullptr;
}

// Returns why a node cannot be in a chain, or an empty text if it can.
std::string Unfit(const tw_part_node& n) {
  if (Find(OpOf(n)) == kNone) return "not one of the operations that it knows";
  for (uint32_t i = 0; i <= n.n_in; ++i) {
    if (n.types[i] != TW_FLOAT) return "not of float";
  }
  const tw_shape& out = n.shapes[n.n_in];
  if (out.rank < 0 || (!Known(out) && !OfOneValue(n))) return "only running tells its shape";
  for (uint32_t i = 0; i < n.n_in; ++i) {
    if (!Fits(n.shapes[i], out)) return "its inputs have different shapes";
  }
  return "";
}

// Returns why it is not worth while to take a node, or an empty text if it is.
std::string NotWorth(const tw_host* h, const tw_part* part, uint32_t node) {
  const tw_shape& out = part->nodes[node]->shapes[part->nodes[node]->n_in];
  if (Known(out)) return "";
  const auto* limits = static_cast<const tw_limits_api*>(h->query(h, TW_S(TW_LIMITS_SET), 1));
  double most = 1;
  for (uint32_t k = 0; k < uint32_t(out.rank); ++k) {
    const int64_t size = limits ? limits->limit(part, int32_t(node), 0, k) : -1;
    if (size < 0) return "only running tells its shape, and nothing limits it";
    most *= double(size);
  }
  return most < kTile ? "it never has as many elements as a tile" : "";
}

// ---- Claims: trees of nodes whose inner values no other node reads, so no path can leave a tree
// and come back ----

tw_status* Claim(const tw_host* h, void*, void*, const tw_part* part, tw_claims* to) {
  return tw::guard(h, [&] {
    std::vector<uint32_t> tree(part->n_nodes, kNone), readers(part->n_nodes, 0);
    for (uint32_t i = 0; i < part->n_nodes; ++i) {
      const tw_part_node& n = *part->nodes[i];
      for (uint32_t k = 0; k < n.n_in; ++k) {
        const bool again = k > 0 && n.in[k].node == n.in[k - 1].node;
        if (n.in[k].node >= 0 && !again) ++readers[size_t(n.in[k].node)];
      }
      for (uint32_t k = 0; k < n.n_after; ++k) readers[size_t(n.after[k])] += 2;  // a control edge: the node is not inside a tree
    }
    for (uint32_t o = 0; o < part->n_out; ++o) readers[size_t(part->out[o].node)] += 2;
    std::vector<std::vector<uint32_t>> trees;
    for (uint32_t i = 0; i < part->n_nodes; ++i) {
      const tw_part_node& n = *part->nodes[i];
      std::string why = Unfit(n);
      if (why.empty()) why = NotWorth(h, part, i);
      if (!why.empty()) {
        tw::check(to->refuse(to, i, why.data(), why.size()));
        continue;
      }
      tree[i] = uint32_t(trees.size());
      trees.push_back({i});
      for (uint32_t k = 0; k < n.n_in && n.n_after == 0; ++k) {
        if (n.in[k].node < 0) continue;
        const size_t from = size_t(n.in[k].node);
        if (tree[from] == kNone || tree[from] == tree[i] || readers[from] != 1) continue;
        if (!Same(part->nodes[from]->shapes[part->nodes[from]->n_in], n.shapes[n.n_in])) continue;
        std::vector<uint32_t>& joined = trees[tree[from]];
        if (joined.size() + trees[tree[i]].size() > kMostNodes) continue;
        for (uint32_t m : joined) tree[m] = tree[i];
        trees[tree[i]].insert(trees[tree[i]].end(), joined.begin(), joined.end());
        joined.clear();
      }
    }
    for (const auto& nodes : trees) {
      if (nodes.size() > 1) tw::check(to->take(to, nodes.data(), uint32_t(nodes.size()), 0));
      if (nodes.size() == 1) tw::check(to->refuse(to, nodes[0], TW_S("alone, it is as fast by itself")));
    }
  });
}

// ---- The program: values are numbered, the inputs first, then buffers of a tile, which are reused
// ----

struct Step {
  uint32_t operation, a, b, y;
};
struct Program {
  std::vector<uint32_t> scalar;  // per input: one number for all elements
  std::vector<Step> steps;       // the last step makes the output
  uint32_t n_buffers = 0;

  uint32_t n_in() const { return uint32_t(scalar.size()); }
  bool Good() const {
    const uint64_t n = uint64_t(n_in()) + n_buffers;
    auto good = [&](const Step& s) {
      return s.operation < std::size(kOperations) && s.a < n && s.b < n && s.y >= n_in() && s.y < n && s.y != s.a && s.y != s.b;
    };
    return !steps.empty() && n_buffers <= kMostNodes && std::all_of(steps.begin(), steps.end(), good);
  }
};

Program Compiled(const tw_part& part) {
  Program p;
  for (uint32_t i = 0; i < part.n_in; ++i) p.scalar.push_back(part.in_shapes[i].rank == 0);
  std::vector<uint32_t> value(part.n_nodes), idle;
  for (uint32_t i = 0; i < part.n_nodes; ++i) {
    const tw_part_node& n = *part.nodes[i];
    auto at = [&](uint32_t k) { return n.in[k].node < 0 ? n.in[k].port : value[size_t(n.in[k].node)]; };
    Step s = {Find(OpOf(n)), at(0), at(n.n_in - 1), 0};
    if (idle.empty()) idle.push_back(p.n_in() + p.n_buffers++);
    s.y = value[i] = idle.back();
    idle.pop_back();
    p.steps.push_back(s);
    if (s.a >= p.n_in()) idle.push_back(s.a);  // this node was its only reader
    if (s.b >= p.n_in() && s.b != s.a) idle.push_back(s.b);
  }
  return p;
}

struct Job {
  const tw_frame* f;
  const Program* p;
};

void RunTiles(void* arg, uint64_t begin, uint64_t end) {
  const tw_frame& f = *static_cast<Job*>(arg)->f;
  const Program& p = *static_cast<Job*>(arg)->p;
  const uint32_t n_in = p.n_in(), level = Level();
  const uint64_t count = f.out[0]->count;
  const auto buffers = std::make_unique<float[]>(size_t(n_in + p.n_buffers) * kTile);
  std::vector<float*> at;
  for (uint32_t i = 0; i < n_in + p.n_buffers; ++i) at.push_back(buffers.get() + size_t(i) * kTile);
  for (uint32_t i = 0; i < n_in; ++i) {
    if (p.scalar[i]) std::fill_n(at[i], kTile, *static_cast<const float*>(f.in[i]->data));
  }
  float* const last = at[p.steps.back().y];
  for (uint64_t t = begin; t < end; ++t) {
    const uint64_t start = t * kTile, n = std::min<uint64_t>(kTile, count - start);
    float* const y = static_cast<float*>(f.out[0]->data) + start;
    for (uint32_t i = 0; i < n_in; ++i) {
      if (p.scalar[i]) continue;
      float* const x = static_cast<float*>(f.in[i]->data) + start;
      if (n == kTile) at[i] = x;
      if (n < kTile) at[i] = std::copy_n(x, n, buffers.get() + size_t(i) * kTile) - n;
    }
    for (const Step& s : p.steps) {
      float* const to = &s == &p.steps.back() ? (n == kTile ? y : last) : at[s.y];
      kOperations[s.operation].loops[level](at[s.a], at[s.b], to);
    }
    if (n < kTile) std::copy_n(last, n, y);
  }
}

tw_status* Execute(const tw_frame* f) {
  return tw::guard(f->host, [&] {
    Job job{f, static_cast<const Program*>(f->state)};
    f->host->run->parallel(f, (f->out[0]->count + kTile - 1) / kTile, kTilesAtOnce, RunTiles, &job);
  });
}

tw_status* Compile(const tw_compile_call* c, void** out_state) {
  return tw::guard(c->host, [&] { *out_state = new Program(Compiled(*c->part)); });
}
void Destroy(const tw_host*, void* state) { delete static_cast<Program*>(state); }

// Any sizes are accepted if the same inputs are single numbers.
tw_status* Prepare(const tw_compile_call* c, void* state, uint64_t* out_scratch) {
  return tw::guard(c->host, [&] {
    const Program& p = *static_cast<const Program*>(state);
    for (uint32_t i = 0; i < c->part->n_nodes; ++i) {
      const std::string why = Unfit(*c->part->nodes[i]);
      if (!why.empty()) throw tw::Error{TW_UNIMPLEMENTED, why};
    }
    for (uint32_t i = 0; i < c->part->n_in; ++i) {
      if (p.scalar[i] != (c->part->in_shapes[i].rank == 0)) throw tw::Error{TW_UNIMPLEMENTED, "another input is a single number"};
    }
    *out_scratch = 0;
  });
}

// ---- Serialised programs: three counts, then the items that they count ----

tw_status* Serialize(const tw_host* h, const void* state, tw_sink* to) {
  return tw::guard(h, [&] {
    const Program& p = *static_cast<const Program*>(state);
    const uint32_t counts[] = {p.n_in(), uint32_t(p.steps.size()), p.n_buffers};
    tw::check(to->put(to, counts, sizeof counts));
    tw::check(to->put(to, p.scalar.data(), p.scalar.size() * sizeof(uint32_t)));
    tw::check(to->put(to, p.steps.data(), p.steps.size() * sizeof(Step)));
  });
}

template <class T>
void Take(tw_source* from, T* to, uint64_t n) {
  for (uint64_t done = 0, got = 0; done < n * sizeof(T); done += got) {
    tw::check(from->get(from, reinterpret_cast<char*>(to) + done, n * sizeof(T) - done, &got));
    if (got == 0) throw tw::Error{TW_DATA_LOSS, "the program is cut short"};
  }
}

tw_status* Load(const tw_compile_call* c, tw_source* from, void** out_state) {
  return tw::guard(c->host, [&] {
    uint32_t counts[3];
    Take(from, counts, 3);
    auto p = std::make_unique<Program>();
    if (counts[0] != c->part->n_in || counts[1] != c->part->n_nodes) throw tw::Error{TW_DATA_LOSS, "it is of another part"};
    p->scalar.resize(counts[0]);
    p->steps.resize(counts[1]);
    p->n_buffers = counts[2];
    Take(from, p->scalar.data(), counts[0]);
    Take(from, p->steps.data(), counts[1]);
    if (!p->Good()) throw tw::Error{TW_DATA_LOSS, "it is no program"};
    *out_state = p.release();
  });
}

tw_status* Tag(const tw_host*, void*, void*, tw_sink* to) { return to->put(to, TW_S("chain 1.0")); }

}  // namespace

TW_CPP_PLUGIN("org.example.chain", "1.0", p) {
  tw_compiler_def def = {TW_SIZED(tw_compiler_def),
                         TW_S("chain"),
                         TW_S("CPU"),
                         nullptr,
                         Claim,
                         Compile,
                         Execute,
                         Destroy,
                         Prepare,
                         Serialize,
                         Load,
                         Tag,
                         nullptr};
  tw::check(tw_add_compiler(p.r, &def));
}
