#include "op_page.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>

#include "handles.h"
#include "op_facts.h"
#include "utf8.h"

namespace thalweg::cli {

const char kExamplesBegin[] =
    "import numpy as np\n"
    "import thalweg as tw\n"
    "\n"
    "np.set_printoptions(precision=4)\n"
    "graph = tw.Graph().__enter__()\n"
    "session = tw.Session(graph)\n"
    "\n"
    "def show(*values):\n"
    "    print(*session.run(values), sep=\"\\n\")\n";

namespace {

// A part of an op's page, in order.
struct Block {
  enum Kind { kText, kCode, kTable } kind;
  std::string title;  // such as "Inputs"; "" continues the previous block
  std::string text;
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
};
using Blocks = std::vector<Block>;

// The manual's text on the ops of one entry, followed by the text that its page shares.
class Said {
 public:
  Said(const ManualEntry* entry, const ManualPage* page) : entry_(entry), page_(page) {}

  std::string Argument(const std::string& name) const {
    for (const ManualText* text : Texts()) {
      if (auto at = text->arguments.find(name); at != text->arguments.end()) return at->second;
    }
    return "";
  }
  std::vector<std::string> Label(const std::string& label) const {
    for (const ManualText* text : Texts()) {
      std::vector<std::string> found;
      for (const auto& [name, paragraph] : text->labels) {
        if (name == label) found.push_back(paragraph);
      }
      if (!found.empty()) return found;
    }
    return {};
  }
  std::vector<Paragraph> Meaning() const { return entry_ ? entry_->text.meaning : std::vector<Paragraph>(); }
  // Returns the examples that call `op`. Programs make datasets by the methods of tw.data, so that an
  // example of those stands for the dataset ops of its entry.
  std::vector<std::string> Examples(const std::string& op) const {
    std::vector<std::string> found;
    const std::string call = "tw.ops." + SnakeCase(op);  // with a trailing _ if it is a Python keyword
    for (const std::string& code : entry_ ? entry_->text.examples : std::vector<std::string>()) {
      const bool calls = code.find(call + "(") != code.npos || code.find(call + "_(") != code.npos;
      if (calls || code.find("tw.data.") != code.npos) found.push_back(code);
    }
    return found;
  }

