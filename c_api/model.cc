#include "thalweg/model.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "c_api/handles.h"
#include "c_api/shim.h"
#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/model/importers.h"
#include "framework/model/loaded_model.h"
#include "framework/model/model_source.h"
#include "thalweg/cpp/signature.hpp"

using thalweg::Enter;
using thalweg::FromC;
using thalweg::InvalidArgument;
using thalweg::LoadOptions;
using thalweg::ModelSignature;
using thalweg::ModelValue;
using thalweg::Shown;
using thalweg::Status;
using thalweg::StatusOr;
using thalweg::StrCat;

namespace thalweg {

// The C records of one signature, and its prepared run.
struct SignatureView {
  tw_model_signature c{};
  std::deque<tw_model_value> values;
  std::vector<const tw_model_value*> inputs, outputs;
  std::deque<tw_shape> shapes;
  std::deque<std::vector<const char*>> symbols;
  tw_callable* callable = nullptr;
};

}  // namespace thalweg

using thalweg::SignatureView;

struct tw_model {
  thalweg::LoadedModel loaded;
  std::string importer;
  std::unique_ptr<tw_graph> graph;
  tw_session* session = nullptr;
  std::deque<SignatureView> signatures;
  std::mutex mu;  // guards the callables

  ~tw_model() {
    for (SignatureView& s : signatures) tw_callable_destroy(s.callable);
    tw_session_destroy(session);
  }
};

namespace {

const tw_model_value* ViewOf(const tw_graph& graph, const ModelValue& v, SignatureView* view) {
  tw_model_value& c = view->values.emplace_back();
  c.size = sizeof c;
  c.name = v.name.c_str();
  c.shape = &view->shapes.emplace_back(v.shape.c());
  if (!v.symbols.empty()) {
    auto& texts = view->symbols.emplace_back();
    for (const std::string& symbol : v.symbols) texts.push_back(symbol.c_str());
    c.symbols = texts.data();
  }
  c.output = thalweg::EncodeOutput(*graph.graph, v.edge);
  c.dtype = v.dtype;
  c.is_optional = v.default_value ? 1 : 0;
  return &c;
}

void FillView(const tw_graph& graph, const ModelSignature& s, SignatureView* view) {
  for (const ModelValue& v : s.inputs) view->inputs.push_back(ViewOf(graph, v, view));
  for (const ModelValue& v : s.outputs) view->outputs.push_back(ViewOf(graph, v, view));
  view->c = {
      sizeof(tw_model_signature), 0, s.name.c_str(), s.doc.c_str(), view->inputs.data(), view->outputs.data(), uint32_t(s.inputs.size()),
      uint32_t(s.outputs.size())};
}

Status ToLoadOptions(const tw_model_options* options, LoadOptions* load) {
  if (!options) return Status();
  RETURN_IF_ERROR(thalweg::CheckRecord("tw_model_options", options->size, options->flags, sizeof(tw_model_options)));
  for (auto [list, n, name] : {std::tuple{options->options, options->n_options, "options"},
                               {options->session_options, options->n_session_options, "session_options"},
                               {options->signatures, options->n_signatures, "signatures"}}) {
    if (n > 0 && !list) return InvalidArgument("tw_model_options: ", name, " is NULL");
    for (uint32_t i = 0; i < n; ++i) {
      if (!list[i]) return InvalidArgument("tw_model_options: ", name, "[", i, "] is NULL");
    }
  }
  load->importer = thalweg::TextOrEmpty(options->importer);
  for (uint32_t i = 0; i < options->n_options; ++i) {
    std::string_view key, value;
    RETURN_IF_ERROR(thalweg::SplitOption(options->options[i], &key, &value));
    load->options.emplace_back(key, value);
  }
  load->signatures.assign(options->signatures, options->signatures + options->n_signatures);
  if (options->max_bytes) load->max_bytes = options->max_bytes;
  if (options->max_operations) load->max_operations = options->max_operations;
  if (options->max_unfolded_bytes) load->max_unfolded_bytes = options->max_unfolded_bytes;
  if (options->max_file_bytes) load->max_file_bytes = options->max_file_bytes;
  return Status();
}

Status OpenSession(const tw_model_options* options, tw_model* m) {
  std::vector<std::string> texts;
  if (m->loaded.reads_files) texts = {StrCat("allow_files=", m->loaded.folder), "write_files=false"};
  std::vector<const char*> all;
  for (const std::string& text : texts) all.push_back(text.c_str());
  for (uint32_t i = 0; options && i < options->n_session_options; ++i) all.push_back(options->session_options[i]);
  return FromC(tw_session_create(m->graph.get(), all.data(), uint32_t(all.size()), &m->session));
}

// The values that a run feeds and fetches, and the operations that it runs for their effects.
struct RunLists {
  std::vector<tw_output> feeds, fetches;
  std::vector<const tw_operation*> targets;

