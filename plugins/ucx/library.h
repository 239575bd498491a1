// UCX, opened while running. The plugin is not linked against it, because loading UCX has effects on
// a whole process: it handles signals and prints its log to standard output. So a process that only
// looks at its plugins does not load UCX, and one that uses it is protected from both effects.
// Threads: any.
#pragma once
#include <string>

#include <ucp/api/ucp.h>

namespace thalweg::ucx_transport {

// The functions that the plugin uses, each under its own name.
struct Library {
#define THALWEG_UCX_FUNCTIONS(X)    \
  X(ucp_init_version)               \
  X(ucp_cleanup)                    \
  X(ucp_config_read)                \
  X(ucp_config_modify)              \
  X(ucp_config_release)             \
  X(ucp_worker_create)              \
  X(ucp_worker_destroy)             \
  X(ucp_worker_get_address)         \
  X(ucp_worker_release_address)     \
  X(ucp_worker_get_efd)             \
  X(ucp_worker_arm)                 \
  X(ucp_worker_progress)            \
  X(ucp_worker_set_am_recv_handler) \
  X(ucp_ep_create)                  \
  X(ucp_ep_close_nbx)               \
  X(ucp_am_send_nbx)                \
  X(ucp_am_recv_data_nbx)           \
  X(ucp_am_data_release)            \
  X(ucp_request_check_status)       \
  X(ucp_request_free)               \
  X(ucs_status_string)
#define THALWEG_UCX_DECLARE(name) decltype(&::name) name = nullptr;
  THALWEG_UCX_FUNCTIONS(THALWEG_UCX_DECLARE)
#undef THALWEG_UCX_DECLARE
};

// Returns UCX, which stays loaded; NULL if it cannot be loaded, with the reason in *why.
const Library* LoadUcx(std::string* why);

// Returns the last error that UCX logged on this thread since the last call, or empty.
std::string TakeLastError();

}  // namespace thalweg::ucx_transport
