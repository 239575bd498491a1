// thalweg ops: lists the ops of the loaded plugins, and prints the manual of one op, or of all as
// Markdown.
#include <fnmatch.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "command.h"
#include "framework/base/meant.h"
#include "handles.h"
#include "json.h"
#include "op_facts.h"
#include "op_page.h"

namespace thalweg::cli {
namespace {

// The ops of a runtime, and the selected ones.
struct Listed {
  explicit Listed(const Args& args) : runtime(MakeRuntime(args)), ops(runtime) {
    const std::string pattern = args.positional().empty() ? "*" : args.positional()[0];
    for (uint32_t i = 0; i < tw_ops_count(ops.c()); ++i) {
      if (fnmatch(pattern.c_str(), tw_ops_name(ops.c(), i), 0) == 0) chosen.push_back(i);
    }
    if (chosen.empty()) throw std::runtime_error("no op is called '" + pattern + "'; " + Like(pattern));
  }
  // Suggests ops, ignoring case: the names that begin with `text`, or if there are none, the names
  // that contain it.
  std::string Like(const std::string& text) const {
    constexpr size_t kShown = 3;
    std::vector<std::string> begin, inside;
    for (uint32_t i = 0; i < tw_ops_count(ops.c()); ++i) {
      const char* name = tw_ops_name(ops.c(), i);
      const char* at = strcasestr(name, text.c_str());
      if (at) (at == name ? begin : inside).push_back(name);
    }
    const std::vector<std::string>& like = begin.empty() ? inside : begin;
    if (like.empty()) return LikeInBindings(text);
    std::string names;
    for (size_t k = 0; k < like.size() && k < kShown; ++k) names += (k > 0 ? ", " : "") + like[k];
    return (like.size() > 1 ? "there are " : "there is ") + names + (like.size() > kShown ? ", ...; thalweg ops lists all" : "");
  }
  // Finds ops by the name that bindings use, in lower case with underscores: mat_mul.
  std::string LikeInBindings(const std::string& text) const {
    std::string bare;
    for (const char c : text) bare += c == '_' ? "" : std::string(1, c);
    Meant meant(bare);
    for (uint32_t i = 0; i < tw_ops_count(ops.c()); ++i) {
      const char* name = tw_ops_name(ops.c(), i);
      if (strcasecmp(name, bare.c_str()) == 0) return std::string("did you mean '") + name + "'?";
      meant.Consider(name);
    }
    return meant.text().empty() ? "thalweg ops lists all" : meant.text().substr(2);
  }
  std::string Text(uint32_t i) const {
    tw_buffer* made = nullptr;
    tw::raise(tw_ops_json(ops.c(), i, &made));
    std::string text(tw_buffer_data(made), tw_buffer_bytes(made));
    tw_buffer_release(made);
    return text.substr(0, text.find_last_not_of('\n') + 1);
  }
  OpFacts Facts(uint32_t i) const { return JsonValue::Parse(Text(i)); }

