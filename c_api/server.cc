#include "thalweg/server.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "c_api/handles.h"
#include "c_api/option_list.h"
#include "c_api/session_options.h"
#include "c_api/shim.h"
#include "distributed/cluster_reset.h"
#include "distributed/cluster_status.h"
#include "distributed/server.h"
#include "framework/base/origin.h"

using thalweg::Enter;
using thalweg::FailedPrecondition;
using thalweg::Status;
using thalweg::distributed::Server;

struct tw_server {
  const thalweg::Origin origin;  // marks a forked child, where the server must not be touched because its threads do not exist
  std::shared_ptr<thalweg::Runtime> runtime;
  thalweg::distributed::ClusterSpec cluster;
  thalweg::distributed::TaskId task;
  thalweg::distributed::ServerOptions options;
  std::mutex mu;
  std::condition_variable changed;
  std::unique_ptr<Server> server;  // NULL: not started, or stopped
  bool started = false, stopped = false;
};

static Status CheckOrigin(const tw_server& server) {
  return server.origin.here() ? Status() : FailedPrecondition("the server is another process's, which this one was forked from");
}

tw_status* tw_server_create(tw_runtime* runtime, const char* cluster, const char* job, uint32_t task, const char* const* options,
                            uint32_t n_options, tw_server** out_server) {
  NEED(cluster);
  NEED(out_server);
  NEED_ARRAY(options, n_options);
  *out_server = nullptr;
  return Enter([&]() -> Status {
    auto s = std::make_unique<tw_server>();
    ASSIGN_OR_RETURN(s->runtime, thalweg::RuntimeOf(runtime));
    ASSIGN_OR_RETURN(auto config, thalweg::distributed::ParseTaskConfig(cluster));
    if (!job && !config.task) return thalweg::InvalidArgument("cluster: there is no \"task\", so give the job and task");
    s->task = job ? thalweg::distributed::TaskId{job, int32_t(task)} : *config.task;
    s->cluster = std::move(config.cluster);
    if (!s->cluster.Find(s->task)) {
      return thalweg::NotFound("server: the cluster has no ", s->task.text(), "; its tasks: ", s->cluster.names());
    }
    RETURN_IF_ERROR(thalweg::SetOptions(options, n_options, thalweg::distributed::SetServerOption, &s->options));
    *out_server = s.release();
    return Status();
  });
}

const tw_option* tw_server_option(uint32_t i) {
  const auto rows = thalweg::distributed::ServerOptionRows();
  return i < rows.size() ? &rows[i].about : nullptr;
}

tw_status* tw_server_start(tw_server* server) {
  NEED(server);
  return Enter([&]() -> Status {
    RETURN_IF_ERROR(CheckOrigin(*server));
    std::lock_guard lock(server->mu);
    if (server->started || server->stopped)
      return FailedPrecondition("the server was ", server->stopped ? "stopped" : "started", " before");
    ASSIGN_OR_RETURN(server->server, Server::Start(server->runtime, server->cluster, server->task, server->options));
    server->started = true;
    return Status();
  });
}

tw_status* tw_server_address(tw_server* server, tw_buffer** out_address) {
  NEED(server);
  NEED(out_address);
  *out_address = nullptr;
  return Enter([&]() -> Status {
    RETURN_IF_ERROR(CheckOrigin(*server));
    std::lock_guard lock(server->mu);
    if (!server->server) return FailedPrecondition("the server is not started");
    *out_address = thalweg::MakeBuffer(server->server->address());
    return Status();
  });
}

tw_status* tw_server_stop(tw_server* server) {
  NEED(server);
  if (!server->origin.here()) return nullptr;
  return Enter([&]() -> Status {
    std::lock_guard lock(server->mu);
    server->server.reset();
    server->stopped = true;
    server->changed.notify_all();
    return Status();
  });
}

tw_status* tw_server_join(tw_server* server, int64_t timeout_ns) {
  NEED(server);
  return Enter([&]() -> Status {
    if (timeout_ns < 0) return thalweg::InvalidArgument("timeout_ns is ", timeout_ns, "; use 0 to wait for ever");
    RETURN_IF_ERROR(CheckOrigin(*server));
    std::unique_lock lock(server->mu);
    auto over = [&] { return server->stopped; };
    if (timeout_ns == 0) return server->changed.wait(lock, over), Status();
    const std::chrono::nanoseconds wait(std::min(timeout_ns, int64_t{1} << 62));  // now plus this fits into 64 bits
    if (server->changed.wait_for(lock, wait, over)) return Status();
    return thalweg::Error(absl::StatusCode::kDeadlineExceeded, "the server runs on");
  });
}

void tw_server_destroy(tw_server* server) {
  if (!server || !server->origin.here()) return;
  (void)thalweg::FromC(tw_server_stop(server));  // there is no caller to report to
  delete server;
}

// Converts the options of a call that asks a cluster without a session.
static Status ToQuestion(const char* const* options, uint32_t n_options, int64_t* timeout_ns, thalweg::SessionOptions* out) {
  constexpr int64_t kPatience = 5'000'000'000;
  RETURN_IF_ERROR(thalweg::ReadSessionOptions(options, n_options, out));
  if (out->target.empty()) return thalweg::InvalidArgument("cluster: option 'target' is missing; give the address of one of its tasks");
  if (*timeout_ns < 0) return thalweg::InvalidArgument("timeout_ns is ", *timeout_ns, "; use 0 for 5 seconds");
  if (*timeout_ns == 0) *timeout_ns = kPatience;
  return Status();
}

tw_status* tw_cluster_status(tw_runtime* runtime, const char* const* options, uint32_t n_options, int64_t timeout_ns,
                             tw_buffer** out_json) {
  NEED(out_json);
  NEED_ARRAY(options, n_options);
  *out_json = nullptr;
  return Enter([&]() -> Status {
    ASSIGN_OR_RETURN(const auto of, thalweg::RuntimeOf(runtime));
    thalweg::SessionOptions all;
    RETURN_IF_ERROR(ToQuestion(options, n_options, &timeout_ns, &all));
    ASSIGN_OR_RETURN(std::string json, thalweg::distributed::ClusterStatus(of, all, timeout_ns));
    *out_json = thalweg::MakeBuffer(std::move(json));
    return Status();
  });
}

tw_status* tw_cluster_reset(tw_runtime* runtime, const char* const* options, uint32_t n_options, const char* container, int64_t timeout_ns,
                            uint64_t* out_count) {
  NEED_ARRAY(options, n_options);
  if (out_count) *out_count = 0;
  return Enter([&]() -> Status {
    ASSIGN_OR_RETURN(const auto of, thalweg::RuntimeOf(runtime));
    thalweg::SessionOptions all;
    RETURN_IF_ERROR(ToQuestion(options, n_options, &timeout_ns, &all));
    ASSIGN_OR_RETURN(const uint64_t count, thalweg::distributed::ClusterReset(of, all, thalweg::TextOrEmpty(container), timeout_ns));
    if (out_count) *out_count = count;
    return Status();
  });
}
