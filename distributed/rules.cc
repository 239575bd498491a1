#include "distributed/rules.h"

#include "thalweg/plugin/transport.h"

namespace thalweg::distributed {
namespace {

// A program that trains may itself be a task, so tasks may call what clients may call. Values of
// steps go only from task to task.
struct Rule {
  Method method;
  const char* name;
  bool clients;
};
constexpr Rule kRules[] = {
    {Method::kHello, "Hello", true},           {Method::kOpen, "Open", true},     {Method::kWatch, "Watch", true},
    {Method::kRegister, "Register", true},     {Method::kRun, "Run", true},       {Method::kReceive, "Receive", false},
    {Method::kAbort, "Abort", true},           {Method::kForget, "Forget", true}, {Method::kStatus, "Status", true},
    {Method::kWatchedRun, "WatchedRun", true}, {Method::kPush, "Push", false},    {Method::kReset, "Reset", true}};

}  // namespace

Status CheckRole(Method method, uint32_t role) {
  for (const Rule& rule : kRules) {
    if (rule.method != method) continue;
    if (role != TW_PEER_CLIENT || rule.clients) return Status();
    return Error(absl::StatusCode::kPermissionDenied, rule.name,
                 " is for the tasks of the cluster, and this peer has proven to be a client");
  }
  return InvalidArgument("method ", int(method), " is none");
}

}  // namespace thalweg::distributed
