// Runs a sub-command the way a program's main does. Used by `thalweg` and by `thalweg-serve`, which runs one sub-command of it.
#pragma once
#include <string>
#include <vector>

#include "command.h"

namespace thalweg::cli {

// Prints the command's help if the words ask for it, and runs the command otherwise. Returns the
// exit status. An exception becomes one line on standard error.
int Dispatch(const Command& command, const std::vector<std::string>& words);

// Flushes standard output. Returns `status`, or kFailed if not everything could be written.
int Finish(int status);

}  // namespace thalweg::cli
