// Ops that decode and encode images.
#include "ops/register.h"

namespace thalweg::ops {

void register_image(tw::Plugin& p) {
  p.op(R"(
      DecodePng(contents: string[]) -> (image: dtype[_, _, _]); channels: int = 0; dtype: {uint8, uint16} = uint8;
      no_gradient "stored bytes have no derivative"; doc "the pixels of a PNG file")");
  p.op(R"(
      DecodeJpeg(contents: string[]) -> (image: uint8[_, _, _]); channels: int = 0; ratio: int = 1; fancy_upscaling: bool = true;
      try_recover_truncated: bool = false; acceptable_fraction: float = 1; dct_method: string = "";
      no_gradient "stored bytes have no derivative"; doc "the pixels of a JPEG file")");
  p.op(R"(
      DecodeBmp(contents: string[]) -> (image: uint8[_, _, _]); channels: int = 0; no_gradient "stored bytes have no derivative";
      doc "the pixels of a BMP file")");
  p.op(R"(
      DecodeImage(contents: string[]) -> (image: dtype[_, _, _]); channels: int = 0; dtype: {uint8, uint16, float} = uint8;
      expand_animations: bool = true; no_gradient "stored bytes have no derivative"; doc "the pixels of a PNG, JPEG or BMP file")");
  p.op(R"(
      EncodePng(image: T) -> (contents: string[]); compression: int = -1; T: {uint8, uint16} = uint8;
      no_gradient "stored bytes have no derivative"; doc "a PNG file of the pixels")");
  p.op(R"(
      EncodeJpeg(image: uint8) -> (contents: string[]); format: {"", "grayscale", "rgb"} = ""; quality: int = 95; progressive: bool = false;
      optimize_size: bool = false; chroma_downsampling: bool = true; density_unit: {"in", "cm"} = "in"; x_density: int = 300;
      y_density: int = 300; xmp_metadata: string = ""; no_gradient "stored bytes have no derivative"; doc "a JPEG file of the pixels")");
}

}  // namespace thalweg::ops
