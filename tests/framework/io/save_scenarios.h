// Scenarios for the tests that make saving fail or crash at every call. A scenario is a series of
// saves, each of another version of the values.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "framework/files/file_system.h"
#include "framework/io/checkpoint_folder.h"
#include "tests/framework/io/saved_tensors.h"

namespace thalweg::test {

struct Scenario {
  std::string name;
  int saves;
  // The values of version v.
  std::function<Tensors(int v)> values;
  // Returns a function that saves one version after the other into that file system, in one
  // process.
  std::function<std::function<Status(int v)>(FileSystem& files)> start;
  // The destination: a prefix, or a folder of checkpoints.
  std::string prefix, folder;
};

// Returns the scenarios. large: the size of the large tensors, in floats.
std::vector<Scenario> SaveScenarios(int64_t large);

// Loads the checkpoint that a program finds after a crash; NOT_FOUND if there is none. In a folder,
// the checkpoint that the file "checkpoint" names must be whole without falling back.
Status LoadLatest(const Scenario& scenario, FileSystem& files, Tensors* out);

}  // namespace thalweg::test
