#include "handles.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace thalweg::cli {

const Option kRuntimeOption = {"--option", "KEY=VALUE", "a runtime option, such as threads=1; may be repeated"};
const Option kPluginOption = {"--plugin", "FILE", "load this plugin too; may be repeated"};
const Option kJsonOption = {"--json", nullptr, "print JSON"};
const Option kThreadsOption = {"--threads", "N", "threads that compute, this one included; 1: everything on it"};
const Option kImporterOption = {"--importer", "NAME", "load the file with this importer, instead of the one that recognises it"};
const Option kModelOption = {"--model-option", "KEY=VALUE", "an option of the importer, such as tags=serve; may be repeated"};

tw::Runtime MakeRuntime(const Args& args) {
  // Starts from the options that a program without its own runtime would get, then appends the
  // options given here.
  std::vector<std::string> texts;
  const char* variable = secure_getenv("THALWEG_OPTIONS");
  std::istringstream words(variable ? variable : "");
  for (std::string word; std::getline(words, word, ';');) {
    const size_t begin = word.find_first_not_of(' ');
    if (begin != word.npos) texts.push_back(word.substr(begin, word.find_last_not_of(' ') + 1 - begin));
  }
  texts.insert(texts.end(), args.all("--option").begin(), args.all("--option").end());
  if (args.has("--threads")) texts.push_back("threads=" + std::to_string(args.integer("--threads", 1, 1)));
  std::vector<const char*> options;
  for (const std::string& text : texts) options.push_back(text.c_str());
  tw::Runtime runtime(options);
  for (const std::string& plugin : args.all("--plugin")) tw::raise(tw_plugin_load(runtime.c(), plugin.c_str()));
  return runtime;
}

namespace {
[[noreturn]] void FileError(const char* what, const std::string& path) {
  throw std::runtime_error(std::string("cannot ") + what + " '" + path + "': " + std::strerror(errno));
}
}  // namespace

std::string ReadFile(const std::string& path, uint64_t most) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (!file) FileError("read", path);
  std::string bytes;
  char part[65536];
  size_t n;
  while (bytes.size() <= most && (n = std::fread(part, 1, sizeof(part), file)) > 0) bytes.append(part, n);
  const bool failed = std::ferror(file) != 0;
  std::fclose(file);
  if (failed) FileError("read", path);
  if (bytes.size() > most) throw std::runtime_error("'" + path + "' has more than " + std::to_string(most) + " bytes; give another file");
  return bytes;
}

void WriteFile(const std::string& path, const std::string& bytes) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (!file) FileError("write", path);
  const bool whole = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  if (std::fclose(file) != 0 || !whole) FileError("write", path);
}

void WriteOutput(const std::string& path, const std::string& bytes) {
  path.empty() ? void(std::fwrite(bytes.data(), 1, bytes.size(), stdout)) : WriteFile(path, bytes);
}

std::string ShapeText(const tw_shape& shape) {
  if (shape.rank < 0) return "unknown";
  std::string text = "[";
  for (int32_t i = 0; i < shape.rank; ++i) {
    if (i > 0) text += ", ";
    text += shape.dims[i] < 0 ? "?" : std::to_string(shape.dims[i]);
  }
  return text + "]";
}

std::string DTypeText(uint32_t dtype) {
  const char* name = tw_dtype_name(dtype);
  return name ? name : "type " + std::to_string(dtype);
}

std::string Describe(const tw::Graph& graph, tw_output value) {
  uint32_t dtype = 0;
  tw_shape shape;
  tw::raise(tw_graph_describe(graph.c(), value, &dtype, &shape));
  return DTypeText(dtype) + " " + ShapeText(shape);
}

std::string BytesText(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB"};
  if (bytes < 1000) return std::to_string(bytes) + " B";
  double value = double(bytes);
  int unit = 0;
  while (value >= 999.95 && unit < 4) {
    value /= 1000;
    ++unit;
  }
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f %s", value, kUnits[unit]);
  return text;
}

namespace {
// Returns the columns that `text` takes on screen; UTF-8 continuation bytes and colour sequences
// take none.
size_t Width(const std::string& text) {
  size_t width = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\033') {
      while (i < text.size() && text[i] != 'm') ++i;
    } else if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) {
      ++width;
    }
  }
  return width;
}
}  // namespace

std::string Table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      text += row[i];
      if (i + 1 < row.size()) text.append(widths[i] + 2 - Width(row[i]), ' ');
    }
    text += '\n';
  }
  return text;
}

bool OnTerminal() {
  static const bool terminal = isatty(STDOUT_FILENO) != 0;
  return terminal;
}

std::string Coloured(Colour colour, const std::string& text) {
  static const bool wanted = OnTerminal() && !std::getenv("NO_COLOR");
  return wanted ? "\033[" + std::to_string(int(colour)) + "m" + text + "\033[0m" : text;
}

}  // namespace thalweg::cli
