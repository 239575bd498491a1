#include "model_file.h"

#include <cstdio>
#include <filesystem>
#include <map>
#include <random>

#include "counted.h"
#include "feed.h"
#include "json.h"
#include "random_feed.h"
#include "utf8.h"
#include "words.h"

namespace thalweg::cli {
namespace {

// A graph file is one that can be imported; one that begins as such, too, so that the import's error
// names the place of the damage. No importer is asked, so no plugin is loaded for it.
bool IsGraphFile(const tw::Runtime& runtime, const std::string& path) {
  if (std::filesystem::is_directory(path)) return false;
  const std::string bytes = ReadFile(path);
  if (!bytes.empty() && bytes[0] == '\n') return true;
  tw::Graph scratch(runtime);
  tw_status* status = tw_graph_import(scratch.c(), bytes.data(), bytes.size(), nullptr);
  const bool good = !status;
  tw_status_release(status);
  return good;
}

// Formats "float [batch, 3]".
std::string TypeText(const tw_model_value& v) {
  std::string text = DTypeText(v.dtype);
  if (v.shape->rank < 0) return text + " of any shape";
  text += " [";
  for (int32_t i = 0; i < v.shape->rank; ++i) {
    const char* symbol = v.symbols ? v.symbols[i] : "";
    text += (i ? ", " : "") + (v.shape->dims[i] >= 0 ? std::to_string(v.shape->dims[i]) : *symbol ? std::string(symbol) : "?");
  }
  return text + "]" + (v.is_optional ? ", may be left out" : "");
}

std::vector<std::vector<std::string>> Rows(const tw_model_value* const* values, uint32_t n, const char* what) {
  std::vector<std::vector<std::string>> rows;
  for (uint32_t i = 0; i < n; ++i) rows.push_back({std::string("  ") + what, OneLine(values[i]->name), TypeText(*values[i])});
  return rows;
}

void AddValues(const tw_model_value* const* values, uint32_t n, const char* key, Json* json) {
  json->Array(key);
  for (uint32_t i = 0; i < n; ++i) {
    const tw_model_value& v = *values[i];
    json->Object().Text("name", v.name).Text("dtype", DTypeText(v.dtype));
    if (v.shape->rank >= 0) {
      json->Array("shape");
      for (int32_t axis = 0; axis < v.shape->rank; ++axis) {
        if (v.shape->dims[axis] < 0 && v.symbols && *v.symbols[axis])
          json->Text("", v.symbols[axis]);
        else
          json->Number("", v.shape->dims[axis]);
      }
      json->End();
    }
    json->End();
  }
  json->End();
}

std::map<std::string, std::vector<int64_t>> FeedShapes(const Args& args) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const std::string& text : args.all("--feed-shape")) shapes.insert(ParseFeedShape(text));
  return shapes;
}

// Sizes of one name get one size: that of the first input which has it, or 1.
class Sizes {
 public:
  std::vector<int64_t> Choose(const tw_model_value& v, const std::map<std::string, std::vector<int64_t>>& asked) {
    const auto given = asked.find(v.name);
    MissingFeed feed{
        v.name, v.output, v.dtype, *v.shape, given == asked.end() ? std::vector<int64_t>() : given->second, given != asked.end()};
    std::vector<int64_t> dims = ChooseDims(feed);
    for (size_t i = 0; v.symbols && i < dims.size() && int32_t(i) < v.shape->rank; ++i) {
      if (!*v.symbols[i]) continue;
      const auto [known, added] = known_.emplace(v.symbols[i], dims[i]);
      if (!added && !feed.asked) dims[i] = known->second;
    }
    return dims;
  }

 private:
  std::map<std::string, int64_t> known_;
};

}  // namespace

std::optional<tw::Model> OpenModelFile(const Args& args, const tw::Runtime& runtime, const std::string& path) {
  const bool asked = args.has("--signature") || args.has("--random-inputs") || args.has("--inputs") || args.has("--importer");
  if (!asked && IsGraphFile(runtime, path)) return std::nullopt;
  tw::ModelOptions options;
  if (args.has("--importer")) options.importer = args.get("--importer");
  options.options = args.all("--model-option");
  options.session_options = args.all("--session-option");
  if (args.has("--threads")) options.session_options.push_back("threads=" + args.get("--threads"));
  if (args.has("--device")) {
    options.session_options.insert(options.session_options.begin(), {"device=" + args.get("--device"), "fallback=warn"});
  }
  if (args.has("--signature")) options.signatures = {args.get("--signature")};
  return tw::Model(runtime, path, options);
}

