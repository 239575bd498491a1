#include "distributed/cluster_status.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "distributed/clock.h"
#include "distributed/cluster.h"
#include "distributed/messenger.h"
#include "distributed/server.h"
#include "distributed/task_status.h"
#include "framework/json/json.h"

namespace thalweg::distributed {
namespace {

constexpr uint64_t kLargest = 64 << 20;

// Asks any number of tasks at once, and waits for all of them.
class Asker {
 public:
  struct Answer {
    Status status;
    std::string body;
  };
  Asker(Messenger* messenger, int64_t deadline) : messenger_(messenger), deadline_(deadline) {}

  std::vector<Answer> Ask(const std::vector<Destination>& all, Method method, const WireWriter& fields) {
    const auto open = std::make_shared<Open>();
    open->answers.resize(all.size());
    open->left = all.size();
    for (size_t i = 0; i < all.size(); ++i) {
      Call call;
      call.to = all[i];
      call.method = method;
      call.fields = fields;
      call.deadline = deadline_;
      call.done = [open, i](const Reply& reply) {
        std::lock_guard lock(open->mu);
        open->answers[i] = {reply.outcome.status, std::string(reply.body)};
        if (--open->left == 0) open->changed.notify_all();
      };
      messenger_->Start(std::move(call));
    }
    std::unique_lock lock(open->mu);
    open->changed.wait(lock, [&] { return open->left == 0; });
    return std::move(open->answers);
  }

 private:
  struct Open {  // held by the calls, too
    std::mutex mu;
    std::condition_variable changed;
    size_t left = 0;
    std::vector<Answer> answers;
  };
  Messenger* const messenger_;
  const int64_t deadline_;
};

void PutRun(const RunStatus& r, Json* to) {
  to->Object().Text("session", std::to_string(r.session)).Number("step", int64_t(r.step));
  to->Real("age_s", double(r.age) * 1e-9).Real("idle_s", double(r.idle) * 1e-9).Number("waits", r.n_waits).Array("waits_for");
  for (const auto& [key, from] : r.waits) to->Object().Text("value", key).Text("from", from).End();
  to->End().End();
}

void PutTask(const TaskStatus& t, Json* to) {
  to->Text("incarnation", std::to_string(t.hello.incarnation)).Text("version", t.hello.version);
  to->Real("age_s", double(t.age) * 1e-9).Number("memory_bytes", int64_t(t.memory));
  to->Number("steps", int64_t(t.hello.steps)).Number("sessions", int64_t(t.hello.sessions)).Array("devices");
  for (const DeviceStatus& d : t.devices) {
    to->Object().Text("name", d.name).Number("used_bytes", int64_t(d.used)).Number("limit_bytes", int64_t(d.limit)).End();
  }
  to->End().Array("received");
  for (const PeerStatus& p : t.received) {
    to->Object().Text("from", p.title).Number("values", int64_t(p.values)).Number("bytes", int64_t(p.bytes)).End();
  }
  to->End().Array("running");
  for (const RunStatus& r : t.runs) PutRun(r, to);
  to->End();
}

std::string ToJson(const ClusterSpec& cluster, const std::vector<Asker::Answer>& answers) {
  Json json;
  json.Object().Array("tasks");
  for (size_t i = 0; i < answers.size(); ++i) {
    const ClusterSpec::Task& task = cluster.tasks()[i];
    json.Object().Text("job", task.id.job).Number("task", task.id.index).Text("address", task.address.text());
    const Status& s = answers[i].status;
    auto status = s.ok() ? TaskStatus::Get(answers[i].body) : StatusOr<TaskStatus>(s);
    if (status.ok() && TaskId{status->hello.job, status->hello.index} != task.id) {
      status = FailedPrecondition(task.title(), ": there is ", TaskId{status->hello.job, status->hello.index}.text(),
                                  "; do all processes have the same cluster?");
    }
    json.Text("error", status.ok() ? std::string_view() : Message(status.status()));
    if (status.ok()) PutTask(*status, &json);
    json.End();
  }
  return json.End().End().text();
}

}  // namespace

StatusOr<std::string> ClusterStatus(const std::shared_ptr<Runtime>& runtime, const SessionOptions& options, int64_t timeout) {
  ASSIGN_OR_RETURN(const Address target, ParseAddress(options.target));
  ASSIGN_OR_RETURN(auto transport, FindTransport(runtime.get(), target, options.insecure));
  SystemClock clock;
  auto nobody = [](std::shared_ptr<Incoming> request) {
    request->Fail({Unimplemented("a client is asked for nothing; its address is no server's"), false});
  };
  const EndpointOptions endpoint = {"", options.credentials, kLargest, options.insecure, true};
  ASSIGN_OR_RETURN(auto messenger, Messenger::Create(std::move(transport), endpoint, &clock, nobody));
  // In this order, whatever becomes of the questions: the clock's thread may be in the messenger until it has stopped.
  struct End {
    Messenger* messenger;
    Clock* clock;
    ~End() {
      messenger->Close();
      clock->Stop();
    }
  } const end{messenger.get(), &clock};
  Asker asker(messenger.get(), clock.Now() + timeout);
  const auto first = asker.Ask({{target.rest, StrCat("target ", target.text()), 0}}, Method::kHello, WireWriter());
  RETURN_IF_ERROR(first[0].status);
  ASSIGN_OR_RETURN(const ClusterSpec cluster, ClusterSpec::Parse(first[0].body));
  std::vector<Destination> all;
  for (const ClusterSpec::Task& t : cluster.tasks()) all.push_back({t.address.rest, t.title(), 0});
  WireWriter fields;
  SessionRequest{0}.Put(&fields);
  return ToJson(cluster, asker.Ask(all, Method::kStatus, fields));
}

}  // namespace thalweg::distributed
