#include "framework/runtime/devices/give_memory_back.h"

#include "framework/runtime/devices/device.h"
#include "framework/runtime/runtime.h"
#include "framework/tensor/idle_memory.h"

namespace thalweg {

void GiveMemoryBack(const Runtime& runtime) noexcept {
  try {
    for (const Device* d : runtime.ready_devices()) {
      if (!d->host_memory()) d->GiveMemoryBack();
    }
  } catch (...) {
  }
  IdleMemory::GiveBackAll();
}

}  // namespace thalweg
