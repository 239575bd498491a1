#include "kernels/convolution.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "kernels/common/parallel.h"
#include "kernels/slots.h"

namespace thalweg::onednn {
namespace {

using cpu::WindowAxis;

bool Same(const WindowAxis& a, const WindowAxis& b) {
  return a.in == b.in && a.out == b.out && a.window == b.window && a.stride == b.stride && a.dilation == b.dilation && a.before == b.before;
}
bool Same(const std::vector<WindowAxis>& a, const std::vector<WindowAxis>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const WindowAxis& x, const WindowAxis& y) { return Same(x, y); });
}

int64_t After(const WindowAxis& a) { return (a.out - 1) * a.stride + (a.window - 1) * a.dilation + 1 - a.in - a.before; }

// Rows [first, first + rows) of the result as a convolution of their own, over the rows of the image that they read, from *skipped on.
WindowAxis Band(const WindowAxis& a, int64_t first, int64_t rows, int64_t* skipped) {
  const int64_t begin = first * a.stride - a.before, end = begin + (rows - 1) * a.stride + (a.window - 1) * a.dilation + 1;
  *skipped = std::clamp<int64_t>(begin, 0, a.in - 1);
  WindowAxis band = a;
  band.in = std::clamp<int64_t>(end, *skipped + 1, a.in) - *skipped;
  band.out = rows;
  band.before = *skipped - begin;
  return band;
}

int64_t Points(const std::vector<WindowAxis>& axes, int64_t WindowAxis::* of) {
  int64_t n = 1;
  for (const WindowAxis& a : axes) n *= a.*of;
  return n;
}

// n, channels, then the axes; dense with channels last.
Layout Images(const Api& api, dnnl_data_type_t type, int64_t batch, int64_t channels, const std::vector<WindowAxis>& axes,
              int64_t WindowAxis::* of) {
  std::vector<int64_t> dims{batch, channels}, strides{channels * Points(axes, of), 1};
  int64_t step = strides[0];
  for (const WindowAxis& a : axes) {
    dims.push_back(a.*of);
    strides.push_back(step /= a.*of);
  }
  return LayoutOf(api, type, dims, strides);
}

}  // namespace

bool Sizes::operator==(const Sizes& o) const {
  return batch == o.batch && in == o.in && out == o.out && groups == o.groups && depthwise == o.depthwise && Same(axes, o.axes);
}

Layout Convolution::PlainFilter(dnnl_data_type_t type) const {
  const Sizes& s = sizes_;
  std::vector<int64_t> dims, strides;
  if (s.groups > 1) {
    dims.push_back(s.groups);
    strides.push_back(s.out / s.groups);
  }
  dims.insert(dims.end(), {s.out / s.groups, s.in / s.groups});
  strides.insert(strides.end(), {1, s.depthwise ? s.out / s.in : s.out});
  int64_t step = (s.depthwise ? s.out : s.in / s.groups * s.out) * Points(s.axes, &WindowAxis::window);
  for (const WindowAxis& a : s.axes) {
    dims.push_back(a.window);
    strides.push_back(step /= a.window);
  }
  return LayoutOf(api_, type, dims, strides);
}

Convolution::Kind Convolution::Make(int64_t batch, const std::vector<WindowAxis>& axes) const {
  const Layout images = Images(api_, type_, batch, sizes_.in, axes, &WindowAxis::in);
  const Layout results = Images(api_, type_, batch, sizes_.out, axes, &WindowAxis::out);
  const Layout plain = PlainFilter(pass_ == Pass::kFilter ? dnnl_f32 : type_);
  const std::vector<int64_t> dims(plain.dims, plain.dims + plain.ndims);
  // The forward pass has the filter's type; the gradient sums in float.
  const Layout any = LayoutOf(api_, type_, dims, {}), sum = LayoutOf(api_, dnnl_f32, dims, {});
  dnnl_dims_t stride{}, dilate{}, before{}, after{};
  for (size_t i = 0; i < axes.size(); ++i) {
    stride[i] = axes[i].stride;
    dilate[i] = axes[i].dilation - 1;
    before[i] = axes[i].before;
    after[i] = After(axes[i]);
  }
  const Attributes attributes(api_);
  dnnl_convolution_desc_t op;
  constexpr char kWhat[] = "describing a convolution";
  Check(api_.dnnl_dilated_convolution_forward_desc_init(&op, pass_ == Pass::kForward ? dnnl_forward_inference : dnnl_forward_training,
                                                        dnnl_convolution_direct, &images, &any, nullptr, &results, stride, dilate, before,
                                                        after),
        kWhat);
  const Description forward(api_, &op, attributes);
  Kind kind{nullptr, images, {}, results, batch * Points(axes, &WindowAxis::out)};
  if (pass_ == Pass::kForward) {
    kind.primitive = std::make_unique<Primitive>(forward);
    kind.filter = forward.layout(dnnl_query_weights_md);
    return kind;
  }
  if (pass_ == Pass::kInput)
    Check(api_.dnnl_dilated_convolution_backward_data_desc_init(&op, dnnl_convolution_direct, &images, &any, &results, stride, dilate,
                                                                before, after),
          kWhat);
  else
    Check(api_.dnnl_dilated_convolution_backward_weights_desc_init(&op, dnnl_convolution_direct, &images, &sum, nullptr, &results, stride,
                                                                   dilate, before, after),
          kWhat);
  const Description backward(api_, &op, attributes, &forward);
  kind.primitive = std::make_unique<Primitive>(backward);
  kind.filter = backward.layout(pass_ == Pass::kFilter ? dnnl_query_diff_weights_md : dnnl_query_weights_md);
  return kind;
}

