#include "peer.h"

#include "stream.h"

namespace thalweg::cuda {
namespace {

uint32_t Reaches(const tw_host* host, void* self, void* other) {
  uint32_t reaches = 0;
  host->status->release(tw::guard(host, [&] { reaches = static_cast<Device*>(self)->Reaches(*static_cast<Device*>(other)) ? 1 : 0; }));
  return reaches;
}

tw_status* Copy(const tw_host* host, void* self, void* other, const tw_copy* c) {
  return tw::guard(host, [&] {
    Device &from = *static_cast<Device*>(self), &to = *static_cast<Device*>(other);
    if (c->bytes == 0) return;
    to.Enter();  // its context exists from now on
    Submit(from, c->stream, "a copy to another device", [&](CUstream queue) { from.EnqueuePeerCopy(queue, *c, to); });
  });
}

}  // namespace

const tw_peer_set kPeer = {TW_SIZED(tw_peer_set), Reaches, Copy};

}  // namespace thalweg::cuda
