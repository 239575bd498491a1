#include "draw.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <sys/ioctl.h>

#include "handles.h"
#include "words.h"

namespace thalweg::cli {
namespace {

size_t TerminalWidth() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  return columns && std::atoi(columns) > 0 ? size_t(std::atoi(columns)) : 100;
}

// Returns the screen columns of a caption's line; captions are plain UTF-8.
size_t Columns(const std::string& text) {
  return size_t(std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

// Colours 232 to 255 of a terminal are 24 steps from black to white.
int GreyCode(double grey) { return 232 + int(std::lround(grey * 23)); }

struct Cell {
  std::vector<std::string> lines;  // of equal width on screen
  size_t width = 0;
};

// One line of text shows two rows of the picture: the upper half block in one shade on a background
// in the other.
Cell DrawShades(const Pictures& p, int64_t i) {
  Cell cell;
  cell.width = size_t(p.width);
  const double* pixels = p.grey.data() + i * p.height * p.width;
  for (int64_t y = 0; y < p.height; y += 2) {
    std::string line;
    for (int64_t x = 0; x < p.width; ++x) {
      const double lower = y + 1 < p.height ? pixels[(y + 1) * p.width + x] : 0;
      line += "\033[38;5;" + std::to_string(GreyCode(pixels[y * p.width + x])) + ";48;5;" + std::to_string(GreyCode(lower)) + "m\u2580";
    }
    cell.lines.push_back(line + "\033[0m");
  }
  return cell;
}

// Draws each pixel two characters wide, so that it looks about square.
Cell DrawCharacters(const Pictures& p, int64_t i) {
  static constexpr char kShades[] = " .:-=+*#%@";
  Cell cell;
  cell.width = size_t(2 * p.width);
  const double* pixels = p.grey.data() + i * p.height * p.width;
  for (int64_t y = 0; y < p.height; ++y) {
    std::string line;
    for (int64_t x = 0; x < p.width; ++x) line.append(2, kShades[std::lround(pixels[y * p.width + x] * 9)]);
    cell.lines.push_back(line);
  }
  return cell;
}

}  // namespace

Pictures ToPictures(const tw::Runtime& runtime, const tw::Tensor& batch) {
  std::vector<int64_t> dims = batch.dims();
  if (dims.size() == 4 && dims[3] == 1) dims.pop_back();
  if (dims.size() == 2) {
    const auto side = int64_t(std::lround(std::sqrt(double(dims[1]))));
    if (side * side == dims[1]) dims = {dims[0], side, side};
  }
  if (dims.size() != 3) {
    throw std::runtime_error("a tensor of shape " + ShapeText({batch.dims().data(), int32_t(batch.dims().size()), 0}) +
                             " is no batch of pictures; those are [n, h, w], [n, h, w, 1] or [n, k * k]");
  }
  Pictures p{dims[0], dims[1], dims[2], Cast(runtime, batch, TW_DOUBLE).values<double>()};
  if (p.grey.empty()) return p;
  const auto [low, high] = std::minmax_element(p.grey.begin(), p.grey.end());
  const double from = *low, scale = *high > *low ? 1 / (*high - *low) : 0;
  for (double& grey : p.grey) grey = std::isfinite(grey) ? std::clamp((grey - from) * scale, 0.0, 1.0) : 0;
  return p;
}

std::string Draw(const Pictures& pictures, const std::vector<std::vector<std::string>>& captions) {
  const bool shades = OnTerminal() && !std::getenv("NO_COLOR");
  std::vector<Cell> cells;
  size_t caption_width = 0, height = 0;
  for (int64_t i = 0; i < pictures.n; ++i) {
    cells.push_back(shades ? DrawShades(pictures, i) : DrawCharacters(pictures, i));
    for (const std::string& line : captions[size_t(i)]) caption_width = std::max(caption_width, Columns(line));
    height = std::max({height, cells.back().lines.size(), captions[size_t(i)].size()});
  }
  if (cells.empty()) return "";
  const size_t width = cells[0].width + 2 + caption_width, gap = 4;
  const size_t across = std::max<size_t>(1, (TerminalWidth() + gap) / (width + gap));
  std::string out;
  for (size_t begin = 0; begin < cells.size(); begin += across) {
    if (begin > 0) out += '\n';
    for (size_t row = 0; row < height; ++row) {
      std::string line;
      for (size_t i = begin; i < std::min(begin + across, cells.size()); ++i) {
        const std::string caption = row < captions[i].size() ? captions[i][row] : "";
        line += row < cells[i].lines.size() ? cells[i].lines[row] : std::string(cells[i].width, ' ');
        line += "  " + caption + std::string(caption_width - Columns(caption) + gap, ' ');
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + '\n';
    }
  }
  return out;
}

}  // namespace thalweg::cli
