// Fusion on the CPU: a graph compiler that takes sets of element-wise nodes, with reductions of their rows, and runs them over tiles that
// stay in the first-level cache. What only members read is never stored. The results have the bits of the single nodes.
// Threads: as of compilers; one Fusion per runtime.
#ifndef THALWEG_PLUGINS_CPU_FUSE_FUSE_H_
#define THALWEG_PLUGINS_CPU_FUSE_FUSE_H_

#include <memory>
#include <mutex>

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cpu {

class Catalogue;

// What the setting `fuse` lets be fused.
struct FuseKinds {
  bool elementwise = true;  // sets without rows
  bool rows = true;         // sets whose members broadcast or reduce rows
  bool sums = true;         // products that are added to something: product_sum.h
};

// The plugin's instance.
class Fusion {
 public:
  Fusion();
  ~Fusion();

  // Errors: INVALID_ARGUMENT for a word that `fuse` does not know.
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
  std::unique_ptr<const Catalogue> catalogue_;  // made when a plan first has nodes that are worth it
};

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_FUSE_FUSE_H_
