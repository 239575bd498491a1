// Parses the hand-written manual of ops, one Markdown file for each file of ops. ops/README.md
// specifies the format; op_page.h joins the manual with the facts of the registry.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace thalweg::cli {

struct Paragraph {
  std::string text;  // with its line breaks
  bool code;         // a code block, such as a formula
};

// The parts of one section of a manual.
struct ManualText {
  std::vector<Paragraph> meaning;
  std::map<std::string, std::string> arguments;             // of inputs, outputs and attributes; each on one line
  std::vector<std::pair<std::string, std::string>> labels;  // paragraphs that begin with a bold label: "Shapes", "Errors", ...
  std::vector<std::string> examples;                        // code blocks that begin with >>>
};

// A section such as "## Pad, PadV2": the text that its ops share.
struct ManualEntry {
  std::vector<std::string> ops;
  ManualText text;
};

struct ManualPage {
  std::string path;   // "array/pad.md"
  std::string title;  // "Padding"
  ManualText shared;  // before the entries: default arguments and labels of all entries
  std::vector<ManualEntry> entries;

  const ManualEntry* Find(std::string_view op) const;
};

// Throws std::runtime_error naming the path and the line.
ManualPage ParseManual(const std::string& path, std::string_view text);

// Returns the pages of the ops linked into the library, which are built into this program.
std::vector<ManualPage> StandardManual();

// Returns the name of an op in the examples: "batch_mat_mul_v2" for "BatchMatMulV2".
std::string SnakeCase(std::string_view op);

}  // namespace thalweg::cli
