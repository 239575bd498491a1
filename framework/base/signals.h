// Blocks signals on the runtime's own threads. Threads: each call affects the calling thread only.
#pragma once

namespace thalweg {

// Blocks all signals on the calling thread except those of faults and profilers. The program's
// threads wait for the other signals; if a runtime thread took one, the program's thread would not
// wake.
void LeaveSignalsToTheProgram();

}  // namespace thalweg
