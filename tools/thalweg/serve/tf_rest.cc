#include "tf_rest.h"

#include <algorithm>

#include "datatype.h"
#include "http_error.h"
#include "json.h"
#include "json_tensor.h"
#include "parse_json.h"
#include "utf8.h"

namespace thalweg::cli::serve {
namespace {

using nlohmann::json;

// ---- Status and metadata ----

// Returns the name of a code as TensorFlow's protocol spells it.
const char* CodeName(uint32_t code) {
  static constexpr const char* kNames[] = {"OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
                                           "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
                                           "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
                                           "DATA_LOSS", "UNAUTHENTICATED"};
  return code < std::size(kNames) ? kNames[code] : "UNKNOWN";
}

Answer StatusOf(const ModelCall& call, const std::string& version) {
  Json out;
  bool any = false;
  out.Object().Array("model_version_status");
  for (const Repository::Status& s : call.repository->Report(call.path[2])) {
    if (!version.empty() && version != std::to_string(s.version)) continue;
    any = true;
    out.Object().Text("version", std::to_string(s.version)).Text("state", s.state).Object("status");
    out.Text("error_code", CodeName(s.code)).Text("error_message", s.error).End().End();
  }
  if (!any && !version.empty()) call.repository->Find(call.path[2], version);  // throws and names the versions
  return {200, out.End().End().text()};
}

std::string DtName(uint32_t dtype) {
  std::string text = tw_dtype_name(dtype) ? tw_dtype_name(dtype) : "invalid";
  std::transform(text.begin(), text.end(), text.begin(), [](char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; });
  return "DT_" + text;
}

// Returns the name of a value in the model's graph, such as "dense/MatMul:0".
std::string TensorName(const ServedModel& model, tw_output output) {
  const tw_operation* operation = nullptr;
  uint32_t index = 0;
  tw::raise(tw_graph_producer(tw_model_graph(model.model().c()), output, &operation, &index));
  return std::string(tw_operation_name(operation)) + ":" + std::to_string(index);
}

void AddValues(const ServedModel& model, const tw_model_value* const* values, uint32_t n, const char* key, Json* out) {
  out->Object(key);
  for (uint32_t i = 0; i < n; ++i) {
    const tw_model_value& v = *values[i];
    out->Object(v.name).Text("dtype", DtName(v.dtype)).Object("tensor_shape").Array("dim");
    for (int32_t axis = 0; axis < v.shape->rank; ++axis) {
      out->Object().Text("size", std::to_string(v.shape->dims[axis])).Text("name", v.symbols ? v.symbols[axis] : "").End();
    }
    out->End().Bool("unknown_rank", v.shape->rank < 0).End().Text("name", TensorName(model, v.output)).End();
  }
  out->End();
}

Answer MetadataOf(const ModelCall& call) {
  Json out;
  out.Object()
      .Object("model_spec")
      .Text("name", call.model->name())
      .Text("signature_name", "")
      .Text("version", call.model->version())
      .End();
  out.Object("metadata").Object("signature_def").Object("signature_def");
  for (const tw_model_signature* s : call.model->model().signatures()) {
    out.Object(s->name);
    AddValues(*call.model, s->inputs, s->n_inputs, "inputs", &out);
    AddValues(*call.model, s->outputs, s->n_outputs, "outputs", &out);
    out.Text("method_name", "tensorflow/serving/predict").End();
  }
  return {200, out.End().End().End().End().text()};
}

// ---- Predict ----

bool IsBase64(const json& value) { return value.is_object() && value.size() == 1 && Member(value, "b64"); }

tw::Tensor ReadValue(const ServedModel& model, const tw_model_value& wanted, const json& value, Charge* charge) {
  RequireCarried(model, "input", wanted);
  return ReadNested(value, wanted.dtype, *wanted.shape, model.Where("input", wanted.name), charge);
}

// The only input of a signature may be given without its name.
const tw_model_value& OnlyInput(const ServedModel& model, const tw_model_signature& s, const char* key) {
  if (s.n_inputs == 1) return *s.inputs[0];
  throw HttpError(400, "model '" + model.name() + "', signature '" + s.name + "' has " + std::to_string(s.n_inputs) + " inputs: \"" + key +
                           "\" must give them by name");
}

// Whether the value has its inputs by name.
bool ByName(const tw_model_signature& s, const json& value) {
  return value.is_object() && (!IsBase64(value) || (s.n_inputs == 1 && std::string_view(s.inputs[0]->name) == "b64"));
}

// {"inputs": VALUE} or {"inputs": {NAME: VALUE}}
Inputs ReadColumns(const ServedModel& model, const tw_model_signature& s, const json& given, Charge* charge) {
  Inputs inputs(s.n_inputs);
  if (!ByName(s, given)) {
    inputs[0] = ReadValue(model, OnlyInput(model, s, "inputs"), given, charge);
    return inputs;
  }
  for (const auto& [name, value] : given.items()) {
    const size_t at = InputAt(model, s, name);
    inputs[at] = ReadValue(model, *s.inputs[at], value, charge);
  }
  return inputs;
}

// {"instances": [VALUE, ...]} or {"instances": [{NAME: VALUE, ...}, ...]}. The rows of each input become one value. Takes them out.
Inputs ReadRows(const ServedModel& model, const tw_model_signature& s, json* given, Charge* charge) {
  if (!given->is_array() || given->empty())
    throw HttpError(400, "\"instances\" is " + Shown(*given) + "; a list of at least one is expected");
  Inputs inputs(s.n_inputs);
  if (!ByName(s, given->front())) {
    inputs[0] = ReadValue(model, OnlyInput(model, s, "instances"), *given, charge);
    return inputs;
  }
  const size_t keys = given->front().size();
  const uint64_t bytes = std::min<uint64_t>(keys, s.n_inputs) * given->size() * sizeof(json);
  charge->Add(bytes);  // only inputs that instance 0 names get a column
  std::vector<json> columns(s.n_inputs, json::array());
  for (size_t row = 0; row < given->size(); ++row) {
    json& instance = (*given)[row];
    const std::string where = "instance " + std::to_string(row);
    if (!instance.is_object()) throw HttpError(400, where + " is " + Shown(instance) + "; instance 0 has its inputs by name");
    if (instance.size() != keys)
      throw HttpError(400, where + " has " + std::to_string(instance.size()) + " inputs, instance 0 has " + std::to_string(keys));
    for (auto member = instance.begin(); member != instance.end(); ++member) {
      json& column = columns[InputAt(model, s, member.key())];
      if (column.size() != row)
        throw HttpError(400, where + " has input '" + ShownName(member.key()) + "', which an earlier one does not have");
      if (row == 0) column.get_ref<json::array_t&>().reserve(given->size());
      column.push_back(std::move(member.value()));
    }
  }
  for (uint32_t i = 0; i < s.n_inputs; ++i) {
    if (!columns[i].empty()) inputs[i] = ReadValue(model, *s.inputs[i], columns[i], charge);
  }
  columns.clear();
  charge->Remove(bytes);
  return inputs;
}

// TensorFlow Serving writes strings of outputs with such names in base64.
bool IsBytes(const tw_model_value& value) { return std::string_view(value.name).ends_with("_bytes"); }

Answer Columns(const ModelCall& call, const tw_model_signature& s, const std::vector<Part>& parts) {
  const ServedModel& model = *call.model;
  ChargedText out = call.NewText();
  out += "{\"outputs\": ";
  if (s.n_outputs == 1) {
    WriteNested(parts[0], IsBytes(*s.outputs[0]), model.Where("output", s.outputs[0]->name), &out);
    out += "}\n";
    return GoodAnswer(std::move(out));
  }
  for (uint32_t i = 0; i < s.n_outputs; ++i) {
    out += (i ? ", " : "{") + JsonQuote(s.outputs[i]->name) + ": ";
    WriteNested(parts[i], IsBytes(*s.outputs[i]), model.Where("output", s.outputs[i]->name), &out);
  }
  out += "}}\n";
  return GoodAnswer(std::move(out));
}

Answer Rows(const ModelCall& call, const tw_model_signature& s, const std::vector<Part>& parts, int64_t rows) {
  const ServedModel& model = *call.model;
  std::vector<std::string> where;
  for (uint32_t i = 0; i < s.n_outputs; ++i) {
    where.push_back(model.Where("output", s.outputs[i]->name));
    if (!parts[i].dims.empty() && parts[i].dims[0] == rows) continue;
    throw HttpError(400, where[i] + ": its shape is " + DimsText(parts[i].dims) + " for " + std::to_string(rows) +
                             " instances; give the values as \"inputs\"");
  }
  ChargedText out = call.NewText();
  out += "{\"predictions\": [";
  for (int64_t row = 0; row < rows; ++row) {
    out += row ? ", " : "";
    for (uint32_t i = 0; i < s.n_outputs; ++i) {
      if (s.n_outputs > 1) out += (i ? ", " : "{") + JsonQuote(s.outputs[i]->name) + ": ";
      WriteRow(parts[i], row, IsBytes(*s.outputs[i]), where[i], &out);
    }
    if (s.n_outputs > 1) out += "}";
  }
  out += "]}\n";
  return GoodAnswer(std::move(out));
}

Answer Predict(ModelCall* call) {
  const ServedModel& model = *call->model;
  Charge json_charge = call->NewCharge();
  json request = ParseJson(call->TakeBody(0).text, call->json_memory(), &json_charge);
  if (!request.is_object()) throw HttpError(400, "the request is " + Shown(request) + ", not a JSON object");
  const json* name = Member(request, "signature_name");
  if (name && !name->is_string()) throw HttpError(400, "\"signature_name\" is " + Shown(*name) + ", not a string");
  const tw_model_signature& s = model.signature(name ? name->get<std::string>() : "");
  for (uint32_t i = 0; i < s.n_outputs; ++i) RequireCarried(model, "output", *s.outputs[i]);
  const auto rows = request.find("instances"), columns = request.find("inputs");
  if ((rows == request.end()) == (columns == request.end())) {
    throw HttpError(400, std::string("the request has ") + (rows == request.end() ? "neither" : "both") + " \"instances\" " +
                             (rows == request.end() ? "nor" : "and") + " \"inputs\"; give one of them");
  }
  const Deadline deadline = call->DeadlineAfter(std::chrono::microseconds(0));
  Charge charge = call->NewCharge();
  Inputs inputs = columns != request.end() ? ReadColumns(model, s, *columns, &charge) : ReadRows(model, s, &*rows, &charge);
  const int64_t n = columns != request.end() ? 0 : int64_t(rows->size());
  const std::vector<Part> parts = call->model->Run(s, std::move(inputs), std::move(charge), deadline, &call->call->cancellation);
  return columns != request.end() ? Columns(*call, s, parts) : Rows(*call, s, parts, n);
}

}  // namespace

Answer ServeV1(ModelCall* call) {
  // v1 models NAME[:VERB], v1 models NAME versions|labels X[:VERB], either with metadata behind it
  const std::string shown = "'" + OneLine(call->call->path) + "'";
  const std::string known = "; /v1/models/NAME, .../metadata and NAME:predict are";
  if (call->path.size() < 3 || call->path[1] != "models") throw HttpError(404, shown + " is not served" + known);
  std::string verb;
  std::string& last = call->path.back();
  if (const size_t colon = last.rfind(':'); colon != last.npos) {
    verb = last.substr(colon + 1);
    last.resize(colon);
    if (verb != "predict" && verb != "classify" && verb != "regress")
      throw HttpError(404, shown + ": ':" + OneLine(verb) + "' is not known; ':predict' is");
    if (verb != "predict") throw HttpError(501, shown + ": ':" + verb + "' is not served; use ':predict'");
  }
  std::vector<std::string> rest(call->path.begin() + 3, call->path.end());
  std::string version, label;
  if (rest.size() >= 2 && (rest[0] == "versions" || rest[0] == "labels")) {
    (rest[0] == "versions" ? version : label) = rest[1];
    rest.erase(rest.begin(), rest.begin() + 2);
  }
  const bool metadata = verb.empty() && rest.size() == 1 && rest[0] == "metadata";
  if (!rest.empty() && !metadata) throw HttpError(404, shown + " is not served" + known);
  RequireMethod(*call->call, verb.empty() ? "GET" : "POST");
  const std::string& name = call->path[2];
  if (verb.empty() && !metadata && label.empty()) return StatusOf(*call, version);
  call->model = label.empty() ? call->repository->Find(name, version) : call->repository->FindLabel(name, label);
  if (metadata) return MetadataOf(*call);
  return verb.empty() ? StatusOf(*call, call->model->version()) : Predict(call);
}

}  // namespace thalweg::cli::serve
