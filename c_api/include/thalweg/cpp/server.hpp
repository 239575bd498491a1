/* tw::Server, tw::cluster_status, tw::cluster_reset and tw::Spread: tasks of a cluster, and
 * placement of variables on them (server.h, spread.h). Threads: as the C objects. Since 0.1. */
#ifndef THALWEG_CPP_SERVER_HPP
#define THALWEG_CPP_SERVER_HPP
#include <cstdint>
#include <string>
#include <vector>

#include "thalweg/cpp/graph.hpp"
#include "thalweg/cpp/handle.hpp"
#include "thalweg/server.h"
#include "thalweg/spread.h"

namespace tw {

/* A task of a cluster in this process, listening; see server.h.
 *   tw::Server server(runtime, R"({"ps": ["unix:ps0"]})", "ps", 0);
 *   tw::Session session(graph, {("target=" + server.address()).c_str()}); */
class Server : public Owned<tw_server, tw_server_destroy> {
 public:
  Server(const Runtime& runtime, const std::string& cluster, const char* job, uint32_t task, const std::vector<const char*>& options = {}) {
    tw_server* made = nullptr;
    raise(tw_server_create(runtime.c(), cluster.c_str(), job, task, options.data(), uint32_t(options.size()), &made));
    own(made);
    raise(tw_server_start(made));
  }
  std::string address() const {
    tw_buffer* text = nullptr;
    raise(tw_server_address(c(), &text));
    return take_text(text);
  }
  void stop() { raise(tw_server_stop(c())); }
  void join(int64_t timeout_ns = 0) { raise(tw_server_join(c(), timeout_ns)); }
};

/* Returns the status of the tasks of a cluster as JSON (server.h). options: of a session, `target`
 * among them. */
inline std::string cluster_status(const Runtime& runtime, const std::vector<const char*>& options, int64_t timeout_ns = 0) {
  tw_buffer* json = nullptr;
  raise(tw_cluster_status(runtime.c(), options.data(), uint32_t(options.size()), timeout_ns, &json));
  return take_text(json);
}

/* Empties a container of state on every task of a cluster; "" means `localhost`. Returns how many
 * resources it held. options: as above. */
inline uint64_t cluster_reset(const Runtime& runtime, const std::vector<const char*>& options, const std::string& container = "",
                              int64_t timeout_ns = 0) {
  uint64_t count = 0;
  raise(tw_cluster_reset(runtime.c(), options.data(), uint32_t(options.size()), container.c_str(), timeout_ns, &count));
  return count;
}

/* Chooses tasks of a job for variables; see spread.h. */
class Spread : public Owned<tw_spread, tw_spread_destroy> {
 public:
  Spread(const std::string& job, uint32_t tasks, uint32_t how = TW_SPREAD_IN_TURN) {
    tw_spread* made = nullptr;
    raise(tw_spread_create(job.c_str(), tasks, how, &made));
    own(made);
  }
  std::string next(uint64_t bytes) { return tw_spread_next(c(), bytes); }
  uint64_t bytes(uint32_t task) const { return tw_spread_bytes(c(), task); }
};

}  // namespace tw
#endif
