#include "kernels/channel_slices.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

namespace thalweg::onednn {
namespace {

// Returns the sizes of the same convolution for `width` of the written channels.
Sizes Part(const Sizes& whole, Pass pass, int64_t width) {
  Sizes part = whole;
  (pass == Pass::kInput ? part.in : part.out) = width;
  return part;
}

Description Turned(const Api& api, Pass pass, const Layout& plain, const Layout& packed) {
  return pass == Pass::kFilter ? Description(api, packed, plain) : Description(api, plain, packed);
}

}  // namespace

// A slice's part of the filter should stay in a second-level cache of a megabyte, together with
// some of the data that it is multiplied with. The gradient of a filter is read only once, but each
// of its slices reads all images, which the library transposes first for bfloat16.
int64_t SliceWidth(const Api& api, const Sizes& s, Pass pass, dnnl_data_type_t type) {
  constexpr int64_t kFewPoints = 2048, kPartBytes = 1 << 19, kLeast = 32;
  const int64_t channels = pass == Pass::kInput ? s.in : s.out, others = pass == Pass::kInput ? s.out : s.in;
  if (s.groups > 1 || s.results() > kFewPoints || channels < 4 * kLeast || channels % 16 != 0) return 0;
  const int64_t fits = kPartBytes / (s.taps() * others * int64_t(ElementSize(type)));
  int64_t slices = (channels + std::max(fits, kLeast) - 1) / std::max(fits, kLeast);
  if (pass == Pass::kFilter) slices = type == dnnl_f32 ? 2 * api.processors : api.processors;
  slices = std::clamp(int64_t(std::bit_ceil(uint64_t(slices))), int64_t{2}, channels / kLeast);
  return (channels / slices + 31) / 32 * 32;
}

ChannelSlices::Kind::Kind(const Api& api, const Sizes& part, const Sizes& whole, Pass pass, dnnl_data_type_t type)
    : call(api, part, pass, type),
      plain(PlainFilter(api, type, part, whole)),
      turn(Turned(api, pass, plain, call.filter())),
      pack(pass == Pass::kFilter ? FilterPack() : FilterPack(part, whole, type, call.filter())),
      unpack(pass == Pass::kFilter ? FilterUnpack(api, part, whole, type, call.filter()) : FilterUnpack()) {}

ChannelSlices::ChannelSlices(const Api& api, const Sizes& sizes, Pass pass, dnnl_data_type_t type, int64_t width)
    : sizes_(sizes),
      pass_(pass),
      width_(width),
      channels_(pass == Pass::kInput ? sizes.in : sizes.out),
      slices_((channels_ + width - 1) / width),
      size_(ElementSize(type)),
      full_(api, Part(sizes, pass, width), sizes, pass, type) {
  if (channels_ % width) last_ = std::make_unique<Kind>(api, Part(sizes, pass, channels_ % width), sizes, pass, type);
  const int64_t points = pass == Pass::kInput ? sizes.images() : sizes.results();
  channel_bytes_ = cpu::RoundUp64(uint64_t(points * width) * size_);
  uint64_t library = 0;
  for (const Kind* k : {static_cast<const Kind*>(&full_), static_cast<const Kind*>(last_.get())}) {
    if (!k) continue;
    filter_bytes_ = std::max(filter_bytes_, cpu::RoundUp64(Bytes(api, k->call.filter())));
    library = std::max({library, k->call.scratch(), k->turn.scratch()});
  }
  room_ = filter_bytes_ + channel_bytes_ + cpu::RoundUp64(library);
}

ChannelSlices::Slice ChannelSlices::At(int64_t i) const {
  Slice s{&full_, i * width_, std::min(width_, channels_ - i * width_), 0};
  if (s.width < width_) s.kind = last_.get();
  s.filter_at = uint64_t(pass_ == Pass::kInput ? s.first * sizes_.out : s.first) * size_;
  return s;
}

template <class F>
void ChannelSlices::ForEach(const tw_frame* f, const char* what, char* scratch, F&& part) const {
  std::atomic<dnnl_status_t> failed{dnnl_success};
  const auto run = [&](int64_t i, int slot) {
    const dnnl_status_t s = part(At(i), i, scratch + room_ * uint64_t(slot));
    if (s != dnnl_success) failed = s;
  };
  if (f)
    cpu::ForEachTask(f, slices_, slots_, run);
  else
    for (int64_t i = 0; i < slices_; ++i) run(i, 0);
  Check(failed, what);
}

// Copies the channels of the slice at each point.
void ChannelSlices::CopyChannels(const Slice& s, const char* from, int64_t from_row, char* to, int64_t to_row) const {
  const int64_t points = pass_ == Pass::kInput ? sizes_.images() : sizes_.results();
  for (int64_t p = 0; p < points; ++p)
    std::memcpy(to + uint64_t(p * to_row) * size_, from + uint64_t(p * from_row) * size_, uint64_t(s.width) * size_);
}

dnnl_status_t ChannelSlices::PackSlice(const Slice& s, const char* filter, char* packed, char* scratch) const {
  const Kind& k = *s.kind;
  if (!k.pack.known()) return k.turn.Run({{DNNL_ARG_FROM, k.plain, filter + s.filter_at}, {DNNL_ARG_TO, k.call.filter(), packed}}, scratch);
  k.pack.Run(nullptr, filter + s.filter_at, packed);
  return dnnl_success;
}

// Runs a slice of a forward pass or of an input's gradient.
dnnl_status_t ChannelSlices::RunSlice(const Slice& s, const char* from, const char* packed, const Epilogue& epilogue, char* to,
                                      char* mine) const {
  char* made = Channels(mine);
  const bool forward = pass_ == Pass::kForward;
  const dnnl_status_t status = s.kind->call.Run(forward ? from : made, packed, forward ? made : from, Scratch(mine));
  if (status != dnnl_success) return status;
  if (!epilogue.empty()) Finish(epilogue, reinterpret_cast<float*>(made), sizes_.results(), s.width, s.width, s.first);
  CopyChannels(s, made, s.width, to + uint64_t(s.first) * size_, channels_);
  return status;
}

dnnl_status_t ChannelSlices::RunFilterSlice(const Slice& s, const char* images, const char* results, char* to, char* mine) const {
  const Kind& k = *s.kind;
  CopyChannels(s, results + uint64_t(s.first) * size_, channels_, Channels(mine), s.width);
  const dnnl_status_t status = k.call.Run(images, mine, Channels(mine), Scratch(mine));
  if (status != dnnl_success) return status;
  to += s.filter_at;
  if (!k.unpack.known()) return k.turn.Run({{DNNL_ARG_FROM, k.call.filter(), mine}, {DNNL_ARG_TO, k.plain, to}}, Scratch(mine));
  k.unpack.Run(nullptr, reinterpret_cast<const float*>(mine), 1, 0, to);
  return status;
}

void ChannelSlices::Pack(const void* filter, void* packed, char* scratch) const {
  ForEach(nullptr, "turning a filter", scratch, [&](const Slice& s, int64_t i, char* mine) {
    return PackSlice(s, static_cast<const char*>(filter), static_cast<char*>(packed) + filter_bytes_ * uint64_t(i), Scratch(mine));
  });
}

void ChannelSlices::Run(const tw_frame* f, const void* first, const void* second, const Epilogue& epilogue, void* to, char* scratch) const {
  const char *a = static_cast<const char*>(first), *b = static_cast<const char*>(second);
  char* out = static_cast<char*>(to);
  if (pass_ == Pass::kFilter)
    return ForEach(f, "the gradient of a filter", scratch,
                   [&](const Slice& s, int64_t, char* mine) { return RunFilterSlice(s, a, b, out, mine); });
  if (pass_ == Pass::kForward) std::swap(a, b);
  ForEach(f, "a convolution", scratch, [&](const Slice& s, int64_t, char* mine) {
    const dnnl_status_t status = PackSlice(s, a, mine, Scratch(mine));
    return status == dnnl_success ? RunSlice(s, b, mine, epilogue, out, mine) : status;
  });
}

void ChannelSlices::RunPacked(const tw_frame* f, const void* images, const void* packed, const Epilogue& epilogue, void* to,
                              char* scratch) const {
  ForEach(f, "a convolution", scratch, [&](const Slice& s, int64_t i, char* mine) {
    return RunSlice(s, static_cast<const char*>(images), static_cast<const char*>(packed) + filter_bytes_ * uint64_t(i), epilogue,
                    static_cast<char*>(to), mine);
  });
}

}  // namespace thalweg::onednn
