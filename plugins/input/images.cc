// The kernels of the ops that decode and encode images.
#include <cmath>

#include "encode.h"
#include "image.h"
#include "register.h"

namespace thalweg::input {
namespace {

// Allocates the output.
unsigned char* MakeOutput(void* arg, const std::vector<int64_t>& dims) {
  const auto& out = *static_cast<const tw::Out<tw::Any>*>(arg);
  out.allocate(dims);
  return out.data();
}

class DecodePng {
 public:
  explicit DecodePng(const tw::Node& n) : channels_(n.i("channels")), wide_(n.type("dtype") == TW_UINT16) {
    CheckChannels(channels_, {0, 1, 2, 3, 4});
  }
  void operator()(tw::In<tw_string> contents, tw::Out<tw::Any> image) const {
    ReadPng(Contents(contents), channels_, wide_, &MakeOutput, &image);
  }

 private:
  const int64_t channels_;
  const bool wide_;
};

class DecodeJpeg {
 public:
  explicit DecodeJpeg(const tw::Node& n) {
    CheckChannels(n.i("channels"), {0, 1, 3});
    const int64_t ratio = n.i("ratio");
    if (ratio != 1 && ratio != 2 && ratio != 4 && ratio != 8) Invalid("'ratio' is " + tw::text(ratio) + "; it must be one of 1, 2, 4, 8");
    const std::string_view method = n.s("dct_method");
    if (!method.empty() && method != "INTEGER_FAST" && method != "INTEGER_ACCURATE")
      Invalid("'dct_method' is '" + std::string(method) + "'; it must be INTEGER_FAST, INTEGER_ACCURATE or empty");
    options_ = {n.i("channels"), ratio, n.b("fancy_upscaling"), n.b("try_recover_truncated"), method == "INTEGER_FAST"};
  }
  void operator()(tw::In<tw_string> contents, tw::Out<tw::Any> image) const { ReadJpeg(Contents(contents), options_, &MakeOutput, &image); }

 private:
  JpegOptions options_;
};

class DecodeBmp {
 public:
  explicit DecodeBmp(const tw::Node& n) : channels_(n.i("channels")) { CheckChannels(channels_, {0, 1, 3, 4}); }
  void operator()(tw::In<tw_string> contents, tw::Out<tw::Any> image) const { ReadBmp(Contents(contents), channels_, &MakeOutput, &image); }

 private:
  const int64_t channels_;
};

// Any of the formats. Files of 16 bits keep them for uint16 and float; float is in [0, 1].
class DecodeImage {
 public:
  explicit DecodeImage(const tw::Node& n) : channels_(n.i("channels")), dtype_(n.type("dtype")) { CheckChannels(channels_, {0, 1, 3, 4}); }
  void operator()(tw::In<tw_string> contents, tw::Out<tw::Any> image) const {
    const std::string_view bytes = Contents(contents);
    const Format format = FormatOf(bytes);
    const bool wide = format == Format::kPng && dtype_ != TW_UINT8;
    if (dtype_ == TW_UINT8 || (dtype_ == TW_UINT16 && wide)) return Read(format, bytes, wide, &MakeOutput, &image);
    Held held;
    Read(format, bytes, wide, &Held::Make, &held);
    image.allocate(held.dims);
    const size_t n = held.bytes.size() / (wide ? 2 : 1);
    const auto* narrow = held.bytes.data();
    const auto* broad = reinterpret_cast<const uint16_t*>(narrow);
    if (dtype_ == TW_UINT16) {
      auto* to = reinterpret_cast<uint16_t*>(image.data());
      for (size_t i = 0; i < n; ++i) to[i] = uint16_t(narrow[i] * 257);
    } else {
      auto* to = reinterpret_cast<float*>(image.data());
      for (size_t i = 0; i < n; ++i) to[i] = wide ? float(broad[i]) / 65535.0f : float(narrow[i]) / 255.0f;
    }
  }

