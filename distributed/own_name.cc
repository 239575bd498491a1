#include "distributed/own_name.h"

#include <future>
#include <random>
#include <utility>

#include "framework/base/shown.h"

namespace thalweg::distributed {
namespace {

constexpr int64_t kPatience = 10'000'000'000;  // nanoseconds; an address that belongs to another process may not answer

std::string NewSecret() {
  std::random_device device;
  WireWriter w;
  for (int i = 0; i < 4; ++i) w.Number(uint32_t{device()});
  return w.Take();
}

}  // namespace

OwnName::OwnName() : secret_(NewSecret()) {}

void OwnName::Heard(std::string_view fields, const Incoming& request) {
  if (fields.size() != sizeof kTakesPushes + secret_.size() || fields.substr(sizeof kTakesPushes) != secret_) return;
  std::lock_guard lock(mu_);
  name_ = request.role() == TW_PEER_ANY ? "" : request.peer();
}

Status OwnName::Check(std::shared_ptr<const TransportRole> transport, const EndpointOptions& options, const TaskId& task,
                      const Destination& self, Clock* clock, std::string* warning) {
  warning->clear();
  EndpointOptions as_others = options;
  as_others.address = "";
  as_others.calls_only = true;
  ASSIGN_OR_RETURN(const auto messenger, Messenger::Create(std::move(transport), as_others, clock, [](std::shared_ptr<Incoming>) {}));
  std::promise<Status> answered;
  Call call;
  call.to = self;
  call.fields.Number(kTakesPushes);
  call.fields.Raw(secret_.data(), secret_.size());
  call.deadline = clock->Now() + kPatience;
  call.done = [&](const Reply& reply) { answered.set_value(reply.outcome.status); };
  messenger->Start(std::move(call));
  const Status s = answered.get_future().get();
  messenger->Close();
  if (!s.ok()) {
    *warning = StrCat("cannot be reached by its own credentials, and maybe not by others: ", Message(s));
    return Status();
  }
  std::lock_guard lock(mu_);
  const std::string expected = StrCat("task/", task.job, "/", task.index);
  if (name_.empty() || name_ == expected) return Status();
  return FailedPrecondition("the credentials '", options.credential, "' are those of ", Shown(name_), ", and this is ", expected,
                            "; give each task its own folder");
}

}  // namespace thalweg::distributed