void Convolution::Add(int64_t batch, int64_t first_image, int64_t first_row, int64_t rows) {
  std::vector<WindowAxis> axes = sizes_.axes;
  int64_t skipped = 0;
  if (rows < axes[0].out) axes[0] = Band(axes[0], first_row, rows, &skipped);
  size_t kind = 0;
  while (kind < kinds_.size() && !(kind_batch_[kind] == batch && Same(kind_axes_[kind], axes))) ++kind;
  if (kind == kinds_.size()) {
    kinds_.push_back(Make(batch, axes));
    kind_batch_.push_back(batch);
    kind_axes_.push_back(axes);
  }
  const int64_t in = sizes_.in * Points(sizes_.axes, &WindowAxis::in), out = sizes_.out * Points(sizes_.axes, &WindowAxis::out);
  pieces_.push_back(
      {kind, first_image * in + skipped * (in / sizes_.axes[0].in), first_image * out + first_row * (out / sizes_.axes[0].out)});
}

// A piece is some 50 us of work at least. More pieces than 16 are of no use on the processors that this is for.
void Convolution::Cut() {
  constexpr double kPieceWork = 6e6;
  constexpr int64_t kMostPieces = 16;
  const int64_t points = Points(sizes_.axes, &WindowAxis::out), taps = Points(sizes_.axes, &WindowAxis::window);
  const double image = double(points) * double(taps) * double(sizes_.in / sizes_.groups) * double(sizes_.out);
  int64_t wanted = std::clamp<int64_t>(int64_t(std::min(double(kMostPieces), image * double(sizes_.batch) / kPieceWork)), 1, kMostPieces);
  // Each piece reads the whole filter; one of a filter's gradient writes as much, to be read once more. Two threads share three pieces
  // badly.
  wanted = std::clamp<int64_t>(sizes_.batch * points / (pass_ == Pass::kFilter ? 512 : 256), 1, wanted);
  if (pass_ != Pass::kFilter) wanted = int64_t(std::bit_ceil(uint64_t(wanted)));
  const int64_t groups = std::min(wanted, sizes_.batch);
  int64_t bands = pass_ == Pass::kForward ? std::max<int64_t>(1, wanted / sizes_.batch) : 1;
  bands = std::min(bands, std::max<int64_t>(1, sizes_.axes[0].out / 8));
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t first = g * sizes_.batch / groups, count = (g + 1) * sizes_.batch / groups - first;
    for (int64_t b = 0; b < bands; ++b) {
      const int64_t row = b * sizes_.axes[0].out / bands;
      Add(count, first, row, (b + 1) * sizes_.axes[0].out / bands - row);
    }
  }
}

Convolution::Convolution(const Api& api, const Sizes& sizes, Pass pass, dnnl_data_type_t type)
    : api_(api), sizes_(sizes), pass_(pass), type_(type) {
  Cut();
  plain_filter_ = PlainFilter(type_);
  filter_ = kinds_[0].filter;
  filter_bytes_ = cpu::RoundUp64(Bytes(api_, filter_));
  for (const Kind& k : kinds_)
    if (!api_.dnnl_memory_desc_equal(&k.filter, &filter_))
      throw tw::Error{TW_UNIMPLEMENTED, "oneDNN wants different layouts of the filter for pieces of different sizes"};
  if (sizes_.groups == 1 && pass != Pass::kFilter) pack_ = FilterPack(sizes_.in, sizes_.out, sizes_.axes, type_, filter_);
  turn_ = std::make_unique<Primitive>(pass == Pass::kFilter ? Description(api_, filter_, plain_filter_)
                                                            : Description(api_, plain_filter_, filter_));
}