  tw::Runtime runtime;
  Ops ops;
  std::vector<uint32_t> chosen;
};

// Returns the pages of the linked-in ops, and of each plugin that has FILE.md beside FILE.so.
std::vector<ManualPage> Pages(const tw::Runtime& runtime) {
  namespace fs = std::filesystem;
  std::vector<ManualPage> pages = StandardManual();
  const Plugins plugins(runtime);
  for (uint32_t i = 0; i < tw_plugins_count(plugins.c()); ++i) {
    const fs::path file = fs::path(tw_plugins_path(plugins.c(), i)).replace_extension(".md");
    std::error_code error;
    if (file.is_absolute() && fs::is_regular_file(file, error)) pages.push_back(ParseManual(file.filename(), ReadFile(file)));
  }
  return pages;
}

void PrintManual(const Listed& listed) {
  const std::vector<ManualPage> pages = Pages(listed.runtime);
  for (size_t k = 0; k < listed.chosen.size(); ++k) {
    const OpFacts op = listed.Facts(listed.chosen[k]);
    const ManualPage* of = nullptr;
    for (const ManualPage& page : pages) of = page.Find(op["name"].text()) ? &page : of;
    std::fputs((std::string(k > 0 ? "\n" : "") + OpText(op, of ? of->Find(op["name"].text()) : nullptr, of)).c_str(), stdout);
  }
}

void WriteManual(const Listed& listed, const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<OpFacts> ops;
  for (const uint32_t i : listed.chosen) ops.push_back(listed.Facts(i));
  const std::vector<ManualPage> pages = Pages(listed.runtime);
  std::string problems;
  for (const std::string& problem : Disagreements(pages, ops)) problems += (problems.empty() ? "" : "\n") + problem;
  if (!problems.empty()) throw std::runtime_error(problems);
  for (const ManualPage& page : pages) {
    fs::create_directories((fs::path(folder) / page.path).parent_path());
    WriteFile(fs::path(folder) / page.path, PageMarkdown(page, ops));
  }
  WriteFile(fs::path(folder) / "README.md", IndexMarkdown(pages, ops));
}

int PrintGradients(const Listed& listed, bool as_json) {
  std::vector<std::vector<std::string>> rows;
  Json json;
  json.Array();
  size_t missing = 0, none = 0;
  for (const uint32_t i : listed.chosen) {
    const OpFacts op = listed.Facts(i);
    const std::string &name = op["name"].text(), &gradient = op["gradient"].text(), &why = op["no_gradient"].text();
    missing += gradient == "missing";
    none += gradient == "none";
    json.Object().Text("name", name).Text("gradient", gradient).Text("no_gradient", why).End();
    rows.push_back({Coloured(kBold, name), gradient == "yes" ? "differentiable" : gradient == "none" ? "not: " + why : "missing"});
  }
  json.End();
  if (as_json) {
    std::fputs(json.text().c_str(), stdout);
  } else {
    std::fputs(Table(rows).c_str(), stdout);
    std::printf("%zu ops: %zu differentiable, %zu not, %zu missing\n", rows.size(), rows.size() - missing - none, none, missing);
  }
  return missing > 0 ? kFailed : kGood;
}

void PrintJson(const Listed& listed) {
  Json json;
  json.Array();
  for (const uint32_t i : listed.chosen) json.Raw("", listed.Text(i));
  std::fputs(json.End().text().c_str(), stdout);
}

void PrintTable(const Listed& listed) {
  const tw_ops* o = listed.ops.c();
  std::vector<std::vector<std::string>> rows;
  for (const uint32_t i : listed.chosen) {
    const uint32_t kernels = tw_ops_kernel_count(o, i);
    rows.push_back(
        {Coloured(kBold, tw_ops_name(o, i)), std::to_string(kernels) + (kernels == 1 ? " kernel" : " kernels"), tw_ops_doc(o, i)});
  }
  std::fputs(Table(rows).c_str(), stdout);
}

int Run(const Args& args) {
  if (args.has("--manual") && !args.positional().empty())
    throw UsageError{"--manual is for all ops; leave '" + args.positional()[0] + "' out"};
  const Listed listed(args);
  if (args.has("--gradients")) return PrintGradients(listed, args.has("--json"));
  if (args.has("--manual")) {
    WriteManual(listed, args.get("--manual"));
  } else if (args.has("--json")) {
    PrintJson(listed);
  } else if (listed.chosen.size() == 1 || args.has("--long")) {
    PrintManual(listed);
  } else {
    PrintTable(listed);
  }
  return kGood;
}

}  // namespace

const Command& OpsCommand() {
  static const std::string details =
      std::string(
          "A plugin libfoo.so may have its manual beside it, libfoo.md, which --manual checks:\n"
          "    # Title                        then what its entries share: arguments, paragraphs with a label\n"
          "    ## Op, AnotherOp               an entry; then in a few sentences what they mean\n"
          "    - `x`, `y`: any shape          for each input, output and attribute that inputs do not tell\n"
          "    **Shapes.** [n] gives [2 n].   and **Errors.**; also Types, Edge cases, Gradient, Unlike TensorFlow\n"
          "        >>> show(tw.ops.op(1))     indented by four: an example of each op\n"
          "Examples are Python and begin with\n\n") +
      kExamplesBegin;
  static const Command command = {"ops",
                                  "[NAME]",
                                  "Lists ops, or says all about one. NAME may be a pattern: 'Conv*'.",
                                  details.c_str(),
                                  {{"--long", nullptr, "say all about every op that fits"},
                                   {"--gradients", nullptr, "which are differentiable; fails if one does not say"},
                                   {"--manual", "FOLDER", "write the manual of all as Markdown; fails if it is not whole"},
                                   kJsonOption,
                                   kPluginOption,
                                   kRuntimeOption},
                                  0,
                                  1,
                                  Run};
  return command;
}

}  // namespace thalweg::cli
