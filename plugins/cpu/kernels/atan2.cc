// Atan2: the angle of the point (x, y), in all four quadrants, with the signed zeros and infinities of C.
#include <cmath>

#include "kernels/common/types.h"
#include "kernels/register.h"
#include "kernels/zip.h"

namespace thalweg::cpu {

void register_atan2(tw::Plugin& p) {
  AddSmallFloats(p, "Atan2", TW_CPU_FOR_ISA(DetectIsa(p.h), ElementwiseTable), &BinaryKernels::atan2);
  AddZip<[](double y, double x) { return std::atan2(y, x); }, 50, double>(p, "Atan2");
}

}  // namespace thalweg::cpu
