// thalweg run: loads a model or a graph, restores its variables, feeds it, and prints its results.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <deque>
#include <functional>
#include <set>

#include "captions.h"
#include "command.h"
#include "feed.h"
#include "handles.h"
#include "json.h"
#include "model.h"
#include "model_file.h"
#include "reference.h"
#include "thalweg/summary.h"
#include "timing.h"
#include "utf8.h"
#include "words.h"

namespace thalweg::cli {
namespace {

// Returns the output file of each fetch, in the order of the fetches; a path of "" prints the
// fetch.
std::vector<OutFile> OutFiles(const Args& args) {
  std::vector<OutFile> files;
  std::set<std::pair<std::string, std::string>> taken;
  for (const std::string& text : args.all("--fetch")) {
    const auto [name, file] = SplitAtEquals(text);
    const bool print = name.size() == text.size();
    files.push_back(print ? OutFile() : ParseOutFile(file, name));
    if (!print && !taken.insert({files.back().path, files.back().member}).second) {
      throw UsageError{"two fetches would be written to '" + file + "'"};
    }
  }
  return files;
}

// Adds a number as JSON; nan, infinities and complex numbers become strings.
void AddElement(const std::string& word, Json* json) {
  if (word == "nan" || word == "-nan")
    json->Text("", "NaN");
  else if (word == "inf" || word == "-inf")
    json->Text("", word[0] == '-' ? "-Infinity" : "Infinity");
  else if (word.back() == 'j')
    json->Text("", word);
  else
    json->Raw("", word);
}

// Formats the elements as JSON, nested by axis.
std::string ElementsJson(const tw::Tensor& t) {
  const std::vector<int64_t> dims = t.dims();
  const std::vector<std::string> words = ElementTexts(t);
  Json json;
  size_t next = 0;
  const auto add = [&](const auto& self, size_t axis) -> void {
    if (axis == dims.size()) return t.dtype() == TW_STRING ? void(json.Text("", words[next++])) : AddElement(words[next++], &json);
    json.Array();
    for (int64_t i = 0; i < dims[axis]; ++i) self(self, axis + 1);
    json.End();
  };
  add(add, 0);
  std::string text = json.text();
  text.pop_back();  // drops the line end
  return text;
}

void PrintJson(const Signature& signature) {
  Json json;
  json.Object();
  for (const Value& fetch : signature.fetches) {
    json.Object(fetch.name).Text("dtype", DTypeText(fetch.tensor.dtype())).Array("shape");
    for (const int64_t dim : fetch.tensor.dims()) json.Number("", dim);
    json.End().Raw("value", ElementsJson(fetch.tensor)).End();
  }
  std::fputs(json.End().text().c_str(), stdout);
}

// Records step statistics for --trace; keeps the latest steps.
class Recorder {
 public:
  explicit Recorder(const Args& args) : path_(args.get("--trace")), limit_(uint32_t(args.integer("--trace-limit", 1 << 18, 0))) {}
  // Returns the statistics object for the next step; NULL if no trace is requested.
  tw_step_stats* Step() {
    if (path_.empty()) return nullptr;
    if (steps_.size() == kMost) steps_.pop_front();
    steps_.emplace_back().set_limit(limit_);
    return steps_.back().c();
  }
  void Write() const {
    if (path_.empty()) return;
    std::vector<const tw_step_stats*> all;
    uint64_t left_out = 0;
    for (const tw::StepStats& s : steps_) {
      all.push_back(s.c());
      left_out += s.total().left_out;
    }
    WriteFile(path_, tw::StepStats::trace(all));
    if (left_out) {
      std::fprintf(stderr, "thalweg run: the trace is cut: %llu records are left out; --trace-limit N keeps more\n",
                   static_cast<unsigned long long>(left_out));
    }
  }

 private:
  static constexpr size_t kMost = 100;
  const std::string path_;
  const uint32_t limit_;
  std::deque<tw::StepStats> steps_;
};

// Writes the run for TensorBoard, if --logdir asks for it: the graph, the fetched numbers over the
// steps, and the times of the last step.
class RunLog {
 public:
  RunLog(const Args& args, const tw_graph* graph) {
    if (!args.has("--logdir")) return;
    tw_summary_writer* made = nullptr;
    tw::raise(tw_summary_writer_create(args.get("--logdir").c_str(), nullptr, &made));
    writer_.reset(made);
    tw::raise(tw_summary_writer_graph(made, graph));
  }
  // Returns the statistics object for the next step; `traced` if it is not NULL.
  tw_step_stats* Stats(tw_step_stats* traced) { return traced || !writer_ ? traced : stats_.c(); }
  void Step(int64_t step, const Signature& signature, const std::vector<tw::Tensor>& results, const tw_step_stats* stats, bool last) {
    if (!writer_) return;
    for (size_t i = 0; i < results.size(); ++i) {
      double number = 0;
      if (!NumberOf(results[i], &number)) continue;
      tw::raise(tw_summary_writer_scalar(writer_.get(), signature.fetches[i].name.c_str(), step, number));
    }
    if (last) tw::raise(tw_summary_writer_step_stats(writer_.get(), ("step " + std::to_string(step)).c_str(), step, stats));
  }
  void Close() {
    if (writer_) tw::raise(tw_summary_writer_close(writer_.get()));
  }

