// The graph compiler of this plugin. It fuses element-wise nodes of one shape that feed each other
// into one function, so that intermediate values never reach memory. The function computes the same
// values in the same order as the single nodes.
#include "kernels/fuse.h"

#include <algorithm>

#include "elementwise_text.h"
#include "kernels/elementwise.h"

namespace thalweg::opencl {
namespace {

constexpr uint32_t kMostNodes = 24, kMostInputs = 6, kMostOutputs = 4;  // limits so that the arguments fit every device

std::string_view OpOf(const tw_part_node& n) { return {n.op, n.op_len}; }
std::string TypeOf(const tw_part_node& n, uint32_t flat) { return tw::dtype_text(n.types[flat]); }

bool Known(const tw_shape& s) {
  return s.rank >= 0 && std::all_of(s.dims, s.dims + s.rank, [](int64_t d) { return d >= 0; });
}
bool Equal(const tw_shape& a, const tw_shape& b) { return a.rank == b.rank && std::equal(a.dims, a.dims + a.rank, b.dims); }

// Half and bfloat16 are rounded after each node, which a fused function would not do.
bool Fusable(const std::string& type) { return type != "half" && type != "bfloat16" && !device::ClassOf(type).empty(); }

bool Broadcasts(const tw_shape& from, const tw_shape& to) {
  if (!Known(from) || from.rank > to.rank) return false;
  for (int32_t k = 0; k < from.rank; ++k)
    if (from.dims[k] != 1 && from.dims[k] != to.dims[k + to.rank - from.rank]) return false;
  return true;
}

// Returns NULL, or why the node cannot be part of any set.
const char* Unfit(const tw_part_node& n) {
  if (n.n_out != 1 || n.n_in == 0) return "it is not element-wise";
  const std::string_view op = OpOf(n);
  const bool select = op == "SelectV2";
  if (!select && op != "AddN" && op != "Cast" && !device::FindFunction(op, TypeOf(n, 0))) return "it is not element-wise";
  if (n.n_in > kMostInputs) return "it has too many inputs";
  for (uint32_t k = 0; k < n.n_in + n.n_out; ++k)
    if (!Fusable(TypeOf(n, k))) return "its element type is not fused";
  const tw_shape& y = n.shapes[n.n_in];
  if (!Known(y)) return "its shape is not known";
  for (uint32_t k = 0; k < n.n_in; ++k)
    if (!Broadcasts(n.shapes[k], y)) return "its inputs do not broadcast to its result";
  return nullptr;
}

// Sets grow in node order. A node joins the set of one of its inputs if no node outside the set
// lies between them.
class Claimer {
 public:
  explicit Claimer(const tw_part& part) : part_(part), set_(part.n_nodes, -1), why_(part.n_nodes, nullptr) {}

  void Run(tw_claims* to) {
    for (uint32_t i = 0; i < part_.n_nodes; ++i) {
      why_[i] = Unfit(*part_.nodes[i]);
      if (!why_[i]) Join(i);
    }
    for (const std::vector<uint32_t>& s : sets_) {
      if (s.size() > 1)
        tw::check(to->take(to, s.data(), uint32_t(s.size()), 0));
      else
        why_[s[0]] = "nothing beside it can be fused with it";
    }
    for (uint32_t i = 0; i < part_.n_nodes; ++i)
      if (why_[i]) tw::check(to->refuse(to, i, why_[i], std::char_traits<char>::length(why_[i])));
  }

 private:
  template <class F>
  void ForInputs(uint32_t i, F&& f) const {
    const tw_part_node& n = *part_.nodes[i];
    for (uint32_t k = 0; k < n.n_in; ++k)
      if (n.in[k].node >= 0) f(uint32_t(n.in[k].node));
    for (uint32_t k = 0; k < n.n_after; ++k) f(uint32_t(n.after[k]));
  }

