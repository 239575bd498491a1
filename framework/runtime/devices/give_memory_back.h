// Returns memory that pools cache, for when the runtime does not need it soon. Threads: any.
#pragma once

namespace thalweg {

class Runtime;

// Returns the cached memory of pools and the heap, so that other users of the devices and the
// machine can have it. If there is no memory to do so, the device pools keep theirs.
void GiveMemoryBack(const Runtime& runtime) noexcept;

}  // namespace thalweg
