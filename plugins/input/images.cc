// The kernels of the ops that decode and encode images.
#include <algorithm>

#include "encode.h"
#include "image.h"
#include "register.h"

namespace thalweg::input {
namespace {

// Allocates the output, unless its shape was known before.
unsigned char* MakeOutput(void* arg, const std::vector<int64_t>& dims) {
  const auto& out = *static_cast<const tw::Out<tw::Any>*>(arg);
  if (out.rank() < 0) out.allocate(dims);
  if (!std::equal(dims.begin(), dims.end(), out.dims(), out.dims() + out.rank()))
    throw tw::Error{TW_INTERNAL, "the output has another shape"};
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

JpegOptions JpegOptionsOf(const tw::Node& n) {
  CheckChannels(n.i("channels"), {0, 1, 3});
  const int64_t ratio = n.i("ratio");
  if (ratio != 1 && ratio != 2 && ratio != 4 && ratio != 8) Invalid("'ratio' is " + tw::text(ratio) + "; it must be one of 1, 2, 4, 8");
  const std::string_view method = n.s("dct_method");
  if (!method.empty() && method != "INTEGER_FAST" && method != "INTEGER_ACCURATE")
    Invalid("'dct_method' is '" + std::string(method) + "'; it must be INTEGER_FAST, INTEGER_ACCURATE or empty");
  return {n.i("channels"), ratio, n.b("fancy_upscaling"), n.b("try_recover_truncated"), method == "INTEGER_FAST"};
}

class DecodeJpeg {
 public:
  explicit DecodeJpeg(const tw::Node& n) : options_(JpegOptionsOf(n)) {}
  void operator()(tw::In<tw_string> contents, tw::Out<tw::Any> image) const {
    ReadJpeg(Contents(contents), options_, nullptr, &MakeOutput, &image);
  }

 private:
  const JpegOptions options_;
};

class DecodeAndCropJpeg {
 public:
  explicit DecodeAndCropJpeg(const tw::Node& n) : options_(JpegOptionsOf(n)) {}
  void operator()(tw::In<tw_string> contents, tw::In<int32_t> crop_window, tw::Out<tw::Any> image) const {
    if (crop_window.rank() != 1 || crop_window.dim(0) != 4) {
      Invalid("'crop_window' is " + tw::text(crop_window.dims(), crop_window.rank()) +
              "; it must be a vector of 4 numbers: y, x, height, width");
    }
    const Window window{crop_window[0], crop_window[1], crop_window[2], crop_window[3]};
    ReadJpeg(Contents(contents), options_, &window, &MakeOutput, &image);
  }

 private:
  const JpegOptions options_;
};

template <class T>
void ExtractJpegShape(tw::In<tw_string> contents, tw::Out<T> image_shape) {
  const std::vector<int64_t> shape = JpegShape(Contents(contents));
  for (uint64_t i = 0; i < shape.size(); ++i) image_shape[i] = T(shape[i]);
}

class DecodeBmp {
 public:
  explicit DecodeBmp(const tw::Node& n) : channels_(n.i("channels")) { CheckChannels(channels_, {0, 1, 3, 4}); }
  void operator()(tw::In<tw_string> contents, tw::Out<tw::Any> image) const { ReadBmp(Contents(contents), channels_, &MakeOutput, &image); }

 private:
  const int64_t channels_;
};

void DecodeGif(tw::In<tw_string> contents, tw::Out<tw::Any> image) { ReadGif(Contents(contents), true, &MakeOutput, &image); }

class DecodeWebP {
 public:
  explicit DecodeWebP(const tw::Node& n) : channels_(n.i("channels")) { CheckChannels(channels_, {0, 3, 4}); }
  void operator()(tw::Frame f, tw::In<tw_string> contents, tw::Out<tw::Any> image) const {
    ReadWebP(Contents(contents), channels_, true, f, &MakeOutput, &image);
  }

 private:
  const int64_t channels_;
};

// Any of the formats. Files of 16 bits keep them for uint16 and float; float is in [0, 1].
class DecodeImage {
 public:
  explicit DecodeImage(const tw::Node& n) : channels_(n.i("channels")), dtype_(n.type("dtype")), all_(n.b("expand_animations")) {
    CheckChannels(channels_, {0, 1, 3, 4});
  }
  void operator()(tw::Frame f, tw::In<tw_string> contents, tw::Out<tw::Any> image) const {
    const std::string_view bytes = Contents(contents);
    const Format format = FormatOf(bytes);
    const bool wide = format == Format::kPng && dtype_ != TW_UINT8;
    if (dtype_ == TW_UINT8 || (dtype_ == TW_UINT16 && wide)) return Read(f, format, bytes, wide, &MakeOutput, &image);
    Held held(f, wide ? 2 : 1);
    Read(f, format, bytes, wide, &Held::Make, &held);
    image.allocate(held.dims);
    const size_t n = held.bytes.size() / held.each;
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
  // Pixels of another type than the output's.
  struct Held {
    std::vector<int64_t> dims;
    tw::TempVector<unsigned char> bytes;
    const size_t each;
    Held(tw::Frame f, size_t bytes_of_each) : bytes(f), each(bytes_of_each) {}
    static unsigned char* Make(void* arg, const std::vector<int64_t>& dims) {
      auto& self = *static_cast<Held*>(arg);
      self.dims = dims;
      size_t n = self.each;
      for (const int64_t size : dims) n *= size_t(size);
      self.bytes.resize(n);
      return self.bytes.data();
    }
  };
  void Read(tw::Frame f, Format format, std::string_view bytes, bool wide, MakeImage make, void* arg) const {
    switch (format) {
      case Format::kPng: return ReadPng(bytes, channels_, wide, make, arg);
      case Format::kJpeg: {
        CheckChannels(channels_, {0, 1, 3});
        JpegOptions options;
        options.channels = channels_;
        return ReadJpeg(bytes, options, nullptr, make, arg);
      }
      case Format::kBmp: return ReadBmp(bytes, channels_, make, arg);
      case Format::kGif: CheckChannels(channels_, {0, 3}); return ReadGif(bytes, all_, make, arg);
      case Format::kWebP: CheckChannels(channels_, {0, 3, 4}); return ReadWebP(bytes, channels_, all_, f, make, arg);
      default: Invalid("the " + std::to_string(bytes.size()) + " bytes begin as no known image; PNG, JPEG, BMP, GIF and WebP are known");
    }
  }
  const int64_t channels_;
  const uint32_t dtype_;
  const bool all_;
};

void CheckImage(const char* name, tw::In<tw::Any> image, std::initializer_list<int64_t> channels) {
  const auto shown = [&] { return "'" + std::string(name) + "' is " + tw::text(image.dims(), image.rank()); };
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
    CheckImage("image", image, {1, 2, 3, 4});
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
    CheckImage("image", {{image.v}}, {1, 3});
    const int64_t wanted = format_ == "grayscale" ? 1 : format_ == "rgb" ? 3 : image.dim(2);
    if (wanted != image.dim(2)) Invalid("'format' is " + format_ + ", and the image has " + tw::text(image.dim(2)) + " channels");
    contents.set(0, WriteJpeg(image.data(), image.dim(0), image.dim(1), image.dim(2), how_));
  }

 private:
  const std::string format_;
  JpegWriting how_;
};

void EncodeJpegVariableQuality(tw::In<uint8_t> images, tw::In<int32_t> quality, tw::Out<tw_string> contents) {
  CheckImage("images", {{images.v}}, {1, 3});
  if (quality.rank() != 0) Invalid("'quality' is " + tw::text(quality.dims(), quality.rank()) + "; it must be a scalar");
  if (quality[0] < 0 || quality[0] > 100) Invalid("'quality' is " + tw::text(quality[0]) + "; it must be from 0 to 100");
  JpegWriting how;
  how.quality = quality[0];
  contents.set(0, WriteJpeg(images.data(), images.dim(0), images.dim(1), images.dim(2), how));
}

}  // namespace

void register_images(tw::Plugin& p) {
  p.kernel<DecodePng>("DecodePng @CPU");
  p.kernel<DecodeJpeg>("DecodeJpeg @CPU");
  p.kernel<DecodeAndCropJpeg>("DecodeAndCropJpeg @CPU");
  p.kernel<ExtractJpegShape<int32_t>, ExtractJpegShape<int64_t>>("ExtractJpegShape @CPU");
  p.kernel<DecodeBmp>("DecodeBmp @CPU");
  p.kernel<DecodeGif>("DecodeGif @CPU");
  p.kernel<DecodeWebP>("DecodeWebP @CPU");
  p.kernel<DecodeImage>("DecodeImage @CPU");
  p.kernel<EncodePng>("EncodePng @CPU");
  p.kernel<EncodeJpeg>("EncodeJpeg @CPU");
  p.kernel<EncodeJpegVariableQuality>("EncodeJpegVariableQuality @CPU");
}

}  // namespace thalweg::input
