// What a saver is, for the files that make one.
#pragma once
#include <string>
#include <vector>

#include "ops/library/build.h"
#include "thalweg/saver.h"

namespace thalweg::library {

// What one task saves and restores.
struct SaverTask {
  std::string device;
  std::vector<size_t> members;  // which of the handles
  const tw_operation* restore = nullptr;
};

// A table whose shards are among the handles.
struct SaverTable {
  std::string name;
  uint32_t partition = 0;
  std::vector<size_t> members;  // by shard
};

}  // namespace thalweg::library

struct tw_saver {
  tw_graph* graph = nullptr;
  std::string scope;  // under which its operations are
  uint32_t shards = 1;
  std::vector<tw_output> handles, values;  // one of each variable and resource; values: what reads it
  std::vector<thalweg::library::VariableInfo> infos;
  std::vector<std::string> names;  // in files
  bool by_task = false;
  std::vector<thalweg::library::SaverTask> tasks;  // one of all handles unless by_task
  std::vector<thalweg::library::SaverTable> tables;
  tw_output prefix = 0;
  const tw_operation* save = nullptr;
  const tw_operation* restore = nullptr;
  // For partial restores, from the first of them on: what to feed for a variable, and what then assigns it.
  std::vector<tw_output> feeds;
  std::vector<const tw_operation*> assignments;
};

namespace thalweg::library {

// Adds what feeds and assigns each handle, once.
tw_status* AddAssignments(tw_saver* saver);

// One RestoreResources over all of them.
inline const tw_operation* AddRestoreResources(tw_scope* scope, std::vector<tw_output> resources, const std::vector<tw_output>& saved,
                                               const std::vector<const tw_operation*>& after) {
  resources.insert(resources.end(), saved.begin(), saved.end());
  return Update(scope, "RestoreResources", resources, after);
}

}  // namespace thalweg::library