  Status AddTargets(const tw_graph& graph, const std::vector<const thalweg::Node*>& effects) {
    for (const thalweg::Node* n : effects) {
      ASSIGN_OR_RETURN(const tw_operation* op, thalweg::NeedOperationOf(graph, n));
      targets.push_back(op);
    }
    return Status();
  }
  tw_signature signature() const { return tw::signature_of(feeds, fetches, targets); }
};

Status RunStep(const thalweg::ModelStep& step, tw_model* m) {
  RunLists lists;
  std::vector<tw_tensor*> values;
  for (const thalweg::Edge& e : step.feeds) lists.feeds.push_back(thalweg::EncodeOutput(*m->graph->graph, e));
  for (const thalweg::Tensor& t : step.values) values.push_back(t.get());
  RETURN_IF_ERROR(lists.AddTargets(*m->graph, step.effects));
  const tw_signature what = lists.signature();
  return FromC(tw_session_run(m->session, &what, values.data(), nullptr, nullptr));
}

StatusOr<tw_callable*> CallableOf(tw_model* m, size_t i) {
  const ModelSignature& s = m->loaded.signatures[i];
  std::lock_guard lock(m->mu);
  SignatureView& view = m->signatures[i];
  if (view.callable) return view.callable;
  RunLists lists;
  for (const tw_model_value* v : view.inputs) lists.feeds.push_back(v->output);
  for (const tw_model_value* v : view.outputs) lists.fetches.push_back(v->output);
  RETURN_IF_ERROR(lists.AddTargets(*m->graph, s.effects));
  const tw_signature what = lists.signature();
  Status made = FromC(tw_callable_create(m->session, &what, &view.callable));
  if (!made.ok()) return thalweg::Prefix(made, StrCat("signature '", Shown(s.name), "':"));
  return view.callable;
}

// Checks one input, and that sizes of one name agree. sizes: those of the inputs before.
Status CheckInput(const ModelSignature& s, const ModelValue& v, const tw_tensor& t, std::map<std::string_view, int64_t>* sizes) {
  const auto at = [&] { return StrCat("signature '", Shown(s.name), "': input '", Shown(v.name), "' "); };
  if (t.view.dtype != v.dtype) {
    return InvalidArgument(at(), "is ", thalweg::DTypeName(t.view.dtype), "; the model takes ", thalweg::DTypeName(v.dtype));
  }
  if (!v.shape.Admits(t.view.dims, t.view.rank)) {
    return InvalidArgument(at(), "has shape ", thalweg::ShapeText(t.view.dims, t.view.rank), "; the model takes ", v.shape.text());
  }
  for (size_t i = 0; i < v.symbols.size(); ++i) {
    if (v.symbols[i].empty()) continue;
    const auto [known, added] = sizes->emplace(v.symbols[i], t.view.dims[i]);
    if (!added && known->second != t.view.dims[i]) {
      return InvalidArgument(at(), "has ", t.view.dims[i], " elements on axis ", i, ", which is '", Shown(v.symbols[i]), "', and that is ",
                             known->second, " elsewhere");
    }
  }
  return Status();
}

Status CheckInputs(const ModelSignature& s, tw_tensor* const* inputs, std::vector<tw_tensor*>* feeds) {
  std::map<std::string_view, int64_t> sizes;
  std::string missing;
  for (size_t i = 0; i < s.inputs.size(); ++i) {
    const ModelValue& v = s.inputs[i];
    tw_tensor* t = inputs[i] ? inputs[i] : v.default_value.get();
    if (!t) {
      missing += StrCat(missing.empty() ? "'" : ", '", Shown(v.name), "'");
      continue;
    }
    RETURN_IF_ERROR(CheckInput(s, v, *t, &sizes));
    feeds->push_back(t);
  }
  if (missing.empty()) return Status();
  return InvalidArgument("signature '", Shown(s.name), "': these inputs are missing: ", missing);
}

}  // namespace

tw_status* tw_model_load(tw_runtime* runtime, const char* path, const tw_model_options* options, tw_model** out_model) {
  NEED(path);
  NEED(out_model);
  *out_model = nullptr;
  return Enter([&]() -> Status {
    LoadOptions load;
    RETURN_IF_ERROR(ToLoadOptions(options, &load));
    ASSIGN_OR_RETURN(auto r, thalweg::RuntimeOf(runtime));
    auto model = std::make_unique<tw_model>();
    ASSIGN_OR_RETURN(model->loaded, thalweg::LoadModel(std::move(r), path, load));
    model->importer = model->loaded.importer->name;
    model->graph = std::make_unique<tw_graph>(model->loaded.graph);
    for (const ModelSignature& s : model->loaded.signatures) FillView(*model->graph, s, &model->signatures.emplace_back());
    RETURN_IF_ERROR(OpenSession(options, model.get()));
    for (size_t i = 0; i < model->loaded.steps.size(); ++i) {
      const Status ran = RunStep(model->loaded.steps[i], model.get());
      if (!ran.ok()) return thalweg::Prefix(ran, StrCat("cannot initialise '", Shown(path), "':"));
    }
    model->loaded.steps.clear();  // releases the values
    *out_model = model.release();
    return Status();
  });
}

