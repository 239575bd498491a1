// GIF by giflib, frame by frame: giflib's own DGifSlurp allocates a frame as large as its head claims.
#include <gif_lib.h>

#include <algorithm>
#include <cstring>

#include "image.h"

namespace thalweg::input {
namespace {

constexpr int64_t kColours = 3;

// A file that is read from its begin.
class File {
 public:
  explicit File(std::string_view bytes) : bytes_(bytes) {
    int error = 0;
    gif_ = DGifOpen(this, &Read, &error);
    if (!gif_) Fail(error);
  }
  File(const File&) = delete;
  ~File() {
    int error = 0;
    DGifCloseFile(gif_, &error);
  }

  // Reads up to the head of the next frame. Returns false if there is none. The byte that ends a file may be missing, as in the files of
  // some programs, unless the file ends between a frame and the block that belongs to it.
  bool NextFrame() {
    transparent_ = NO_TRANSPARENT_COLOR;
    bool described = false;
    while (at_ < bytes_.size()) {
      GifRecordType type = UNDEFINED_RECORD_TYPE;
      Check(DGifGetRecordType(gif_, &type));
      if (type == TERMINATE_RECORD_TYPE) return false;
      if (type == EXTENSION_RECORD_TYPE) ReadExtension(&described);
      if (type == IMAGE_DESC_RECORD_TYPE) {
        Check(DGifGetImageHeader(gif_));
        return true;
      }
    }
    if (described) Invalid(Place() + "the file ends too early; it is damaged or no GIF");
    return false;
  }
  const GifImageDesc& frame() const { return gif_->Image; }

  void SkipPixels() {
    int size = 0;
    GifByteType* block = nullptr;
    Check(DGifGetCode(gif_, &size, &block));
    while (block) Check(DGifGetCodeNext(gif_, &block));
  }

  // Draws the frame onto a canvas that holds the frame before.
  void Draw(unsigned char* canvas, int64_t width, int64_t height) {
    const GifImageDesc& d = frame();
    if (d.Width < 1 || d.Height < 1) return SkipPixels();
    const ColorMapObject* colours = d.ColorMap ? d.ColorMap : gif_->SColorMap;
    if (!colours) Invalid(Place() + "a frame has no colour map");
    std::vector<GifPixelType> line(size_t(d.Width));
    // An interlaced frame has every eighth row first, then the rows between.
    static constexpr int kPasses[][2] = {{0, 1}, {0, 8}, {4, 8}, {2, 4}, {1, 2}};
    for (int pass = d.Interlace ? 1 : 0; pass < (d.Interlace ? 5 : 1); ++pass) {
      for (int y = kPasses[pass][0]; y < d.Height; y += kPasses[pass][1]) {
        Check(DGifGetLine(gif_, line.data(), d.Width));
        if (d.Top + y < height) DrawLine(line, *colours, canvas + (d.Top + y) * width * kColours, width);
      }
    }
  }

 private:
  static int Read(GifFileType* gif, GifByteType* to, int want) {
    auto* self = static_cast<File*>(gif->UserData);
    const size_t n = std::min(size_t(want), self->bytes_.size() - self->at_);
    if (n > 0) std::memcpy(to, self->bytes_.data() + self->at_, n);
    self->at_ += n;
    self->ended_ |= n < size_t(want);
    return int(n);
  }

  // The first graphics control block before a frame names its transparent colour.
  void ReadExtension(bool* described) {
    int code = 0;
    GifByteType* block = nullptr;
    Check(DGifGetExtension(gif_, &code, &block));
    while (block) {
      GraphicsControlBlock control;
      if (code == GRAPHICS_EXT_FUNC_CODE && !*described && DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK) {
        transparent_ = control.TransparentColor;
        *described = true;
      }
      Check(DGifGetExtensionNext(gif_, &block));
    }
  }

  void DrawLine(const std::vector<GifPixelType>& line, const ColorMapObject& colours, unsigned char* row, int64_t width) const {
    const int64_t left = frame().Left, n = std::min(int64_t(line.size()), width - left);
    for (int64_t x = 0; x < n; ++x) {
      const int index = line[size_t(x)];
      if (index == transparent_) continue;
      if (index >= colours.ColorCount) {
        Invalid(Place() + "a pixel has colour " + tw::text(index) + " of a map of " + tw::text(colours.ColorCount) + "; it is damaged");
      }
      const GifColorType& c = colours.Colors[index];
      unsigned char* to = row + (left + x) * kColours;
      to[0] = c.Red;
      to[1] = c.Green;
      to[2] = c.Blue;
    }
  }

  std::string Place() const { return Of("GIF", bytes_) + "at byte " + tw::text(int64_t(at_)) + " "; }
  void Check(int result) const {
    if (result != GIF_OK) Fail(gif_->Error);
  }
  [[noreturn]] void Fail(int error) const {
    if (error == D_GIF_ERR_NOT_ENOUGH_MEM) throw tw::Error{TW_RESOURCE_EXHAUSTED, Of("GIF", bytes_) + "not enough memory to decode it"};
    const char* known = GifErrorString(error);
    const std::string text = ended_                           ? "the file ends too early"
                             : error == D_GIF_ERR_READ_FAILED ? "the codes of a frame have an impossible size"
                                                              : "giflib reports '" + std::string(known ? known : "an error") + "'";
    Invalid(Place() + text + "; it is damaged or no GIF");
  }

  const std::string_view bytes_;
  size_t at_ = 0;
  bool ended_ = false;  // more bytes were wanted than there are
  GifFileType* gif_ = nullptr;
  int transparent_ = NO_TRANSPARENT_COLOR;
};

}  // namespace

void ReadGif(std::string_view bytes, bool all, MakeImage make, void* arg) {
  int64_t frames = 0, width = 0, height = 0;
  for (File file(bytes); file.NextFrame(); file.SkipPixels(), ++frames) {
    width = std::max<int64_t>(width, file.frame().Width);
    height = std::max<int64_t>(height, file.frame().Height);
  }
  if (frames == 0) Invalid(Of("GIF", bytes) + "it has no frame");
  if (!all) frames = 1;
  CheckFrames("GIF", bytes, frames, width, height);
  unsigned char* to = make(arg, FrameDims(all, frames, height, width, kColours));
  const size_t size = size_t(width * height * kColours);
  File file(bytes);
  for (int64_t k = 0; k < frames && file.NextFrame(); ++k, to += size) {
    if (k == 0) {
      std::memset(to, 0, size);
    } else {
      std::memcpy(to, to - size, size);
    }
    file.Draw(to, width, height);
  }
}

}  // namespace thalweg::input
