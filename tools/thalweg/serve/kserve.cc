#include "kserve.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "binary_tensor.h"
#include "datatype.h"
#include "http_error.h"
#include "json.h"
#include "json_tensor.h"
#include "parse_json.h"
#include "utf8.h"

namespace thalweg::cli::serve {
namespace {

using nlohmann::json;
constexpr const char* kLengthHeader = "Inference-Header-Content-Length";

Answer Good(const Json& text) { return {200, text.text()}; }

// ---- What the server and the models are ----

Answer ServerMetadata() {
  Json out;
  out.Object().Text("name", "thalweg").Text("version", tw_version_string()).Array("extensions").Text("", "binary_tensor_data");
  return Good(out.End().End());
}

Answer Health(const ModelCall& call) {
  const bool live = call.path[2] == "live";
  if (!live && call.path[2] != "ready")
    throw HttpError(404, "'" + OneLine(call.call->path) + "' is not served; /v2/health/live and /v2/health/ready are");
  const bool good = live || call.repository->ready();
  Json out;
  out.Object().Bool(live ? "live" : "ready", good).End();
  return {good ? 200 : 503, out.text()};
}

void AddValues(const tw_model_value* const* values, uint32_t n, const char* key, Json* out) {
  out->Array(key);
  for (uint32_t i = 0; i < n; ++i) {
    out->Object().Text("name", values[i]->name).Text("datatype", DatatypeName(values[i]->dtype)).Array("shape");
    for (int32_t axis = 0; axis < values[i]->shape->rank; ++axis) out->Number("", values[i]->shape->dims[axis]);
    out->End().End();
  }
  out->End();
}

Answer ModelMetadata(const ModelCall& call) {
  const tw_model_signature& s = call.model->signature("");
  Json out;
  out.Object().Text("name", call.model->name()).Array("versions");
  for (const std::string& version : call.repository->Served(call.model->name())) out.Text("", version);
  out.End().Text("platform", call.model->model().importer() == "onnx" ? "onnx_onnxv1" : "thalweg_" + call.model->model().importer());
  AddValues(s.inputs, s.n_inputs, "inputs", &out);
  AddValues(s.outputs, s.n_outputs, "outputs", &out);
  return Good(out.End());
}

// ---- Requests ----

// A member of the request, for messages: "inputs[1]".
const json& Required(const json& object, const char* key, json::value_t type, const std::string& where) {
  const json* value = Member(object, key);
  const auto number = [](json::value_t t) { return t == json::value_t::number_integer ? json::value_t::number_unsigned : t; };
  if (!value) throw HttpError(400, where + " has no \"" + key + "\"");
  if (number(value->type()) != type)
    throw HttpError(400, where + ": \"" + key + "\" is " + Shown(*value) + ", which is of another type than the protocol says");
  return *value;
}

// Returns the parameters of a part of the request; an empty object if it has none.
const json& Parameters(const json& object, const std::string& where) {
  static const json none = json::object();
  return Member(object, "parameters") ? Required(object, "parameters", json::value_t::object, where) : none;
}

bool Flag(const json& parameters, const char* key, bool other, const std::string& where) {
  const json* value = Member(parameters, key);
  if (!value) return other;
  if (!value->is_boolean()) throw HttpError(400, where + ": parameter \"" + key + "\" is " + Shown(*value) + ", not true or false");
  return value->get<bool>();
}

std::optional<uint64_t> Count(const json& parameters, const char* key, const std::string& where) {
  const json* value = Member(parameters, key);
  if (!value) return std::nullopt;
  if (!value->is_number_unsigned())
    throw HttpError(400, where + ": parameter \"" + key + "\" is " + Shown(*value) + ", not a number of at least 0");
  return value->get<uint64_t>();
}

std::vector<int64_t> Shape(const json& input, const std::string& where) {
  std::vector<int64_t> dims;
  for (const json& dim : Required(input, "shape", json::value_t::array, where)) {
    if (!dim.is_number_unsigned() || dim.get<uint64_t>() > uint64_t(INT64_MAX)) {
      throw HttpError(400, where + ": shape has " + Shown(dim) + ", which is no size");
    }
    dims.push_back(dim.get<int64_t>());
  }
  return dims;
}

// A body, and its two parts: the JSON and the binary data behind it.
struct Request {
  Body body;
  Charge charge;  // for the JSON's values
  json header;
  std::string_view binary;
};

// Reads the body. The length of the JSON is known before, so that the binary data can be aligned.
Request Parse(const ModelCall& call) {
  const std::string length = call.call->header(kLengthHeader);
  size_t n = 0;
  const auto [end, error] = std::from_chars(length.data(), length.data() + length.size(), n);
  const bool good = error == std::errc() && end == length.data() + length.size();
  Request request = {.charge = call.NewCharge()};
  request.body = call.TakeBody(good ? n : 0);
  const std::string_view text = request.body.text;
  if (length.empty()) {
    n = text.size();
  } else if (!good || n > text.size()) {
    throw HttpError(400,
                    std::string(kLengthHeader) + " is '" + ShownName(length) + "'; the body has " + std::to_string(text.size()) + " bytes");
  }
  request.header = ParseJson(text.substr(0, n), call.json_memory(), &request.charge);
  request.binary = text.substr(n);
  if (!request.header.is_object()) throw HttpError(400, "the request is " + Shown(request.header) + ", not a JSON object");
  return request;
}

// Takes the input's bytes from the front of `binary`.
tw::Tensor ReadInput(const ServedModel& model, const json& input, const tw_model_value& wanted, const Body& body, std::string_view* binary,
                     Charge* charge) {
  const std::string where = model.Where("input", wanted.name);
  RequireCarried(model, "input", wanted);
  const std::string& datatype = Required(input, "datatype", json::value_t::string, where).get_ref<const std::string&>();
  if (FindDatatype(datatype) == TW_INVALID_TYPE)
    throw HttpError(
        400, where + ": datatype '" + ShownName(datatype) + "' is none of the protocol's; " + DatatypeName(wanted.dtype) + " is expected");
  if (FindDatatype(datatype) != wanted.dtype)
    throw HttpError(400, where + ": the datatype is " + datatype + "; " + DatatypeName(wanted.dtype) + " is expected");
  const std::vector<int64_t> dims = Shape(input, where);
  if (dims.size() > 254) throw HttpError(400, where + ": shape has " + std::to_string(dims.size()) + " sizes; a tensor has at most 254");
  const auto size = Count(Parameters(input, where), "binary_data_size", where);
  const json* data = Member(input, "data");
  if (size && data) throw HttpError(400, where + ": it has both \"data\" and binary data; send one of them");
  if (!size && !data) throw HttpError(400, where + ": it has neither \"data\" nor the parameter binary_data_size");
  if (data) return ReadData(*data, wanted.dtype, dims, where, charge);
  if (*size > binary->size()) {
    throw HttpError(400, where + ": binary_data_size is " + std::to_string(*size) + ", but " + std::to_string(binary->size()) +
                             " bytes are left behind the JSON; " + kLengthHeader + " must be the length of the JSON");
  }
  const std::string_view bytes = binary->substr(0, *size);
  binary->remove_prefix(*size);
  return ReadBinary(bytes, body.storage, wanted.dtype, dims, where, charge);
}

Inputs ReadInputs(const ServedModel& model, const tw_model_signature& s, const Request& request, Charge* charge) {
  Inputs inputs(s.n_inputs);
  std::string_view binary = request.binary;
  for (const json& input : Required(request.header, "inputs", json::value_t::array, "the request")) {
    if (!input.is_object()) throw HttpError(400, "the request: an input is " + Shown(input) + ", not an object");
    const std::string& name = Required(input, "name", json::value_t::string, "an input of the request").get_ref<const std::string&>();
    const size_t at = InputAt(model, s, name);
    if (inputs[at]) throw HttpError(400, model.Where("input", name) + ": it comes twice");
    inputs[at] = ReadInput(model, input, *s.inputs[at], request.body, &binary, charge);
  }
  if (!binary.empty()) {
    throw HttpError(
        400, std::to_string(binary.size()) + " bytes behind the JSON belong to no input; check binary_data_size and " + kLengthHeader);
  }
  return inputs;
}

// An output that the request wants.
struct Wanted {
  uint32_t at;
  bool binary;
};

std::vector<Wanted> WantedOutputs(const ServedModel& model, const tw_model_signature& s, const json& request) {
  const bool all_binary = Flag(Parameters(request, "the request"), "binary_data_output", false, "the request");
  std::vector<Wanted> wanted;
  const json* asked = Member(request, "outputs");
  if (!asked || (asked->is_array() && asked->empty())) {
    for (uint32_t i = 0; i < s.n_outputs; ++i) wanted.push_back({i, all_binary});
    return wanted;
  }
  for (const json& output : Required(request, "outputs", json::value_t::array, "the request")) {
    if (!output.is_object()) throw HttpError(400, "the request: an output is " + Shown(output) + ", not an object");
    const std::string& name = Required(output, "name", json::value_t::string, "an output of the request").get_ref<const std::string&>();
    const std::string where = model.Where("output", ShownName(name));
    const auto found = std::find_if(s.outputs, s.outputs + s.n_outputs, [&](const auto* v) { return v->name == name; });
    if (found == s.outputs + s.n_outputs) {
      std::string names;
      for (uint32_t i = 0; i < s.n_outputs; ++i) names += (i ? ", '" : "'") + std::string(s.outputs[i]->name) + "'";
      throw HttpError(400, "model '" + model.name() + "' has no output '" + ShownName(name) + "'; its outputs are " + names);
    }
    const auto at = uint32_t(found - s.outputs);
    if (std::any_of(wanted.begin(), wanted.end(), [&](const Wanted& w) { return w.at == at; }))
      throw HttpError(400, where + ": it comes twice");
    const json& parameters = Parameters(output, where);
    if (Member(parameters, "classification")) throw HttpError(400, where + ": the classification extension is not served");
    wanted.push_back({at, Flag(parameters, "binary_data", all_binary, where)});
  }
  return wanted;
}

// ---- Answers ----

// Appends an output's entry to the JSON. Its bytes, if it goes as such, come behind the JSON.
void AddOutput(const ServedModel& model, const tw_model_value& value, const Part& part, bool binary, ChargedText* out) {
  *out += "{\"name\": " + JsonQuote(value.name) + ", \"datatype\": \"" + DatatypeName(part.tensor.dtype()) +
          "\", \"shape\": " + DimsText(part.dims);
  if (binary) {
    *out += ", \"parameters\": {\"binary_data_size\": " + std::to_string(BinaryBytes(part)) + "}}";
    return;
  }
  *out += ", \"data\": ";
  WriteFlat(part, model.Where("output", value.name), out);
  *out += "}";
}

Answer InferAnswer(const ModelCall& call, const tw_model_signature& s, const json& request, const std::vector<Wanted>& wanted,
                   const std::vector<Part>& parts) {
  const ServedModel& model = *call.model;
  ChargedText out = call.NewText();
  out += "{\"model_name\": " + JsonQuote(model.name()) + ", \"model_version\": \"" + model.version() + "\"";
  if (const json* id = Member(request, "id"); id && id->is_string() && !id->get_ref<const std::string&>().empty()) {
    out += ", \"id\": ";
    AppendJsonString(id->get_ref<const std::string&>(), &out);
  }
  out += ", \"outputs\": [";
  uint64_t bytes = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const Part& part = parts[wanted[i].at];
    if (i) out += ", ";
    AddOutput(model, *s.outputs[wanted[i].at], part, wanted[i].binary, &out);
    if (wanted[i].binary) bytes += BinaryBytes(part);
  }
  out += "]}";
  if (std::none_of(wanted.begin(), wanted.end(), [](const Wanted& w) { return w.binary; })) {
    out += '\n';
    return GoodAnswer(std::move(out));
  }
  const std::string length = std::to_string(out.size());
  out.Reserve(out.size() + bytes);
  for (const Wanted& w : wanted) {
    if (w.binary) WriteBinary(parts[w.at], &out);
  }
  return GoodAnswer(std::move(out), "application/octet-stream", {{kLengthHeader, length}});
}

Answer Infer(ModelCall* call) {
  RequireMethod(*call->call, "POST");
  const ServedModel& model = *call->model;
  const Request request = Parse(*call);
  const json& parameters = Parameters(request.header, "the request");
  const json* name = Member(parameters, "signature_name");
  if (name && !name->is_string()) throw HttpError(400, "the request: parameter \"signature_name\" is " + Shown(*name) + ", not a string");
  const tw_model_signature& s = model.signature(name ? name->get<std::string>() : "");
  const auto microseconds = Count(parameters, "timeout", "the request");
  const Deadline deadline = call->DeadlineAfter(std::chrono::microseconds(std::min<uint64_t>(microseconds.value_or(0), INT64_MAX / 4096)));
  const std::vector<Wanted> wanted = WantedOutputs(model, s, request.header);
  for (const Wanted& w : wanted) RequireCarried(model, "output", *s.outputs[w.at]);
  Charge charge = call->NewCharge();
  Inputs inputs = ReadInputs(model, s, request, &charge);
  const std::vector<Part> parts = call->model->Run(s, std::move(inputs), std::move(charge), deadline, &call->call->cancellation);
  return InferAnswer(*call, s, request.header, wanted, parts);
}

Answer OfModel(ModelCall* call) {
  // v2 models NAME [versions V] [infer | ready]
  std::vector<std::string> rest(call->path.begin() + 3, call->path.end());
  std::string version;
  if (rest.size() >= 2 && rest[0] == "versions") {
    version = rest[1];
    rest.erase(rest.begin(), rest.begin() + 2);
  }
  const std::string what = rest.empty() ? "" : rest[0];
  if (rest.size() > 1 || (!what.empty() && what != "infer" && what != "ready")) {
    throw HttpError(404, "'" + OneLine(call->call->path) + "' is not served; /v2/models/NAME, .../ready and .../infer are");
  }
  RequireMethod(*call->call, what == "infer" ? "POST" : "GET");
  call->model = call->repository->Find(call->path[2], version);
  if (what == "infer") return Infer(call);
  if (what.empty()) return ModelMetadata(*call);
  Json out;
  out.Object().Text("name", call->model->name()).Bool("ready", true);
  return Good(out.End());
}

}  // namespace

Answer ServeV2(ModelCall* call) {
  if (call->path.size() > 2 && call->path[1] == "models") return OfModel(call);
  const bool health = call->path.size() == 3 && call->path[1] == "health";
  if (!health && call->path.size() != 1)
    throw HttpError(404, "'" + OneLine(call->call->path) + "' is not served; /v2, /v2/health and /v2/models/NAME are");
  RequireMethod(*call->call, "GET");
  return health ? Health(*call) : ServerMetadata();
}

}  // namespace thalweg::cli::serve
