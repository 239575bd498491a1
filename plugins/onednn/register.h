// What each file of kernels/ registers. `library` outlives every kernel.
#ifndef THALWEG_PLUGINS_ONEDNN_REGISTER_H_
#define THALWEG_PLUGINS_ONEDNN_REGISTER_H_

#include "library.h"

namespace thalweg::onednn {

void register_matmul(tw::Plugin& p, const Library& library);
void register_batch_matmul(tw::Plugin& p, const Library& library);
void register_conv2d(tw::Plugin& p, const Library& library);
void register_fuse(tw::Plugin& p, const Library& library);  // the graph compiler

// A kernel class K(node, library), which stands above the kernel of the CPU plugin for the same types. It may ask for scratch, as those
// may. clauses: more for its spec.
template <class K>
void AddKernel(tw::Plugin& p, const std::string& op, const Library& library, const std::string& clauses = "") {
  const std::string spec = tw::Call<decltype(&K::operator())>::spec(op + " @CPU" + clauses + "; priority 10");
  tw_kernel_def d{};
  d.size = sizeof d;
  d.spec = spec.data();
  d.spec_len = spec.size();
  d.user = const_cast<Library*>(&library);  // only ever read
  d.create = [](const tw_node* n, void** out) {
    return tw::guard(n->host, [&] { *out = new K(tw::Node(n), *static_cast<const Library*>(n->user)); });
  };
  d.execute = [](const tw_frame* f) { return tw::Call<decltype(&K::operator())>::run(*static_cast<const K*>(f->state), f); };
  d.destroy = [](const tw_host*, void* state) { delete static_cast<K*>(state); };
  d.prepare = tw::Scratch<K>::prepare;
  tw::check(p.r->kernel(p.r, &d));
}

}  // namespace thalweg::onednn

#endif  // THALWEG_PLUGINS_ONEDNN_REGISTER_H_