 private:
  static bool NumberOf(const tw::Tensor& t, double* out) {
    if (t.count() != 1) return false;
    switch (t.dtype()) {
      case TW_FLOAT: *out = double(*t.data<float>()); return true;
      case TW_DOUBLE: *out = double(*t.data<double>()); return true;
      case TW_INT32: *out = double(*t.data<int32_t>()); return true;
      case TW_INT64: *out = double(*t.data<int64_t>()); return true;
      default: return false;
    }
  }
  struct Destroy {
    void operator()(tw_summary_writer* w) const { tw_summary_writer_destroy(w); }
  };
  std::unique_ptr<tw_summary_writer, Destroy> writer_;
  tw::StepStats stats_;
};

using Step = std::function<std::vector<tw::Tensor>(const Signature&, int64_t timeout_ns, tw_step_stats*)>;

// Runs all steps and leaves the last results in the signature. Prints the time if more than one
// step was requested.
void RunSteps(const Args& args, const Step& step, Signature* signature, Recorder* recorder, RunLog* log) {
  const auto timeout = int64_t(std::min(args.number("--timeout", 0, 1e-9), 9e9) * 1e9);
  const int64_t steps = args.integer("--repeat", 1, 1);
  std::vector<double> seconds;
  std::vector<tw::Tensor> results;
  for (int64_t i = 0; i < steps; ++i) {
    results.clear();
    const double begin = Now();
    tw_step_stats* stats = log->Stats(recorder->Step());
    results = step(*signature, timeout, stats);
    seconds.push_back(Now() - begin);
    log->Step(i, *signature, results, stats, i + 1 == steps);
  }
  for (size_t i = 0; i < results.size(); ++i) signature->fetches[i].tensor = std::move(results[i]);
  if (!args.has("--repeat")) return;
  const double first = seconds[0];
  if (steps > 1) seconds.erase(seconds.begin());
  const Timing t = Summarize(std::move(seconds));
  std::fprintf(stderr, "%lld steps: the first %s; the others %s to %s, median %s, mean %s, 99%% below %s; %s a second\n",
               static_cast<long long>(steps), SecondsText(first).c_str(), SecondsText(t.min).c_str(), SecondsText(t.max).c_str(),
               SecondsText(t.median).c_str(), SecondsText(t.mean).c_str(), SecondsText(t.p99).c_str(), CountText(t.PerSecond()).c_str());
}

// Counts the runtime's warnings, such as nodes placed on another device than requested. Prints the
// first few and the number of the others.
class Warnings {
 public:
  explicit Warnings(const tw::Runtime& runtime) : runtime_(runtime) {
    tw::raise(tw_log_set_sink(runtime.c(), &Told, this, TW_LOG_WARNING));
  }
  ~Warnings() {
    tw_status_release(tw_log_set_sink(runtime_.c(), nullptr, nullptr, TW_LOG_WARNING));
    if (told_ > kMost) std::fprintf(stderr, "thalweg: %u more warnings\n", told_ - kMost);
  }
  Warnings(const Warnings&) = delete;

