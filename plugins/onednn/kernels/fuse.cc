// The graph compiler of the pack. It takes a MatMul or a Conv2D of float, of known sizes and large
// enough for the library, together with the BiasAdd and the activation that follow, if no other
// node reads the values between. It computes these on each piece of the result while the piece is
// in the cache. It also takes a Conv2D alone if its filter is constant, and packs that filter once.
// The bits are those of the single kernels.
#include <algorithm>
#include <optional>

#include "kernels/conv_geometry.h"
#include "kernels/factor.h"
#include "kernels/plans.h"
#include "kernels/product.h"
#include "register.h"

namespace thalweg::onednn {
namespace {

constexpr int32_t kPriority = 10;
constexpr uint32_t kNone = UINT32_MAX;

std::string_view OpOf(const tw_part_node& n) { return {n.op, n.op_len}; }

bool Known(const tw_shape& s) {
  return s.rank >= 0 && std::all_of(s.dims, s.dims + s.rank, [](int64_t d) { return d >= 0; });
}

// The sizes of the first node of a set. If it has neither, `why` is the reason why the node is not
// taken.
struct Root {
  std::optional<MatrixProduct<float>> product;
  std::optional<Sizes> convolution;
  const char* why = "";
};

std::optional<MatrixProduct<float>> ProductOf(const tw_part_node& n, const Library& library) {
  const tw::Attrs attrs{n.attrs, n.n_attrs};
  const tw_shape *a = n.shapes, *b = a + 1, *c = a + 2;
  const cpu::Factor fa = cpu::FactorOf(a->dims, a->rank, attrs.b("transpose_a"), "a");
  const cpu::Factor fb = cpu::FactorOf(b->dims, b->rank, attrs.b("transpose_b"), "b");
  cpu::CheckSizes(fa, fb, c->dims, c->rank);
  const auto p = cpu::ProductOf<float>(fa, fb);
  return Pays(p.m, p.n, p.k, library) ? std::optional(p) : std::nullopt;
}

std::optional<Sizes> ConvolutionOf(const tw_part_node& n, const Library& library) {
  const cpu::WindowAttrs window(tw::Attrs{n.attrs, n.n_attrs});
  const cpu::ConvGeometry g = cpu::ConvGeometryOf(window, n.shapes[0], n.shapes[1], n.shapes[2]);
  const Sizes s{g.batch, g.in_channels, g.out_channels, g.groups, false, {g.h, g.w}};
  return !g.format.channels_first && Pays(s, Pass::kForward, dnnl_f32, library) ? std::optional(s) : std::nullopt;
}

Root RootOf(const tw_part_node& n, const Library& library) {
  Root root;
  if (n.types[0] != TW_FLOAT) {
    root.why = "not of float";
  } else if (!Known(n.shapes[0]) || !Known(n.shapes[1]) || !Known(n.shapes[2])) {
    root.why = "only running tells its shapes";
  } else {
    if (OpOf(n) == "MatMul") root.product = ProductOf(n, library);
    if (OpOf(n) == "Conv2D") root.convolution = ConvolutionOf(n, library);
    if (!root.product && !root.convolution) root.why = "too small, or of sizes or a layout that the library is not faster at";
  }
  return root;
}

// The readers of the values of a part.
class Readers {
 public:
  explicit Readers(const tw_part& part) : part_(part), reads_(part.n_nodes, 0), reader_(part.n_nodes, kNone) {
    for (uint32_t i = 0; i < part.n_nodes; ++i) {
      const tw_part_node& n = *part.nodes[i];
      for (uint32_t k = 0; k < n.n_in; ++k) Note(n.in[k].node, i);
      for (uint32_t k = 0; k < n.n_after; ++k) Note(n.after[k], kNone);
    }
    for (uint32_t o = 0; o < part.n_out; ++o) Note(part.out[o].node, kNone);
  }
  // Returns the only node that reads the output of node i, if it reads it as its first input and
  // waits for nothing else; else kNone.
  uint32_t Only(uint32_t i) const {
    const uint32_t reader = reads_[i] == 1 ? reader_[i] : kNone;
    if (reader == kNone) return kNone;
    const tw_part_node& n = *part_.nodes[reader];
    return n.n_after == 0 && n.in[0].node == int32_t(i) ? reader : kNone;
  }

