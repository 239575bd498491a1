// Registers many kernels that share one body. The body is compiled once. A constant table holds one
// entry for each op and type, and the host passes the entry back with each call. A few hundred
// kernels thus cost one function.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_COMMON_KERNEL_H_
#define THALWEG_PLUGINS_CPU_KERNELS_COMMON_KERNEL_H_

#include <string>

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::cpu {

// Adds the kernel `spec` (types written out), which runs kBody(frame, entry). `prepare` is as in
// kernel.h, for kernels that want scratch memory.
// REQUIRES: entry lives as long as the plugin.
template <auto kBody, class Entry>
void AddKernel(tw::Plugin& p, const std::string& spec, const Entry& entry,
               tw_status* (*prepare)(const tw_node* n, void* state, uint64_t* out_scratch) = nullptr) {
  tw_kernel_def d{};
  d.size = sizeof d;
  d.spec = spec.data();
  d.spec_len = spec.size();
  d.user = const_cast<Entry*>(&entry);  // never written
  d.execute = [](const tw_frame* f) { return tw::guard(f->host, [&] { kBody(f, *static_cast<const Entry*>(f->state)); }); };
  d.prepare = prepare;
  tw::check(tw_add_kernel(p.r, &d));
}

// Adds a kernel class with attributes: K(node, entry) constructs it for each node, and each run
// calls the object.
template <class K, class Entry>
void AddKernelClass(tw::Plugin& p, const std::string& spec, const Entry& entry) {
  tw_kernel_def d{};
  d.size = sizeof d;
  d.spec = spec.data();
  d.spec_len = spec.size();
  d.user = const_cast<Entry*>(&entry);
  d.create = [](const tw_node* n, void** out) {
    return tw::guard(n->host, [&] { *out = new K(tw::Node(n), *static_cast<const Entry*>(n->user)); });
  };
  d.execute = [](const tw_frame* f) { return tw::Call<decltype(&K::operator())>::run(*static_cast<const K*>(f->state), f); };
  d.destroy = [](const tw_host*, void* state) { delete static_cast<K*>(state); };
  tw::check(tw_add_kernel(p.r, &d));
}

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_COMMON_KERNEL_H_