tw_status* tw_model_recognise(tw_runtime* runtime, const char* path, tw_buffer** out_importer) {
  NEED(path);
  NEED(out_importer);
  return Enter([&]() -> Status {
    ASSIGN_OR_RETURN(const auto r, thalweg::RuntimeOf(runtime));
    ASSIGN_OR_RETURN(const auto source, thalweg::ModelSource::Open(path, &r->files()));
    ASSIGN_OR_RETURN(const auto importer, thalweg::ChooseImporter(r->registry(), *source, ""));
    *out_importer = thalweg::MakeBuffer(importer->name);
    return Status();
  });
}

tw_status* tw_model_importers(tw_runtime* runtime, tw_buffer** out_text) {
  NEED(out_text);
  return Enter([&]() -> Status {
    ASSIGN_OR_RETURN(const auto r, thalweg::RuntimeOf(runtime));
    *out_text = thalweg::MakeBuffer(thalweg::DescribeImporters(r->registry()));
    return Status();
  });
}

void tw_model_destroy(tw_model* model) { delete model; }

const char* tw_model_importer(const tw_model* model) { return model ? model->importer.c_str() : nullptr; }

uint32_t tw_model_property_count(const tw_model* model) { return model ? uint32_t(model->loaded.properties.size()) : 0; }

tw_status* tw_model_property(const tw_model* model, uint32_t i, const char** out_key, const char** out_text) {
  NEED(model);
  return Enter([&]() -> Status {
    const auto& all = model->loaded.properties;
    if (i >= all.size()) return InvalidArgument("the model has ", all.size(), " properties, not one of number ", i);
    if (out_key) *out_key = all[i].first.c_str();
    if (out_text) *out_text = all[i].second.c_str();
    return Status();
  });
}

uint32_t tw_model_signature_count(const tw_model* model) { return model ? uint32_t(model->signatures.size()) : 0; }

const tw_model_signature* tw_model_signature_at(const tw_model* model, uint32_t i) {
  return i < tw_model_signature_count(model) ? &model->signatures[i].c : nullptr;
}

tw_status* tw_model_find(const tw_model* model, const char* name, const tw_model_signature** out_signature) {
  NEED(model);
  NEED(out_signature);
  return Enter([&]() -> Status {
    ASSIGN_OR_RETURN(const size_t i, thalweg::FindSignature(model->loaded, thalweg::TextOrEmpty(name)));
    *out_signature = &model->signatures[i].c;
    return Status();
  });
}

tw_graph* tw_model_graph(tw_model* model) { return model ? model->graph.get() : nullptr; }
tw_session* tw_model_session(tw_model* model) { return model ? model->session : nullptr; }

tw_status* tw_model_callable(tw_model* model, const char* name, tw_callable** out_callable) {
  NEED(model);
  NEED(out_callable);
  return Enter([&]() -> Status {
    ASSIGN_OR_RETURN(const size_t i, thalweg::FindSignature(model->loaded, thalweg::TextOrEmpty(name)));
    ASSIGN_OR_RETURN(*out_callable, CallableOf(model, i));
    return Status();
  });
}

tw_status* tw_model_run(tw_model* model, const char* signature, tw_tensor* const* inputs, const tw_run_options* options,
                        tw_tensor** out_outputs) {
  NEED(model);
  tw_callable* callable = nullptr;
  std::vector<tw_tensor*> feeds;
  tw_status* failed = Enter([&]() -> Status {
    ASSIGN_OR_RETURN(const size_t i, thalweg::FindSignature(model->loaded, thalweg::TextOrEmpty(signature)));
    const ModelSignature& s = model->loaded.signatures[i];
    if (!out_outputs && !s.outputs.empty()) return InvalidArgument("tw_model_run: out_outputs is NULL");
    if (out_outputs) std::fill(out_outputs, out_outputs + s.outputs.size(), nullptr);
    if (!inputs && !s.inputs.empty()) return InvalidArgument("tw_model_run: inputs is NULL");
    RETURN_IF_ERROR(CheckInputs(s, inputs, &feeds));
    ASSIGN_OR_RETURN(callable, CallableOf(model, i));
    return Status();
  });
  return failed ? failed : tw_callable_run(callable, feeds.data(), options, out_outputs);
}