  void Join(uint32_t i) {
    int32_t found = -1;
    ForInputs(i, [&](uint32_t from) {
      if (found < 0 && set_[from] >= 0 && Fits(i, set_[from])) found = set_[from];
    });
    if (found < 0) {
      found = int32_t(sets_.size());
      sets_.emplace_back();
    }
    sets_[size_t(found)].push_back(i);
    set_[i] = found;
  }

  bool Fits(uint32_t i, int32_t set) const {
    const std::vector<uint32_t>& members = sets_[size_t(set)];
    const tw_part_node &n = *part_.nodes[i], &first = *part_.nodes[members[0]];
    if (members.size() >= kMostNodes || !Equal(n.shapes[n.n_in], first.shapes[first.n_in])) return false;
    return !ComesBack(i, set) && Inputs(members, i) <= kMostInputs && Outputs(members, i) <= kMostOutputs;
  }

  // Returns true if an input of node i from outside the set depends on a member of the set.
  bool ComesBack(uint32_t i, int32_t set) const {
    const uint32_t begin = sets_[size_t(set)][0];
    std::vector<bool> depends(i - begin, false);
    for (uint32_t k = begin; k < i; ++k)
      ForInputs(k, [&](uint32_t from) {
        if (from >= begin && (set_[from] == set || depends[from - begin])) depends[k - begin] = true;
      });
    bool back = false;
    ForInputs(i, [&](uint32_t from) { back |= from >= begin && set_[from] != set && depends[from - begin]; });
    return back;
  }

  // Returns the number of inputs of the members together with node i.
  size_t Inputs(const std::vector<uint32_t>& members, uint32_t i) const {
    std::vector<std::pair<int32_t, uint32_t>> seen;
    const auto add = [&](uint32_t node) {
      const tw_part_node& n = *part_.nodes[node];
      for (uint32_t k = 0; k < n.n_in; ++k) {
        const std::pair<int32_t, uint32_t> edge{n.in[k].node, n.in[k].port};
        const bool inside = edge.first >= 0 && std::find(members.begin(), members.end(), uint32_t(edge.first)) != members.end();
        if (!inside && std::find(seen.begin(), seen.end(), edge) == seen.end()) seen.push_back(edge);
      }
    };
    for (uint32_t m : members) add(m);
    add(i);
    return seen.size();
  }
  size_t Outputs(const std::vector<uint32_t>& members, uint32_t i) const {
    size_t count = 1;
    for (uint32_t m : members) {
      bool outside = std::any_of(part_.out, part_.out + part_.n_out, [&](const tw_part_edge& e) { return e.node == int32_t(m); });
      for (uint32_t k = m + 1; k < part_.n_nodes && !outside; ++k)
        if (k != i && std::find(members.begin(), members.end(), k) == members.end())
          ForInputs(k, [&](uint32_t from) { outside |= from == m; });
      count += outside;
    }
    return count;
  }

