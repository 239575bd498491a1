// The table of options of `thalweg serve`. The command has it for --help, completion and wrong
// arguments, the helper program for its work.
#pragma once
#include "tools/thalweg/command.h"

namespace thalweg::cli::serve {

Command MakeServeCommand(int (*run)(const Args& args));

}  // namespace thalweg::cli::serve
