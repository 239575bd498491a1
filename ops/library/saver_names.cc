#include "ops/library/saver_names.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>
#include <utility>

namespace thalweg::library {
namespace {

constexpr uint32_t kMostShards = 1000;  // limit of tw_checkpoint_write_sharded

struct Rules {
  std::map<std::string, std::string, std::less<>> exact, beginnings;

  std::string NameOf(const std::string& variable) const {
    if (auto it = exact.find(variable); it != exact.end()) return it->second;
    for (size_t n = variable.size() + 1; n-- > 0;) {
      auto it = beginnings.find(std::string_view(variable).substr(0, n));
      if (it != beginnings.end()) return it->second + variable.substr(n);
    }
    return variable;
  }
};

bool TakeStar(std::string* text) {
  const size_t star = text->find('*');
  if (star == text->npos || star + 1 != text->size()) return false;
  text->pop_back();
  return true;
}

// Returns false for a star inside, or on one side only, and for a second rule for the same
// variable.
bool AddRule(std::string variable, std::string name, Rules* rules) {
  const bool star = TakeStar(&variable);
  if (star != TakeStar(&name) || variable.find('*') != variable.npos || name.find('*') != name.npos) return false;
  if (!star && (variable.empty() || name.empty())) return false;
  return (star ? rules->beginnings : rules->exact).emplace(variable, name).second;
}

Rules ReadRules(tw_scope* scope, const tw_saver_options* o) {
  Rules rules;
  if (!o) return rules;
  constexpr uint32_t kFlags = TW_SAVER_UNUSED_RULES | TW_SAVER_BY_TASK;
  if (o->size < offsetof(tw_saver_options, table_names) || (o->flags & ~kFlags) != 0) {
    Fail(scope, TW_INVALID_ARGUMENT,
         "tw_saver_options: size is " + std::to_string(o->size) + " and flags " + std::to_string(o->flags) +
             "; set size to sizeof(tw_saver_options) and flags to 0 or TW_SAVER_... ones");
    return rules;
  }
  if (o->shards > kMostShards) {
    Fail(scope, TW_INVALID_ARGUMENT,
         "tw_saver_options: shards is " + std::to_string(o->shards) + "; at most " + std::to_string(kMostShards) + " are possible");
  }
  for (uint32_t i = 0; i < o->n_names; ++i) {
    const char* variable = o->variables ? o->variables[i] : nullptr;
    const char* name = o->names ? o->names[i] : nullptr;
    if (!variable || !name) {
      Fail(scope, TW_INVALID_ARGUMENT, "tw_saver_options: name rule " + std::to_string(i) + " has a NULL");
      break;
    }
    if (AddRule(variable, name, &rules)) continue;
    Fail(scope, TW_INVALID_ARGUMENT,
         "tw_saver_options: name rule " + std::to_string(i) + ", '" + variable + "' to '" + name +
             "'; give two names, or two beginnings of names that end in *, and one rule for each");
    break;
  }
  return rules;
}

// Returns the number of edits (insert, delete, replace) from a to b.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

// Returns "; the closest is 'x'"; does not compare long names.
std::string Closest(const std::vector<VariableInfo>& variables, const std::string& name) {
  constexpr size_t kLongest = 200;
  const VariableInfo* closest = nullptr;
  size_t least = SIZE_MAX;
  for (const VariableInfo& v : variables) {
    if (v.name.size() > kLongest || name.size() > kLongest) continue;
    if (const size_t d = Distance(name, v.name); d < least) {
      least = d;
      closest = &v;
    }
  }
  return closest ? "; the closest is '" + closest->name + "'" : "";
}

// A misspelt rule would leave a variable under its own name, which a partial restore would not
// find.
void CheckUsed(tw_scope* scope, const std::vector<VariableInfo>& variables, const Rules& rules) {
  for (const auto& [variable, name] : rules.exact) {
    const auto is_it = [&](const VariableInfo& v) { return v.name == variable; };
    if (std::any_of(variables.begin(), variables.end(), is_it)) continue;
    return Fail(scope, TW_INVALID_ARGUMENT,
                "tw_saver_options: the name rule '" + variable + "' to '" + name + "' is for none of the " +
                    std::to_string(variables.size()) + " variables" + Closest(variables, variable) +
                    "; mend it, or set the flag TW_SAVER_UNUSED_RULES");
  }
}

}  // namespace

std::vector<std::string> NamesInFiles(tw_scope* scope, const std::vector<VariableInfo>& variables, const tw_saver_options* options) {
  const Rules rules = ReadRules(scope, options);
  if (options && Good(scope) && !(options->flags & TW_SAVER_UNUSED_RULES)) CheckUsed(scope, variables, rules);
  std::vector<std::string> names;
  std::map<std::string, std::string> owners;
  for (const VariableInfo& v : variables) {
    names.push_back(rules.NameOf(v.name));
    if (names.back().empty()) {
      Fail(scope, TW_INVALID_ARGUMENT, "tw_saver_create: the rules leave variable '" + v.name + "' no name in files; add one for it alone");
      break;
    }
    if (!v.resource.empty()) names.back() += kResourceSuffix;
    const auto [it, is_new] = owners.emplace(names.back(), v.name);
    if (is_new) continue;
    Fail(scope, TW_INVALID_ARGUMENT,
         "tw_saver_create: variables '" + it->second + "' and '" + v.name + "' would both be '" + names.back() +
             "' in files; give them different names");
    break;
  }
  return names;
}

}  // namespace thalweg::library
