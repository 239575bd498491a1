// The registration function of each file of kernels/. `library` outlives every kernel.
#ifndef THALWEG_PLUGINS_ONEDNN_REGISTER_H_
#define THALWEG_PLUGINS_ONEDNN_REGISTER_H_

#include "library.h"

namespace thalweg::onednn {

void register_matmul(tw::Plugin& p, const Library& library);
void register_batch_matmul(tw::Plugin& p, const Library& library);
void register_conv2d(tw::Plugin& p, const Library& library);
void register_fuse(tw::Plugin& p, const Library& library);  // the graph compiler

// Adds a kernel class K(node, library) with a higher priority than the CPU plugin's kernel for the
// same types. It may request scratch, as those kernels may. clauses: further clauses of its spec.
template <class K>
void AddKernel(tw::Plugin& p, const std::string& op, const Library& library, const std::string& clauses = "") {
  const std::string spec = tw::Call<decltype(&K::operator())>::spec(op + " @CPU" + clauses + "; priority 10");
  tw_kernel_def d{};
  d.size = sizeof d;
  d.spec = spec.data();
  d.spec_len = spec.size();
  d.user = const_cast<Library*>(&library);  // never written
  d.create = [](const tw_node* n, void** out) {
    return tw::guard(n->host, [&] { *out = new K(tw::Node(n), *static_cast<const Library*>(n->user)); });
  };
  d.execute = [](const tw_frame* f) { return tw::Call<decltype(&K::operator())>::run(*static_cast<const K*>(f->state), f); };
  d.destroy = [](const tw_host*, void* state) { delete static_cast<K*>(state); };
  d.prepare = tw::Scratch<K>::prepare;
  tw::check(tw_add_kernel(p.r, &d));
}

}  // namespace thalweg::onednn

#endif  // THALWEG_PLUGINS_ONEDNN_REGISTER_H_
