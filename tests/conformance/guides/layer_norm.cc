// Norm: a graph compiler that runs the seven nodes of a layer normalisation, as exporters write it,
// as one pass over each row:
//     m = Mean(x); c = x - m; v = Mean(Square(c)); y = c * Rsqrt(v + epsilon)
// with means over the last axis. Written from plugins/roles.md, the README of `thalweg new compiler`
// and the public headers alone.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "thalweg/cpp/plugin.hpp"

namespace {

// ---- The pattern ----

// The nodes of one normalisation, and where its value and the constant come from.
struct Match {
  uint32_t mean, centred, square, variance, sum, root, result;
  tw_part_edge x;
  float epsilon;
};

struct Graph {
  const tw_part& part;
  std::vector<uint32_t> readers;  // how many inputs read each node, counting values that are read outside

  explicit Graph(const tw_part& p) : part(p), readers(p.n_nodes) {
    for (uint32_t i = 0; i < p.n_nodes; ++i) {
      for (uint32_t k = 0; k < p.nodes[i]->n_in; ++k) Count(p.nodes[i]->in[k]);
    }
    for (uint32_t o = 0; o < p.n_out; ++o) Count(p.out[o]);
  }

  void Count(const tw_part_edge& e) {
    if (e.node >= 0) ++readers[size_t(e.node)];
  }

  // Whether edge e is a node of that op, of floats and with n inputs, which waits for nothing that it does not read.
  bool Is(const tw_part_edge& e, std::string_view op, uint32_t n) const {
    if (e.node < 0) return false;
    const tw_part_node& node = *part.nodes[e.node];
    return std::string_view(node.op, node.op_len) == op && node.n_in == n && node.n_after == 0 && node.n_out == 1 &&
           node.types[0] == TW_FLOAT && node.types[n] == TW_FLOAT;
  }

  // Whether the edge is a mean over the last axis that keeps it with size 1.
  bool IsMean(const tw_part_edge& e) const {
    if (!Is(e, "Mean", 2)) return false;
    const tw_part_node& n = *part.nodes[e.node];
    const tw_attr* keep = tw_find_attr(n.attrs, n.n_attrs, TW_S("keep_dims"));
    if (!keep || keep->kind != TW_ATTR_BOOL || !*static_cast<const uint8_t*>(keep->data)) return false;
    std::vector<int64_t> axes;
    if (n.shapes[0].rank < 1 || !tw::integers(n.value[1], &axes) || axes.size() != 1) return false;
    return axes[0] == -1 || axes[0] == n.shapes[0].rank - 1;
  }

