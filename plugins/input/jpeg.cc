// JPEG by libjpeg-turbo. It reports errors by longjmp, so functions that call it hold no objects
// with destructors.
// clang-format off: jpeglib.h uses names of cstdio and does not include it
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include <csetjmp>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "encode.h"
#include "image.h"

namespace thalweg::input {
namespace {

struct Errors {
  jpeg_error_mgr base;  // must be first
  jmp_buf back;
  char failure[JMSG_LENGTH_MAX] = "";
  bool truncated = false;

  jpeg_error_mgr* Set() {
    jpeg_std_error(&base);
    base.error_exit = [](j_common_ptr c) {
      auto* self = reinterpret_cast<Errors*>(c->err);
      c->err->format_message(c, self->failure);
      std::longjmp(self->back, 1);
    };
    base.output_message = [](j_common_ptr) {};
    base.emit_message = [](j_common_ptr c, int level) {
      auto* self = reinterpret_cast<Errors*>(c->err);
      if (level < 0 && (c->err->msg_code == JWRN_JPEG_EOF || c->err->msg_code == JWRN_HIT_MARKER)) self->truncated = true;
    };
    return &base;
  }
};

struct Reader {
  Errors errors;
  jpeg_decompress_struct c;
  bool made = false;
  int channels = 0;

  Reader() { std::memset(&c, 0, sizeof c); }
  ~Reader() {
    if (made) jpeg_destroy_decompress(&c);
  }

  bool Head(const unsigned char* bytes, size_t n, const JpegOptions& options) {
    c.err = errors.Set();
    if (setjmp(errors.back)) return false;
    jpeg_create_decompress(&c);
    made = true;
    c.mem->max_memory_to_use = 1L << 30;
    jpeg_mem_src(&c, bytes, static_cast<unsigned long>(n));
    jpeg_read_header(&c, TRUE);
    channels = options.channels != 0 ? int(options.channels) : c.num_components == 1 ? 1 : 3;
    const bool inks = c.jpeg_color_space == JCS_CMYK || c.jpeg_color_space == JCS_YCCK;
    c.out_color_space = inks ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    c.scale_num = 1;
    c.scale_denom = static_cast<unsigned>(options.ratio);
    c.do_fancy_upsampling = options.fancy_upscaling;
    c.dct_method = options.fast ? JDCT_IFAST : JDCT_ISLOW;
    jpeg_calc_output_dimensions(&c);
    return true;
  }

  // Reads the rows of a window. to: rows of w.width * channels bytes. line: room for a row of 4 * output_width bytes.
  bool Rows(unsigned char* to, unsigned char* line, const Window& w) {
    if (setjmp(errors.back)) return false;
    jpeg_start_decompress(&c);
    const size_t row = size_t(w.width) * size_t(channels);
    const bool inks = c.out_color_space == JCS_CMYK, narrow = w.width < int64_t(c.output_width);
    while (int64_t(c.output_scanline) < w.y + w.height) {
      const int64_t y = int64_t(c.output_scanline) - w.y;
      unsigned char* at = y < 0 ? line : to + size_t(y) * row;
      JSAMPROW rows[1] = {inks || narrow ? line : at};
      jpeg_read_scanlines(&c, rows, 1);
      if (y < 0) continue;
      if (inks) {
        FromInks(line + 4 * w.x, at, w.width);
      } else if (narrow) {
        std::memcpy(at, line + size_t(w.x) * size_t(channels), row);
      }
    }
    if (c.output_scanline == c.output_height) jpeg_finish_decompress(&c);
    return true;
  }

  // Adobe's files hold inverted inks, others plain ones.
  void FromInks(const unsigned char* line, unsigned char* to, int64_t width) const {
    for (int64_t x = 0; x < width; ++x, line += 4) {
      int rgb[3];
      for (int k = 0; k < 3; ++k) rgb[k] = c.saw_Adobe_marker ? line[k] * line[3] / 255 : (255 - line[k]) * (255 - line[3]) / 255;
      if (channels == 1) {
        *to++ = static_cast<unsigned char>((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 32768) >> 16);
      } else {
        for (const int v : rgb) *to++ = static_cast<unsigned char>(v);
      }
    }
  }
};

struct Writer {
  Errors errors;
  jpeg_compress_struct c;
  bool made = false;
  unsigned char* bytes = nullptr;
  unsigned long n = 0;

