// Drivers that carry a compiler, in a program that brings another release of the same compiler along.
#ifndef THALWEG_PLUGINS_OPENCL_DRIVERS_H_
#define THALWEG_PLUGINS_OPENCL_DRIVERS_H_

namespace thalweg::opencl {

// Where the program offers LLVM to all that is loaded after it, as TensorFlow's libraries do, an OpenCL driver that has an LLVM of its own
// would bind to the program's, and crash the process as soon as the ICD loader opens it. Opens the installed drivers first then, each bound
// to itself: the loader finds them open. Elsewhere it does nothing, so that a program's malloc, say, stays that of drivers too.
// Call it before the first OpenCL function.
void OpenDriversApart();

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_DRIVERS_H_
