#include "distributed/cluster_status.h"

#include "distributed/ask_tasks.h"
#include "distributed/task_status.h"
#include "framework/json/json.h"

namespace thalweg::distributed {
namespace {

void PutRun(const RunStatus& r, Json* to) {
  to->Object().Text("session", std::to_string(r.session)).Number("step", int64_t(r.step));
  to->Real("age_s", double(r.age) * 1e-9).Real("idle_s", double(r.idle) * 1e-9).Number("waits", r.n_waits).Array("waits_for");
  for (const auto& [key, from] : r.waits) to->Object().Text("value", key).Text("from", from).End();
  to->End().End();
}

// sandbox: empty if it has none.
void PutTask(const TaskStatus& t, std::string_view sandbox, Json* to) {
  to->Text("incarnation", std::to_string(t.hello.incarnation)).Text("version", t.hello.version);
  to->Real("age_s", double(t.age) * 1e-9).Number("memory_bytes", int64_t(t.memory));
  to->Number("steps", int64_t(t.hello.steps)).Number("sessions", int64_t(t.hello.sessions)).Text("sandbox", sandbox);
  to->Array("devices");
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

std::string ToJson(const TaskAnswers& all) {
  Json json;
  json.Object().Array("tasks");
  for (size_t i = 0; i < all.answers.size(); ++i) {
    const ClusterSpec::Task& task = all.cluster.tasks()[i];
    json.Object().Text("job", task.id.job).Number("task", task.id.index).Text("address", task.address.text());
    const Status& s = all.answers[i].status;
    auto status = s.ok() ? TaskStatus::Get(all.answers[i].body) : StatusOr<TaskStatus>(s);
    if (status.ok() && TaskId{status->hello.job, status->hello.index} != task.id) {
      status = FailedPrecondition(task.title(), ": there is ", TaskId{status->hello.job, status->hello.index}.text(),
                                  "; do all processes have the same cluster?");
    }
    json.Text("error", status.ok() ? std::string_view() : Message(status.status()));
    WireReader fields(all.answers[i].fields);  // an older task sends no fields
    const std::string_view sandbox = all.answers[i].fields.empty() ? std::string_view() : fields.Text();
    if (status.ok()) PutTask(*status, fields.ok() ? sandbox : std::string_view(), &json);
    json.End();
  }
  return json.End().End().text();
}

}  // namespace

StatusOr<std::string> ClusterStatus(const std::shared_ptr<Runtime>& runtime, const SessionOptions& options, int64_t timeout) {
  WireWriter fields;
  SessionRequest{0}.Put(&fields);
  ASSIGN_OR_RETURN(const TaskAnswers all, AskTasks(runtime, options, timeout, Method::kStatus, fields));
  return ToJson(all);
}

}  // namespace thalweg::distributed
