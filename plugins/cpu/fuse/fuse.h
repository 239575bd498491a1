// Fusion on the CPU. A graph compiler takes sets of element-wise nodes, with reductions of their
// rows, and runs each set over tiles that stay in the first-level cache. A value that only members
// of the set read is never stored as a tensor. The results have the same bits as those of the
// single nodes.
// Threads: the rules of compilers apply; there is one Fusion per runtime.
#ifndef THALWEG_PLUGINS_CPU_FUSE_FUSE_H_
#define THALWEG_PLUGINS_CPU_FUSE_FUSE_H_

#include <memory>
#include <mutex>

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cpu {

class Catalogue;

// The kinds of fusion that the setting `fuse` allows.
struct FuseKinds {
  bool elementwise = true;  // sets without rows
  bool rows = true;         // sets whose members broadcast or reduce rows
  bool sums = true;         // matrix products followed by an addition: product_sum.h
};

// The plugin's instance of the compiler.
class Fusion {
 public:
  Fusion();
  ~Fusion();

  // Errors: INVALID_ARGUMENT if the setting `fuse` holds an unknown word.
  void Register(tw::Plugin& p);

 private:
  const Catalogue& catalogue(const tw_host* h);
  static tw_status* Claim(const tw_host* h, void* user, void* device, const tw_part* part, tw_claims* to);
  static tw_status* Compile(const tw_compile_call* c, void** out_state);
  static tw_status* Execute(const tw_frame* f);
  static void Destroy(const tw_host* h, void* state);
  static uint32_t InPlace(const tw_host* h, const void* state, uint32_t out, uint32_t in);
  static tw_status* Prepare(const tw_compile_call* c, void* state, uint64_t* out_scratch);

  FuseKinds kinds_;
  std::once_flag once_;
  std::unique_ptr<const Catalogue> catalogue_;  // made when a plan first has tensors that are large enough
};

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_FUSE_FUSE_H_