  const tw_part& part_;
  std::vector<int32_t> set_;
  std::vector<const char*> why_;
  std::vector<std::vector<uint32_t>> sets_;
};

std::string ValueName(const tw_part_edge& e) { return (e.node < 0 ? "x" + std::to_string(e.port) : "v" + std::to_string(e.node)); }

double Parameter(const tw_part_node& n) {
  const tw_attr* alpha = tw_find_attr(n.attrs, n.n_attrs, "alpha", 5);
  return alpha ? *static_cast<const double*>(alpha->data) : 0;
}

bool Truncates(const tw_part_node& n) {
  const tw_attr* truncate = tw_find_attr(n.attrs, n.n_attrs, "Truncate", 8);
  return truncate && *static_cast<const uint8_t*>(truncate->data);
}

// Returns the node's statement; adds the functions that it calls to *functions.
std::string Statement(const tw_part_node& n, size_t index, std::string* functions) {
  const std::string name = "f" + std::to_string(index);
  std::vector<std::string> in;
  for (uint32_t k = 0; k < n.n_in; ++k) in.push_back(ValueName(n.in[k]));
  std::string value;
  if (OpOf(n) == "SelectV2") {
    value = in[0] + " ? " + in[1] + " : " + in[2];
  } else if (OpOf(n) == "Cast") {
    value = CastText(n.types[0], n.types[1], in[0], Truncates(n));
  } else if (OpOf(n) == "AddN") {
    for (const std::string& x : in) value += (value.empty() ? "" : " + ") + x;
  } else {
    *functions += device::FunctionText(*device::FindFunction(OpOf(n), TypeOf(n, 0)), TypeOf(n, 0), name, Parameter(n));
    for (const std::string& x : in) value += (value.empty() ? name + "(" : ", ") + x;
    value += ")";
  }
  return "const COMPUTED(" + TypeOf(n, n.n_in) + ") v" + std::to_string(index) + " = " + value + "; ";
}

std::unique_ptr<Elementwise> Compiled(const tw_compile_call& c) {
  const tw_part& p = *c.part;
  std::string functions, statements;
  for (uint32_t i = 0; i < p.n_nodes; ++i) statements += Statement(*p.nodes[i], i, &functions);
  std::vector<uint32_t> out;
  for (uint32_t k = 0; k < p.n_out; ++k) {
    const tw_part_node& n = *p.nodes[p.out[k].node];
    out.push_back(n.types[n.n_in]);
    statements += "y" + std::to_string(k) + " = " + ValueName(p.out[k]) + "; ";
  }
  return std::make_unique<Elementwise>(c.host, *static_cast<Device*>(c.device), std::vector<uint32_t>(p.in_types, p.in_types + p.n_in), out,
                                       functions, statements);
}

tw_status* Claim(const tw_host* h, void*, void*, const tw_part* part, tw_claims* to) {
  return tw::guard(h, [&] { Claimer(*part).Run(to); });
}

tw_status* Compile(const tw_compile_call* c, void** out_state) {
  return tw::guard(c->host, [&] { *out_state = Compiled(*c).release(); });
}

tw_status* Execute(const tw_frame* f) {
  return tw::guard(f->host, [&] {
    const Dims dims = DimsOf(f->out[0]);
    std::vector<Operand> in;
    for (uint32_t k = 0; k < f->n_in; ++k) in.push_back(Broadcast(f->in[k], dims));
    std::vector<Place> out;
    for (uint32_t k = 0; k < f->n_out; ++k) out.push_back(At(f->out[k]));
    static_cast<const Elementwise*>(f->state)->Run(f, dims, in, out);
  });
}

void Destroy(const tw_host*, void* state) { delete static_cast<Elementwise*>(state); }

// Other shapes are accepted as long as all nodes still have the same shape.
tw_status* Prepare(const tw_compile_call* c, void*, uint64_t* out_scratch) {
  return tw::guard(c->host, [&] {
    const tw_part_node& first = *c->part->nodes[0];
    for (uint32_t i = 0; i < c->part->n_nodes; ++i) {
      const tw_part_node& n = *c->part->nodes[i];
      if (Unfit(n) || !Equal(n.shapes[n.n_in], first.shapes[first.n_in]))
        throw tw::Error{TW_UNIMPLEMENTED, "the nodes have not one shape any more"};
    }
    *out_scratch = 0;
  });
}

// In-place use is safe: an element is read before it is written, and no other task reads it.
uint32_t InPlace(const tw_host*, const void*, uint32_t, uint32_t) { return 1; }

}  // namespace

void register_fuse(tw::Plugin& p) {
  tw_compiler_def d{TW_SIZED(tw_compiler_def), TW_S("fuse"), TW_S("OPENCL")};
  d.claim = Claim;
  d.compile = Compile;
  d.execute = Execute;
  d.destroy = Destroy;
  d.prepare = Prepare;
  d.inplace = InPlace;
  tw::check(tw_add_compiler(p.r, &d));
}

}  // namespace thalweg::opencl
