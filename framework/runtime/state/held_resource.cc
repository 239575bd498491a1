#include "framework/runtime/state/held_resource.h"

#include <string_view>

#include "framework/base/shown.h"
#include "framework/runtime/runtime.h"
#include "framework/runtime/state/container.h"
#include "framework/runtime/state/resource.h"
#include "framework/runtime/state/touched_resources.h"
#include "framework/runtime/state/waiting_calls.h"
#include "framework/runtime/step/frame.h"

namespace thalweg {
namespace {

tw_held_resource* ToC(Resource* r) { return reinterpret_cast<tw_held_resource*>(r); }
Resource* Of(tw_held_resource* r) { return reinterpret_cast<Resource*>(r); }

// An object is meaningful only to the plugin that made it.
Status CheckOwner(const Resource& r, const KernelFrame& f) {
  const std::string_view owner = r.is_variable() ? std::string_view() : std::string_view(r.def()->plugin);
  if (owner == f.run->kernel->plugin) return Status();
  return InvalidArgument("resource '", Shown(r.name()), "' is a ", r.type(), ", which plugin '", f.run->kernel->plugin, "' does not own");
}

tw_status* Open(const tw_frame* frame, const tw_resource_key* k, tw_status* (*make)(const tw_host*, void*, void**), void* arg,
                tw_held_resource** out) {
  *out = nullptr;
  return Guard([&]() -> Status {
    const KernelFrame& f = *KernelFrame::Of(frame);
    const std::string_view type(k->type, k->type_len), name(k->name, k->name_len);
    ASSIGN_OR_RETURN(const std::string_view container, ContainerOf(f, {k->container, k->container_len}, type, name));
    ASSIGN_OR_RETURN(Resource * r, f.step->runtime->resources().Open(container, type, name));
    Status s = CheckOwner(*r, f);
    if (s.ok()) s = r->MakeObject(f.c.host, make, arg);
    if (s.ok()) {
      *out = ToC(r);
    } else {
      r->Release();
    }
    return s;
  });
}

tw_status* Hold(const tw_frame* frame, uint32_t i, tw_held_resource** out) {
  *out = nullptr;
  return Guard([&]() -> Status {
    const KernelFrame& f = *KernelFrame::Of(frame);
    ASSIGN_OR_RETURN(Resource * r, ResourceOf(f, i));
    const std::string_view wanted = f.run->resources.empty() ? std::string_view() : f.run->resources[i];
    if (!wanted.empty() && wanted != r->type()) {
      return InvalidArgument("input ", i, " is a handle of the ", r->type(), " '", Shown(r->name()), "', but must be one of a ", wanted);
    }
    RETURN_IF_ERROR(CheckOwner(*r, f));
    r->Retain();
    *out = ToC(r);
    return Status();
  });
}

void Release(tw_held_resource* r) {
  if (r) Of(r)->Release();
}

void Look(tw_held_resource* r, void (*visit)(void*, void*), void* arg) {
  Of(r)->LockRead();
  visit(arg, Of(r)->object());
  Of(r)->UnlockRead();
}

uint64_t TouchCount(tw_held_resource* r) { return Of(r)->touches(); }

void Touch(const tw_frame* f, tw_held_resource* r) {
  if (!Of(r)->Touch()) return;
  if (f && WaitWish::Of(KernelFrame::Of(f))) {
    WaitingCalls::Get().Updated(Of(r));
  } else {
    TouchedResources::Get().Add(Of(r));
  }
}

tw_status* Wait(const tw_frame* frame, tw_held_resource* r, uint64_t condition, uint64_t memo, uint64_t seen) {
  return Guard([&]() -> Status {
    WaitWish* wish = WaitWish::Of(KernelFrame::Of(frame));
    if (!wish)
      return FailedPrecondition("only a call of an asynchronous kernel in a step can wait at what it holds, inside of its execute");
    Of(r)->Retain();
    if (wish->held) wish->at->Release();
    wish->at = Of(r);
    wish->held = true;
    wish->condition = condition;
    wish->memo = memo;
    wish->seen = seen;
    return Status();
  });
}

uint64_t Waiting(const tw_frame* frame, tw_held_resource* r, uint64_t condition) {
  return WaitingCalls::Get().Count(Of(r), condition, WaitWish::Of(KernelFrame::Of(frame)));
}

int64_t Version(const tw_frame* frame, uint32_t i) {
  const KernelFrame& f = *KernelFrame::Of(frame);
  return i < f.c.n_in && f.opened && f.opened[i] ? int64_t(f.opened[i]->version()) : -1;
}

}  // namespace

const tw_held_resource_api* HeldResourceSet() {
  static constexpr tw_held_resource_api kSet = {
      sizeof(tw_held_resource_api), 0, Open, Hold, Release, Look, TouchCount, Touch, Wait, Waiting, Version};
  return &kSet;
}

}  // namespace thalweg
