// thalweg-serve: answers requests over HTTP with models from files. `thalweg serve` executes it.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include <sys/resource.h>

#include "command_table.h"
#include "endings.h"
#include "framework/base/machine_memory.h"
#include "http_server.h"
#include "repository.h"
#include "service.h"
#include "settings.h"
#include "tools/thalweg/dispatch.h"
#include "tools/thalweg/handles.h"
#include "utf8.h"

namespace thalweg::cli::serve {
namespace {

// ---- The command line ----

// Reads origins as browsers send them, without a path.
std::vector<std::string> ReadOrigins(const Args& args) {
  const std::vector<std::string>& origins = args.all("--allow-origin");
  for (const std::string& origin : origins) {
    const size_t scheme = origin.find("://");
    const bool whole = scheme != origin.npos && scheme > 0 && scheme + 3 < origin.size() && origin.find('/', scheme + 3) == origin.npos &&
                       origin.find(' ') == origin.npos && OneLine(origin) == origin;
    if (origin != "*" && !whole) throw UsageError{"--allow-origin takes * or an origin such as https://example.org, not '" + origin + "'"};
  }
  return origins;
}

// Reads a number of bytes such as 65536 or 2G, of at most 2^62; `other` if the option was not given.
uint64_t ReadBytes(const Args& args, const char* option, uint64_t other) {
  if (!args.has(option)) return other;
  constexpr uint64_t kMost = uint64_t{1} << 62;
  const std::string text = args.get(option);
  uint64_t bytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  const std::string_view unit = std::string_view(text).substr(size_t(end - text.data()));
  const size_t power = unit.empty() ? 0 : std::string_view("KMGT").find(unit[0]) + 1;
  const bool known = unit.empty() || (power != 0 && (unit.size() == 1 || unit.substr(1) == "iB"));
  if (error != std::errc() || !known || bytes == 0 || bytes > kMost >> (10 * power)) {
    throw UsageError{std::string(option) + " takes a number of bytes of at least 1, such as 65536, 32M or 2G, not '" + text + "'"};
  }
  return bytes << (10 * power);
}

Settings ReadSettings(const Args& args) {
  const int64_t port = args.integer("--port", 8000, 0);
  if (port > 65535) throw UsageError{"--port takes a number of at most 65535, not '" + args.get("--port") + "'"};
  const auto ms = [&](const char* option, int64_t other, int64_t least) {
    return std::chrono::milliseconds(std::min<int64_t>(args.integer(option, other, least), 1 << 30));
  };
  Settings settings = {};
  settings.host = args.get("--host", "127.0.0.1");
  settings.port = int(port);
  settings.max_request_bytes = std::min(ReadBytes(args, "--max-request-bytes", 32 << 20), uint64_t{1} << 40);
  settings.request_memory = ReadBytes(args, "--request-memory", MachineMemory() / 2);
  settings.max_requests = uint64_t(args.integer("--max-requests", 64, 1));
  settings.max_connections = uint64_t(args.integer("--max-connections", 512, 1));
  settings.timeout = ms("--timeout-ms", 300000, 0);
  settings.io_timeout = ms("--io-timeout-ms", 10000, 1);
  settings.drain = ms("--drain-ms", 10000, 0);
  settings.max_batch = uint64_t(args.integer("--max-batch", 1, 1));
  settings.batch_delay = std::chrono::microseconds(std::min<int64_t>(args.integer("--batch-delay-us", 1000, 0), 60'000'000));
  settings.allow_origins = ReadOrigins(args);
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

// The models that the server serves.
struct Content {
  bool is_folder = false;
  std::string folder;         // of models
  std::string name, file;     // of one model
  bool all_versions = false;  // of the folder
  std::chrono::milliseconds poll{0};
  Repository::Labels labels;
};

Content ReadContent(const Args& args) {
  Content content;
  content.is_folder = args.has("--models");
  if (content.is_folder == !args.positional().empty()) throw UsageError{"give a model or --models FOLDER"};
  if (content.is_folder && args.has("--name")) throw UsageError{"--name is for one model; the folders below --models name theirs"};
  if (args.has("--poll") && !content.is_folder) throw UsageError{"--poll is for --models"};
  if (args.has("--name") && (args.get("--name").empty() || args.get("--name").find('/') != std::string::npos)) {
    throw UsageError{"--name takes a name without '/', not '" + args.get("--name") + "'"};
  }
  const std::string versions = args.get("--versions", "latest");
  if (versions != "latest" && versions != "all") throw UsageError{"--versions takes latest or all, not '" + versions + "'"};
  content.all_versions = versions == "all";
  content.poll = std::chrono::milliseconds(int64_t(std::ceil(std::min(args.number("--poll", 0, 0), 1e6) * 1000)));
  content.labels = ReadLabels(args);
  if (content.is_folder) {
    content.folder = args.get("--models");
  } else {
    content.file = args.positional()[0];
    content.name = args.get("--name", NameOf(content.file));
  }
  return content;
}

// ---- The server ----

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

std::string AddressOf(const Settings& settings, int port) {
  const bool v6 = settings.host.find(':') != std::string::npos;
  return "http://" + (v6 ? "[" + settings.host + "]" : settings.host) + ":" + std::to_string(port);
}

// Returns what there is to load. Throws std::runtime_error if it can be nothing.
std::map<std::string, Versions> FindModels(const Content& content) {
  namespace fs = std::filesystem;
  if (!content.is_folder) {
    const bool local = content.file.find("://") == std::string::npos;
    if (local && !fs::exists(content.file))
      throw std::runtime_error("cannot serve '" + content.file + "': there is no such file or folder");
    return {{content.name, {{1, content.file}}}};
  }
  if (fs::is_regular_file(content.folder)) {
    throw std::runtime_error("--models '" + content.folder + "' is no folder; to serve this one model: thalweg serve " + content.folder);
  }
  auto models = ListModels(content.folder);
  const std::string layout = "; a model is NAME/VERSION/<file or folder>, where VERSION is a whole number such as 1";
  if (models.empty() && content.poll.count() == 0) throw std::runtime_error("--models '" + content.folder + "' holds no model" + layout);
  if (models.empty()) LogLine("'" + content.folder + "' holds no model yet" + layout);
  for (const auto& [name, versions] : models) {
    if (versions.empty()) LogLine("model '" + name + "' has no version" + layout);
  }
  return models;
}

// Loads the models. A signal meanwhile ends the process without waiting for the model that is being loaded.
void LoadModels(const Content& content, const Settings& settings, Repository* repository, HttpServer* server, Endings* endings) {
  const Endings::Scope scope(endings, [&](const char* signal) {
    const std::string loading = repository->Stop();
    LogLine(std::string(signal) + " while " + (loading.empty() ? "models are" : loading + " is") + " being loaded, which is abandoned");
    server->Stop(Clock::now() + settings.drain);
  });
  content.is_folder ? repository->Scan(content.folder) : repository->Add(content.name, content.file);
  endings->Started();
}

int Run(const Args& args) {
  const Content content = ReadContent(args);
  const Settings settings = ReadSettings(args);
  const tw::ModelOptions options = ReadModelOptions(args);
  const auto models = FindModels(content);
  Endings endings([](const char* signal) { LogLine(std::string(signal) + " before the server was ready"); });
  std::signal(SIGPIPE, SIG_IGN);
  RaiseFileLimit(settings.max_connections);
  const tw::Runtime runtime = MakeRuntime(args);
  tw::raise(tw_log_set_sink(runtime.c(), tw_log_to_stderr, nullptr, TW_LOG_WARNING));
  Metrics metrics;
  RequestBudget budget(settings.request_memory);
  Runners runners(settings.max_requests);
  const auto load = [&](const std::string& name, uint64_t version, const std::string& path) {
    const std::string file = content.is_folder ? FindModel(runtime, path) : path;
    return std::make_shared<ServedModel>(runtime, name, version, file, options, settings, &metrics, &runners);
  };
  Repository repository(content.all_versions, content.labels, load, &metrics, LogLine);
  // Known before the server answers, so that it is not ready until the models are loaded.
  repository.Announce(models);
  Service service(settings, &repository, &budget, &metrics);
  HttpServer server(settings, &budget, [&](Call& call) { return service.Serve(call); });
  const std::string address = AddressOf(settings, server.Start());
  LogLine(address + " answers; requests to models get 503 until they are loaded");
  LoadModels(content, settings, &repository, &server, &endings);
  if (content.poll.count() > 0) repository.Watch(content.folder, content.poll);
  std::printf("listening at %s\n", address.c_str());
  std::fflush(stdout);
  endings.Wait();
  repository.Stop();
  server.Stop(Clock::now() + settings.drain);
  const std::string loading = repository.Stop();
  if (!loading.empty()) {
    LogLine(loading + " is still being loaded, which is abandoned");
    Endings::Leave();
  }
  return kGood;
}

}  // namespace
}  // namespace thalweg::cli::serve

int main(int argc, char** argv) {
  namespace cli = thalweg::cli;
  return cli::Finish(cli::Dispatch(cli::serve::MakeServeCommand(cli::serve::Run), {argv + 1, argv + argc}));
}
