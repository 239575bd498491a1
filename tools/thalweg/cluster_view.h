// What the tasks of a cluster say of themselves, as people read it.
#pragma once
#include <string>
#include <vector>

#include "json_value.h"

namespace thalweg::cli {

// "ps:0": how tables call a task.
std::string ShortName(const JsonValue& task);
// The same of a title, "task /job:ps/task:0 at unix:ps0"; others, such as "clients", as they are.
std::string ShortName(const std::string& title);

// A row for each task; below, who has got what from whom, and who waits for whom.
std::string StatusText(const JsonValue& tasks);
// What changed between two looks, `seconds` apart: steps and bytes in a second.
std::string RatesText(const JsonValue& before, const JsonValue& now, double seconds);
// What is wrong, a sentence each: tasks that do not answer, versions that differ, steps that have come no further for `stuck` seconds, with
// the task at the end of the line of those that wait.
std::vector<std::string> Ailments(const JsonValue& tasks, double stuck);

}  // namespace thalweg::cli
