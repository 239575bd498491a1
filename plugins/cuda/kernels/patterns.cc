#include "kernels/patterns.h"

#include <algorithm>
#include <cmath>

#include "kernels/product.h"

namespace thalweg::opencl {

bool AllKnown(const tw_shape& s) {
  return s.rank >= 0 && std::all_of(s.dims, s.dims + s.rank, [](int64_t d) { return d > 0; });
}

Aligned::Aligned(const Copy& copy, const tw_view* v)
    : copy_(copy), view_(v), own_(Alignment(At(v), ElementBytes(v->dtype)) >= kAligned), memory_(copy.device(), v->bytes) {}
void Aligned::Fetch(const tw_frame* f) const {
  if (!own_) copy_.Dense(f, Size(view_->count), At(view_), memory_.place());
}
void Aligned::Leave(const tw_frame* f) const {
  if (!own_) copy_.Dense(f, Size(view_->count), memory_.place(), At(view_));
}

PartView::PartView(const tw_part& part) : part_(part), readers_(part.n_nodes) {
  for (uint32_t i = 0; i < part.n_nodes; ++i)
    for (uint32_t k = 0; k < node(i).n_in; ++k)
      if (node(i).in[k].node >= 0) readers_[size_t(node(i).in[k].node)].push_back(i);
}

std::optional<uint32_t> PartView::OnlyReader(uint32_t i) const {
  const bool outside = std::any_of(part_.out, part_.out + part_.n_out, [&](const tw_part_edge& e) { return e.node == int32_t(i); });
  if (outside || readers_[i].size() != 1) return {};
  return readers_[i][0];
}

bool PartView::NobodyReadsBut(uint32_t i, uint32_t output) const {
  const auto other = [&](const tw_part_edge& e) { return e.node == int32_t(i) && e.port != output; };
  if (std::any_of(part_.out, part_.out + part_.n_out, other)) return false;
  return std::none_of(readers_[i].begin(), readers_[i].end(),
                      [&](uint32_t r) { return std::any_of(node(r).in, node(r).in + node(r).n_in, other); });
}

std::optional<int64_t> PartView::WholeNumberIn(uint32_t i, uint32_t k) const {
  std::vector<int64_t> numbers;
  if (!node(i).value || !tw::integers(node(i).value[k], &numbers) || numbers.size() != 1) return {};
  return numbers[0];
}

std::optional<float> PartView::NumberIn(uint32_t i, uint32_t k) const {
  const tw_view* v = node(i).value ? node(i).value[k] : nullptr;
  if (!v || v->count != 1) return {};
  const char* at = static_cast<const char*>(v->data) + v->offset;
  uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  float number = 0;
  switch (v->dtype) {
    case TW_FLOAT: std::memcpy(&number, at, sizeof number); return number;
    case TW_BFLOAT16: {
      const uint32_t wide = uint32_t(bits) << 16;
      std::memcpy(&number, &wide, sizeof number);
      return number;
    }
    case TW_HALF: {
      const int exponent = bits >> 10 & 31;
      if (exponent == 31) return {};
      const float fraction = float(bits & 1023) + (exponent ? 1024 : 0);
      return (bits >> 15 ? -1 : 1) * std::ldexp(fraction, std::max(exponent, 1) - 25);
    }
    default: return {};
  }
}

namespace {

// Returns the first pattern that begins at the node and that the library computes, or NULL.
std::unique_ptr<Pattern> Find(const tw_host* host, Device& device, const PartView& part, uint32_t first, std::vector<uint32_t>* nodes) {
  for (const auto find : {FindConvolution, FindAttention, FindLstm})
    if (auto found = find(host, device, part, first, nodes); found && found->Serves(host, part, first)) return found;
  return nullptr;
}

tw_status* Claim(const tw_host* host, void*, void* device, const tw_part* part, tw_claims* to) {
  return tw::guard(host, [&] {
    constexpr int32_t kBeforeOthers = 1;
    const PartView view(*part);
    std::vector<bool> taken(part->n_nodes, false);
    for (uint32_t i = 0; i < part->n_nodes; ++i) {
      std::vector<uint32_t> nodes;
      if (!Find(host, *static_cast<Device*>(device), view, i, &nodes)) continue;
      tw::check(to->take(to, nodes.data(), uint32_t(nodes.size()), kBeforeOthers));
      for (uint32_t n : nodes) taken[n] = true;
    }
    for (uint32_t i = 0; i < part->n_nodes; ++i)
      if (!taken[i]) tw::check(to->refuse(to, i, TW_S("cuDNN computes nothing that begins with it, or not for these shapes")));
  });
}

// Finds the pattern of a part. All nodes of a part belong to one pattern, and one of them is its
// first.
std::unique_ptr<Pattern> OfPart(const tw_compile_call* c) {
  const PartView view(*c->part);
  for (uint32_t i = 0; i < c->part->n_nodes; ++i)
    if (auto found = Find(c->host, *static_cast<Device*>(c->device), view, i, nullptr)) return found;
  throw tw::Error{TW_UNIMPLEMENTED, "cuDNN has no engine for these shapes"};
}

tw_status* Compile(const tw_compile_call* c, void** out_state) {
  return tw::guard(c->host, [&] { *out_state = OfPart(c).release(); });
}
tw_status* Execute(const tw_frame* f) {
  return tw::guard(f->host, [&] { static_cast<const Pattern*>(f->state)->Run(f); });
}
void Destroy(const tw_host*, void* state) { delete static_cast<Pattern*>(state); }
tw_status* Prepare(const tw_compile_call* c, void* state, uint64_t* out_scratch) {
  return tw::guard(c->host, [&] {
    const PartView view(*c->part);
    bool serves = false;  // all nodes belong to the pattern, and one of them is its first
    for (uint32_t i = 0; i < c->part->n_nodes && !serves; ++i) serves = static_cast<const Pattern*>(state)->Serves(c->host, view, i);
    if (!serves) throw tw::Error{TW_UNIMPLEMENTED, "cuDNN has no engine for these shapes"};
    *out_scratch = 0;
  });
}

}  // namespace
}  // namespace thalweg::opencl

namespace thalweg::cuda {

void RegisterPatterns(tw_registrar* to) {
  tw_compiler_def d{TW_SIZED(tw_compiler_def), TW_S("cudnn"), TW_S("CUDA")};
  d.claim = opencl::Claim;
  d.compile = opencl::Compile;
  d.execute = opencl::Execute;
  d.destroy = opencl::Destroy;
  d.prepare = opencl::Prepare;
  tw::check(tw_add_compiler(to, &d));
}

}  // namespace thalweg::cuda