uint64_t Convolution::piece_scratch() const {
  uint64_t bytes = turn_->scratch();
  for (const Kind& k : kinds_) bytes = std::max(bytes, k.primitive->scratch());
  return cpu::RoundUp64(bytes);
}

uint64_t Convolution::scratch() const {
  const uint64_t filters = pass_ == Pass::kFilter ? pieces_.size() : 1;
  return filters * filter_bytes_ + piece_scratch() * uint64_t(std::min<int64_t>(slots_, int64_t(pieces_.size())));
}

void Convolution::Pack(const tw_frame* f, const void* filter, void* packed, char* scratch) const {
  if (pack_.known()) return pack_.Run(f, static_cast<const char*>(filter), static_cast<char*>(packed));
  Check(turn_->Run({{DNNL_ARG_FROM, plain_filter_, filter}, {DNNL_ARG_TO, filter_, packed}}, scratch), "turning a filter");
}

void Convolution::Run(const tw_frame* f, const void* first, const void* second, const Epilogue& epilogue, void* to, char* scratch) const {
  if (pass_ == Pass::kFilter) return RunFilter(f, first, second, to, scratch);
  char* packed = scratch;
  Pack(f, pass_ == Pass::kForward ? second : first, packed, scratch + filter_bytes_);
  RunPacked(f, pass_ == Pass::kForward ? first : second, packed, epilogue, to, scratch + filter_bytes_);
}

void Convolution::RunPacked(const tw_frame* f, const void* from, const void* packed, const Epilogue& epilogue, void* to,
                            char* scratch) const {
  const uint64_t room = piece_scratch(), size = type_ == dnnl_f32 ? 4 : 2;
  std::atomic<dnnl_status_t> failed{dnnl_success};
  cpu::ForEachTask(f, int64_t(pieces_.size()), slots_, [&](int64_t i, int slot) {
    const Piece& p = pieces_[size_t(i)];
    const Kind& k = kinds_[p.kind];
    char* mine = scratch + room * uint64_t(slot);
    const bool forward = pass_ == Pass::kForward;
    const char* read = static_cast<const char*>(from) + uint64_t(forward ? p.images_at : p.results_at) * size;
    char* write = static_cast<char*>(to) + uint64_t(forward ? p.results_at : p.images_at) * size;
    const Argument filter{DNNL_ARG_WEIGHTS, k.filter, packed};
    const dnnl_status_t s =
        forward ? k.primitive->Run({{DNNL_ARG_SRC, k.images, read}, filter, {DNNL_ARG_DST, k.results, write}}, mine)
                : k.primitive->Run({{DNNL_ARG_DIFF_DST, k.results, read}, filter, {DNNL_ARG_DIFF_SRC, k.images, write}}, mine);
    if (s != dnnl_success) failed = s;
    if (!epilogue.empty()) Finish(epilogue, reinterpret_cast<float*>(write), k.points, sizes_.out, sizes_.out, 0);
  });
  Check(failed, "a convolution");
}

void Convolution::RunFilter(const tw_frame* f, const void* images, const void* results, void* to, char* scratch) const {
  const uint64_t size = type_ == dnnl_f32 ? 4 : 2, room = piece_scratch();
  char* rooms = scratch + pieces_.size() * filter_bytes_;
  std::atomic<dnnl_status_t> failed{dnnl_success};
  cpu::ForEachTask(f, int64_t(pieces_.size()), slots_, [&](int64_t i, int slot) {
    const Piece& p = pieces_[size_t(i)];
    const Kind& k = kinds_[p.kind];
    const dnnl_status_t s =
        k.primitive->Run({{DNNL_ARG_SRC, k.images, static_cast<const char*>(images) + uint64_t(p.images_at) * size},
                          {DNNL_ARG_DIFF_DST, k.results, static_cast<const char*>(results) + uint64_t(p.results_at) * size},
                          {DNNL_ARG_DIFF_WEIGHTS, k.filter, scratch + uint64_t(i) * filter_bytes_}},
                         rooms + room * uint64_t(slot));
    if (s != dnnl_success) failed = s;
  });
  Check(failed, "the gradient of a filter");
  float* sum = reinterpret_cast<float*>(scratch);
  const int64_t step = int64_t(filter_bytes_ / sizeof(float));
  if (pieces_.size() > 1)
    cpu::ParallelFor(f, step, int64_t(pieces_.size()), [&](int64_t begin, int64_t end) {
      for (size_t p = 1; p < pieces_.size(); ++p)
        for (int64_t i = begin; i < end; ++i) sum[i] += sum[int64_t(p) * step + i];
    });
  Check(turn_->Run({{DNNL_ARG_FROM, filter_, sum}, {DNNL_ARG_TO, plain_filter_, to}}, rooms), "turning a filter");
}

}  // namespace thalweg::onednn
