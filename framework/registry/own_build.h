// The build id of the running code. Threads: any.
#pragma once
#include <string>

namespace thalweg {

// Returns the build id that the linker wrote into the file of this code, in hexadecimal; "" if it
// wrote none.
std::string OwnBuild();

}  // namespace thalweg