  Writer() { std::memset(&c, 0, sizeof c); }
  ~Writer() {
    if (made) jpeg_destroy_compress(&c);
    std::free(bytes);
  }

  bool Run(const unsigned char* pixels, uint32_t width, uint32_t height, int channels, const JpegWriting& how) {
    c.err = errors.Set();
    if (setjmp(errors.back)) return false;
    jpeg_create_compress(&c);
    made = true;
    jpeg_mem_dest(&c, &bytes, &n);
    c.image_width = width;
    c.image_height = height;
    c.input_components = channels;
    c.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&c);
    if (how.grayscale && channels != 1) jpeg_set_colorspace(&c, JCS_GRAYSCALE);
    jpeg_set_quality(&c, how.quality, TRUE);
    if (how.progressive) jpeg_simple_progression(&c);
    c.optimize_coding = how.optimize_size;
    c.density_unit = how.per_centimetre ? 2 : 1;
    c.X_density = static_cast<UINT16>(how.x_density);
    c.Y_density = static_cast<UINT16>(how.y_density);
    if (!how.chroma_downsampling && c.num_components == 3) c.comp_info[0].h_samp_factor = c.comp_info[0].v_samp_factor = 1;
    jpeg_start_compress(&c, TRUE);
    const size_t row = size_t(width) * size_t(channels);
    while (c.next_scanline < height) {
      JSAMPROW rows[1] = {const_cast<unsigned char*>(pixels + c.next_scanline * row)};
      jpeg_write_scanlines(&c, rows, 1);
    }
    jpeg_finish_compress(&c);
    return true;
  }
};

[[noreturn]] void Damaged(std::string_view bytes, const char* text) { Invalid(Of("JPEG", bytes) + text + "; it is damaged or no JPEG"); }

void ReadHead(std::string_view bytes, const JpegOptions& options, Reader* r) {
  if (!r->Head(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), options)) Damaged(bytes, r->errors.failure);
}

}  // namespace

void ReadJpeg(std::string_view bytes, const JpegOptions& options, const Window* window, MakeImage make, void* arg) {
  Reader r;
  ReadHead(bytes, options, &r);
  const int64_t height = r.c.output_height, width = r.c.output_width;
  CheckPixels("JPEG", bytes, width, height);
  const Window w = window ? *window : Window{0, 0, height, width};
  if (w.y < 0 || w.x < 0 || w.height < 1 || w.width < 1 || w.y > height - w.height || w.x > width - w.width) {
    Invalid(Of("JPEG", bytes) + "'crop_window' is [" + tw::text(w.y) + ", " + tw::text(w.x) + ", " + tw::text(w.height) + ", " +
            tw::text(w.width) + "] (y, x, height, width), which is not inside of the " + tw::text(height) + " rows of " + tw::text(width) +
            " pixels");
  }
  unsigned char* pixels = make(arg, {w.height, w.width, r.channels});
  std::vector<unsigned char> line(4 * size_t(width));
  if (!r.Rows(pixels, line.data(), w)) Damaged(bytes, r.errors.failure);
  if (r.errors.truncated && !options.recover) Damaged(bytes, "the data end too early (try_recover_truncated decodes what is there)");
}

std::vector<int64_t> JpegShape(std::string_view bytes) {
  Reader r;
  ReadHead(bytes, {}, &r);
  return {int64_t(r.c.output_height), int64_t(r.c.output_width), r.c.out_color_space == JCS_CMYK ? 4 : r.channels};
}

std::string WriteJpeg(const unsigned char* pixels, int64_t height, int64_t width, int64_t channels, const JpegWriting& how) {
  Writer w;
  if (!w.Run(pixels, uint32_t(width), uint32_t(height), int(channels), how))
    Invalid(std::string("the image cannot be written as JPEG: ") + w.errors.failure);
  return {reinterpret_cast<const char*>(w.bytes), w.n};
}

}  // namespace thalweg::input
