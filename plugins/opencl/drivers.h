// Opens OpenCL drivers apart from a program that contains another release of their compiler.
#ifndef THALWEG_PLUGINS_OPENCL_DRIVERS_H_
#define THALWEG_PLUGINS_OPENCL_DRIVERS_H_

namespace thalweg::opencl {

// If the program exports LLVM's symbols to all libraries loaded later, as TensorFlow's libraries
// do, an OpenCL driver with its own LLVM would bind to them. The process would then crash as soon
// as the ICD loader opens the driver. In that case this function opens the installed drivers first,
// each bound to its own symbols, and the loader finds them open. Otherwise it does nothing, so that
// drivers keep using the program's malloc, for example. Call it before the first OpenCL function.
void OpenDriversApart();

}  // namespace thalweg::opencl

#endif  // THALWEG_PLUGINS_OPENCL_DRIVERS_H_
