// Saves and restores resources of other plugins through the host.
#include "kernels/register.h"

namespace thalweg::cpu {
namespace {

void SaveResource(tw::Handle resource, tw::Out<tw_string> saved) {
  tw::check(resource.f->host->resource->save(resource.f, resource.i, saved.o));
}

void RestoreResources(tw::Frame f, tw::Many<tw::Any> resources, tw::Many<tw_string> saved) {
  tw::check(f.f->host->resource->restore(f.f, resources.first, saved.first, resources.n));
}

}  // namespace

void register_saved_resource(tw::Plugin& p) {
  p.kernel<SaveResource>("SaveResource @CPU; may_block");
  p.kernel<RestoreResources>("RestoreResources @CPU; may_block");
}

}  // namespace thalweg::cpu
