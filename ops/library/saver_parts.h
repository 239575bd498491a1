// Definition of tw_saver, for the files that make one.
#pragma once
#include <string>
#include <vector>

#include "ops/library/build.h"
#include "thalweg/saver.h"

namespace thalweg::library {

// Operations and handles of one task.
struct SaverTask {
  std::string device;
  std::vector<size_t> members;  // indices of its handles
  const tw_operation* restore = nullptr;
};

// A table whose shards are among the handles.
struct SaverTable {
  std::string name;
  uint32_t partition = 0;
  std::vector<size_t> members;  // indices of handles, by shard
};

}  // namespace thalweg::library

struct tw_saver {
  tw_graph* graph = nullptr;
  std::string scope;  // prefix of its operations
  uint32_t shards = 1;
  std::vector<tw_output> handles, values;  // one per variable and resource; values: operations that read them
  std::vector<thalweg::library::VariableInfo> infos;
  std::vector<std::string> names;  // in files
  bool by_task = false;
  std::vector<thalweg::library::SaverTask> tasks;  // a single one with all handles unless by_task
  std::vector<thalweg::library::SaverTable> tables;
  tw_output prefix = 0;
  const tw_operation* save = nullptr;
  const tw_operation* restore = nullptr;
  // Created by the first partial restore: placeholders for the values, and the operations that
  // assign them.
  std::vector<tw_output> feeds;
  std::vector<const tw_operation*> assignments;
  // Created by the first save in the background (saver_behind.h): the number of the save, the
  // operation that stages a mark under it once all values are read, and the value of that mark.
  tw_output number = 0, mark = 0;
  const tw_operation* stage_mark = nullptr;
};

namespace thalweg::library {

// Adds placeholders and assignments for each handle, once.
tw_status* AddAssignments(tw_saver* saver);

// Adds one RestoreResources over all of them.
inline const tw_operation* AddRestoreResources(tw_scope* scope, std::vector<tw_output> resources, const std::vector<tw_output>& saved,
                                               const std::vector<const tw_operation*>& after) {
  resources.insert(resources.end(), saved.begin(), saved.end());
  return Update(scope, "RestoreResources", resources, after);
}

}  // namespace thalweg::library
