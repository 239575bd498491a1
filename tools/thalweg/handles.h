// The C API's lists as objects, and what several sub-commands do with graphs and files.
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

// Options that every sub-command with a runtime has, and the runtime that they ask for.
extern const Option kRuntimeOption, kPluginOption, kJsonOption, kThreadsOption;
tw::Runtime MakeRuntime(const Args& args);  // with --threads, where the sub-command has that

constexpr uint64_t kMostConfig = uint64_t{64} << 20;  // bytes of a file that people write
// The whole file. Throws std::runtime_error naming it, also where it has more than `most` bytes, as a device has that never ends.
std::string ReadFile(const std::string& path, uint64_t most = UINT64_MAX);
void WriteFile(const std::string& path, const std::string& bytes);
// To standard output where path is "".
void WriteOutput(const std::string& path, const std::string& bytes);

// "[2, ?, 3]"; "unknown".
std::string ShapeText(const tw_shape& shape);
// "float [2, ?, 3]" for a value of a graph.
std::string Describe(const tw::Graph& graph, tw_output value);
std::string DTypeText(uint32_t dtype);
// 1,234 B, 12.3 kB, 4.5 MB.
std::string BytesText(uint64_t bytes);

// Columns padded to their widest entry, two blanks between.
std::string Table(const std::vector<std::vector<std::string>>& rows);
// Bold, green and so on where standard output is a terminal that wants colours (NO_COLOR unset).
enum Colour { kBold = 1, kRed = 31, kGreen = 32, kYellow = 33, kQuiet = 90 };
std::string Coloured(Colour colour, const std::string& text);
bool OnTerminal();

}  // namespace thalweg::cli
