#include "model.h"

#include <cstdio>
#include <set>

#include "feed.h"

namespace thalweg::cli {
namespace {

// Restores the variables that the checkpoint contains. Warns about the others; a fetch that needs
// one fails and names it.
void Restore(const tw::Graph& graph, const tw::Session& session, const std::string& prefix) {
  const Checkpoint checkpoint(prefix);
  std::set<std::string> names;
  for (uint32_t i = 0; i < tw_checkpoint_count(checkpoint.c()); ++i) names.insert(tw_checkpoint_name(checkpoint.c(), i));
  const Variables variables(graph);
  std::vector<tw_output> found;
  std::string missing;
  for (uint32_t i = 0; i < tw_variables_count(variables.c()); ++i) {
    const std::string name = tw_variables_name(variables.c(), i);
    if (names.count(name))
      found.push_back(tw_variables_handle(variables.c(), i));
    else
      missing += (missing.empty() ? "" : ", ") + name;
  }
  if (found.empty()) throw std::runtime_error("checkpoint '" + prefix + "' has none of the graph's variables");
  if (!missing.empty()) std::fprintf(stderr, "thalweg: the checkpoint does not have these variables: %s\n", missing.c_str());
  tw_saver* saver = nullptr;
  tw::raise(tw_saver_create(graph.c(), found.data(), uint32_t(found.size()), &saver));
  tw_status* status = tw_saver_restore(saver, session.c(), prefix.c_str());
  tw_saver_destroy(saver);
  tw::raise(status);
}

Value ReadFeedOption(const std::string& text, const tw::Runtime& runtime, const tw::Graph& graph) {
  const auto [name, value] = SplitAtEquals(text);
  if (name.size() == text.size()) throw UsageError{"--feed takes NAME=VALUE, not '" + text + "'"};
  Value feed{name, graph.output(name), {}};
  uint32_t dtype = 0;
  tw::raise(tw_graph_describe(graph.c(), feed.output, &dtype, nullptr));
  try {
    feed.tensor = ReadFeed(runtime, name, value, dtype);
  } catch (const std::exception& e) {
    throw std::runtime_error("feed '" + name + "': " + e.what());
  }
  return feed;
}

}  // namespace

std::pair<std::string, std::string> SplitAtEquals(const std::string& text) {
  const size_t equals = text.find('=');
  return {text.substr(0, equals), equals == text.npos ? "" : text.substr(equals + 1)};
}

std::vector<Option> SignatureOptions(const char* fetch_value, const char* fetch_help) {
  return {{"--feed", "NAME=VALUE",
           "give a value its contents: a literal such as 3, [[1, 2], [3, 4]] or \"a text\", or a file: FILE.npy, FILE.npz,\n"
           "FILE.npz[MEMBER], FILE.csv or FILE.csv[rows,columns] with ranges as in Python; @FILE: a file in any case,\n"
           "for a string whatever it holds; may be repeated"},
          {"--fetch", fetch_value, fetch_help},
          {"--target", "NAME", "run this operation too; may be repeated"}};
}

const Option kDeviceOption = {"--device", "NAME",
                              "where operations run that do not say it themselves, such as FAKE:0; what has no kernel there\n"
                              "runs elsewhere, unless --session-option fallback says otherwise"};
const Option kSessionOption = {"--session-option", "KEY=VALUE",
                               "an option of the session, such as allow_files=DIR for a graph that reads or writes files itself;\n"
                               "thalweg doctor --help lists them; may be repeated"};

std::vector<Option> ModelOptions() {
  return {{"--checkpoint", "PREFIX", "restore the variables first"},
          {"--init", "NAME", "run this operation first, such as an initializer"},
          kThreadsOption,
          kDeviceOption,
          kSessionOption,
          kPluginOption,
          kRuntimeOption};
}

tw::Graph LoadGraph(const tw::Runtime& runtime, const std::string& path) {
  const std::string bytes = ReadFile(path);
  tw::Graph graph(runtime);
  try {
    graph.import_graph_def(bytes);
  } catch (const tw::StatusError& e) {
    throw tw::StatusError(e.code(), "'" + path + "': " + e.what(), e.operation(), e.place());
  }
  return graph;
}

Signature ReadTargets(const Args& args, const tw::Graph& graph) {
  Signature signature;
  for (const std::string& text : args.all("--fetch")) {
    const std::string name = SplitAtEquals(text).first;
    signature.fetches.push_back({name, graph.output(name), {}});
  }
  for (const std::string& name : args.all("--target")) signature.targets.push_back(graph.find(name));
  if (signature.fetches.empty() && signature.targets.empty()) throw UsageError{"nothing to do: give --fetch NAME or --target NAME"};
  return signature;
}

Signature ReadSignature(const Args& args, const tw::Runtime& runtime, const tw::Graph& graph) {
  std::vector<Value> feeds;
  for (const std::string& text : args.all("--feed")) feeds.push_back(ReadFeedOption(text, runtime, graph));
  Signature signature = ReadTargets(args, graph);
  signature.feeds = std::move(feeds);
  return signature;
}

tw::Session OpenSession(const Args& args, const tw::Graph& graph) {
  std::vector<std::string> texts = args.all("--session-option");
  if (args.has("--threads")) texts.push_back("threads=" + args.get("--threads"));
  if (args.has("--device")) texts.insert(texts.begin(), {"device=" + args.get("--device"), "fallback=warn"});
  std::vector<const char*> options;
  for (const std::string& text : texts) options.push_back(text.c_str());
  tw::Session session(graph, options);
  if (args.has("--checkpoint")) Restore(graph, session, args.get("--checkpoint"));
  if (args.has("--init")) session.run({}, {}, {graph.find(args.get("--init"))});
  return session;
}

Callable::Callable(const tw::Session& session, const Signature& signature) {
  std::vector<tw_output> feeds, fetches;
  for (const Value& feed : signature.feeds) feeds.push_back(feed.output);
  for (const Value& fetch : signature.fetches) fetches.push_back(fetch.output);
  const tw_signature what = tw::signature_of(feeds, fetches, signature.targets);
  tw_callable* made = nullptr;
  tw::raise(tw_callable_create(session.c(), &what, &made));
  own(made);
}

std::vector<tw::Tensor> Callable::Run(const Signature& signature, int64_t timeout_ns, tw_step_stats* stats) {
  std::vector<tw_tensor*> feeds, out(signature.fetches.size());
  for (const Value& feed : signature.feeds) feeds.push_back(feed.tensor.c());
  tw_run_options options = {};
  options.size = sizeof(options);
  options.timeout_ns = timeout_ns;
  options.stats = stats;
  tw::raise(tw_callable_run(c(), feeds.data(), &options, out.data()));
  std::vector<tw::Tensor> results;
  for (tw_tensor* t : out) results.push_back(tw::Tensor::adopt(t));
  return results;
}

}  // namespace thalweg::cli
