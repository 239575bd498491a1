// The exported functions. ONNX Runtime names the version of its symbols after its release (VERS_1.16.3), so a program that is linked with
// one release does not start with another. Here each function has the symbol of every release from 1.0 to 1.39, for all of which one
// definition serves: what a program may call is decided by the version that it gives to GetApi. libonnxruntime.map, which CMake makes, has
// the same list. New programs are linked with the version of kVersion in table.cc.
#include "core.h"

// An alias of `function` with the symbol version of each release whose parts are in the lists. at: "@@" for the default version, else "@".
#define RELEASES(function, minors, patches, at)                                                                        \
  __asm__(".irp minor, " minors "\n.irp patch, " patches "\n.globl " #function "_\\minor\\()_\\patch\n.set " #function \
          "_\\minor\\()_\\patch, " #function "\n.symver " #function "_\\minor\\()_\\patch, " #function at              \
          "VERS_1.\\minor\\().\\patch\n.endr\n.endr\n")
#define ALL_RELEASES(function)                                                                                                     \
  RELEASES(function, "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,30,31,32,33,34,35,36,37,38,39", \
           "0,1,2,3,4,5", "@");                                                                                                    \
  RELEASES(function, "29", "1,2,3,4,5", "@");                                                                                      \
  RELEASES(function, "29", "0", "@@")

const OrtApiBase* OrtGetApiBase(void) { return thalweg::ort::ApiBase(); }

// The one provider is always there. use_arena: memory comes from pools anyhow.
OrtStatus* OrtSessionOptionsAppendExecutionProvider_CPU(OrtSessionOptions* options, int use_arena) {
  return use_arena ? thalweg::ort::api::EnableCpuMemArena(options) : thalweg::ort::api::DisableCpuMemArena(options);
}

ALL_RELEASES(OrtGetApiBase);
ALL_RELEASES(OrtSessionOptionsAppendExecutionProvider_CPU);
