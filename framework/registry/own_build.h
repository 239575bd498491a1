// Which build of this code is running.
#pragma once
#include <string>

namespace thalweg {

// The build id that the linker wrote into the file that this code came from, in hexadecimal; empty: it wrote none.
std::string OwnBuild();

}  // namespace thalweg
