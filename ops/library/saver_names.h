// What variables are called in files: the name rules of tw_saver_options.
#pragma once
#include <string>
#include <vector>

#include "ops/library/build.h"
#include "thalweg/saver.h"

namespace thalweg::library {

// What follows the name of a plugin's resource in files, so that a variable may have that name, too.
inline constexpr char kResourceSuffix[] = ":resource";

// One name for each variable. Fails the scope for rules that are no rules, and where two variables would have one name.
std::vector<std::string> NamesInFiles(tw_scope* scope, const std::vector<VariableInfo>& variables, const tw_saver_options* options);

}  // namespace thalweg::library
