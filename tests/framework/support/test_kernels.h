// Shared by the kernels of test_ops.h: access to the memory of its two devices, element by element,
// and the journal. Only for the files of that plugin.
#pragma once
#include <cstdint>

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::testing_support {

// Holds an address on CPU, and a block that is not an address on FAKE.
struct Block {
  char* bytes;
};

struct CpuMemory {
  static float* At(const tw_view* v) { return reinterpret_cast<float*>(static_cast<char*>(v->data) + v->offset); }
};
struct FakeMemory {
  static float* At(const tw_view* v) {
    return v->bytes ? reinterpret_cast<float*>(static_cast<Block*>(v->data)->bytes + v->offset) : nullptr;
  }
};

template <class M, class F>
void Map(const tw_frame* f, F&& function) {
  float* y = M::At(f->out[0]);
  const float* x = M::At(f->in[0]);
  for (uint64_t i = 0; i < f->out[0]->count; ++i) y[i] = function(x[i]);
}
template <class M, class F>
void Zip(const tw_frame* f, F&& function) {
  float* z = M::At(f->out[0]);
  const float *x = M::At(f->in[0]), *y = M::At(f->in[1]);
  for (uint64_t i = 0; i < f->out[0]->count; ++i) z[i] = function(x[i], y[i]);
}

inline void Pass(tw::Frame f) {
  Map<CpuMemory>(f.f, [](float x) { return x; });
}
inline void Next(tw::Frame f) {
  Map<CpuMemory>(f.f, [](float x) { return x + 1; });
}

// Throws if x is negative.
inline void Refuse(float x) {
  if (x < 0) throw tw::Error{TW_OUT_OF_RANGE, "it is negative"};
}

// Appends to the journal.
void Write(int64_t tag);
// Waits at the gate.
void PassGate();

// Register the parts of the plugin.
void RegisterDevices(tw::Plugin& p);
void RegisterCrowds(tw::Plugin& p);
void RegisterLateOps(tw::Plugin& p);
void RegisterLetters(tw::Plugin& p);

}  // namespace thalweg::testing_support
