// Kubernetes manifests of a cluster: a headless Service, which gives each task a stable name; a
// StatefulSet of parameter servers; an indexed Job of workers with their programs; a Secret with
// the credentials of every member. Threads: any.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace thalweg::cli {

struct PodOptions {
  std::string name, image;  // of all objects: a DNS label; of the container
  int64_t workers = 1, ps = 0;
  int64_t restarts = 0;              // of workers that fail
  std::string credentials;           // folder of thalweg cluster init; "": the Secret is not printed
  std::vector<std::string> volumes;  // CLAIM=PATH: a persistent volume that all pods mount there
  std::vector<std::string> options;  // of thalweg worker
  std::vector<std::string> program;  // and its arguments
};

constexpr int kPodPort = 7000;

// Returns the cluster, {"ps": ["NAME-ps-0.NAME:7000"], "worker": [...]}.
// Throws UsageError for a name that Kubernetes refuses.
std::string PodCluster(const PodOptions& options);

// Returns the names of the clients that need credentials: one for each worker's program.
std::vector<std::string> PodClients(const PodOptions& options);

// Returns YAML, one document for each object. Throws UsageError for a volume without sense;
// std::runtime_error if a member has no credentials in the folder.
std::string Manifests(const PodOptions& options);

}  // namespace thalweg::cli
