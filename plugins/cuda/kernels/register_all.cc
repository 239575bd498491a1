#include "kernels/register_all.h"

#include <algorithm>

#include "kernels/register.h"  // of plugins/opencl
#include "kernels/renamed.h"

namespace thalweg::cuda {
namespace {

// Returns true if the plugin is built for all element types of a spec. THALWEG_CUDA_TYPES: "float
// int32 ...".
bool BuiltFor(std::string_view spec) {
  static const std::string built = " resource _ " THALWEG_CUDA_TYPES " ";
  const std::string_view head = spec.substr(0, spec.find('@'));
  for (size_t at = head.find('('); at < head.size();) {
    at = head.find_first_not_of(" (),->", at);
    const size_t end = std::min(head.find_first_of(" (),", at), head.size());
    if (at >= head.size()) break;
    if (built.find(" " + std::string(head.substr(at, end - at)) + " ") == built.npos) return false;
    at = end;
  }
  return true;
}

// Returns true if the kernel only enqueues work, as long as its host inputs stay the same.
// Exceptions: random numbers use a counter on the host; of a variable, only the elements may
// change; Unique waits for its result.
bool OnlyEnqueues(std::string_view spec) {
  const std::string_view op = spec.substr(0, spec.find_first_of(" (@"));
  for (std::string_view other :
       {"Random", "Truncated", "Multinomial", "Unique", "Var", "ReadVariable", "AssignVariable", "DestroyResource"})
    if (op.substr(0, other.size()) == other) return false;
  return spec.find("view ") == spec.npos && spec.find("gives ") == spec.npos;
}

tw_status* AddKernel(tw_registrar* r, const tw_kernel_def* d) {
  constexpr std::string_view kOther = "@OPENCL";
  std::string spec(d->spec, d->spec_len);
  if (!BuiltFor(spec)) return nullptr;
  spec.replace(spec.find(kOther), kOther.size(), "@CUDA");
  if (OnlyEnqueues(spec)) spec += "; capture_safe";
  tw_kernel_def renamed = *d;
  renamed.spec = spec.data();
  renamed.spec_len = spec.size();
  tw_registrar* to = Renamed::Receiver(r);
  return tw_add_kernel(to, &renamed);
}

}  // namespace

void RegisterKernels(const tw_host* host, tw_registrar* to) {
  Renamed renamed(to, &Renamed::Receive<tw_kernel_def, AddKernel>);
  tw::Plugin p{host, &renamed.registrar};
  opencl::register_attention(p);
  opencl::register_batch_norm(p);
  opencl::register_conv(p);
  opencl::register_conv3d(p);
  opencl::register_copy(p);
  opencl::register_elementwise(p);
  opencl::register_gather(p);
  opencl::register_lstm_sequence(p);
  opencl::register_matmul(p);
  opencl::register_pool(p);
  opencl::register_random(p);
  opencl::register_recurrent(p);
  opencl::register_reduce(p);
  opencl::register_resize(p);
  opencl::register_scan(p);
  opencl::register_segment(p);
  opencl::register_softmax(p);
  opencl::register_sparse_segment(p);
  opencl::register_sparse_tensor_dense_matmul(p);
  opencl::register_top_k(p);
  opencl::register_unique(p);
  opencl::register_update(p);
  opencl::register_variable(p);
  opencl::register_views(p);
}

}  // namespace thalweg::cuda
