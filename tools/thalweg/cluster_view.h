// Formats the status reports of a cluster's tasks for people.
#pragma once
#include <string>
#include <vector>

#include "json_value.h"

namespace thalweg::cli {

// Returns the name of a task in tables, such as "ps:0".
std::string ShortName(const JsonValue& task);
// Returns the same for a title such as "task /job:ps/task:0 at unix:ps0"; returns another title,
// such as "clients", unchanged.
std::string ShortName(const std::string& title);

// Formats a row for each task, then the transfers between tasks and the tasks that wait for others.
std::string StatusText(const JsonValue& tasks);
// Formats what changed between two reports taken `seconds` apart: steps and bytes per second.
std::string RatesText(const JsonValue& before, const JsonValue& now, double seconds);
// Returns one sentence for each fault: a task that does not answer, versions that differ, a step
// without progress for `stuck` seconds. For such a step, names the task at the end of the chain of
// waiting tasks.
std::vector<std::string> Ailments(const JsonValue& tasks, double stuck);

}  // namespace thalweg::cli
