// The C API's lists as objects, and helpers for graphs and files that several sub-commands share.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "command.h"
#include "thalweg/cpp/thalweg.hpp"

namespace thalweg::cli {

template <class T, tw_status* (*Create)(tw_runtime*, T**), void (*Destroy)(T*)>
class List : public tw::Owned<T, Destroy> {
 public:
  explicit List(const tw::Runtime& runtime) {
    T* made = nullptr;
    tw::raise(Create(runtime.c(), &made));
    this->own(made);
  }
};
using Ops = List<tw_ops, tw_ops_create, tw_ops_destroy>;
using Plugins = List<tw_plugins, tw_plugins_create, tw_plugins_destroy>;
using Devices = List<tw_devices, tw_devices_create, tw_devices_destroy>;

class Variables : public tw::Owned<tw_variables, tw_variables_destroy> {
 public:
  explicit Variables(const tw::Graph& graph) {
    tw_variables* made = nullptr;
    tw::raise(tw_variables_create(graph.c(), &made));
    own(made);
  }
};

class Checkpoint : public tw::Owned<tw_checkpoint, tw_checkpoint_close> {
 public:
  explicit Checkpoint(const std::string& prefix) {
    tw_checkpoint* made = nullptr;
    tw::raise(tw_checkpoint_open(prefix.c_str(), &made));
    own(made);
  }
};

// Options of every sub-command with a runtime; MakeRuntime makes the runtime from them.
extern const Option kRuntimeOption, kPluginOption, kJsonOption, kThreadsOption;
// Options of every sub-command that loads models of any format.
extern const Option kImporterOption, kModelOption;
tw::Runtime MakeRuntime(const Args& args);  // also applies --threads if the sub-command has it

constexpr uint64_t kMostConfig = uint64_t{64} << 20;  // the size limit, in bytes, of files that people write
// Reads the whole file. Throws std::runtime_error naming the file, also if it has more than `most`
// bytes (an endless device, for example).
std::string ReadFile(const std::string& path, uint64_t most = UINT64_MAX);
void WriteFile(const std::string& path, const std::string& bytes);
// Writes to `path`, or to standard output if `path` is "".
void WriteOutput(const std::string& path, const std::string& bytes);

// Formats a shape: "[2, ?, 3]"; "unknown".
std::string ShapeText(const tw_shape& shape);
// Describes a value of a graph: "float [2, ?, 3]".
std::string Describe(const tw::Graph& graph, tw_output value);
std::string DTypeText(uint32_t dtype);
// Formats a size: 1,234 B, 12.3 kB, 4.5 MB.
std::string BytesText(uint64_t bytes);

// Pads columns to their widest entry, with two blanks between columns.
std::string Table(const std::vector<std::vector<std::string>>& rows);
// Text attributes; applied only if standard output is a terminal and NO_COLOR is unset.
enum Colour { kBold = 1, kRed = 31, kGreen = 32, kYellow = 33, kQuiet = 90 };
std::string Coloured(Colour colour, const std::string& text);
bool OnTerminal();

}  // namespace thalweg::cli
