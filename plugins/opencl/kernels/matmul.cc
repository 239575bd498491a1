// MatMul, BatchMatMul, BatchMatMulV2 and BatchMatMulV3.
#include "kernels/matmul.h"

#include <algorithm>
#include <chrono>

#include "elementwise_text.h"
#include "kernels/register.h"

namespace thalweg::opencl {
namespace {

// Returns the OpenCL name of the vector element type in which a type is computed.
std::string VectorBase(uint32_t type) {
  switch (type) {
    case TW_DOUBLE: return "double";
    case TW_INT32: return "int";
    case TW_INT64: return "long";
    default: return "float";
  }
}

// Returns how many blocks of rows a group handles for each slice of b. Devices without this setting
// have one.
template <class T>
size_t PassesOf(const T& tile) {
  if constexpr (requires { tile.passes; })
    return tile.passes;
  else
    return 1;
}

std::string MatMulText(uint32_t type, const Tile& t) {
  const std::string name = tw::dtype_text(type);
  const bool direct = type != TW_HALF && type != TW_BFLOAT16;
  return ProgramText({{"T", name},
                      {"VECTOR", VectorBase(type) + std::to_string(t.width)},
                      {"GROUP", std::to_string(t.group)},
                      {"ROWS", std::to_string(t.rows)},
                      {"PASSES", std::to_string(PassesOf(t))},
                      {"WIDTH", std::to_string(t.width)},
                      {"TILE_K", std::to_string(t.depth)},
                      {direct ? "DIRECT" : "CONVERTED", ""},
                      {device::ClassOf(name) == "REAL" ? "REAL" : "WHOLE", ""}},
                     {"matmul.cl"});
}

// Halves the width for 8-byte elements, so that vectors have the same length in bytes for every
// type.
Tile ForType(Tile t, uint32_t type) {
  if (ElementBytes(type) == 8) t.width = std::max<size_t>(2, t.width / 2);
  return t;
}

struct Factors {
  Matrix a, b;
};

void Start(const Kernel& kernel, const Tile& t, const tw_frame* f, MatrixSizes s, const Factors& x, Place y, Size y_row_step, bool more,
           Size matrices, const Axes& batch, const std::vector<Steps>& steps) {
  const auto groups = [](Size size, size_t tile) { return (size_t(size) + tile - 1) / tile; };
  const Range items{groups(s.n, t.group * t.width) * t.group, groups(s.m, t.group * t.rows * PassesOf(t)) * t.group, size_t(matrices)};
  kernel.Run(f, items, {t.group, t.group, 1}, x.a.at, x.b.at, y, s.m, s.n, s.depth, x.a.row_step, x.a.column_step, x.b.row_step,
             x.b.column_step, y_row_step, Size(more), batch, steps);
}

// Returns the best time of three products of floats, in seconds.
template <class D>
double Time(const Kernel& kernel, const Tile& t, D& device) {
  constexpr Size kSize = 512;
  const Temporary a(device, std::vector<float>(kSize * kSize, 0.5f)), y(device, kSize * kSize * sizeof(float));
  const tw_frame alone{};  // no stream, so a call returns when its work is complete
  double best = 1e9;
  for (int k = 0; k < 4; ++k) {  // the first run may compile
    const auto begin = std::chrono::steady_clock::now();
    const Matrix m = RowMajor(a.place(), kSize);
    Start(kernel, t, &alone, {kSize, kSize, kSize}, {m, m}, y.place(), kSize, false, 1, Axes{}, std::vector<Steps>(3));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (k) best = std::min(best, took.count());
  }
  return best;
}

template <class D>
size_t FastestTile(const tw_host* host, D& device) {
  size_t best = 0;
  double least = 1e9;
  for (size_t k = 0; k < device.tiles().size(); ++k) {
    const double time = Time(Kernel(host, device, MatMulText(TW_FLOAT, device.tiles()[k]), "matmul"), device.tiles()[k], device);
    if (time < least) best = k, least = time;
  }
  return best;
}

// Returns the tiles of a device. A device that needs no measurement has one tile(). Others have
// tiles(), of which the first is for small work, and remember the best one for large work.
template <class D>
std::vector<Tile> TilesOf(D& device) {
  if constexpr (requires { device.tiles(); })
    return device.tiles();
  else
    return {device.tile()};
}

template <class D>
size_t BestTile(const tw_host* host, D& device) {
  if constexpr (requires { device.tiles(); })
    return device.best_tile(host, MatMulText(TW_FLOAT, device.tiles()[0]), [&] { return FastestTile(host, device); });
  else
    return 0;
}

// Calls the device's vendor library, if it has one that can do this.
template <class D, class... Args>
bool RunsByLibrary(D& device, const Args&... args) {
  if constexpr (requires { device.blas(); })
    return ByLibrary(device, args...);
  else
    return false;
}

constexpr Size kLarge = 1 << 26;  // multiplications from which on the best tile is worth finding

}  // namespace

MatMul::MatMul(const tw::Node& n, uint32_t type) : type_(type), device_(*static_cast<Device*>(n.node->device)) {
  for (const Tile& t : TilesOf(device_)) {
    tiles_.push_back(ForType(t, type));
    kernels_.emplace_back(n, MatMulText(type, tiles_.back()), "matmul");
  }
  *kernels_.front();  // reports compile errors now
}

void MatMul::RunBatch(const tw_frame* f, MatrixSizes s, Matrix a, Matrix b, Place y, Size y_row_step, bool more, const Dims& batch,
                      const Dims& a_steps, const Dims& b_steps, const Dims& y_steps) const {
  const Size matrices = Count(batch);
  if (s.m == 0 || s.n == 0 || matrices == 0) return;
  Layout layout(batch, {a_steps, b_steps, y_steps});
  layout.PushInner();
  if (RunsByLibrary(device_, f, type_, s, a, b, y, y_row_step, more, layout)) return;
  const size_t tile = s.m >= 256 && s.n >= 256 && s.depth >= kLarge / s.m / s.n ? BestTile(f->host, device_) : 0;
  Start(*kernels_[tile], tiles_[tile], f, s, {a, b}, y, y_row_step, more, matrices, layout.axes, layout.steps);
}

namespace {

// Returns the matrices in the last two axes of a tensor.
Matrix LastTwo(const tw_view* v, bool transposed) {
  const Matrix m = RowMajor(At(v), v->dims[v->rank - 1]);
  return transposed ? Transposed(m) : m;
}

// Returns the steps from matrix to matrix, for the axes before the last two of a tensor that
// broadcasts to `to`.
Dims BatchSteps(const tw_view* v, const Dims& to) {
  const Dims dims = DimsOf(v), batch(dims.begin(), dims.end() - 2);
  Dims steps = BroadcastSteps(batch, to);
  for (int64_t& s : steps) s *= v->dims[v->rank - 1] * v->dims[v->rank - 2];
  return steps;
}

class Product {
 public:
  Product(const tw::Node& n, const char* first, const char* second)
      : transpose_x_(n.b(first)), transpose_y_(n.b(second)), matmul_(n, n.type_in(0)) {}

