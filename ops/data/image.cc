// Ops that decode and encode images.
#include "ops/common/shape.h"
#include "ops/register.h"

namespace thalweg::ops {
namespace {

// Returns the last size of images. The kernel refuses invalid numbers.
int64_t Channels(const tw::Shape& s) { return s.i("channels") > 0 ? s.i("channels") : -1; }

// height, width, channels
void ImageRule(const tw::Shape& s) { s.out(0, {-1, -1, Channels(s)}); }

// frames, height, width, channels
void FramesRule(const tw::Shape& s) { s.out(0, {-1, -1, -1, Channels(s)}); }

// Only formats that can hold several frames have the axis of frames.
void AnyImageRule(const tw::Shape& s) {
  if (s.b("expand_animations")) {
    s.unknown(0);
  } else {
    ImageRule(s);
  }
}

void CropRule(const tw::Shape& s) {
  WantVector(s, 1, "crop_window");
  std::vector<int64_t> window;
  if (!s.value(1, &window)) return ImageRule(s);
  if (window.size() != 4) Fail("'crop_window' is " + Text(Dims(window)) + "; it must be 4 numbers: y, x, height, width");
  if (window[2] < 1 || window[3] < 1) Fail("'crop_window' is " + Text(Dims(window)) + " (y, x, height, width); it has no pixels");
  s.out(0, {window[2], window[3], Channels(s)});
}

}  // namespace

void register_image(tw::Plugin& p) {
  p.op<nullptr, ImageRule>(R"(
      DecodePng(contents: string[]) -> (image: dtype); channels: int = 0; dtype: {uint8, uint16} = uint8;
      no_gradient "stored bytes have no derivative"; doc "the pixels of a PNG file")");
  p.op<nullptr, ImageRule>(R"(
      DecodeJpeg(contents: string[]) -> (image: uint8); channels: int = 0; ratio: int = 1; fancy_upscaling: bool = true;
      try_recover_truncated: bool = false; acceptable_fraction: float = 1; dct_method: string = "";
      no_gradient "stored bytes have no derivative"; doc "the pixels of a JPEG file")");
  p.op<nullptr, CropRule>(R"(
      DecodeAndCropJpeg(contents: string[], crop_window: int32) -> (image: uint8); channels: int = 0; ratio: int = 1;
      fancy_upscaling: bool = true; try_recover_truncated: bool = false; acceptable_fraction: float = 1; dct_method: string = "";
      no_gradient "stored bytes have no derivative"; doc "a window of the pixels of a JPEG file")");
  p.op(R"(
      ExtractJpegShape(contents: string[]) -> (image_shape: output_type[3]); output_type: {int32, int64} = int32;
      no_gradient "stored bytes have no derivative"; doc "height, width and channels of a JPEG file")");
  p.op<nullptr, ImageRule>(R"(
      DecodeBmp(contents: string[]) -> (image: uint8); channels: int = 0; no_gradient "stored bytes have no derivative";
      doc "the pixels of a BMP file")");
  p.op(R"(
      DecodeGif(contents: string[]) -> (image: uint8[_, _, _, 3]); no_gradient "stored bytes have no derivative";
      doc "the frames of a GIF file")");
  p.op<nullptr, FramesRule>(R"(
      DecodeWebP(contents: string[]) -> (image: dtype); channels: int = 0; dtype: {uint8} = uint8;
      no_gradient "stored bytes have no derivative"; doc "the frames of a WebP file")");
  p.op<nullptr, AnyImageRule>(R"(
      DecodeImage(contents: string[]) -> (image: dtype); channels: int = 0; dtype: {uint8, uint16, float} = uint8;
      expand_animations: bool = true; no_gradient "stored bytes have no derivative"; doc "the pixels of a PNG, JPEG, BMP, GIF or WebP file")");
  p.op(R"(
      EncodePng(image: T) -> (contents: string[]); compression: int = -1; T: {uint8, uint16} = uint8;
      no_gradient "stored bytes have no derivative"; doc "a PNG file of the pixels")");
  p.op(R"(
      EncodeJpeg(image: uint8) -> (contents: string[]); format: {"", "grayscale", "rgb"} = ""; quality: int = 95; progressive: bool = false;
      optimize_size: bool = false; chroma_downsampling: bool = true; density_unit: {"in", "cm"} = "in"; x_density: int = 300;
      y_density: int = 300; xmp_metadata: string = ""; no_gradient "stored bytes have no derivative"; doc "a JPEG file of the pixels")");
  p.op(R"(
      EncodeJpegVariableQuality(images: uint8, quality: int32[]) -> (contents: string[]); no_gradient "stored bytes have no derivative";
      doc "EncodeJpeg with its quality as an input")");
}

}  // namespace thalweg::ops
