// Memory that pools keep for later, where nobody here needs it any more. Threads: any.
#pragma once

namespace thalweg {

class Runtime;

// What pools keep goes back: others who use the device, or the machine, know nothing of them. Where there is no memory to do so, it stays.
void GiveMemoryBack(const Runtime& runtime) noexcept;

}  // namespace thalweg