  void operator()(tw::Frame frame) const {
    const tw_view *x = frame.f->in[0], *y = frame.f->in[1], *out = frame.f->out[0];
    if (out->count == 0) return;
    const Dims dims = DimsOf(out), batch(dims.begin(), dims.end() - 2);
    const MatrixSizes sizes{out->dims[out->rank - 2], out->dims[out->rank - 1], x->dims[x->rank - (transpose_x_ ? 2 : 1)]};
    matmul_.RunBatch(frame.f, sizes, LastTwo(x, transpose_x_), LastTwo(y, transpose_y_), At(out), sizes.n, false, batch,
                     BatchSteps(x, batch), BatchSteps(y, batch), BatchSteps(out, batch));
  }

 private:
  bool transpose_x_, transpose_y_;
  MatMul matmul_;
};

struct Plain : Product {
  explicit Plain(const tw::Node& n) : Product(n, "transpose_a", "transpose_b") {}
};
struct Batch : Product {
  explicit Batch(const tw::Node& n) : Product(n, "adj_x", "adj_y") {}
};

}  // namespace

void register_matmul(tw::Plugin& p) {
  for (const char* type : {"float", "double", "half", "bfloat16", "int32", "int64"}) {
    const std::string types = std::string("(") + type + ", " + type + " -> " + type + ") @OPENCL";
    p.kernel<Plain>("MatMul" + types);
    p.kernel<Batch>("BatchMatMul" + types);
    p.kernel<Batch>("BatchMatMulV2" + types);
    p.kernel<Batch>("BatchMatMulV3" + types);
  }
}

}  // namespace thalweg::opencl
