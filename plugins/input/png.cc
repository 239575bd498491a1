// PNG by libpng. libpng reports errors by longjmp, so functions that call it hold no objects with
// destructors.
#include <png.h>

#include <csetjmp>
#include <cstring>

#include "encode.h"
#include "image.h"

namespace thalweg::input {
namespace {

struct Reader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  const unsigned char* bytes = nullptr;
  size_t n = 0, at = 0;
  char failure[200] = "";
  png_uint_32 width = 0, height = 0;
  int channels = 0;

  ~Reader() { png_destroy_read_struct(&png, &info, nullptr); }

  static void Failed(png_structp png, png_const_charp text) {
    auto* self = static_cast<Reader*>(png_get_error_ptr(png));
    std::strncpy(self->failure, text, sizeof self->failure - 1);
    std::longjmp(png_jmpbuf(png), 1);
  }
  static void Warned(png_structp, png_const_charp) {}
  static void Read(png_structp png, png_bytep to, size_t want) {
    auto* self = static_cast<Reader*>(png_get_io_ptr(png));
    if (want > self->n - self->at) png_error(png, "the file ends too early");
    std::memcpy(to, self->bytes + self->at, want);
    self->at += want;
  }

  // Reads the head and chooses the conversions. wanted: 0 to 4 channels.
  bool Head(int wanted, bool wide) {
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, &Failed, &Warned);
    if (!png) return false;
    if (setjmp(png_jmpbuf(png))) return false;
    info = png_create_info_struct(png);
    if (!info) png_error(png, "out of memory");
    png_set_read_fn(png, this, &Read);
    png_set_user_limits(png, 1u << 29, 1u << 29);
    png_read_info(png, info);
    int depth = 0, type = 0;
    png_get_IHDR(png, info, &width, &height, &depth, &type, nullptr, nullptr, nullptr);
    if (int64_t(width) > kMostPixels / int64_t(height)) return true;  // refused by ReadPng, before libpng allocates rows
    const bool transparent = png_get_valid(png, info, PNG_INFO_tRNS) != 0;
    bool alpha = (type & PNG_COLOR_MASK_ALPHA) != 0 || transparent;
    bool colour = (type & PNG_COLOR_MASK_COLOR) != 0;
    channels = wanted != 0 ? wanted : (colour ? 3 : 1) + alpha;
    if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
    if (type == PNG_COLOR_TYPE_GRAY && depth < 8) png_set_expand_gray_1_2_4_to_8(png);
    if (transparent) png_set_tRNS_to_alpha(png);
    if (depth == 16 && !wide) png_set_strip_16(png);
    if (depth < 16 && wide) png_set_expand_16(png);
    if (wide) png_set_swap(png);
    const bool want_alpha = channels == 2 || channels == 4, want_colour = channels >= 3;
    if (alpha && !want_alpha) png_set_strip_alpha(png);
    if (!alpha && want_alpha) png_set_add_alpha(png, wide ? 0xffff : 0xff, PNG_FILLER_AFTER);
    if (!colour && want_colour) png_set_gray_to_rgb(png);
    if (colour && !want_colour) png_set_rgb_to_gray(png, 1, 0.299, 0.587);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    if (png_get_rowbytes(png, info) != size_t(width) * size_t(channels) * (wide ? 2 : 1))
      png_error(png, "the rows have an unexpected size");
    return true;
  }

  bool Rows(unsigned char** rows) {
    if (setjmp(png_jmpbuf(png))) return false;
    png_read_image(png, rows);
    png_read_end(png, nullptr);
    return true;
  }
};

struct Writer {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::string* to = nullptr;
  char failure[200] = "";

  ~Writer() { png_destroy_write_struct(&png, &info); }
  static void Failed(png_structp png, png_const_charp text) {
    auto* self = static_cast<Writer*>(png_get_error_ptr(png));
    std::strncpy(self->failure, text, sizeof self->failure - 1);
    std::longjmp(png_jmpbuf(png), 1);
  }
  static void Write(png_structp png, png_bytep bytes, size_t n) {
    auto* self = static_cast<Writer*>(png_get_io_ptr(png));
    bool full = false;
    try {
      self->to->append(reinterpret_cast<const char*>(bytes), n);
    } catch (...) {
      full = true;
    }
    if (full) png_error(png, "out of memory");
  }
  static void Flush(png_structp) {}

  bool Run(const unsigned char* pixels, uint32_t width, uint32_t height, int channels, bool wide, int compression) {
    static constexpr int kTypes[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
    png = png_create_write_struct(PNG_LIBPNG_VER_STRING, this, &Failed, &Reader::Warned);
    if (!png) return false;
    if (setjmp(png_jmpbuf(png))) return false;
    info = png_create_info_struct(png);
    if (!info) png_error(png, "out of memory");
    png_set_write_fn(png, this, &Write, &Flush);
    png_set_user_limits(png, 1u << 29, 1u << 29);
    if (compression >= 0) png_set_compression_level(png, compression);
    png_set_IHDR(png, info, width, height, wide ? 16 : 8, kTypes[channels], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    if (wide) png_set_swap(png);
    const size_t row = size_t(width) * size_t(channels) * (wide ? 2 : 1);
    for (uint32_t y = 0; y < height; ++y) png_write_row(png, const_cast<png_bytep>(pixels + y * row));
    png_write_end(png, info);
    return true;
  }
};

}  // namespace

void ReadPng(std::string_view bytes, int64_t channels, bool wide, MakeImage make, void* arg) {
  Reader r;
  r.bytes = reinterpret_cast<const unsigned char*>(bytes.data());
  r.n = bytes.size();
  const auto fail = [&] { Invalid(Of("PNG", bytes) + (r.failure[0] ? r.failure : "libpng has failed") + "; it is damaged or no PNG"); };
  if (!r.Head(int(channels), wide)) fail();
  CheckPixels("PNG", bytes, r.width, r.height);
  unsigned char* pixels = make(arg, {int64_t(r.height), int64_t(r.width), r.channels});
  std::vector<unsigned char*> rows(r.height);
  const size_t row = size_t(r.width) * size_t(r.channels) * (wide ? 2 : 1);
  for (size_t y = 0; y < r.height; ++y) rows[y] = pixels + y * row;
  if (!r.Rows(rows.data())) fail();
}

std::string WritePng(const unsigned char* pixels, int64_t height, int64_t width, int64_t channels, bool wide, int64_t compression) {
  std::string out;
  Writer w;
  w.to = &out;
  if (!w.Run(pixels, uint32_t(width), uint32_t(height), int(channels), wide, int(compression)))
    Invalid(std::string("the image cannot be written as PNG: ") + (w.failure[0] ? w.failure : "libpng has failed"));
  return out;
}

}  // namespace thalweg::input
