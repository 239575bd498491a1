#include "kernels/image_pieces.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include "kernels/common/parallel.h"

namespace thalweg::onednn {
namespace {

using cpu::WindowAxis;

// Returns rows [first, first + rows) of the result as a convolution of their own, over the image
// rows that they read, which start at *skipped.
WindowAxis Band(const WindowAxis& a, int64_t first, int64_t rows, int64_t* skipped) {
  const int64_t begin = first * a.stride - a.before, end = begin + (rows - 1) * a.stride + (a.window - 1) * a.dilation + 1;
  *skipped = std::clamp<int64_t>(begin, 0, a.in - 1);
  WindowAxis band = a;
  band.in = std::clamp<int64_t>(end, *skipped + 1, a.in) - *skipped;
  band.out = rows;
  band.before = *skipped - begin;
  return band;
}

}  // namespace

void ImagePieces::Add(int64_t batch, int64_t first_image, int64_t first_row, int64_t rows) {
  Sizes piece = sizes_;
  piece.batch = batch;
  int64_t skipped = 0;
  if (rows < sizes_.axes[0].out) piece.axes[0] = Band(sizes_.axes[0], first_row, rows, &skipped);
  size_t call = 0;
  while (call < calls_.size() && !(calls_[call]->sizes() == piece)) ++call;
  if (call == calls_.size()) calls_.push_back(std::make_unique<ConvolutionCall>(api_, piece, pass_, type_));
  const int64_t in = sizes_.in * sizes_.Points(&WindowAxis::in), out = sizes_.out * sizes_.Points(&WindowAxis::out);
  pieces_.push_back(
      {call, first_image * in + skipped * (in / sizes_.axes[0].in), first_image * out + first_row * (out / sizes_.axes[0].out)});
}

// A piece is at least some 50 us of work. The processors that this targets gain nothing from more
// than 16 pieces.
void ImagePieces::Cut() {
  constexpr double kPieceWork = 6e6;
  constexpr int64_t kMostPieces = 16;
  const int64_t points = sizes_.Points(&WindowAxis::out);
  const double image = double(points) * double(sizes_.taps()) * double(sizes_.in / sizes_.groups) * double(sizes_.out);
  int64_t wanted = std::clamp<int64_t>(int64_t(std::min(double(kMostPieces), image * double(sizes_.batch) / kPieceWork)), 1, kMostPieces);
  // Each piece reads the whole filter. A piece of a filter's gradient writes as much, and that is
  // read once more. Two threads cannot share three pieces evenly.
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

ImagePieces::ImagePieces(const Api& api, const Sizes& sizes, Pass pass, dnnl_data_type_t type)
    : api_(api), sizes_(sizes), pass_(pass), type_(type) {
  Cut();
  plain_filter_ = PlainFilter(api_, type_, sizes_, sizes_);
  filter_ = calls_[0]->filter();
  filter_bytes_ = cpu::RoundUp64(Bytes(api_, filter_));
  for (const auto& call : calls_)
    if (!api_.dnnl_memory_desc_equal(&call->filter(), &filter_))
      throw tw::Error{TW_UNIMPLEMENTED,
                      "oneDNN wants different layouts of the "
                      "filter for pieces of different sizes"};
  if (sizes_.groups == 1 && pass != Pass::kFilter) pack_ = FilterPack(sizes_, sizes_, type_, filter_);
  if (sizes_.groups == 1 && pass == Pass::kFilter) unpack_ = FilterUnpack(api_, sizes_, sizes_, type_, filter_);
  turn_ = std::make_unique<Primitive>(pass == Pass::kFilter ? Description(api_, filter_, plain_filter_)
                                                            : Description(api_, plain_filter_, filter_));
}

uint64_t ImagePieces::piece_scratch() const {
  uint64_t bytes = turn_->scratch();
  for (const auto& call : calls_) bytes = std::max(bytes, call->scratch());
  return cpu::RoundUp64(bytes);
}

uint64_t ImagePieces::scratch() const {
  const uint64_t filters = pass_ == Pass::kFilter ? pieces_.size() : 1;
  return filters * filter_bytes_ + piece_scratch() * uint64_t(std::min<int64_t>(slots_, int64_t(pieces_.size())));
}

void ImagePieces::PackFor(const tw_frame* f, const void* filter, void* packed, char* scratch) const {
  if (pack_.known()) return pack_.Run(f, static_cast<const char*>(filter), static_cast<char*>(packed));
  Check(turn_->Run({{DNNL_ARG_FROM, plain_filter_, filter}, {DNNL_ARG_TO, filter_, packed}}, scratch), "turning a filter");
}

void ImagePieces::Run(const tw_frame* f, const void* first, const void* second, const Epilogue& epilogue, void* to, char* scratch) const {
  if (pass_ == Pass::kFilter) return RunFilter(f, first, second, to, scratch);
  PackFor(f, pass_ == Pass::kForward ? second : first, scratch, scratch + filter_bytes_);
  RunPacked(f, pass_ == Pass::kForward ? first : second, scratch, epilogue, to, scratch + filter_bytes_);
}

void ImagePieces::RunPacked(const tw_frame* f, const void* from, const void* packed, const Epilogue& epilogue, void* to,
                            char* scratch) const {
  const uint64_t room = piece_scratch(), size = ElementSize(type_);
  const bool forward = pass_ == Pass::kForward;
  std::atomic<dnnl_status_t> failed{dnnl_success};
  cpu::ForEachTask(f, int64_t(pieces_.size()), slots_, [&](int64_t i, int slot) {
    const Piece& p = pieces_[size_t(i)];
    const ConvolutionCall& call = *calls_[p.call];
    const char* read = static_cast<const char*>(from) + uint64_t(forward ? p.images_at : p.results_at) * size;
    char* write = static_cast<char*>(to) + uint64_t(forward ? p.results_at : p.images_at) * size;
    const dnnl_status_t s = call.Run(forward ? read : write, packed, forward ? write : read, scratch + room * uint64_t(slot));
    if (s != dnnl_success) failed = s;
    if (!epilogue.empty()) Finish(epilogue, reinterpret_cast<float*>(write), call.sizes().results(), sizes_.out, sizes_.out, 0);
  });
  Check(failed, "a convolution");
}

void ImagePieces::RunFilter(const tw_frame* f, const void* images, const void* results, void* to, char* scratch) const {
  const uint64_t size = ElementSize(type_), room = piece_scratch();
  char* rooms = scratch + pieces_.size() * filter_bytes_;
  std::atomic<dnnl_status_t> failed{dnnl_success};
  cpu::ForEachTask(f, int64_t(pieces_.size()), slots_, [&](int64_t i, int slot) {
    const Piece& p = pieces_[size_t(i)];
    const dnnl_status_t s =
        calls_[p.call]->Run(static_cast<const char*>(images) + uint64_t(p.images_at) * size, scratch + uint64_t(i) * filter_bytes_,
                            static_cast<const char*>(results) + uint64_t(p.results_at) * size, rooms + room * uint64_t(slot));
    if (s != dnnl_success) failed = s;
  });
  Check(failed, "the gradient of a filter");
  float* sum = reinterpret_cast<float*>(scratch);
  const int64_t step = int64_t(filter_bytes_ / sizeof(float)), pieces = int64_t(pieces_.size());
  if (unpack_.known()) return unpack_.Run(f, sum, pieces, step, static_cast<char*>(to));
  if (pieces > 1)
    cpu::ParallelFor(f, step, pieces, [&](int64_t begin, int64_t end) {
      for (int64_t p = 1; p < pieces; ++p)
        for (int64_t i = begin; i < end; ++i) sum[i] += sum[p * step + i];
    });
  Check(turn_->Run({{DNNL_ARG_FROM, filter_, sum}, {DNNL_ARG_TO, plain_filter_, to}}, rooms), "turning a filter");
}

}  // namespace thalweg::onednn
