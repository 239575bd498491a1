#include "kernels/glob.h"

#include <algorithm>
#include <utility>

namespace thalweg::cpu {
namespace {

constexpr size_t kNone = std::string_view::npos;

// Returns one character of a set, which a backslash may precede, and moves `at` past it.
unsigned char Member(std::string_view pattern, size_t* at) {
  if (pattern[*at] == '\\' && *at + 1 < pattern.size()) ++*at;
  return static_cast<unsigned char>(pattern[(*at)++]);
}

// Returns true if the set whose '[' is before `at` contains c. Moves `at` past the set's ']', or to
// kNone if there is none. A ']' at the front is a member.
bool InSet(std::string_view pattern, size_t* at, unsigned char c) {
  const bool others = *at < pattern.size() && (pattern[*at] == '^' || pattern[*at] == '!');
  if (others) ++*at;
  bool found = false;
  for (const size_t first = *at; *at < pattern.size();) {
    if (pattern[*at] == ']' && *at > first) {
      ++*at;
      return found != others;
    }
    const unsigned char low = Member(pattern, at);
    const bool range = *at + 1 < pattern.size() && pattern[*at] == '-' && pattern[*at + 1] != ']';
    if (range) ++*at;
    const unsigned char high = range ? Member(pattern, at) : low;
    found = found || (low <= c && c <= high);
  }
  *at = kNone;
  return false;
}

// Returns true if the term at `at`, which is not a star, matches c, and moves `at` past the term.
bool TermMatches(std::string_view pattern, size_t* at, char c) {
  const char term = pattern[(*at)++];
  if (term == '?') return true;
  if (term == '[') {
    size_t behind = *at;
    const bool in = InSet(pattern, &behind, static_cast<unsigned char>(c));
    if (behind == kNone) return c == '[';  // not a set
    *at = behind;
    return in;
  }
  if (term != '\\') return term == c;
  return *at < pattern.size() && pattern[(*at)++] == c;
}

bool HasMagic(std::string_view text) { return text.find_first_of("*?[\\") != kNone; }

// Returns true if the folder holds the name. Every existing folder holds "", "." and "..".
bool Holds(const std::string& folder, std::string_view name, const ListFolder& list, bool found_out) {
  const bool itself = name.empty() || name == "." || name == "..";
  const std::string listed = itself ? folder + std::string(name) : folder;
  const auto in = list(listed.empty() ? "." : listed, found_out);
  return in && (itself || std::find(in->names.begin(), in->names.end(), name) != in->names.end());
}

// Returns the paths that one part of a pattern gives for the folders. Each folder is empty or ends
// with '/'.
std::vector<std::string> Step(const std::vector<std::string>& folders, std::string_view part, bool last, const ListFolder& list,
                              bool found_out, const std::function<void(uint64_t)>& takes) {
  std::vector<std::string> next;
  const char* end = last ? "" : "/";
  const auto add = [&](const std::string& folder, std::string_view name) {
    takes(96 + folder.size() + name.size());  // the list grows by half, and both copies exist for a moment
    std::string path;
    path.reserve(folder.size() + name.size() + 1);  // gradual growth would take up to twice as much
    path.append(folder).append(name).append(end);
    next.push_back(std::move(path));
  };
  for (const std::string& folder : folders) {
    if (HasMagic(part)) {
      const auto in = list(folder, found_out);
      for (size_t k = 0; in && k < in->names.size(); ++k)
        if (Matches(part, in->names[k])) add(folder, in->names[k]);
    } else if (!last || Holds(folder, part, list, found_out)) {
      add(folder, part);
    }
  }
  return next;
}

}  // namespace

// A star first matches as few characters as possible. If a later term fails, the last star matches
// one character more.
bool Matches(std::string_view pattern, std::string_view name) {
  size_t at = 0, star = kNone, taken = 0;
  for (size_t k = 0; k < name.size();) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = ++at;
      taken = k;
    } else if (at < pattern.size() && TermMatches(pattern, &at, name[k])) {
      ++k;
    } else if (star != kNone) {
      at = star;
      k = ++taken;
    } else {
      return false;
    }
  }
  return pattern.substr(at).find_first_not_of('*') == kNone;
}

std::vector<std::string> Glob(std::string_view pattern, const ListFolder& list, const std::function<void(uint64_t)>& takes) {
  if (pattern.empty()) return {};
  // The text before the first wildcard, up to a '/', is taken literally.
  const size_t magic = std::min(pattern.find_first_of("*?[\\"), pattern.size());
  const size_t slash = pattern.substr(0, magic).rfind('/');
  std::string_view rest = pattern.substr(slash == kNone ? 0 : slash + 1);
  std::vector<std::string> paths = {std::string(pattern.substr(0, slash == kNone ? 0 : slash + 1))};
  if (slash == kNone && magic < pattern.size()) paths[0] = "./";
  for (bool first = true;; first = false) {
    const size_t end = rest.find('/');
    paths = Step(paths, rest.substr(0, end), end == kNone, list, !first, takes);
    if (end == kNone || paths.empty()) return paths;
    rest.remove_prefix(end + 1);
  }
}

}  // namespace thalweg::cpu
