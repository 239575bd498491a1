// Which signals the runtime's own threads take. Threads: each for itself.
#pragma once

namespace thalweg {

// From now on the calling thread takes none but those of faults and of profilers: signals are for the program's threads, which wait for
// them; a thread of ours that took one would leave the program's asleep.
void LeaveSignalsToTheProgram();

}  // namespace thalweg
