// Ways to save, for the tests that make saving fail or die at every call. A scenario is a row of saves, each of another version of values.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "framework/io/checkpoint_folder.h"
#include "framework/io/file_system.h"
#include "tests/framework/io/saved_tensors.h"

namespace thalweg::test {

struct Scenario {
  std::string name;
  int saves;
  // What version v holds.
  std::function<Tensors(int v)> values;
  // Makes what does one save after the other into that file system, in one process.
  std::function<std::function<Status(int v)>(FileSystem& files)> start;
  // Where it saves to: a prefix, or a folder of checkpoints.
  std::string prefix, folder;
};

// The size of the large ones, in floats.
std::vector<Scenario> SaveScenarios(int64_t large);

// What a program that goes on after a crash finds: NOT_FOUND where there is nothing. In a folder, what the file "checkpoint" names must be
// whole without falling back.
Status LoadLatest(const Scenario& scenario, FileSystem& files, Tensors* out);

}  // namespace thalweg::test
