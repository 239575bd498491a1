// Runs a fused set tile by tile, one step after the other. Values in buffers are dense tiles.
// Inputs and outputs are read and written in place.
#include <atomic>

#include "fuse/program.h"
#include "kernels/common/element.h"
#include "kernels/elementwise.h"
#include "kernels/map.h"
#include "kernels/reduce.h"
#include "kernels/slots.h"
#include "kernels/zip.h"

namespace thalweg::cpu {
namespace {

constexpr uint32_t kArguments[] = {0, 1, 2, 3};  // each is one tensor

// A worker's view of a program: the addresses of the values of the current tile.
class Worker {
 public:
  Worker(const tw_frame* f, const Program& p, const Program::Tiling& t, char* buffers) : f_(f), p_(p), t_(t) {
    for (size_t v = 0; v < p.values().size(); ++v) {
      const Program::Value& value = p.values()[v];
      if (value.where == Program::Value::kBuffer) at_[v] = buffers + value.at * t.buffer;
    }
  }

  // Runs tiles [begin, end). Returns NULL, or the error of a called kernel.
  tw_status* Run(int64_t begin, int64_t end) {
    const int64_t across = (t_.columns + t_.tile_columns - 1) / t_.tile_columns;
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t row = tile / across * t_.tile_rows, column = tile % across * t_.tile_columns;
      rows_ = std::min(t_.tile_rows, t_.rows - row);
      columns_ = std::min(t_.tile_columns, t_.columns - column);
      Find(row, column);
      for (const Program::Step& s : p_.steps())
        if (tw_status* failed = RunStep(s)) return failed;
    }
    return nullptr;
  }

 private:
  const Program::Value& Of(uint32_t v) const { return p_.values()[v]; }

  void Find(int64_t row, int64_t column) {
    for (size_t v = 0; v < p_.values().size(); ++v) {
      const Program::Value& value = p_.values()[v];
      if (value.where == Program::Value::kBuffer) continue;
      const tw_view* view = (value.where == Program::Value::kInput ? f_->in : f_->out)[value.at];
      at_[v] = Bytes(view) + Offset(value.lie, row, column, t_.columns) * value.bytes;
    }
  }
  static int64_t Offset(Lie lie, int64_t row, int64_t column, int64_t columns) {
    switch (lie) {
      case Lie::kFull: return row * columns + column;
      case Lie::kRow: return column;
      case Lie::kColumn: return row;
      default: return 0;
    }
  }
  int64_t Count(Lie lie) const {
    return lie == Lie::kFull ? rows_ * columns_ : lie == Lie::kColumn ? rows_ : lie == Lie::kRow ? columns_ : 1;
  }

  tw_status* RunStep(const Program::Step& s) {
    if (s.chain) {
      Chain(s);
      return nullptr;
    }
    switch (s.body) {
      case Operation::kMap:
        MapRun(*static_cast<const UnaryKernel*>(s.loops), at_[s.in[0]], at_[s.out], Count(Of(s.out).lie));
        return nullptr;
      case Operation::kZip: Zip(s); return nullptr;
      case Operation::kReduce: Reduce(s); return nullptr;
      default: return Call(s);
    }
  }

  void Zip(const Program::Step& s) {
    const auto& k = *static_cast<const BinaryKernel*>(s.loops);
    const char *x = at_[s.in[0]], *y = at_[s.in[1]];
    char* z = at_[s.out];
    const Lie x_lie = Of(s.in[0]).lie, y_lie = Of(s.in[1]).lie, z_lie = Of(s.out).lie;
    auto straight = [&](Lie l) { return l == z_lie || l == Lie::kOne; };
    if (straight(x_lie) && straight(y_lie)) {
      ZipRun(k, x, x_lie == z_lie, y, y_lie == z_lie, z, Count(z_lie));
      return;
    }
    const int64_t x_step = x_lie == Lie::kFull || x_lie == Lie::kRow, y_step = y_lie == Lie::kFull || y_lie == Lie::kRow;
    for (int64_t r = 0; r < rows_; ++r)
      ZipRun(k, x + Offset(x_lie, r, 0, columns_) * k.xy_bytes, x_step, y + Offset(y_lie, r, 0, columns_) * k.xy_bytes, y_step,
             z + r * columns_ * k.z_bytes, columns_);
  }

