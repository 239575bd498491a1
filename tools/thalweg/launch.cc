// thalweg launch: starts a cluster and a program for each of its workers, on this machine or by an
// engine that starts processes on others.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "cluster_init.h"
#include "command.h"
#include "engine.h"
#include "handles.h"
#include "json.h"
#include "json_value.h"
#include "manifests.h"
#include "meeting.h"
#include "own_host.h"
#include "own_program.h"
#include "supervisor.h"

namespace thalweg::cli {
namespace {

constexpr int kEnginesPatience = 30'000;  // milliseconds for an engine to end its processes, which take up to 5 s themselves

// Options that `thalweg worker` has too.
constexpr const char* kServerOptions[] = {"--plugin", "--option", "--threads", "--server-option", "--allow"};

int64_t Servers(const Args& args) { return args.integer("--ps", 0, 0); }
int64_t Workers(const Args& args) { return args.integer("-n", 1, 1); }
std::string Scheme(const Args& args) { return args.get("--scheme", "grpc"); }

std::vector<std::string> ServerOptions(const Args& args) {
  std::vector<std::string> words;
  for (const char* option : kServerOptions) {
    for (const std::string& value : args.all(option)) words.insert(words.end(), {option, value});
  }
  return words;
}

const std::vector<std::string>& Program(const Args& args) {
  if (args.positional().empty()) throw UsageError{"missing argument: -- PROGRAM [ARGUMENTS]"};
  return args.positional();
}

// Returns TF_CONFIG of a task.
std::string Config(const JsonValue& cluster, const TaskName& task) {
  Json json;
  json.Object().Raw("cluster", JsonText(cluster)).Object("task").Text("type", task.job).Number("index", task.index).End().End();
  return json.text();
}

// Throws std::runtime_error if the cluster has no such task.
std::string AddressOf(const JsonValue& cluster, const TaskName& task) {
  const JsonValue& tasks = cluster[task.job];
  for (size_t i = 0; i < tasks.items().size(); ++i) {
    const std::string index = tasks.keys().empty() ? std::to_string(i) : tasks.keys()[i];
    if (index == std::to_string(task.index)) return tasks.items()[i].text();
  }
  throw std::runtime_error("the cluster has no task '" + task.text() + "'");
}

// credentials: the folder of the task's credentials; "" for none.
Process Server(const Args& args, const OwnProgram& own, const JsonValue& cluster, const TaskName& task, const std::string& credentials) {
  Process p{task.text(), {own.path(), "worker"}, true, true, {"TF_CONFIG=" + Config(cluster, task)}};
  for (const std::string& word : ServerOptions(args)) p.words.push_back(word);
  if (!credentials.empty()) p.words.insert(p.words.end(), {"--credentials", credentials});
  return p;
}

// The processes that take part in collective operations, and the folder in which they find each other;
// empty: there is none.
struct Collectives {
  std::string store;
  int64_t members = 1;
  bool hosts = false;     // they are on several hosts
  std::string interface;  // the network interface between the hosts; empty: the one of the default route
};

// Members on several hosts need an engine that goes over the network, unless the user has chosen one.
std::vector<std::string> EngineVariables(const Collectives& collectives) {
  std::vector<std::string> variables;
  if (!collectives.hosts) return variables;
  const char* engine = OwnVariable("THALWEG_COLLECTIVE_ENGINE");
  if (!engine || !*engine) variables.emplace_back("THALWEG_COLLECTIVE_ENGINE=levels");
  if (collectives.interface.empty()) return variables;
  const char* options = OwnVariable("THALWEG_OPTIONS");
  variables.push_back("THALWEG_OPTIONS=" + (options && *options ? std::string(options) + ";" : "") +
                      "plugin.org.thalweg.ring.interface=" + collectives.interface);
  return variables;
}

Process Client(const Args& args, const JsonValue& cluster, int64_t number, int64_t worker, const std::string& credentials,
               const Collectives& collectives) {
  const TaskName task{"worker", worker};
  Process client = {
      "client/" + std::to_string(number),
      Program(args),
      false,
      false,
      {"TF_CONFIG=" + Config(cluster, task), "THALWEG_TARGET=" + AddressOf(cluster, task),
       "THALWEG_CREDENTIALS" + (credentials.empty() ? "" : "=" + credentials),
       "THALWEG_COLLECTIVE_STORE" + (collectives.store.empty() ? "" : "=" + collectives.store),
       "THALWEG_COLLECTIVE_RANK=" + std::to_string(number), "THALWEG_COLLECTIVE_MEMBERS=" + std::to_string(collectives.members)}};
  for (std::string& variable : EngineVariables(collectives)) client.environment.push_back(std::move(variable));
  return client;
}

// ---- On this machine ----

std::string LocalCluster(const Args& args) {
  const int64_t n_ps = Servers(args), n = n_ps + Workers(args);
  const bool ports = Scheme(args) == "grpc";
  const std::vector<int> free = ports ? FreePorts(n) : std::vector<int>();
  Json json;
  json.Object();
  for (const auto& [job, first, last] : {std::tuple("ps", int64_t{0}, n_ps), std::tuple("worker", n_ps, n)}) {
    if (first == last) continue;
    json.Array(job);
    for (int64_t i = first; i < last; ++i) {
      json.Text("", ports ? "127.0.0.1:" + std::to_string(free[size_t(i)])
                          : Scheme(args) + ":thalweg-" + std::to_string(getpid()) + "-" + job + "-" + std::to_string(i - first));
    }
    json.End();
  }
  return json.End().text();
}

// A folder for one start, which ends with it. It may hold the keys of the cluster.
class SharedFolder {
 public:
  explicit SharedFolder(const std::string& parent) {
    std::error_code error;
    path_ = (std::filesystem::absolute(parent, error) / ".thalweg-XXXXXX").string();
    if (!mkdtemp(path_.data())) {
      throw std::runtime_error("cannot make a folder in '" + parent + "' for the hosts to meet: " + std::strerror(errno) +
                               "; give --shared a folder that all hosts share");
    }
  }
  ~SharedFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
    if (error) std::fprintf(stderr, "thalweg launch: '%s' holds keys and cannot be removed: %s\n", path_.c_str(), error.message().c_str());
  }
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

int RunLocal(const Args& args) {
  const OwnProgram own;
  const JsonValue cluster = JsonValue::Parse(LocalCluster(args));
  std::vector<Process> all;
  for (int64_t i = 0; i < Servers(args); ++i) all.push_back(Server(args, own, cluster, {"ps", i}, ""));
  for (int64_t i = 0; i < Workers(args); ++i) all.push_back(Server(args, own, cluster, {"worker", i}, ""));
  const int64_t clients = args.integer("--clients", Workers(args), 1);
  const SharedFolder folder(std::filesystem::temp_directory_path().string());
  const Collectives collectives{folder.path(), clients, false, ""};
  for (int64_t i = 0; i < clients; ++i) all.push_back(Client(args, cluster, i, i % Workers(args), "", collectives));
  return Supervisor({args.integer("--restart", 0, 0)}).Run(all);
}

// ---- One process of those that mpirun or srun has started ----

// The meeting gives all tasks the loopback address if they are on one host. Only gRPC reaches several.
bool IsOnOneHost(const Args& args, const JsonValue& cluster) {
  return Scheme(args) != "grpc" || AddressOf(cluster, {"worker", 0}).starts_with("127.0.0.1:");
}

int RunRank(const Args& args) {
  const Rank rank = RankFrom(OwnVariable);
  Meeting::Config config{args.get("--meet"), rank, Servers(args), Workers(args), args.get("--interface"), Scheme(args)};
  config.seconds = args.number("--meet-timeout", 120, 0.001);
  Meeting meeting(config);
  const OwnProgram own;
  const JsonValue cluster = JsonValue::Parse(meeting.Join());
  const TaskName task = TaskOf(rank.rank, config.ps);
  const std::string member = task.job + "-" + std::to_string(task.index);
  std::vector<Process> all = {Server(args, own, cluster, task, meeting.Credentials(member))};
  const Collectives collectives{args.get("--meet") + "/collective", Workers(args), !IsOnOneHost(args, cluster), args.get("--interface")};
  if (task.job == "worker")
    all.push_back(Client(args, cluster, task.index, task.index, meeting.Credentials("client-" + member), collectives));
  Supervisor::Options options;
  options.restarts = args.integer("--restart", 0, 0);
  options.elsewhere = &meeting;
  return Supervisor(options).Run(all);
}

// ---- mpirun and srun ----

// Returns the command of the engine whose processes meet in `folder`.
std::vector<std::string> EngineCommand(const Args& args, const std::string& engine, const std::string& folder) {
  Start start{
      Servers(args) + Workers(args), args.all("--engine-option"), {OwnProgram().path(), "launch", "--on", engine, "--meet", folder}};
  for (const char* option : {"-n", "--ps", "--restart", "--scheme", "--interface", "--meet-timeout"}) {
    if (args.has(option)) start.words.insert(start.words.end(), {option, args.get(option)});
  }
  for (const std::string& word : ServerOptions(args)) start.words.push_back(word);
  start.words.emplace_back("--");
  for (const std::string& word : Program(args)) start.words.push_back(word);
  if (engine == "slurm") return SlurmCommand(start);
  return MpiCommand(start, OutputOf({"mpirun", "--version"}).value_or("").find("Open MPI") != std::string::npos, NeededVariables());
}

// Puts the Slurm job that this process is part of back into the queue, unless it was started again
// --requeue times.
void Requeue(const Args& args) {
  const int64_t most = args.integer("--requeue", 0, 0);
  const char* job = OwnVariable("SLURM_JOB_ID");
  const char* before = OwnVariable("SLURM_RESTART_COUNT");
  if (most == 0 || !job || (before && std::atoll(before) >= most)) return;
  std::fprintf(stderr, "thalweg launch: putting job %s back into the queue\n", job);
  if (!OutputOf({"scontrol", "requeue", job})) std::fprintf(stderr, "thalweg launch: `scontrol requeue %s` failed\n", job);
}

int RunEngine(const Args& args, const std::string& engine) {
  if (args.has("--print")) {
    std::printf("%s\n", ShellLine(EngineCommand(args, engine, "FOLDER")).c_str());
    return kGood;
  }
  const std::string command = engine == "slurm" ? "srun" : "mpirun";
  if (!FindProgram(command)) {
    throw std::runtime_error("--on " + engine + " needs the program '" + command + "', and none is on the PATH; install " +
                             (engine == "slurm" ? "Slurm's client" : "an MPI such as Open MPI") + ", or use --on local");
  }
  if (engine == "slurm" && args.has("--requeue") && !OwnVariable("SLURM_JOB_ID")) {
    throw UsageError{"--requeue is for launches inside of a job: call sbatch with a script that runs thalweg launch"};
  }
  int status = kFailed;
  bool told = false;
  {
    const SharedFolder folder(args.get("--shared", "."));
    Supervisor::Options options;
    options.patience = kEnginesPatience;
    Supervisor supervisor(options);
    status = supervisor.Run({{"", EngineCommand(args, engine, folder.path())}});
    told = supervisor.told_to_end();
  }
  if (status != kGood && !told && engine == "slurm") Requeue(args);
  return status;
}

// ---- Ray ----

int RunRay(const Args& args) {
  std::vector<std::string> words = {"python3", "-m", "thalweg.ray_programs"};
  for (const char* option : {"-n", "--ps", "--restart", "--shared"}) {
    if (args.has(option)) words.insert(words.end(), {option, args.get(option)});
  }
  for (const std::string& word : ServerOptions(args)) words.push_back(word);
  words.emplace_back("--");
  for (const std::string& word : Program(args)) words.push_back(word);
  if (args.has("--print")) {
    std::printf("%s\n", ShellLine(words).c_str());
    return kGood;
  }
  Supervisor::Options options;
  options.patience = kEnginesPatience;
  return Supervisor(options).Run({{"", words}});
}

// ---- Kubernetes ----

int PrintManifests(const Args& args) {
  if (!args.has("--print")) {
    throw UsageError{"--on k8s prints manifests: thalweg launch --on k8s --print ... | kubectl apply -f -"};
  }
  if (!args.has("--image")) throw UsageError{"--on k8s needs --image, a container image with thalweg and the program"};
  PodOptions o;
  o.name = args.get("--name", "thalweg");
  o.image = args.get("--image");
  o.workers = Workers(args);
  o.ps = Servers(args);
  o.restarts = args.integer("--restart", 0, 0);
  o.credentials = args.get("--credentials");
  o.volumes = args.all("--volume");
  o.options = ServerOptions(args);
  o.program = Program(args);
  const std::string cluster = PodCluster(o);
  if (!o.credentials.empty() && !std::filesystem::exists(o.credentials)) InitCluster(cluster, o.credentials, PodClients(o), 365);
  std::fputs(Manifests(o).c_str(), stdout);
  return kGood;
}

// Runs one task of a cluster that TF_CONFIG or --cluster describes: its server, and if it is a
// worker its program.
int RunTask(const Args& args) {
  const TaskName task = TaskFrom(args.get("--task"), OwnVariable);
  const char* config = OwnVariable("TF_CONFIG");
  if (!args.has("--cluster") && !config) throw UsageError{"give the cluster: --cluster FILE, or the environment variable TF_CONFIG"};
  const JsonValue json = JsonValue::Parse(args.has("--cluster") ? ReadFile(args.get("--cluster"), kMostConfig) : config);
  const JsonValue& cluster = json.has("cluster") ? json["cluster"] : json;
  AddressOf(cluster, task);
  const std::string keys = args.get("--credentials"), member = task.job + "-" + std::to_string(task.index);
  const OwnProgram own;
  const Process server = Server(args, own, cluster, task, keys.empty() ? "" : keys + "/" + member);
  if (args.positional().empty()) {  // this process becomes the server
    std::vector<char*> words;
    for (const std::string& word : server.words) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    setenv("TF_CONFIG", server.environment[0].c_str() + std::strlen("TF_CONFIG="), 1);
    execv(own.Executable().c_str(), words.data());
    throw std::runtime_error("cannot start '" + server.words[0] + "': " + std::strerror(errno));
  }
  if (task.job != "worker") throw UsageError{"task '" + task.text() + "' is no worker; leave out the program"};
  const Process client = Client(args, cluster, task.index, task.index, keys.empty() ? "" : keys + "/client-" + member, {});
  return Supervisor({args.integer("--restart", 0, 0)}).Run({server, client});
}

int Run(const Args& args) {
  const std::string on = args.get("--on", "local");
  static const std::vector<std::string> engines = {"local", "mpi", "slurm", "ray", "k8s"};
  if (std::find(engines.begin(), engines.end(), on) == engines.end()) {
    throw UsageError{"--on takes local, mpi, slurm, ray or k8s, not '" + on + "'"};
  }
  if (args.has("--meet") && on != "mpi" && on != "slurm") throw UsageError{"--meet is for --on mpi and --on slurm"};
  if (args.has("--task")) return RunTask(args);
  if (args.has("--meet")) return RunRank(args);
  if (on == "k8s") return PrintManifests(args);
  if (on == "ray") return RunRay(args);
  if (on != "local") return RunEngine(args, on);
  if (args.has("--print")) throw UsageError{"--print is for --on mpi, slurm, ray and k8s"};
  return RunLocal(args);
}

}  // namespace

const Command& LaunchCommand() {
  static const Command command = {
      "launch",
      "-- PROGRAM [ARGUMENTS]",
      "Starts a cluster and a program for each of its workers, here or by an engine; ends all when one ends badly.",
      "Each program gets TF_CONFIG (the cluster, and which worker it is), THALWEG_TARGET (that worker's address, for the session\n"
      "option `target`) and, where the cluster has credentials, THALWEG_CREDENTIALS (what sessions prove themselves with).\n"
      "THALWEG_COLLECTIVE_STORE, _RANK and _MEMBERS make its sessions members of collective operations (session option\n"
      "`collective_store`). If the workers are on several hosts, THALWEG_COLLECTIVE_ENGINE=levels makes these go over the network.\n"
      "Lines of output begin with who wrote them. When all programs are done, the servers are ended.\n"
      "With --restart, what ends badly is started again instead: the same program, the same address, with nothing of what it had in "
      "memory.\n"
      "What programs have started is ended after a failure or a signal, and before they are started again. Should launch itself be killed\n"
      "by SIGKILL, its servers and programs end with it, but not what those have started.\n"
      "The exit status is that of the first program that ended badly; 128 + N if signal N killed it; 1 after a signal to launch.\n"
      "mpi, slurm: calls mpirun or srun for -n and --ps processes, which meet in a folder that all hosts share; the folder also takes the\n"
      "cluster's certificates and token, and is removed at the end. Called by mpirun or srun, with --meet FOLDER, it is one of them.\n"
      "k8s: prints manifests; what they start are calls with --task. ray: actors of a placement group, see thalweg.ray in Python.\n",
      {{"--on", "local|mpi|slurm|ray|k8s", "what starts the processes (local: this machine)"},
       {"-n", "N", "workers (1)"},
       {"--ps", "N", "parameter servers (0)"},
       {"--clients", "N", "local: programs, given to the workers in turn (one for each)"},
       {"--restart", "N", "how often each server and program that ends badly is started again (0)"},
       {"--scheme", "SCHEME", "the transport between them: grpc, or within one machine another whose addresses are names (grpc)"},
       {"--allow", "DIR", "a folder beneath which the servers may read and write files for the programs"},
       {"--server-option", "KEY=VALUE", "an option of all servers, see thalweg worker --help; may be repeated"},
       {"--print", nullptr, "print the engine's command or the manifests, and start nothing"},
       {"--engine-option", "WORD", "mpi, slurm: a word for mpirun or srun, such as --hostfile=hosts; may be repeated"},
       {"--shared", "DIR", "mpi, slurm, ray: a folder that all hosts share (the current one)"},
       {"--meet", "FOLDER", "mpi, slurm: this is one of the engine's processes, and the others are met in that folder"},
       {"--meet-timeout", "SECONDS", "mpi, slurm: for all processes to come (120)"},
       {"--interface", "NAME", "mpi, slurm: the network interface between the hosts (the one of the default route)"},
       {"--requeue", "N", "slurm: how often the job goes back into the queue after a failure (0)"},
       {"--image", "IMAGE", "k8s: a container image with thalweg and the program"},
       {"--name", "NAME", "k8s: of all objects (thalweg)"},
       {"--volume", "CLAIM=PATH", "k8s: a persistent volume for all pods; may be repeated"},
       {"--task", "JOB/INDEX", "run this task of a cluster, from TF_CONFIG or --cluster; the index may come from a pod's environment"},
       {"--cluster", "FILE", "with --task: the tasks and their addresses, as JSON"},
       {"--credentials", "DIR", "k8s, --task: the members' credentials; k8s makes them where there are none"},
       kThreadsOption,
       kPluginOption,
       kRuntimeOption},
      0,
      1000,
      Run};
  return command;
}

}  // namespace thalweg::cli
