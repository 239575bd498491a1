// Names of variables in files: the name rules of tw_saver_options.
#pragma once
#include <string>
#include <vector>

#include "ops/library/build.h"
#include "thalweg/saver.h"

namespace thalweg::library {

// Suffix of a plugin's resource in files, so that a variable may have the same name.
inline constexpr char kResourceSuffix[] = ":resource";

// Returns one name for each variable. Fails the scope for invalid rules, and if two variables would
// have one name.
std::vector<std::string> NamesInFiles(tw_scope* scope, const std::vector<VariableInfo>& variables, const tw_saver_options* options);

}  // namespace thalweg::library