 private:
  std::vector<const ManualText*> Texts() const {
    std::vector<const ManualText*> texts;
    if (entry_) texts.push_back(&entry_->text);
    if (page_) texts.push_back(&page_->shared);
    return texts;
  }
  const ManualEntry* entry_;
  const ManualPage* page_;
};

std::string Names(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

// Merges the lines of all ops without duplicates. Unless all ops have a line, the ops that have it
// are named before it.
std::string PerOp(const std::vector<const OpFacts*>& ops, const std::function<std::vector<std::string>(const OpFacts&)>& lines_of) {
  std::vector<std::pair<std::string, std::vector<std::string>>> lines;
  for (const OpFacts* op : ops) {
    for (const std::string& line : lines_of(*op)) {
      if (line.empty()) continue;
      auto at = std::find_if(lines.begin(), lines.end(), [&](const auto& l) { return l.first == line; });
      if (at == lines.end()) at = lines.insert(lines.end(), {line, {}});
      at->second.push_back((*op)["name"].text());
    }
  }
  if (lines.size() == 1 && lines[0].second.size() == ops.size()) return lines[0].first;
  std::string out;
  for (const auto& [line, names] : lines) {
    out += (out.empty() ? "- " : "\n- ") + (names.size() < ops.size() ? Names(names) + ": " : "") + line;
  }
  return out;
}

// Adds a row for each thing, skipping duplicate names; `cells` makes the cells after the name.
void AddRows(const std::vector<const JsonValue*>& things, const std::function<std::vector<std::string>(const JsonValue&)>& cells,
             Block* table) {
  for (const JsonValue* thing : things) {
    std::vector<std::string> row = {(*thing)["name"].text()};
    const bool known = std::any_of(table->rows.begin(), table->rows.end(), [&](const auto& r) { return r[0] == row[0]; });
    if (known) continue;
    for (std::string& cell : cells(*thing)) row.push_back(std::move(cell));
    table->rows.push_back(std::move(row));
  }
}

void AddArguments(const std::vector<const OpFacts*>& ops, const Said& said, Blocks* blocks) {
  for (const auto& [key, title] : {std::pair("inputs", "Inputs"), std::pair("outputs", "Outputs")}) {
    Block table{Block::kTable, title, "", {"name", "type", "what it is"}, {}};
    for (const OpFacts* op : ops) {
      std::vector<const JsonValue*> arguments;
      for (const JsonValue& a : (*op)[key].items()) arguments.push_back(&a);
      AddRows(arguments, [&](const JsonValue& a) { return std::vector{ArgumentKind(a), said.Argument(a["name"].text())}; }, &table);
    }
    if (!table.rows.empty()) blocks->push_back(std::move(table));
  }
  Block table{Block::kTable, "Attributes", "", {"name", "kind", "default", "what it is"}, {}};
  for (const OpFacts* op : ops) {
    AddRows(
        GivenAttrs(*op), [&](const JsonValue& a) { return std::vector{AttrKind(a), DefaultText(a), said.Argument(a["name"].text())}; },
        &table);
  }
  if (!table.rows.empty()) blocks->push_back(std::move(table));
}

std::vector<std::string> TypeLines(const OpFacts& op, bool with_plugins) {
  std::vector<std::string> lines;
  for (const TypeFacts& facts : TypesOf(op, with_plugins)) {
    std::string line = facts.attr + ": " + facts.allowed;
    for (const auto& [place, types] : facts.kernels) line += "; kernels on " + place + ": " + types;
    lines.push_back(line);
  }
  if (op["kernels"].items().empty()) {
    lines.push_back("No kernels: planning puts other ops in its place, or the runtime itself does what it means.");
  } else if (lines.empty()) {
    lines.push_back("Kernels on " + Names(KernelPlaces(op, with_plugins)) + ".");
  }
  return lines;
}

// first: the registry's facts on the label.
void AddLabel(const Said& said, const std::string& label, Blocks* blocks, std::string first = "") {
  for (const std::string& paragraph : said.Label(label)) {
    first += (first.empty() ? "" : first.substr(0, 2) == "- " ? "\n\n" : ". ") + paragraph;
  }
  if (!first.empty()) blocks->push_back({Block::kText, label, first, {}, {}});
}

std::vector<std::string> TouchesLines(const OpFacts& op) {
  const std::string& touches = op["touches"].text();
  if (touches.empty()) return {};
  return {"It touches " + touches + ": sessions refuse it in imported graphs unless they are told otherwise."};
}

// Makes all blocks of a page except the heading. `ops`: all ops of one entry, or one of them.
Blocks Everything(const std::vector<const OpFacts*>& ops, const Said& said, bool with_plugins) {
  Blocks blocks;
  std::string signatures;
  for (const OpFacts* op : ops) signatures += (signatures.empty() ? "" : "\n") + SignatureText(*op);
  const std::string docs = PerOp(ops, [](const OpFacts& op) { return std::vector{op["doc"].text()}; });
  if (!docs.empty()) blocks.push_back({Block::kText, "", docs, {}, {}});
  blocks.push_back({Block::kCode, "", signatures, {}, {}});
  for (const Paragraph& p : said.Meaning()) blocks.push_back({p.code ? Block::kCode : Block::kText, "", p.text, {}, {}});
  AddArguments(ops, said, &blocks);
  AddLabel(said, "Shapes", &blocks);
  AddLabel(said, "Types", &blocks, PerOp(ops, [&](const OpFacts& op) { return TypeLines(op, with_plugins); }));
  AddLabel(said, "Edge cases", &blocks);
  AddLabel(said, "Gradient", &blocks, PerOp(ops, [](const OpFacts& op) { return std::vector{GradientText(op)}; }));
  AddLabel(said, "Errors", &blocks, PerOp(ops, TouchesLines));
  AddLabel(said, "Unlike TensorFlow", &blocks);
  std::vector<std::string> examples;
  for (const OpFacts* op : ops) {
    for (const std::string& code : said.Examples((*op)["name"].text())) {
      if (std::find(examples.begin(), examples.end(), code) == examples.end()) examples.push_back(code);
    }
  }
  for (size_t i = 0; i < examples.size(); ++i) {
    blocks.push_back({Block::kCode, i > 0 ? "" : examples.size() > 1 ? "Examples" : "Example", examples[i], {}, {}});
  }
  return blocks;
}

std::string Indented(const std::string& text, const std::string& with) {
  std::string out;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    out += end > at ? with + OneLine(std::string_view(text).substr(at, end - at)) + "\n" : "\n";
    at = end + 1;
  }
  return out;
}

// ---- On a terminal ----

std::string TerminalText(const Block& block) {
  std::string out = block.title.empty() ? "" : "\n" + Coloured(kBold, block.title) + "\n";
  if (block.title.empty()) out += "\n";
  if (block.kind != Block::kTable) return out + Indented(block.text, "  ");
  for (const std::vector<std::string>& row : block.rows) {
    std::string line = "  " + row[0] + ": " + row[1];
    if (row.size() == 4 && !row[2].empty()) line += ", by default " + row[2];
    out += OneLine(line) + "\n";
    if (!row.back().empty()) out += Indented(row.back(), "      ");
  }
  return out;
}

// ---- As Markdown ----

std::string Cell(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? "\\|" : std::string(1, c);
  return out;
}

std::string MarkdownText(const Block& block) {
  std::string out;
  if (block.kind == Block::kTable) {
    out += "**" + block.title + "**\n\n|";
    for (const std::string& cell : block.head) out += " " + cell + " |";
    out += "\n|";
    for (size_t i = 0; i < block.head.size(); ++i) out += "---|";
    for (const std::vector<std::string>& row : block.rows) {
      out += "\n| `" + Cell(row[0]) + "` |";
      for (size_t i = 1; i < row.size(); ++i) out += row[i].empty() ? " |" : " " + Cell(row[i]) + " |";
    }
    return out + "\n\n";
  }
  if (block.kind == Block::kCode) {
    const char* language = block.text.substr(0, 3) == ">>>" ? "python" : "text";
    return (block.title.empty() ? "" : "**" + block.title + "**\n\n") + "```" + language + "\n" + block.text + "\n```\n\n";
  }
  const std::string between = block.title.empty() ? "" : block.text.substr(0, 2) == "- " ? ".**\n" : ".** ";
  return (block.title.empty() ? "" : "**" + block.title + between) + block.text + "\n\n";
}

// Returns the anchor that GitHub derives from a heading.
std::string Anchor(const std::string& heading) {
  std::string out;
  for (const char c : heading) {
    if (c == ' ') out += '-';
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') out += char(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

// ---- Agreement of manual and registry ----

class Checker {
 public:
  Checker(const ManualPage& page, const ManualEntry& entry, const std::vector<const OpFacts*>& ops)
      : page_(page), entry_(entry), ops_(ops) {}

  std::vector<std::string> Check() {
    const Said said(&entry_, &page_);
    if (entry_.text.meaning.empty()) Wrong("it does not say what the ops mean");
    for (const char* label : {"Shapes", "Errors"}) {
      if (said.Label(label).empty()) Wrong(std::string("it has no paragraph **") + label + ".**");
    }
    for (const std::string& name : entry_.ops) {
      if (std::none_of(ops_.begin(), ops_.end(), [&](const OpFacts* op) { return (*op)["name"].text() == name; }))
        Wrong("there is no op '" + name + "'; correct the heading or take it out");
    }
    std::set<std::string> known;
    for (const OpFacts* op : ops_) CheckOp(*op, said, &known);
    for (const auto& [name, text] : entry_.text.arguments) {
      if (!known.count(name)) Wrong("none of its ops has an argument or attribute `" + name + "`, or the inputs tell it");
    }
    return std::move(problems_);
  }

 private:
  void CheckOp(const OpFacts& op, const Said& said, std::set<std::string>* known) {
    const std::string& op_name = op["name"].text();
    std::vector<std::string> names;
    for (const char* key : {"inputs", "outputs"}) {
      for (const JsonValue& a : op[key].items()) names.push_back(a["name"].text());
    }
    for (const JsonValue* attr : GivenAttrs(op)) names.push_back((*attr)["name"].text());
    for (const std::string& name : names) {
      known->insert(name);
      if (said.Argument(name).empty()) Wrong("it does not say what `" + name + "` of " + op_name + " is");
    }
    const bool internal = op_name[0] == '_';  // created only by the runtime
    if (!internal && said.Examples(op_name).empty()) Wrong("no example calls tw.ops." + SnakeCase(op_name));
  }
  void Wrong(const std::string& what) { problems_.push_back("manual " + page_.path + ", entry `## " + Names(entry_.ops) + "`: " + what); }

  const ManualPage& page_;
  const ManualEntry& entry_;
  const std::vector<const OpFacts*>& ops_;
  std::vector<std::string> problems_;
};

std::vector<const OpFacts*> OpsOf(const ManualEntry& entry, const std::vector<OpFacts>& ops) {
  std::vector<const OpFacts*> of;
  for (const std::string& name : entry.ops) {
    for (const OpFacts& op : ops) {
      if (op["name"].text() == name) of.push_back(&op);
    }
  }
  return of;
}

const char kIndexBegin[] =
    "# Ops\n\n"
    "Every standard op: what it computes, of which shapes and types, its gradient, what it refuses, and an example. `thalweg ops NAME` "
    "says\n"
    "the same on a terminal, about plugins' ops too. These pages are made by `tools/docs`, from the registry of ops and the texts beside "
    "the\n"
    "ops' sources (`ops/<family>/<file>.md`); `ops/README.md` says how those are written.\n\n"
    "Examples are Python and are run as a test. They begin with these lines; any language does the same through the C API:\n\n";

}  // namespace

std::string OpText(const OpFacts& op, const ManualEntry* entry, const ManualPage* page) {
  std::string out = Coloured(kBold, OneLine(op["name"].text())) + "\n";
  for (const Block& block : Everything({&op}, Said(entry, page), true)) out += TerminalText(block);
  if (const size_t gap = out.find("\n\n"); gap != out.npos) out.erase(gap, 1);  // joins the name's own line with the summary
  out += "\n" + Coloured(kBold, "Registered") + "\n  by " + op["plugin"].text() + ", as\n" + Indented(op["schema"].text(), "  ");
  if (!op["kernels"].items().empty()) out += "  with the kernels, the best first:\n";
  for (const JsonValue& kernel : op["kernels"].items()) out += Indented(kernel.text(), "  ");
  return out;
}

std::vector<std::string> Disagreements(const std::vector<ManualPage>& pages, const std::vector<OpFacts>& ops) {
  std::vector<std::string> problems;
  for (const ManualPage& page : pages) {
    for (const ManualEntry& entry : page.entries) {
      for (std::string& problem : Checker(page, entry, OpsOf(entry, ops)).Check()) problems.push_back(std::move(problem));
    }
  }
  for (const OpFacts& op : ops) {
    const std::string& name = op["name"].text();
    if (std::any_of(pages.begin(), pages.end(), [&](const ManualPage& page) { return page.Find(name) != nullptr; })) continue;
    problems.push_back("op '" + name + "' of plugin '" + op["plugin"].text() + "' has no manual; write `## " + name +
                       "` in ops/<family>/<file>.md beside the source that registers it (and list it in ops/CMakeLists.txt), or in FILE.md "
                       "beside the plugin FILE.so");
  }
  return problems;
}

std::string PageMarkdown(const ManualPage& page, const std::vector<OpFacts>& ops) {
  std::string out = "<!-- Made by tools/docs from " + page.path + " and the registry. -->\n# " + page.title + "\n\n";
  for (const Paragraph& p : page.shared.meaning) out += MarkdownText({p.code ? Block::kCode : Block::kText, "", p.text, {}, {}});
  for (const ManualEntry& entry : page.entries) {
    out += "## " + Names(entry.ops) + "\n\n";
    for (const Block& block : Everything(OpsOf(entry, ops), Said(&entry, &page), false)) out += MarkdownText(block);
  }
  out.pop_back();
  return out;
}

std::string IndexMarkdown(const std::vector<ManualPage>& pages, const std::vector<OpFacts>& ops) {
  std::string out = std::string(kIndexBegin) + "```python\n" + kExamplesBegin + "```\n";
  std::map<std::string, std::map<std::string, std::string>> families;  // then by op: its row
  for (const ManualPage& page : pages) {
    const std::string family = page.path.find('/') == std::string::npos ? "" : page.path.substr(0, page.path.find('/'));
    for (const ManualEntry& entry : page.entries) {
      for (const OpFacts& op : ops) {
        const std::string& name = op["name"].text();
        if (page.Find(name) != &entry) continue;
        families[family][name] =
            "| [" + name + "](" + page.path + "#" + Anchor(Names(entry.ops)) + ") | " + Cell(op["doc"].text()) + " |\n";
      }
    }
  }
  for (const auto& [family, rows] : families) {
    out += "\n## " + (family.empty() ? "ops" : family) + "\n\n| op | what it does |\n|---|---|\n";
    for (const auto& [name, row] : rows) out += row;
  }
  return out;
}

}  // namespace thalweg::cli
