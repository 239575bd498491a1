// The pack's registration. It does not call oneDNN. If the library is missing, the pack is not
// loaded and says why.
#include "library.h"
#include "register.h"

namespace thalweg::onednn {
namespace {

tw_status* Init(const tw_host* host, tw_registrar* r, void** out_instance) {
  return tw::guard(host, [&] {
    auto library = std::make_unique<Library>(host);
    tw::Plugin p{host, r};
    register_matmul(p, *library);
    register_batch_matmul(p, *library);
    register_conv2d(p, *library);
    register_fuse(p, *library);
    *out_instance = library.release();
  });
}

void Shutdown(const tw_host*, void* instance) { delete static_cast<Library*>(instance); }

}  // namespace
}  // namespace thalweg::onednn

TW_PLUGIN_WITH("org.thalweg.onednn", "0.1.0", thalweg::onednn::Init, thalweg::onednn::Shutdown)
