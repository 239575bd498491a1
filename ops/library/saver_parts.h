// What a saver is, for the files that make one.
#pragma once
#include <string>
#include <vector>

#include "ops/library/build.h"
#include "thalweg/saver.h"

struct tw_saver {
  tw_graph* graph = nullptr;
  std::string scope;  // under which its operations are
  uint32_t shards = 1;
  std::vector<tw_output> handles, values;  // one of each variable and resource; values: what reads it
  std::vector<thalweg::library::VariableInfo> infos;
  std::vector<std::string> names;  // in files
  tw_output prefix = 0;
  const tw_operation* save = nullptr;
  const tw_operation* restore = nullptr;
  // For partial restores, from the first of them on: what to feed for a variable, and what then assigns it.
  std::vector<tw_output> feeds;
  std::vector<const tw_operation*> assignments;
};

namespace thalweg::library {

// One RestoreResources over all of them.
inline const tw_operation* AddRestoreResources(tw_scope* scope, std::vector<tw_output> resources, const std::vector<tw_output>& saved,
                                               const std::vector<const tw_operation*>& after) {
  resources.insert(resources.end(), saved.begin(), saved.end());
  return Update(scope, "RestoreResources", resources, after);
}

}  // namespace thalweg::library
