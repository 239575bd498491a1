#include "modules.h"

#include "images.h"  // made by CMakeLists.txt: the files of nvcc, and kImages

namespace thalweg::cuda {

const void* ModuleImage(size_t shard) { return kImages[shard]; }

}  // namespace thalweg::cuda
