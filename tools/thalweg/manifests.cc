#include "manifests.h"

#include <filesystem>
#include <stdexcept>
#include <utility>

#include "command.h"
#include "framework/json/json.h"
#include "handles.h"
#include "json_value.h"
#include "yaml.h"

namespace thalweg::cli {
namespace {

constexpr const char* kFolder = "/etc/thalweg";  // of the credentials, in the container

constexpr const char* kFiles[] = {"ca.pem", "cert.pem", "key.pem", "token"};

constexpr int kReadable = 256;  // mode 0400: the transport refuses keys that others may read

std::string Base64(const std::string& bytes) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t word = 0;
    for (size_t k = 0; k < 3; ++k) word = word << 8 | (i + k < bytes.size() ? uint8_t(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k) text += i + k <= bytes.size() ? kDigits[word >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

std::string PodName(const PodOptions& o, const std::string& job, int64_t index) { return o.name + "-" + job + "-" + std::to_string(index); }

struct Member {
  std::string folder;  // of its credentials: "ps-0", "client-worker-0"
  std::string pod;
};

std::vector<Member> Members(const PodOptions& o) {
  std::vector<Member> all;
  for (int64_t i = 0; i < o.ps; ++i) all.push_back({"ps-" + std::to_string(i), PodName(o, "ps", i)});
  for (int64_t i = 0; i < o.workers; ++i) {
    all.push_back({"worker-" + std::to_string(i), PodName(o, "worker", i)});
    all.push_back({"client-worker-" + std::to_string(i), PodName(o, "worker", i)});
  }
  return all;
}

std::string SecretName(const PodOptions& o) { return o.name + "-credentials"; }

void Begin(Json* json, const char* version, const char* kind, const PodOptions& o, const std::string& name) {
  json->Object().Text("apiVersion", version).Text("kind", kind);
  json->Object("metadata").Text("name", name).Object("labels").Text("app", o.name).End().End();
}

std::string Service(const PodOptions& o) {
  Json json;
  Begin(&json, "v1", "Service", o, o.name);
  // Tasks find each other before they are ready, and probes ask a task by its own name.
  json.Object("spec").Text("clusterIP", "None").Bool("publishNotReadyAddresses", true).Object("selector").Text("app", o.name).End();
  json.Array("ports").Object().Text("name", "task").Number("port", kPodPort).End().End();
  return json.End().End().text();
}

std::string Secret(const PodOptions& o) {
  Json json;
  Begin(&json, "v1", "Secret", o, SecretName(o));
  json.Text("type", "Opaque").Object("data");
  for (const Member& m : Members(o)) {
    for (const char* file : kFiles) {
      const std::string path = o.credentials + "/" + m.folder + "/" + file;
      if (!std::filesystem::exists(path)) {
        throw std::runtime_error("'" + path + "' is missing: the folder was made for another cluster; give --credentials a new folder");
      }
      json.Text(m.folder + "." + file, Base64(ReadFile(path, kMostConfig)));
    }
  }
  return json.End().End().text();
}

// Asks the task for the status of its cluster, by the name that other tasks use. A probe's words
// know no variables, so a shell puts the index in.
void Probe(const PodOptions& o, const char* key, const std::string& job, int every, int failures, Json* json) {
  json->Object(key).Object("exec").Array("command").Text("", "sh").Text("", "-c");
  json->Text("", "exec thalweg cluster status --timeout 5 --target \"$HOSTNAME." + o.name + ":" + std::to_string(kPodPort) +
                     "\" --session-option \"credentials=" + kFolder + "/" + job + "-${HOSTNAME##*-}\"");
  json->End().End().Number("periodSeconds", every).Number("timeoutSeconds", 10).Number("failureThreshold", failures).End();
}

void Variable(const char* name, const char* field, Json* json) {
  json->Object().Text("name", name).Object("valueFrom").Object("fieldRef").Text("fieldPath", field).End().End().End();
}

void Container(const PodOptions& o, const std::string& job, Json* json) {
  const bool worker = job == "worker";
  json->Object().Text("name", "task").Text("image", o.image).Array("command");
  for (const char* word : {"thalweg", "launch", "--on", "k8s", "--task"}) json->Text("", word);
  json->Text("", job).Text("", "--credentials").Text("", kFolder);
  for (const std::string& word : o.options) json->Text("", word);
  if (worker) json->Text("", "--");
  for (const std::string& word : worker ? o.program : std::vector<std::string>()) json->Text("", word);
  std::string cluster = "{\"cluster\": " + PodCluster(o);
  cluster.back() = '}';  // in place of the end of line
  json->End().Array("env").Object().Text("name", "TF_CONFIG").Text("value", cluster).End();
  Variable("POD_NAME", "metadata.name", json);
  if (worker) Variable("JOB_COMPLETION_INDEX", "metadata.annotations['batch.kubernetes.io/job-completion-index']", json);
  json->End().Array("ports").Object().Text("name", "task").Number("containerPort", kPodPort).End().End();
  Probe(o, "startupProbe", job, 2, 60, json);
  Probe(o, "readinessProbe", job, 10, 3, json);
  Probe(o, "livenessProbe", job, 20, 3, json);
  // Each pod sees its own keys alone.
  json->Array("volumeMounts").Object().Text("name", "credentials").Text("mountPath", kFolder).Bool("readOnly", true);
  json->Text("subPathExpr", worker ? o.name + "-worker-$(JOB_COMPLETION_INDEX)" : "$(POD_NAME)").End();
  for (size_t i = 0; i < o.volumes.size(); ++i) {
    json->Object().Text("name", "volume-" + std::to_string(i)).Text("mountPath", o.volumes[i].substr(o.volumes[i].find('=') + 1)).End();
  }
  json->End().End();
}

void Template(const PodOptions& o, const std::string& job, Json* json) {
  json->Object("template").Object("metadata").Object("labels").Text("app", o.name).Text("job", job).End().End();
  json->Object("spec").Text("subdomain", o.name);
  if (job == "worker") json->Text("restartPolicy", "OnFailure");
  json->Bool("automountServiceAccountToken", false).Bool("enableServiceLinks", false).Array("containers");
  Container(o, job, json);
  json->End().Array("volumes").Object().Text("name", "credentials");
  json->Object("secret").Text("secretName", SecretName(o)).Number("defaultMode", kReadable).Array("items");
  for (const Member& m : Members(o)) {
    if (!m.pod.starts_with(o.name + "-" + job + "-")) continue;
    for (const char* file : kFiles) {
      json->Object().Text("key", m.folder + "." + file).Text("path", m.pod + "/" + m.folder + "/" + file).End();
    }
  }
  json->End().End().End();
  for (size_t i = 0; i < o.volumes.size(); ++i) {
    json->Object().Text("name", "volume-" + std::to_string(i)).Object("persistentVolumeClaim");
    json->Text("claimName", o.volumes[i].substr(0, o.volumes[i].find('='))).End().End();
  }
  json->End().End().End();
}

std::string Servers(const PodOptions& o) {
  Json json;
  Begin(&json, "apps/v1", "StatefulSet", o, o.name + "-ps");
  json.Object("spec").Text("serviceName", o.name).Number("replicas", o.ps).Text("podManagementPolicy", "Parallel");
  json.Object("selector").Object("matchLabels").Text("app", o.name).Text("job", "ps").End().End();
  Template(o, "ps", &json);
  return json.End().End().text();
}

std::string Workers(const PodOptions& o) {
  Json json;
  Begin(&json, "batch/v1", "Job", o, o.name + "-worker");
  json.Object("spec").Text("completionMode", "Indexed").Number("completions", o.workers).Number("parallelism", o.workers);
  json.Number("backoffLimit", o.restarts);
  Template(o, "worker", &json);
  return json.End().End().text();
}

void CheckVolumes(const PodOptions& o) {
  for (const std::string& volume : o.volumes) {
    const size_t equals = volume.find('=');
    if (equals == 0 || equals == volume.npos || volume[equals + 1] != '/') {
      throw UsageError{"--volume takes CLAIM=PATH with an absolute path, not '" + volume + "'"};
    }
  }
}

}  // namespace

std::string PodCluster(const PodOptions& o) {
  static constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz", kOthers = "abcdefghijklmnopqrstuvwxyz0123456789-";
  if (o.name.empty() || o.name.size() > 40 || kLetters.find(o.name[0]) == kLetters.npos || o.name.back() == '-' ||
      o.name.find_first_not_of(kOthers) != o.name.npos) {
    throw UsageError{
        "--name takes at most 40 lower-case letters, digits and dashes, of which the first is a letter and the last no dash, not '" +
        o.name + "'"};
  }
  Json json;
  json.Object();
  for (const auto& [job, n] : {std::pair("ps", o.ps), std::pair("worker", o.workers)}) {
    if (n == 0) continue;
    json.Array(job);
    for (int64_t i = 0; i < n; ++i) json.Text("", PodName(o, job, i) + "." + o.name + ":" + std::to_string(kPodPort));
    json.End();
  }
  return json.End().text();
}

std::vector<std::string> PodClients(const PodOptions& o) {
  std::vector<std::string> all;
  for (int64_t i = 0; i < o.workers; ++i) all.push_back("worker-" + std::to_string(i));
  return all;
}

std::string Manifests(const PodOptions& o) {
  CheckVolumes(o);
  std::vector<std::string> objects = {Service(o)};
  if (!o.credentials.empty()) objects.push_back(Secret(o));
  if (o.ps > 0) objects.push_back(Servers(o));
  objects.push_back(Workers(o));
  std::string text;
  if (o.credentials.empty()) text += "# The Secret '" + SecretName(o) + "' is printed too with --credentials DIR.\n";
  for (const std::string& object : objects) text += "---\n" + YamlText(JsonValue::Parse(object));
  return text;
}

}  // namespace thalweg::cli
