#include "distributed/json_tree.h"

#include <algorithm>
#include <charconv>

#include "framework/base/strings.h"

namespace thalweg::distributed {
namespace {

constexpr int kDeepest = 32;

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  StatusOr<JsonTree> Read() {
    JsonTree tree;
    RETURN_IF_ERROR(Value(0, &tree));
    return Next() == '\0' ? StatusOr<JsonTree>(std::move(tree)) : Wrong("something stands behind the end");
  }

 private:
  Status Wrong(std::string_view what) const {
    const std::string_view before = text_.substr(0, at_);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    return InvalidArgument("JSON, line ", int64_t(line), ", column ", at_ - (before.rfind('\n') + 1) + 1, ": ", what);
  }
  char Next() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool Take(std::string_view word) {
    Next();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  Status Value(int depth, JsonTree* to) {
    if (depth > kDeepest) return Wrong("values lie too deep within each other");
    switch (Next()) {
      case '{': return Members('}', depth, JsonTree::kObject, to);
      case '[': return Members(']', depth, JsonTree::kArray, to);
      case '"': to->kind = JsonTree::kText; return Text(&to->text);
      default: return Word(to);
    }
  }

  Status Members(char close, int depth, JsonTree::Kind kind, JsonTree* to) {
    to->kind = kind;
    ++at_;
    if (Take({&close, 1})) return Status();
    do {
      auto& [name, value] = to->members.emplace_back();
      if (kind == JsonTree::kObject) {
        if (Next() != '"') return Wrong("a name in quotes must stand here");
        RETURN_IF_ERROR(Text(&name));
        if (!Take(":")) return Wrong("a `:` must stand here");
      }
      RETURN_IF_ERROR(Value(depth + 1, &value));
    } while (Take(","));
    return Take({&close, 1}) ? Status() : Wrong(StrCat("a `,` or `", std::string(1, close), "` must stand here"));
  }

  Status Word(JsonTree* to) {
    if (Take("null")) return Status();
    to->kind = JsonTree::kBool;
    if (Take("false")) return Status();
    to->number = 1;
    if (Take("true")) return Status();
    to->kind = JsonTree::kNumber;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), to->number);
    if (error != std::errc()) return Wrong("a value must stand here");
    at_ = size_t(end - text_.data());
    return Status();
  }

  // Names and addresses are ASCII; escapes beyond it are rejected rather than misread.
  Status Text(std::string* to) {
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      char c = text_[at_];
      if (static_cast<unsigned char>(c) < 0x20) return Wrong("a text goes over the end of its line");
      if (c == '\\') {
        c = ++at_ < text_.size() ? text_[at_] : '\0';
        if (c != '"' && c != '\\' && c != '/') return Wrong("of escapes a text may have \\\", \\\\ and \\/ only");
      }
      to->push_back(c);
    }
    if (at_ >= text_.size()) return Wrong("a text has no end");
    ++at_;
    return Status();
  }

  const std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

const JsonTree* JsonTree::Find(std::string_view name) const {
  for (const auto& [key, value] : members) {
    if (kind == kObject && key == name) return &value;
  }
  return nullptr;
}

StatusOr<JsonTree> ParseJson(std::string_view text) { return Reader(text).Read(); }

}  // namespace thalweg::distributed