  void Chain(const Program::Step& s) {
    const Lie lie = Of(s.out).lie;
    const int64_t bytes = Of(s.out).bytes;
    bool by_rows = false;
    for (uint32_t v : s.in) by_rows |= Of(v).lie == Lie::kRow || (Of(v).lie == Lie::kColumn && lie == Lie::kFull);
    auto to_next_row = [&](uint32_t v) { return Offset(Of(v).lie, 1, 0, columns_) * bytes; };
    ChainStep steps[Program::kMostNodes];
    int64_t strides[Program::kMostNodes];
    const int n_steps = int(s.links.size());
    for (int i = 0; i < n_steps; ++i) {
      const Program::Linked& l = s.links[size_t(i)];
      const Lie operand = l.has_operand ? Of(l.operand).lie : Lie::kOne;
      steps[i] = {l.link, operand == Lie::kOne || (operand == Lie::kColumn && lie == Lie::kFull), l.has_operand ? at_[l.operand] : nullptr};
      strides[i] = l.has_operand ? to_next_row(l.operand) : 0;
    }
    const char* x = at_[s.in[0]];
    char* y = at_[s.out];
    if (!by_rows) return s.chain(x, steps, n_steps, y, Count(lie));
    for (int64_t r = 0; r < rows_; ++r, x += columns_ * bytes, y += columns_ * bytes) {
      s.chain(x, steps, n_steps, y, columns_);
      for (int i = 0; i < n_steps; ++i) steps[i].b = static_cast<const char*>(steps[i].b) + strides[i];
    }
  }

  // Reduces as the single kernel does for rows that fit one accumulator (kRowBlock).
  void Reduce(const Program::Step& s) {
    const auto& k = *static_cast<const ReduceKernel*>(s.loops);
    alignas(64) float wide[kWidenedBlock];
    alignas(64) char accumulator[kMostAccBytes];
    for (int64_t r = 0; r < rows_; ++r) {
      const char* x = at_[s.in[0]] + r * columns_ * k.x_bytes;
      char* y = at_[s.out] + r * k.y_bytes;
      k.start(accumulator, 1);
      if (!k.load) k.take_row(x, columns_, accumulator);
      for (int64_t c = 0; k.load && c < columns_; c += kWidenedBlock) {
        const int64_t n = std::min(kWidenedBlock, columns_ - c);
        k.load(reinterpret_cast<const uint16_t*>(x) + c, wide, n);
        k.take_row(wide, n, accumulator);
      }
      k.finish(accumulator, 1, columns_, k.store ? reinterpret_cast<char*>(wide) : y);
      if (k.store) k.store(wide, reinterpret_cast<uint16_t*>(y), 1);
    }
  }

  // Calls the kernel with tensors of the tile's size.
  tw_status* Call(const Program::Step& s) {
    const bool by_rows = s.pattern == Pattern::kRows || s.pattern == Pattern::kBias;
    const int64_t table[] = {rows_, columns_}, all[] = {rows_ * columns_};
    tw_view views[kMostInputs + 1];
    const tw_view* in[kMostInputs];
    auto show = [&](tw_view* view, uint32_t value) {
      const Program::Value& v = Of(value);
      *view = {};
      view->size = sizeof *view;
      view->data = at_[value];
      view->dims = v.lie == Lie::kRow ? table + 1 : by_rows ? table : all;
      view->rank = v.lie == Lie::kOne ? 0 : v.lie == Lie::kFull && by_rows ? 2 : 1;
      view->dtype = v.dtype;
      view->count = uint64_t(Count(v.lie));
      view->bytes = view->count * v.bytes;
      return view;
    };
    for (size_t i = 0; i < s.in.size(); ++i) in[i] = show(views + i, s.in[i]);
    const tw_view* out = show(views + kMostInputs, s.out);
    tw_frame f{};
    f.size = sizeof f;
    f.host = p_.host();
    f.state = s.called->state();
    f.in = in;
    f.out = &out;
    f.in_at = f.out_at = kArguments;
    f.n_in = uint32_t(s.in.size());
    f.n_out = 1;
    f.step = f_->step;
    return s.called->execute()(&f);
  }

  const tw_frame* const f_;
  const Program& p_;
  const Program::Tiling& t_;
  char* at_[Program::kMostValues];  // per value
  int64_t rows_ = 0, columns_ = 0;
};

}  // namespace

void RunProgram(const tw_frame* f, const Program& p) {
  const Program::Tiling t = p.TilingFor(*f);
  const Workspace work(f, t.bytes);
  const uint64_t per_slot = t.slots ? t.bytes / uint64_t(t.slots) : 0;
  std::atomic<tw_status*> failed{nullptr};
  ForEachTask(f, t.tasks, t.slots, [&](int64_t task, int slot) {
    Worker worker(f, p, t, work.data() + uint64_t(slot) * per_slot);
    tw_status* s = worker.Run(task * t.tiles_at_once, std::min(t.tiles, (task + 1) * t.tiles_at_once));
    tw_status* none = nullptr;
    if (s && !failed.compare_exchange_strong(none, s)) f->host->status->release(s);
  });
  if (failed.load()) throw tw::Raised{failed.load()};
}

}  // namespace thalweg::cpu