  // Whether the edge is c + a constant scalar in either order; writes which input is c, and the constant.
  bool IsSumWithConstant(const tw_part_edge& e, tw_part_edge* out_c, float* out_constant) const {
    if (!Is(e, "AddV2", 2) && !Is(e, "Add", 2)) return false;
    const tw_part_node& n = *part.nodes[e.node];
    for (uint32_t k = 0; k < 2; ++k) {
      const tw_view* v = n.value[1 - k];
      if (!v || v->count != 1 || v->rank > 1) continue;
      *out_c = n.in[k];
      *out_constant = *static_cast<const float*>(v->data);
      return true;
    }
    return false;
  }
};

bool Same(const tw_part_edge& a, const tw_part_edge& b) { return a.node == b.node && a.port == b.port; }

// Matches upwards from the last product, node `result`. Every inner value has its readers in the match and no others.
bool Find(const Graph& g, uint32_t result, Match* out) {
  const tw_part_edge y = {int32_t(result), 0};
  if (!g.Is(y, "Mul", 2)) return false;
  for (uint32_t k = 0; k < 2; ++k) {
    const tw_part_edge c = g.part.nodes[result]->in[k], root = g.part.nodes[result]->in[1 - k];
    if (!g.Is(c, "Sub", 2) || !g.Is(root, "Rsqrt", 1)) continue;
    const tw_part_edge x = g.part.nodes[c.node]->in[0], mean = g.part.nodes[c.node]->in[1], sum = g.part.nodes[root.node]->in[0];
    tw_part_edge variance;
    float epsilon = 0;
    if (!g.IsMean(mean) || !Same(g.part.nodes[mean.node]->in[0], x) || !g.IsSumWithConstant(sum, &variance, &epsilon)) continue;
    if (!g.IsMean(variance)) continue;
    const tw_part_edge square = g.part.nodes[variance.node]->in[0];
    if (!g.Is(square, "Square", 1) || !Same(g.part.nodes[square.node]->in[0], c)) continue;
    const auto read = [&](const tw_part_edge& e) { return g.readers[size_t(e.node)]; };
    if (read(c) != 2 || read(root) != 1 || read(mean) != 1 || read(sum) != 1 || read(variance) != 1 || read(square) != 1) continue;
    *out = {uint32_t(mean.node),
            uint32_t(c.node),
            uint32_t(square.node),
            uint32_t(variance.node),
            uint32_t(sum.node),
            uint32_t(root.node),
            result,
            x,
            epsilon};
    return true;
  }
  return false;
}

// ---- The role ----

struct State {
  uint32_t input;  // of the part: x
  float epsilon;
};

tw_status* Claim(const tw_host* h, void*, void*, const tw_part* part, tw_claims* to) {
  return tw::guard(h, [&] {
    const Graph g(*part);
    std::vector<bool> taken(part->n_nodes);
    for (uint32_t i = 0; i < part->n_nodes; ++i) {
      Match m;
      if (!Find(g, i, &m)) continue;
      const std::array<uint32_t, 7> set = {m.mean, m.centred, m.square, m.variance, m.sum, m.root, m.result};
      tw::check(to->take(to, set.data(), uint32_t(set.size()), 10));
      for (uint32_t node : set) taken[node] = true;
    }
    for (uint32_t i = 0; i < part->n_nodes; ++i) {
      if (!taken[i]) tw::check(to->refuse(to, i, TW_S("it is no part of a normalisation of floats over the last axis")));
    }
  });
}

tw_status* Compile(const tw_compile_call* c, void** out_state) {
  return tw::guard(c->host, [&] {
    const Graph g(*c->part);
    Match m;
    if (c->part->n_nodes != 7 || c->part->n_out != 1 || !Find(g, uint32_t(c->part->out[0].node), &m) || m.x.node >= 0)
      throw tw::Error{TW_INVALID_ARGUMENT, "norm: the part is no normalisation that claim has taken"};
    *out_state = new State{m.x.port, m.epsilon};
  });
}

// Each row is read completely before it is written, so y may have the memory of x.
void Row(const float* x, float* y, int64_t n, float epsilon) {
  float sum = 0, squares = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  const float mean = sum / float(n);
  for (int64_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const float scale = 1 / std::sqrt(squares / float(n) + epsilon);
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * scale;
}

tw_status* Execute(const tw_frame* f) {
  const State& s = *static_cast<const State*>(f->state);
  const tw_view &x = *f->in[s.input], &y = *f->out[0];
  if (y.rank < 0) TW_TRY(f->host->tensor->allocate(f, 0, x.dims, uint32_t(x.rank)));
  if (x.count == 0) return nullptr;
  struct Rows {
    const float* x;
    float* y;
    int64_t n;
    float epsilon;
  } rows = {static_cast<const float*>(x.data), static_cast<float*>(f->out[0]->data), x.dims[x.rank - 1], s.epsilon};
  f->host->run->parallel(
      f, x.count / uint64_t(rows.n), std::max<uint64_t>(1, 8192 / uint64_t(rows.n)),
      [](void* arg, uint64_t begin, uint64_t end) {
        const Rows& r = *static_cast<Rows*>(arg);
        for (int64_t i = int64_t(begin); i < int64_t(end); ++i) Row(r.x + i * r.n, r.y + i * r.n, r.n, r.epsilon);
      },
      &rows);
  return nullptr;
}

void Destroy(const tw_host*, void* state) { delete static_cast<State*>(state); }

// One state serves all sizes: it takes them from the views.
tw_status* Prepare(const tw_compile_call*, void*, uint64_t* out_scratch) {
  *out_scratch = 0;
  return nullptr;
}

tw_status* Serialize(const tw_host*, const void* state, tw_sink* to) { return to->put(to, state, sizeof(State)); }

tw_status* Load(const tw_compile_call* c, tw_source* from, void** out_state) {
  return tw::guard(c->host, [&] {
    State s;
    char bytes[sizeof s + 1];
    uint64_t have = 0;
    for (uint64_t got = 1; got > 0 && have < sizeof bytes; have += got) tw::check(from->get(from, bytes + have, sizeof bytes - have, &got));
    if (have != sizeof s) throw tw::Error{TW_DATA_LOSS, "norm: the artefact has another length than its state"};
    std::memcpy(&s, bytes, sizeof s);
    if (s.input >= c->part->n_in) throw tw::Error{TW_DATA_LOSS, "norm: the artefact names an input that the part does not have"};
    *out_state = new State(s);
  });
}

tw_status* Tag(const tw_host*, void*, void*, tw_sink* to) { return to->put(to, TW_S("norm 1")); }

uint32_t InPlace(const tw_host*, const void* state, uint32_t, uint32_t in) { return in == static_cast<const State*>(state)->input; }

}  // namespace

TW_CPP_PLUGIN("org.example.norm", "1.0", p) {
  tw_compiler_def d{};
  d.size = sizeof d;
  d.name = "norm";
  d.name_len = std::strlen(d.name);
  d.kind = "CPU";
  d.kind_len = std::strlen(d.kind);
  d.claim = Claim;
  d.compile = Compile;
  d.execute = Execute;
  d.destroy = Destroy;
  d.prepare = Prepare;
  d.serialize = Serialize;
  d.load = Load;
  d.tag = Tag;
  d.inplace = InPlace;
  tw::check(tw_add_compiler(p.r, &d));
}
