#include "manual.h"

#include <algorithm>
#include <cctype>
#include <stdexcept>

#include "standard_manual.h"

namespace thalweg::cli {
namespace {

constexpr std::string_view kLabels[] = {"Shapes", "Types", "Edge cases", "Gradient", "Errors", "Unlike TensorFlow"};

bool Begins(std::string_view line, std::string_view with) { return line.substr(0, with.size()) == with; }

std::string Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \n");
  return begin == text.npos ? "" : std::string(text.substr(begin, text.find_last_not_of(" \n") + 1 - begin));
}

// Splits `text` at ", ".
std::vector<std::string> Names(std::string_view text) {
  std::vector<std::string> names;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    names.push_back(Trimmed(text.substr(at, end - at)));
    at = end + 1;
  }
  return names;
}

// Parses a page line by line; a block ends at an empty line, a bullet or a heading.
class Reader {
 public:
  Reader(const std::string& path, std::string_view text) : text_(text) { page_.path = path; }

  ManualPage Read() {
    for (size_t at = 0; at < text_.size(); ++number_) {
      const size_t end = std::min(text_.find('\n', at), text_.size());
      Line(text_.substr(at, end - at));
      at = end + 1;
    }
    EndBlock();
    if (page_.title.empty()) Wrong("it has no title; begin it with `# Title`");
    return std::move(page_);
  }

 private:
  [[noreturn]] void Wrong(const std::string& what) const {
    throw std::runtime_error("manual " + page_.path + ":" + std::to_string(number_) + ": " + what);
  }

  ManualText& Part() { return page_.entries.empty() ? page_.shared : page_.entries.back().text; }

  void Line(std::string_view line) {
    const bool code = Begins(line, "    ");
    if (line.empty() || Begins(line, "# ") || Begins(line, "## ") || Begins(line, "- ") || code != code_) EndBlock();
    code_ = code;
    if (Begins(line, "# ")) {
      page_.title = Trimmed(line.substr(2));
    } else if (Begins(line, "## ")) {
      page_.entries.push_back({Names(line.substr(3)), {}});
    } else if (!line.empty()) {
      block_ += (block_.empty() ? "" : "\n") + std::string(code ? line.substr(4) : line);
    }
  }

  void EndBlock() {
    const std::string block = std::move(block_);
    block_.clear();
    if (block.empty()) return;
    if (page_.title.empty()) Wrong("text in front of the title; begin with `# Title`");
    if (code_ && Begins(block, ">>>")) {
      Part().examples.push_back(block);
    } else if (code_) {
      Part().meaning.push_back({block, true});
    } else if (Begins(block, "- ")) {
      Bullet(block);
    } else if (Begins(block, "**")) {
      Labelled(block);
    } else {
      Part().meaning.push_back({block, false});
    }
  }

  // Parses "- `a`, `b`: text".
  void Bullet(const std::string& block) {
    const size_t colon = block.find("`:");
    if (!Begins(block, "- `") || colon == block.npos) Wrong("bullets are for arguments; write \"- `name`: what it is\"");
    std::string text;
    for (const char c : block.substr(colon + 2)) {
      if (c == '\n')
        text += ' ';
      else if (c != ' ' || text.empty() || text.back() != ' ')
        text += c;
    }
    for (const std::string& name : Names(block.substr(2, colon - 1))) {
      if (name.size() < 3 || name.front() != '`' || name.back() != '`') Wrong("'" + name + "' is not a name in backticks");
      if (!Part().arguments.emplace(name.substr(1, name.size() - 2), Trimmed(text)).second) Wrong(name + " is told twice");
    }
  }

  // Parses "**Errors.** text".
  void Labelled(const std::string& block) {
    const size_t end = block.find(".**");
    const std::string label = end == block.npos ? "" : block.substr(2, end - 2);
    if (std::find(std::begin(kLabels), std::end(kLabels), label) == std::end(kLabels)) {
      std::string known;
      for (const std::string_view one : kLabels) known += (known.empty() ? "**" : ", **") + std::string(one) + ".**";
      Wrong("a paragraph in bold begins with one of " + known);
    }
    Part().labels.emplace_back(label, Trimmed(block.substr(end + 3)));
  }

  std::string_view text_;
  ManualPage page_;
  int number_ = 1;
  std::string block_;
  bool code_ = false;
};

}  // namespace

const ManualEntry* ManualPage::Find(std::string_view op) const {
  for (const ManualEntry& entry : entries) {
    if (std::find(entry.ops.begin(), entry.ops.end(), op) != entry.ops.end()) return &entry;
  }
  return nullptr;
}

ManualPage ParseManual(const std::string& path, std::string_view text) { return Reader(path, text).Read(); }

std::vector<ManualPage> StandardManual() {
  std::vector<ManualPage> pages;
  for (const ManualFile& file : kStandardManual) pages.push_back(ParseManual(file.path, file.text));
  return pages;
}

std::string SnakeCase(std::string_view op) {
  std::string out;
  for (size_t i = 0; i < op.size(); ++i) {
    const auto is = [&](size_t k, int (*kind)(int)) { return k < op.size() && kind(static_cast<unsigned char>(op[k])); };
    const bool begins = is(i, std::isupper) && i > 0 &&
                        (is(i - 1, std::islower) || ((is(i - 1, std::isupper) || is(i - 1, std::isdigit)) && is(i + 1, std::islower)));
    if (begins) out += '_';
    out += char(std::tolower(static_cast<unsigned char>(op[i])));
  }
  return out;
}

}  // namespace thalweg::cli
