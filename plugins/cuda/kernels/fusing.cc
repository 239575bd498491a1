#include "kernels/fusing.h"

#include "device.h"
#include "kernels/fuse.h"  // of plugins/opencl
#include "kernels/renamed.h"

namespace thalweg::cuda {
namespace {

using ClaimOf = decltype(tw_compiler_def::claim);
ClaimOf& OtherClaim() {
  static ClaimOf claim = nullptr;  // the same for all runtimes
  return claim;
}

// Without NVRTC it claims no nodes, and they run one by one.
tw_status* Claim(const tw_host* host, void* user, void* device, const tw_part* part, tw_claims* to) {
  if (static_cast<Device*>(device)->compiles(host)) return OtherClaim()(host, user, device, part, to);
  return tw::guard(host, [&] {
    for (uint32_t i = 0; i < part->n_nodes; ++i) tw::check(to->refuse(to, i, TW_S("there is no NVRTC to compile with")));
  });
}

tw_status* AddCompiler(tw_registrar* r, const tw_compiler_def* d) {
  constexpr std::string_view kKind = "CUDA";
  tw_compiler_def renamed = *d;
  OtherClaim() = d->claim;
  renamed.claim = Claim;
  renamed.kind = kKind.data();
  renamed.kind_len = kKind.size();
  tw_registrar* to = Renamed::Receiver(r);
  return tw_add_compiler(to, &renamed);
}

}  // namespace

void RegisterFuse(const tw_host* host, tw_registrar* to) {
  Renamed renamed(to, &Renamed::Receive<tw_compiler_def, AddCompiler>);
  tw::Plugin p{host, &renamed.registrar};
  opencl::register_fuse(p);
}

}  // namespace thalweg::cuda