 private:
  static constexpr uint32_t kMost = 5;
  static void Told(void* self, uint32_t level, const char* text, uint64_t bytes) {
    if (static_cast<Warnings*>(self)->told_++ < kMost) tw_log_to_stderr(nullptr, level, text, bytes);
  }
  const tw::Runtime& runtime_;
  std::atomic<uint32_t> told_{0};
};

// Runs the steps, then prints and writes what is fetched, or compares it. Returns the exit status.
int RunAndShow(const Args& args, const tw::Runtime& runtime, const tw_graph* graph, const Step& step, Signature* signature) {
  std::vector<OutFile> files = OutFiles(args);
  files.resize(signature->fetches.size());
  Recorder recorder(args);
  RunLog log(args, graph);
  try {
    RunSteps(args, step, signature, &recorder, &log);
  } catch (...) {  // the statistics of the steps before the failure are still useful
    recorder.Write();
    throw;
  }
  recorder.Write();
  log.Close();

  std::vector<std::pair<OutFile, tw::Tensor>> written;
  for (size_t i = 0; i < files.size(); ++i) {
    const Value& fetch = signature->fetches[i];
    if (!files[i].path.empty())
      written.emplace_back(files[i], fetch.tensor);
    else if (!args.has("--json") && !args.has("--draw") && !args.has("--check"))
      std::printf("%s = %s\n", OneLine(fetch.name).c_str(), OneLine(fetch.tensor.text(1000)).c_str());
  }
  WriteTensors(written);
  if (args.has("--json")) PrintJson(*signature);
  for (const std::string& name : args.all("--draw")) DrawFeed(runtime, *signature, name);
  return CheckReference(args, runtime, *signature) ? kGood : kFailed;
}

int Run(const Args& args) {
  OutFiles(args);  // a mistake there is found before anything is loaded
  const std::string path = args.positional()[0];
  const tw::Runtime runtime = MakeRuntime(args);
  const Warnings warnings(runtime);
  if (const auto model = OpenModelFile(args, runtime, path)) {
    for (const char* option : {"--checkpoint", "--init", "--target"}) {
      if (args.has(option)) throw UsageError{std::string(option) + " is for graph files; a model has signatures"};
    }
    Signature signature = ReadModelSignature(args, runtime, *model);
    for (const std::string& name : args.all("--draw")) CheckDrawn(signature, name);
    return RunAndShow(
        args, runtime, tw_model_graph(model->c()),
        [&](const Signature& s, int64_t timeout, tw_step_stats* stats) { return RunModel(args, *model, s, timeout, stats); }, &signature);
  }
  const tw::Graph graph = LoadGraph(runtime, path);
  Signature signature = ReadSignature(args, runtime, graph);
  for (const std::string& name : args.all("--draw")) CheckDrawn(signature, name);
  const tw::Session session = OpenSession(args, graph);
  Callable callable(session, signature);
  return RunAndShow(
      args, runtime, graph.c(), [&](const Signature& s, int64_t timeout, tw_step_stats* stats) { return callable.Run(s, timeout, stats); },
      &signature);
}

std::vector<Option> Options() {
  std::vector<Option> options =
      SignatureOptions("NAME[=FILE]",
                       "print this value (`node` or `node:1`), or write it to FILE.npy, FILE.csv, FILE.npz (under its name, with others)\n"
                       "or FILE.npz[MEMBER]; may be repeated");
  for (const Option& o : std::vector<Option>{
           {"--repeat", "N", "run N steps; show what the last one gives and, on standard error, how long they took"},
           {"--trace", "FILE",
            "write what the steps did, the latest 100, to FILE, for ui.perfetto.dev, chrome://tracing and `thalweg trace top`"},
           {"--trace-limit", "N", "records of nodes, and of waits, that are kept of a step; 262144 unless it is said"},
           {"--logdir", "FOLDER", "write the graph, fetched numbers over the steps and the times of the last step for TensorBoard"},
           {"--timeout", "SECONDS", "give up when a step takes longer"},
           {"--draw", "NAME", "draw the pictures of a feed, [n, h, w] or [n, k * k], with what is fed and fetched beside each"},
           {"--signature", "NAME", "of a model: run this signature instead of its default one"},
           {"--inputs", "FILE.npz", "of a model: give its inputs the arrays of their names; --feed goes before"},
           {"--random-inputs", nullptr, "give random values to the inputs of a model that nothing else gives; unknown sizes are 1"},
           {"--feed-shape", "NAME=SIZES", "the shape of a random input, such as image=1,3,224,224; may be repeated"},
           {"--seed", "N", "of the random inputs; 1"},
           kJsonOption}) {
    options.push_back(o);
  }
  for (const Option& o : ReferenceOptions()) options.push_back(o);
  for (const Option& o : ModelFileOptions()) options.push_back(o);
  for (const Option& o : ModelOptions()) options.push_back(o);
  return options;
}

}  // namespace

const Command& RunCommand() {
  static const Command command = {
      "run",
      "FILE",
      "Runs a model of any known format, or a graph file (GraphDef), and prints what is fetched.",
      "Examples:\n"
      "  thalweg run model.onnx --random-inputs --feed-shape image=1,3,224,224\n"
      "  thalweg run exported/1 --inputs inputs.npz --check outputs.npz\n"
      "  thalweg run graph.pb --checkpoint model --feed 'image=digits.csv[0:5,0:64]' --fetch prediction --draw image\n"
      "  thalweg run graph.pb --feed x=@batch.npz --fetch loss --fetch logits=out.npz --target train --repeat 100\n"
      "  thalweg run graph.pb --feed x=@batch.npz --fetch loss --repeat 5 --trace steps.json && thalweg trace top steps.json\n",
      Options(),
      1,
      1,
      Run};
  return command;
}

}  // namespace thalweg::cli
