#include "framework/runtime/host/rendezvous_set.h"

#include <string>

#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/runtime/flow/frame_call.h"
#include "framework/runtime/flow/loop_run.h"
#include "framework/runtime/rendezvous.h"
#include "framework/runtime/step/async_calls.h"
#include "framework/runtime/step/frame.h"

namespace thalweg {
namespace {

StatusOr<Rendezvous*> Of(const tw_frame* f, std::string_view key) {
  Rendezvous* r = KernelFrame::Of(f)->step->rendezvous;
  if (r) return r;
  return FailedPrecondition("'", Shown(key), "' has nobody to go to: the step runs in one process; nodes that send and receive are made ",
                            "by sessions over several");
}

std::string IterationOf(const tw_frame* f) {
  const FrameCall* c = FrameCalls::CallOf(f);
  return c ? IterationNumbers(*c->loop, *c->iteration) : std::string();
}

tw_status* Send(const tw_frame* f, const char* key, uint64_t len, tw_tensor* value) {
  Tensor t = Tensor::Adopt(value);
  return Guard([&]() -> Status {
    ASSIGN_OR_RETURN(Rendezvous * r, Of(f, {key, size_t(len)}));
    return r->Send({key, size_t(len)}, IterationOf(f), std::move(t));
  });
}

Status Give(const tw_frame* f, uint32_t o, const Tensor& value) {
  const uint32_t want = f->out[o]->dtype;
  if (value.dtype() != want) return InvalidArgument("what came is ", DTypeName(value.dtype()), " but must be ", DTypeName(want));
  // The sender may be another program, but plans rely on the shape that is declared here.
  const Shape& said = KernelFrame::Of(f)->run->node->shape(int32_t(o));
  if (!said.Admits(value.view().dims, value.rank())) {
    return InvalidArgument("what came has shape ", value.shape().text(), " but must fit ", said.text());
  }
  return FromC(f->host->tensor->give(f, o, value.get()));
}

// Marks the call's outputs as dead.
Status MarkDead(const tw_frame* f) {
  FrameCall* c = FrameCalls::CallOf(f);
  if (!c) return Internal("what came is dead, but nothing here waits for a branch");
  c->dead = true;
  return Status();
}

tw_status* Receive(const tw_frame* f, const char* key, uint64_t len, uint32_t o) {
  return Guard([&]() -> Status {
    ASSIGN_OR_RETURN(Rendezvous * r, Of(f, {key, size_t(len)}));
    r->Receive({key, size_t(len)}, IterationOf(f), [f, o](Status s, Tensor value) {
      if (s.ok()) s = value ? Give(f, o, value) : MarkDead(f);
      AsyncCalls::Get().Complete(f->token, std::move(s));
    });
    return Status();
  });
}

}  // namespace

const tw_rendezvous_api* RendezvousSet() {
  static constexpr tw_rendezvous_api kSet = {sizeof(tw_rendezvous_api), 0, Send, Receive};
  return &kSet;
}

}  // namespace thalweg
