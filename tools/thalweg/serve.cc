// thalweg serve: answers requests over HTTP with models from files.
#include <csignal>
#include <cstdio>
#include <filesystem>

#include <sys/resource.h>

#include "command.h"
#include "handles.h"
#include "model_file.h"
#include "serve/http_server.h"
#include "serve/repository.h"
#include "serve/service.h"
#include "serve/settings.h"
#include "utf8.h"

namespace thalweg::cli {
namespace {

using serve::Repository;

serve::Settings ReadSettings(const Args& args) {
  const int64_t port = args.integer("--port", 8000, 0);
  if (port > 65535) throw UsageError{"--port takes a number of at most 65535, not '" + args.get("--port") + "'"};
  const auto ms = [&](const char* option, int64_t other, int64_t least) {
    return std::chrono::milliseconds(std::min<int64_t>(args.integer(option, other, least), 1 << 30));
  };
  serve::Settings settings = {};
  settings.host = args.get("--host", "127.0.0.1");
  settings.port = int(port);
  settings.max_request_bytes = uint64_t(std::min<int64_t>(args.integer("--max-request-bytes", 32 << 20, 1), int64_t{1} << 40));
  settings.max_requests = uint64_t(args.integer("--max-requests", 64, 1));
  settings.max_connections = uint64_t(args.integer("--max-connections", 512, 1));
  settings.timeout = ms("--timeout-ms", 300000, 0);
  settings.io_timeout = ms("--io-timeout-ms", 10000, 1);
  settings.drain = ms("--drain-ms", 10000, 0);
  settings.max_batch = uint64_t(args.integer("--max-batch", 1, 1));
  settings.batch_delay = std::chrono::microseconds(std::min<int64_t>(args.integer("--batch-delay-us", 1000, 0), 60'000'000));
  settings.log = args.has("--log");
  return settings;
}

tw::ModelOptions ReadModelOptions(const Args& args) {
  tw::ModelOptions options;
  options.importer = args.get("--importer");
  options.options = args.all("--model-option");
  if (args.has("--device")) options.session_options = {"device=" + args.get("--device"), "fallback=warn"};
  for (const std::string& text : args.all("--session-option")) options.session_options.push_back(text);
  if (args.has("--memory-limit")) options.session_options.push_back("memory_limit=" + args.get("--memory-limit"));
  return options;
}

// Reads --label MODEL:LABEL=VERSION.
Repository::Labels ReadLabels(const Args& args) {
  Repository::Labels labels;
  for (const std::string& text : args.all("--label")) {
    const size_t equals = text.rfind('='), colon = text.rfind(':', equals);
    const std::string version = equals == text.npos ? "" : text.substr(equals + 1);
    if (equals == text.npos || colon == text.npos || colon == 0 || version.empty() || version.size() > 18 ||
        version.find_first_not_of("0123456789") != version.npos) {
      throw UsageError{"--label takes MODEL:LABEL=VERSION, not '" + text + "'"};
    }
    labels[text.substr(0, colon)][text.substr(colon + 1, equals - colon - 1)] = std::stoull(version);
  }
  return labels;
}

// Returns the name of a model's file without its extension, or of its folder.
std::string NameOf(const std::string& path) {
  const std::filesystem::path clean = std::filesystem::absolute(path).lexically_normal();
  const std::filesystem::path named = clean.filename().empty() ? clean.parent_path() : clean;
  return std::filesystem::is_directory(named) ? named.filename() : named.stem();
}

// Connections take file descriptors, and so do the files of models.
void RaiseFileLimit(uint64_t connections) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = std::min<rlim_t>(limit.rlim_max, connections + 1024);
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = wanted;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void LogLine(const std::string& line) { std::fprintf(stderr, "thalweg serve: %s\n", OneLine(line).c_str()); }

class CancelToken : public tw::Owned<tw_cancel_token, tw_cancel_token_destroy> {
 public:
  CancelToken() {
    tw_cancel_token* made = nullptr;
    tw::raise(tw_cancel_token_create(&made));
    own(made);
  }
};

int Run(const Args& args) {
  const bool folder = args.has("--models");
  if (folder == !args.positional().empty()) throw UsageError{"give a model or --models FOLDER"};
  if (folder && args.has("--name")) throw UsageError{"--name is for one model; the folders below --models name theirs"};
  if (args.has("--poll") && !folder) throw UsageError{"--poll is for --models"};
  if (args.has("--name") && (args.get("--name").empty() || args.get("--name").find('/') != std::string::npos)) {
    throw UsageError{"--name takes a name without '/', not '" + args.get("--name") + "'"};
  }
  const std::string versions = args.get("--versions", "latest");
  if (versions != "latest" && versions != "all") throw UsageError{"--versions takes latest or all, not '" + versions + "'"};
  const double poll = args.number("--poll", 0, 0);
  const serve::Settings settings = ReadSettings(args);
  const tw::ModelOptions options = ReadModelOptions(args);
  const Repository::Labels labels = ReadLabels(args);
  // Blocked before any thread starts: all threads inherit the mask, and only this thread waits for the signals.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  RaiseFileLimit(settings.max_connections);
  const tw::Runtime runtime = MakeRuntime(args);
  tw::raise(tw_log_set_sink(runtime.c(), tw_log_to_stderr, nullptr, TW_LOG_WARNING));
  const CancelToken cancel;
  serve::Metrics metrics;
  const auto load = [&](const std::string& name, uint64_t version, const std::string& path) {
    const std::string file = folder ? serve::FindModel(runtime, path) : path;
    return std::make_shared<serve::ServedModel>(runtime, name, version, file, options, settings, cancel.c(), &metrics);
  };
  Repository repository(versions == "all", labels, load, &metrics, LogLine);
  if (folder) {
    repository.Scan(args.get("--models"));
  } else {
    const std::string& path = args.positional()[0];
    repository.Add(args.get("--name", NameOf(path)), path);
  }
  serve::Service service(settings, &repository, &metrics);
  serve::HttpServer server(settings, [&](serve::Call& call) { return service.Serve(call); });
  const int port = server.Start();
  if (folder && poll > 0) repository.Watch(args.get("--models"), std::chrono::milliseconds(int64_t(std::min(poll, 1e6) * 1000)));
  const bool v6 = settings.host.find(':') != std::string::npos;
  std::printf("listening at http://%s:%d\n", v6 ? ("[" + settings.host + "]").c_str() : settings.host.c_str(), port);
  std::fflush(stdout);
  int signal = 0;
  sigwait(&ends, &signal);
  sigprocmask(SIG_UNBLOCK, &ends, nullptr);  // a second signal ends the process at once
  server.Stop(serve::Clock::now() + settings.drain, [&] { tw_cancel_token_cancel(cancel.c()); });
  return kGood;
}

const char kDetails[] =
    "The protocols: Open Inference Protocol (KServe v2) below /v2, TensorFlow Serving's REST API below\n"
    "/v1; /metrics for Prometheus. For example:\n"
    "  thalweg serve resnet50.onnx --port 8000\n"
    "  curl localhost:8000/v2/models/resnet50\n"
    "  curl localhost:8000/v1/models/resnet50:predict -d '{\"instances\": [[1, 2, 3]]}'\n"
    "FOLDER/NAME/VERSION/ holds one model. There is no TLS and no password: for other machines put a\n"
    "proxy before the server. Ends on SIGTERM and SIGINT: running requests are finished.\n";

}  // namespace

const Command& ServeCommand() {
  static const Command command = [] {
    Command c = {"serve",
                 "[FILE]",
                 "Serves a model, or a folder of models, over HTTP.",
                 kDetails,
                 {{"--models", "FILE", "a folder with NAME/VERSION/<model>, the layout of TensorFlow Serving and Triton"},
                  {"--versions", "latest|all", "which versions of the folder are served (latest)"},
                  {"--poll", "SECONDS", "look for new versions this often (0: never)"},
                  {"--label", "MODEL:LABEL=VERSION", "a name for a version; may be repeated"},
                  {"--name", "NAME", "the model's name in addresses (its file's, without the extension)"},
                  {"--host", "ADDRESS", "the address to listen at (127.0.0.1: only this machine)"},
                  {"--port", "N", "the port (8000); 0: any free one. It is printed"},
                  {"--max-batch", "N", "join waiting requests into runs of at most N rows (1: never)"},
                  {"--batch-delay-us", "N", "how long a request waits for others (1000)"},
                  {"--max-request-bytes", "N", "the limit of a request's body (33554432)"},
                  {"--max-requests", "N", "requests that run at once; a further one is answered with 429 (64)"},
                  {"--max-connections", "N", "connections that are served at once; further ones wait (512)"},
                  {"--timeout-ms", "N", "the time of a request, 0: no limit (300000)"},
                  {"--io-timeout-ms", "N", "how far a client may fall behind 16 KiB a second (10000)"},
                  {"--drain-ms", "N", "how long running requests may go on after SIGTERM (10000)"},
                  {"--memory-limit", "BYTES", "the memory of each model's runs, such as 2GiB"},
                  {"--log", nullptr, "write a line for each request to standard error"},
                  {"--device", "NAME", "run on this device where it can, such as CUDA:0"},
                  {"--session-option", "KEY=VALUE", "an option of the models' sessions; may be repeated"}},
                 0,
                 1,
                 Run};
    for (const Option& option : ModelFileOptions()) c.options.push_back(option);
    for (const Option& option : {kThreadsOption, kPluginOption, kRuntimeOption}) c.options.push_back(option);
    return c;
  }();
  return command;
}

}  // namespace thalweg::cli