 private:
  void Note(int32_t node, uint32_t reader) {
    if (node < 0) return;
    ++reads_[size_t(node)];
    reader_[size_t(node)] = reader;
  }
  const tw_part& part_;
  std::vector<uint32_t> reads_, reader_;
};

// Returns true for a BiasAdd that adds to the last axis, of a known size.
bool AddsToColumns(const tw_part_node& n, int64_t columns) {
  const tw::Attrs attrs{n.attrs, n.n_attrs};
  const tw_shape& bias = n.shapes[1];
  return OpOf(n) == "BiasAdd" && attrs.s("data_format") == "NHWC" && bias.rank == 1 && bias.dims[0] == columns;
}

tw_status* Claim(const tw_host* h, void* user, void*, const tw_part* part, tw_claims* to) {
  return tw::guard(h, [&] {
    const Library& library = *static_cast<const Library*>(user);
    const Functions functions(h);
    const Readers readers(*part);
    for (uint32_t i = 0; i < part->n_nodes; ++i) {
      const tw_part_node& n = *part->nodes[i];
      if (OpOf(n) != "MatMul" && OpOf(n) != "Conv2D") continue;
      const Root root = RootOf(n, library);
      std::string why = root.why;
      std::vector<uint32_t> set{i};
      if (why.empty()) {
        const int64_t columns = n.shapes[2].dims[n.shapes[2].rank - 1];
        uint32_t next = readers.Only(i);
        if (next != kNone && library.fuses("bias") && AddsToColumns(*part->nodes[next], columns)) set.push_back(next);
        next = readers.Only(set.back());
        Function function;
        if (next != kNone && library.fuses("activation") && functions.Find(OpOf(*part->nodes[next]), &function)) set.push_back(next);
        if (set.size() == 1 && !(root.convolution && n.value[1] && library.fuses("filter")))
          why = root.convolution ? "no bias or activation follows that it alone is for, and its filter is not constant"
                                 : "no bias or activation follows that it alone is for";
      }
      if (why.empty())
        tw::check(to->take(to, set.data(), uint32_t(set.size()), kPriority));
      else
        tw::check(to->refuse(to, i, why.data(), why.size()));
    }
  });
}

// Deleter of memory that is aligned to a cache line.
struct Free {
  void operator()(char* p) const { ::operator delete(p, std::align_val_t{64}); }
};

// A set, ready to run. Inputs are indices into the frame.
struct Fused {
  const Api* api;
  std::optional<MatrixProduct<float>> product;
  std::shared_ptr<const Convolution> convolution;
  Function function = nullptr;
  uint32_t first, second, bias = kNone;
  std::unique_ptr<char, Free> packed;  // the filter, if it is constant
};

std::unique_ptr<Fused> Compiled(const tw_compile_call& c) {
  const Library& library = *static_cast<const Library*>(c.user);
  const tw_part& part = *c.part;
  const tw_part_node& n = *part.nodes[0];
  Root root = RootOf(n, library);
  const Api* api = *root.why ? nullptr : library.Open();
  if (!api) throw tw::Error{TW_UNIMPLEMENTED, *root.why ? root.why : "the library of oneDNN cannot be opened"};
  auto f = std::make_unique<Fused>();
  f->api = api;
  f->product = root.product;
  f->first = n.in[0].port;
  f->second = n.in[1].port;
  const Functions functions(c.host);
  for (uint32_t i = 1; i < part.n_nodes; ++i) {
    if (OpOf(*part.nodes[i]) == "BiasAdd")
      f->bias = part.nodes[i]->in[1].port;
    else
      functions.Find(OpOf(*part.nodes[i]), &f->function);
  }
  if (!root.convolution) return f;
  f->convolution = MakeConvolution(*api, *root.convolution, Pass::kForward, dnnl_f32);
  if (n.value[1] && library.fuses("filter")) {
    f->packed.reset(static_cast<char*>(::operator new(f->convolution->packed_bytes(), std::align_val_t{64})));
    const std::unique_ptr<char, Free> room(static_cast<char*>(::operator new(f->convolution->scratch() + 64, std::align_val_t{64})));
    f->convolution->Pack(n.value[1]->data, f->packed.get(), room.get());
  }
  return f;
}

tw_status* Compile(const tw_compile_call* c, void** out_state) {
  return tw::guard(c->host, [&] { *out_state = Compiled(*c).release(); });
}

void Destroy(const tw_host*, void* state) { delete static_cast<Fused*>(state); }

// If the sizes have changed, the set is compiled again.
tw_status* Prepare(const tw_compile_call* c, void* state, uint64_t* out_scratch) {
  return tw::guard(c->host, [&] {
    const Fused& f = *static_cast<const Fused*>(state);
    const Root root = RootOf(*c->part->nodes[0], *static_cast<const Library*>(c->user));
    const auto same = [](const MatrixProduct<float>& a, const MatrixProduct<float>& b) { return a.m == b.m && a.n == b.n && a.k == b.k; };
    const bool fits =
        f.product ? root.product && same(*f.product, *root.product) : root.convolution && *root.convolution == f.convolution->sizes();
    if (!fits) throw tw::Error{TW_UNIMPLEMENTED, "it was made for other sizes"};
    *out_scratch = f.convolution ? f.convolution->scratch() : 0;
  });
}

tw_status* Execute(const tw_frame* frame) {
  return tw::guard(frame->host, [&] {
    const Fused& f = *static_cast<const Fused*>(frame->state);
    const auto in = [&](uint32_t i) { return static_cast<const float*>(frame->in[i]->data); };
    auto* out = static_cast<float*>(frame->out[0]->data);
    const Epilogue epilogue{f.bias == kNone ? nullptr : in(f.bias), f.function};
    if (f.product) {
      MatrixProduct<float> p = *f.product;
      p.a = in(f.first);
      p.b = in(f.second);
      p.c = out;
      return MultiplyMany(*f.api, frame, p, 1, [&](int64_t) { return p; }, epilogue);
    }
    const cpu::Workspace work(frame, f.convolution->scratch());
    if (f.packed)
      f.convolution->RunPacked(frame, in(f.first), f.packed.get(), epilogue, out, work.data());
    else
      f.convolution->Run(frame, in(f.first), in(f.second), epilogue, out, work.data());
  });
}

}  // namespace

void register_fuse(tw::Plugin& p, const Library& library) {
  tw_compiler_def d{TW_SIZED(tw_compiler_def), TW_S("onednn"), TW_S("CPU")};
  d.user = const_cast<Library*>(&library);  // never written
  d.claim = Claim;
  d.compile = Compile;
  d.execute = Execute;
  d.destroy = Destroy;
  d.prepare = Prepare;
  tw::check(tw_add_compiler(p.r, &d));
}

}  // namespace thalweg::onednn