void PrintModel(const Args& args, const tw::Model& model, const std::string& path) {
  if (args.has("--json")) {
    Json json;
    json.Object().Text("importer", model.importer()).Object("properties");
    for (uint32_t i = 0; i < tw_model_property_count(model.c()); ++i) {
      const char *key = nullptr, *text = nullptr;
      tw::raise(tw_model_property(model.c(), i, &key, &text));
      json.Text(key, text);
    }
    json.End().Array("signatures");
    for (const tw_model_signature* s : model.signatures()) {
      json.Object().Text("name", s->name).Text("doc", s->doc);
      AddValues(s->inputs, s->n_inputs, "inputs", &json);
      AddValues(s->outputs, s->n_outputs, "outputs", &json);
      json.End();
    }
    std::fputs(json.End().End().text().c_str(), stdout);
    return;
  }
  std::printf("%s: loaded by importer '%s', %s\n", path.c_str(), model.importer().c_str(),
              Counted(tw_graph_count(tw_model_graph(model.c())), "operation").c_str());
  for (uint32_t i = 0; i < tw_model_property_count(model.c()); ++i) {
    const char *key = nullptr, *text = nullptr;
    tw::raise(tw_model_property(model.c(), i, &key, &text));
    std::printf("  %s: %s\n", OneLine(key).c_str(), OneLine(text).c_str());
  }
  const std::string first = model.signature().name;
  for (const tw_model_signature* s : model.signatures()) {
    std::printf("\n%s%s%s%s\n", Coloured(kBold, OneLine(s->name)).c_str(), *s->doc ? "  " : "", OneLine(s->doc).c_str(),
                s->name == first && model.signatures().size() > 1 ? "  (the default)" : "");
    std::fputs(Table(Rows(s->inputs, s->n_inputs, "in")).c_str(), stdout);
    std::fputs(Table(Rows(s->outputs, s->n_outputs, "out")).c_str(), stdout);
  }
}

Signature ReadModelSignature(const Args& args, const tw::Runtime& runtime, const tw::Model& model) {
  const tw_model_signature& s = model.signature(args.has("--signature") ? args.get("--signature") : "");
  Signature signature;
  std::map<std::string, std::string> given;
  for (const std::string& text : args.all("--feed")) {
    const auto [name, value] = SplitAtEquals(text);
    if (name.size() == text.size()) throw UsageError{"--feed takes NAME=VALUE, not '" + text + "'"};
    if (!given.emplace(name, value).second) throw UsageError{"'" + name + "' is fed twice"};
  }
  std::map<std::string, tw::Tensor> arrays;
  if (args.has("--inputs")) {
    for (auto& [name, array] : ReadArchive(args.get("--inputs"))) arrays.emplace(name, std::move(array));
  }
  const auto shapes = FeedShapes(args);
  std::mt19937_64 random(uint64_t(args.integer("--seed", 1, 0)));
  Sizes sizes;
  for (uint32_t i = 0; i < s.n_inputs; ++i) {
    const tw_model_value& v = *s.inputs[i];
    const auto value = given.find(v.name);
    try {
      if (value != given.end()) {
        signature.feeds.push_back({v.name, v.output, ReadFeed(runtime, v.name, value->second, v.dtype)});
        given.erase(value);
        arrays.erase(v.name);
      } else if (const auto array = arrays.find(v.name); array != arrays.end()) {
        signature.feeds.push_back({v.name, v.output, Cast(runtime, array->second, v.dtype)});
        arrays.erase(array);
      } else if (args.has("--random-inputs") && !v.is_optional) {
        signature.feeds.push_back({v.name, v.output, RandomTensor(runtime, v.dtype, sizes.Choose(v, shapes), &random)});
      }
    } catch (const std::exception& e) {
      throw std::runtime_error("input '" + std::string(v.name) + "': " + e.what());
    }
  }
  if (!given.empty()) throw UsageError{"signature '" + std::string(s.name) + "' has no input '" + given.begin()->first + "'"};
  if (!arrays.empty()) {
    throw std::runtime_error("'" + args.get("--inputs") + "' has an array '" + OneLine(arrays.begin()->first) + "', but signature '" +
                             s.name + "' has no such input");
  }
  const std::vector<std::string> wanted = args.all("--fetch");
  for (const std::string& text : wanted) {
    const std::string name = SplitAtEquals(text).first;
    const tw_model_value* found = nullptr;
    for (uint32_t i = 0; i < s.n_outputs; ++i) found = s.outputs[i]->name == name ? s.outputs[i] : found;
    if (!found) throw UsageError{"signature '" + std::string(s.name) + "' has no output '" + name + "'"};
    signature.fetches.push_back({name, found->output, {}});
  }
  for (uint32_t i = 0; wanted.empty() && i < s.n_outputs; ++i) signature.fetches.push_back({s.outputs[i]->name, s.outputs[i]->output, {}});
  return signature;
}

std::vector<tw::Tensor> RunModel(const Args& args, const tw::Model& model, const Signature& signature, int64_t timeout_ns,
                                 tw_step_stats* stats) {
  std::map<std::string, tw::Tensor> inputs;
  for (const Value& feed : signature.feeds) inputs.emplace(feed.name, feed.tensor);
  tw_run_options options = {};
  options.size = sizeof(options);
  options.timeout_ns = timeout_ns;
  options.stats = stats;
  auto outputs = model.run(inputs, args.has("--signature") ? args.get("--signature") : "", &options);
  std::vector<tw::Tensor> results;
  for (const Value& fetch : signature.fetches) results.push_back(outputs.at(fetch.name));
  return results;
}

std::vector<Option> ModelFileOptions() { return {kImporterOption, kModelOption}; }

}  // namespace thalweg::cli
