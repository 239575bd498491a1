// The manual of ops: texts that people wrote, a Markdown file for each file of ops, taken apart. How they are written stands in
// ops/README.md; what the registry knows is joined to them in op_page.h.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace thalweg::cli {

struct Paragraph {
  std::string text;  // with its line breaks
  bool code;         // a formula
};

// What one part of a manual says.
struct ManualText {
  std::vector<Paragraph> meaning;
  std::map<std::string, std::string> arguments;             // of inputs, outputs and attributes; on one line
  std::vector<std::pair<std::string, std::string>> labels;  // "Shapes", "Errors", ...: paragraphs that begin with a label in bold
  std::vector<std::string> examples;                        // code that begins with >>>
};

// "## Pad, PadV2": what these ops have in common.
struct ManualEntry {
  std::vector<std::string> ops;
  ManualText text;
};

struct ManualPage {
  std::string path;   // "array/pad.md"
  std::string title;  // "Padding"
  ManualText shared;  // in front of the entries: arguments and labels of those that do not say otherwise
  std::vector<ManualEntry> entries;

  const ManualEntry* Find(std::string_view op) const;
};

// Throws std::runtime_error naming the path and the line.
ManualPage ParseManual(const std::string& path, std::string_view text);

// The pages of the ops that are linked into the library; they are built into this program.
std::vector<ManualPage> StandardManual();

// "batch_mat_mul_v2" of "BatchMatMulV2": what an op is called in examples.
std::string SnakeCase(std::string_view op);

}  // namespace thalweg::cli