 private:
  struct Held {
    std::vector<int64_t> dims;
    std::vector<unsigned char> bytes;
    size_t each = 1;
    static unsigned char* Make(void* arg, const std::vector<int64_t>& dims) {
      auto& self = *static_cast<Held*>(arg);
      self.dims = dims;
      self.bytes.resize(size_t(dims[0]) * size_t(dims[1]) * size_t(dims[2]) * self.each);
      return self.bytes.data();
    }
  };
  void Read(Format format, std::string_view bytes, bool wide, MakeImage make, void* arg) const {
    if (make == &Held::Make) static_cast<Held*>(arg)->each = wide ? 2 : 1;
    switch (format) {
      case Format::kPng: return ReadPng(bytes, channels_, wide, make, arg);
      case Format::kJpeg: {
        CheckChannels(channels_, {0, 1, 3});
        JpegOptions options;
        options.channels = channels_;
        return ReadJpeg(bytes, options, make, arg);
      }
      case Format::kBmp: return ReadBmp(bytes, channels_, make, arg);
      case Format::kGif: throw tw::Error{TW_UNIMPLEMENTED, Of("GIF", bytes) + "GIF is not supported; convert it to PNG"};
      default: Invalid("the " + std::to_string(bytes.size()) + " bytes begin as no known image; PNG, JPEG and BMP are known");
    }
  }
  const int64_t channels_;
  const uint32_t dtype_;
};

void CheckImage(tw::In<tw::Any> image, std::initializer_list<int64_t> channels) {
  const auto shown = [&] { return "'image' is " + tw::text(image.dims(), image.rank()); };
  if (image.rank() != 3) Invalid(shown() + "; it must have the axes height, width, channels");
  bool known = false;
  for (const int64_t n : channels) known |= n == image.dim(2);
  if (!known) Invalid(shown() + "; so many channels cannot be stored");
  if (image.dim(0) < 1 || image.dim(1) < 1 || image.dim(0) > kMostPixels / image.dim(1))
    Invalid(shown() + "; it has no pixels, or more than 2^29");
}

class EncodePng {
 public:
  explicit EncodePng(const tw::Node& n) : compression_(n.i("compression")), wide_(n.type("T") == TW_UINT16) {
    if (compression_ < -1 || compression_ > 9) Invalid("'compression' is " + tw::text(compression_) + "; it must be from -1 to 9");
  }
  void operator()(tw::In<tw::Any> image, tw::Out<tw_string> contents) const {
    CheckImage(image, {1, 2, 3, 4});
    contents.set(0, WritePng(image.data(), image.dim(0), image.dim(1), image.dim(2), wide_, compression_));
  }

 private:
  const int64_t compression_;
  const bool wide_;
};

class EncodeJpeg {
 public:
  explicit EncodeJpeg(const tw::Node& n) : format_(n.s("format")) {
    const auto within = [&](const char* attr, int64_t low, int64_t high) {
      const int64_t v = n.i(attr);
      if (v < low || v > high)
        Invalid("'" + std::string(attr) + "' is " + tw::text(v) + "; it must be from " + tw::text(low) + " to " + tw::text(high));
      return int(v);
    };
    how_ = {format_ == "grayscale",      n.b("progressive"),        n.b("optimize_size"),          n.b("chroma_downsampling"),
            n.s("density_unit") == "cm", within("quality", 0, 100), within("x_density", 1, 65535), within("y_density", 1, 65535)};
    if (!n.s("xmp_metadata").empty()) throw tw::Error{TW_UNIMPLEMENTED, "'xmp_metadata' is not supported; leave it empty"};
  }
  void operator()(tw::In<uint8_t> image, tw::Out<tw_string> contents) const {
    CheckImage({{image.v}}, {1, 3});
    const int64_t wanted = format_ == "grayscale" ? 1 : format_ == "rgb" ? 3 : image.dim(2);
    if (wanted != image.dim(2)) Invalid("'format' is " + format_ + ", and the image has " + tw::text(image.dim(2)) + " channels");
    contents.set(0, WriteJpeg(image.data(), image.dim(0), image.dim(1), image.dim(2), how_));
  }

 private:
  const std::string format_;
  JpegWriting how_;
};

}  // namespace

void register_images(tw::Plugin& p) {
  p.kernel<DecodePng>("DecodePng @CPU");
  p.kernel<DecodeJpeg>("DecodeJpeg @CPU");
  p.kernel<DecodeBmp>("DecodeBmp @CPU");
  p.kernel<DecodeImage>("DecodeImage @CPU");
  p.kernel<EncodePng>("EncodePng @CPU");
  p.kernel<EncodeJpeg>("EncodeJpeg @CPU");
}

}  // namespace thalweg::input
