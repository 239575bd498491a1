// Credentials of the tasks and clients of a cluster, made with lib/thalweg/thalweg-credentials.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace thalweg::cli {

// cluster: JSON, as `thalweg worker --cluster` takes it. Makes folder/JOB-TASK for each task and
// folder/client-NAME for each client; only the owner can read them. Throws std::runtime_error.
void InitCluster(const std::string& cluster, const std::string& folder, const std::vector<std::string>& clients, int64_t days);

// Revokes the certificates of `what` ("client/ann", "task/ps/0", or "serial=HEX") in all folders
// beneath `folder`. Throws std::runtime_error.
void RevokeMember(const std::string& folder, const std::string& what);

}  // namespace thalweg::cli
