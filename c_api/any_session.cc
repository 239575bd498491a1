#include "c_api/any_session.h"

#include "framework/runtime/devices/device.h"
#include "framework/runtime/runtime.h"
#include "framework/runtime/runtime_of.h"

namespace thalweg {

// A session of a cluster takes its feeds from host memory and leaves its fetches there.
static Status CheckOnHost(const CallableSpec& spec, const Tensor* feeds) {
  for (const auto* devices : {&spec.feed_devices, &spec.fetch_devices}) {
    for (const Device* d : *devices) {
      if (d) return Unimplemented("a session with a target leaves nothing on ", d->name(), " yet; feed and fetch in host memory");
    }
  }
  for (size_t i = 0; i < spec.feeds.size(); ++i) {
    if (feeds[i] && !LiesOnHost(*feeds[i].get())) {
      return InvalidArgument("the feed of '", spec.feeds[i].text(), "' lies on a device; copy it with tw_tensor_to_host first");
    }
  }
  return Status();
}

Status AnySession::Run(const CallableSpec& spec, const Tensor* feeds, const RunOptions& options, Tensor* fetches) const {
  if (local) return local->Run(spec, feeds, options, fetches);
  RETURN_IF_ERROR(CheckOnHost(spec, feeds));
  return cluster->Run(spec, feeds, options, fetches);
}

void AnySession::Start(const CallableSpec& spec, const Tensor* feeds, const RunOptions& options, Tensor* fetches, StepDone done) const {
  if (local) return local->Start(spec, feeds, options, fetches, std::move(done));
  if (Status s = CheckOnHost(spec, feeds); !s.ok()) return done(std::move(s));
  // The callback of the program may block and may end the session, so it must not run on a thread
  // of the transport, which must not keep a reference to the session either.
  ThreadPool& pool = RuntimeOf(cluster->graph()).pool();
  cluster->Start(spec, feeds, options, fetches, [&pool, done = std::move(done)](Status s) mutable {
    pool.Blocking([done = std::move(done), s = std::move(s)] { done(s); });
  });
}

StatusOr<std::unique_ptr<PartialRun>> AnySession::StartInParts(const CallableSpec& whole) const {
  if (local) return PartialRun::Create(local, whole);
  PartialRun::Steps steps{cluster, &cluster->graph(), [c = cluster.get()](const CallableSpec& spec) { return CheckSpec(c->graph(), spec); },
                          [any = *this](const CallableSpec& spec, const Tensor* feeds, const RunOptions& options, Tensor* fetches) {
                            return any.Run(spec, feeds, options, fetches);
                          }};
  return PartialRun::Create(std::move(steps), whole);
}

Status AnySession::NeedLocal(std::string_view what) const {
  return local ? Status()
               : Unimplemented("a session with a target or a sandbox has no ", what, " yet; leave out the options 'target' and 'sandbox'");
}

}  // namespace thalweg
