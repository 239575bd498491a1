#include "fuse/program.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "fuse/layout.h"
#include "kernels/common/element.h"
#include "kernels/common/parallel.h"
#include "kernels/slots.h"

namespace thalweg::cpu {
namespace {

constexpr int64_t kTileBytes = 64 << 10;  // of all values of a tile together; most data that a step touches is in the first-level cache
constexpr int64_t kMostTile = 8192, kLeastTile = 512;

// Copies a record of the host, which may be older or newer than this build's.
template <class Record>
Record CopyOf(const Record& r) {
  Record copy{};
  const uint32_t bytes = std::min(r.size, uint32_t(sizeof copy));
  std::memcpy(&copy, &r, bytes);
  copy.size = bytes;
  return copy;
}

constexpr uint32_t kInputAt[] = {0, 1, 2, 3};  // each argument is one tensor

}  // namespace

CalledKernel::CalledKernel(const tw_host* h, const Operation& op, const tw_part_node& n, void* device)
    : h_(h), op_(op), state_(op.def.user) {
  if (!op.def.create) return;
  tw_node node{};
  node.size = sizeof node;
  node.host = h;
  node.user = op.def.user;
  node.name = n.name;
  node.name_len = n.name_len;
  node.op = n.op;
  node.op_len = n.op_len;
  node.attrs = n.attrs;
  node.types = n.types;
  node.shapes = n.shapes;
  node.in_at = kInputAt;
  node.n_attrs = n.n_attrs;
  node.n_in = n.n_in;
  node.n_out = n.n_out;
  node.device = device;
  tw::check(op.def.create(&node, &state_));
}

CalledKernel::~CalledKernel() {
  if (op_.def.destroy) op_.def.destroy(h_, state_);
}

Program::Program(const tw_compile_call& c, const Catalogue& catalogue)
    : most_slots_(catalogue.slots()), run_(CopyOf(*c.host->run)), host_(CopyOf(*c.host)) {
  run_.parallel = [](const tw_frame*, uint64_t n, uint64_t, void (*part)(void*, uint64_t, uint64_t), void* arg) { part(arg, 0, n); };
  host_.run = &run_;
  const tw_part& part = *c.part;
  if (part.n_nodes > kMostNodes) throw tw::Error{TW_UNIMPLEMENTED, "more than " + std::to_string(kMostNodes) + " nodes"};
  const SetLayout l = LayOutSet(part, catalogue);
  fits_ = l.fits;
  inner_ = l.domain.inner;
  whole_rows_ = l.whole_rows;
  for (uint32_t i = 0; i < part.n_in; ++i)
    values_.push_back({Value::kInput, Lie::kNone, part.in_types[i], ElementBytes(part.in_types[i]), i});
  for (uint32_t i = 0; i < part.n_nodes; ++i) {
    const tw_part_node& n = *part.nodes[i];
    const Operation& op = *l.operations[i];
    const Fit& fit = l.fits[i];
    if (op.body == Operation::kCall) called_.push_back(std::make_unique<CalledKernel>(c.host, op, n, c.device));
    Step s{op.body, op.pattern, op.loops, op.body == Operation::kCall ? called_.back().get() : nullptr, op.inplace, {}, part.n_in + i};
    const uint32_t n_in = op.body == Operation::kReduce ? 1 : n.n_in;  // a reduction knows its axes already
    for (uint32_t k = 0; k < n_in; ++k) {
      s.in.push_back(n.in[k].node < 0 ? n.in[k].port : part.n_in + uint32_t(n.in[k].node));
      Value& v = values_[s.in[k]];
      if (v.lie == Lie::kNone) v.lie = fit.in[k];
      if (v.lie != fit.in[k]) throw tw::Error{TW_UNIMPLEMENTED, "an input is read in two ways"};
    }
    const uint32_t type = n.types[n.n_in];
    values_.push_back({Value::kBuffer, fit.out, type, ElementBytes(type), 0});
    steps_.push_back(std::move(s));
    if (fit.out == Lie::kFull || op.body == Operation::kReduce) cost_ += op.cost;
  }
  for (uint32_t o = 0; o < part.n_out; ++o) {
    Value& v = values_[part.n_in + uint32_t(part.out[o].node)];
    v.where = Value::kOutput;
    v.at = o;
  }
  JoinChains(catalogue.chains(), l.operations);
  PlaceBuffers();
}

// Joins a step with the next one if that one is its only reader. The joined step stands at the
// position of the last one, where the operands of all its links are ready.
void Program::JoinChains(const ChainTable& chains, const std::vector<const Operation*>& operations) {
  std::vector<int> reads(values_.size(), 0);
  for (const Step& s : steps_)
    for (uint32_t v : s.in) ++reads[v];
  std::vector<int64_t> maker(values_.size(), -1);  // per value, the index in steps_ of the chain that ends with it
  for (size_t i = 0; i < steps_.size(); ++i) {
    Step& s = steps_[i];
    const LinkRule* rule = operations[i]->link;
    const uint32_t type = values_[s.out].dtype;
    if (!rule || (type != TW_FLOAT && type != TW_DOUBLE)) continue;
    auto can_begin = [&](size_t k) { return values_[s.in[k]].lie == values_[s.out].lie; };
    auto goes_on = [&](size_t k) {
      const uint32_t v = s.in[k];
      return can_begin(k) && maker[v] >= 0 && reads[v] == 1 && values_[v].where == Value::kBuffer;
    };
    const bool two = s.in.size() > 1;
    const size_t from = two && !goes_on(0) && (goes_on(1) || !can_begin(0));
    if (!can_begin(from)) continue;
    const Linked last{from ? rule->swapped : rule->link, two, two ? s.in[1 - from] : 0};
    if (goes_on(from)) {
      Step& before = steps_[size_t(maker[s.in[from]])];
      s.links = std::exchange(before.links, {});
      s.in = std::move(before.in);
    } else {
      s.in = {s.in[from]};
    }
    s.links.push_back(last);
    if (two) s.in.push_back(last.operand);
    s.chain = type == TW_FLOAT ? chains.f32 : chains.f64;
    s.inplace = true;
    maker[s.out] = int64_t(i);
  }
  std::erase_if(steps_, [](const Step& s) { return s.chain && s.links.empty(); });
}

// A buffer is reused after the last step that reads it. No step writes a buffer that it reads,
// because not all called kernels allow this.
void Program::PlaceBuffers() {
  std::vector<size_t> last(values_.size(), 0);
  for (size_t s = 0; s < steps_.size(); ++s)
    for (uint32_t v : steps_[s].in) last[v] = s;
  std::vector<uint32_t> idle;
  for (size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = steps_[s];
    Value& v = values_[step.out];
    widest_ = std::max(widest_, v.bytes);
    if (v.where == Value::kBuffer) {
      if (idle.empty()) idle.push_back(n_buffers_++);
      v.at = idle.back();
      idle.pop_back();
    }
    for (auto in = step.in.begin(); in != step.in.end(); ++in) {
      const bool over = values_[*in].where == Value::kBuffer && last[*in] == s && std::find(step.in.begin(), in, *in) == in;
      if (over) idle.push_back(values_[*in].at);
    }
  }
}

bool Program::MayOverwrite(uint32_t out, uint32_t in) const {
  if (values_[in].lie != Lie::kFull) return false;
  bool written = false;
  for (const Step& s : steps_) {
    const Value& to = values_[s.out];
    const bool reads = std::find(s.in.begin(), s.in.end(), in) != s.in.end(), writes = to.where == Value::kOutput && to.at == out;
    if (writes && (to.lie != Lie::kFull || (reads && !s.inplace))) return false;
    if (reads && written) return false;
    written = written || writes;
  }
  return written;
}

Program::Tiling Program::Tile(int64_t rows, int64_t columns) const {
  Tiling t;
  if (inner_ == 0) {
    columns *= rows;
    rows = 1;
  }
  t.rows = rows;
  t.columns = columns;
  int64_t side = 1 + n_buffers_;
  for (const Value& v : values_) side += v.where != Value::kBuffer && v.lie == Lie::kFull;
  const int64_t elements = std::clamp(kTileBytes / (side * int64_t(widest_)) / 64 * 64, kLeastTile, kMostTile);
  t.tile_columns = whole_rows_ || columns <= elements ? columns : elements;
  t.tile_rows = std::clamp<int64_t>(elements / t.tile_columns, 1, rows);
  t.tiles = ((rows + t.tile_rows - 1) / t.tile_rows) * ((columns + t.tile_columns - 1) / t.tile_columns);
  t.tiles_at_once = std::max<int64_t>(1, kGrain / Cost(t.tile_rows * t.tile_columns, cost_));
  t.tasks = (t.tiles + t.tiles_at_once - 1) / t.tiles_at_once;
  t.slots = int(std::min<int64_t>(t.tasks, most_slots_));
  t.buffer = RoundUp64(uint64_t(t.tile_rows * t.tile_columns) * widest_);
  t.bytes = t.buffer * n_buffers_ * uint64_t(t.slots);
  return t;
}

Program::Tiling Program::TilingFor(const tw_part& part, const Catalogue& catalogue) const {
  const SetLayout l = LayOutSet(part, catalogue);
  bool same = l.domain.inner == inner_ && l.domain.count() > 0;
  for (uint32_t i = 0; i < part.n_nodes; ++i)
    same = same && l.fits[i].out == fits_[i].out && std::equal(fits_[i].in, fits_[i].in + kMostInputs, l.fits[i].in);
  if (!same) throw tw::Error{TW_UNIMPLEMENTED, "with these shapes other inputs are rows, columns or single numbers"};
  return Tile(l.domain.count() / l.domain.columns(), l.domain.columns());
}

Program::Tiling Program::TilingFor(const tw_frame& f) const {
  int64_t rows = 1, columns = 1;
  for (const Value& v : values_) {
    if (v.where == Value::kBuffer) continue;
    const tw_view& view = *(v.where == Value::kInput ? f.in : f.out)[v.at];
    if (v.lie == Lie::kRow) columns = int64_t(view.count);
    if (v.lie == Lie::kColumn) rows = int64_t(view.count);
    if (v.lie != Lie::kFull) continue;
    columns = Product(view.dims, inner_ ? std::max(0, view.rank - inner_) : 0, view.rank);
    rows = int64_t(view.count) / columns;
    break;
  }
  return Tile(rows, columns);
}

}  // namespace thalweg::cpu
