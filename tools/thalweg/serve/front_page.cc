#include "front_page.h"

#include <algorithm>
#include <optional>

#include "datatype.h"
#include "http_error.h"
#include "json.h"
#include "utf8.h"

namespace thalweg::cli::serve {
namespace {

constexpr size_t kMostModels = 100;        // that the page lists
constexpr uint64_t kMostValues = 64;       // that an example writes as JSON
constexpr uint64_t kMostBytes = 16 << 20;  // that an example sends as bytes

// Returns the address by which the client has reached the server, as far as it may stand in a command of a shell.
std::string Host(const ModelCall& call) {
  static constexpr std::string_view kKnown = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]";
  const std::string host = call.call->header("Host");
  const bool plain = !host.empty() && host.size() <= 255 && host.find_first_not_of(kKnown) == host.npos;
  return plain ? host : "HOST:PORT";
}

// Returns a name as a segment of an address.
std::string Segment(const std::string& name) {
  static constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
  static constexpr const char* kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : name) {
    if (kPlain.find(c) != kPlain.npos) {
      out += c;
    } else {
      out += {'%', kDigits[uint8_t(c) >> 4], kDigits[uint8_t(c) & 15]};
    }
  }
  return out;
}

// Returns a text as one word of a shell's command.
std::string Quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// Returns sizes that the shape permits: 1 for each that is unknown.
std::vector<int64_t> ExampleDims(const tw_shape& shape) {
  if (shape.rank < 0) return {1};
  std::vector<int64_t> dims(shape.dims, shape.dims + shape.rank);
  for (int64_t& dim : dims) dim = dim < 0 ? 1 : dim;
  return dims;
}

// Returns the number of values, or more than any limit.
uint64_t CountOf(const std::vector<int64_t>& dims) {
  uint64_t count = 1;
  for (const int64_t dim : dims) {
    if (__builtin_mul_overflow(count, uint64_t(dim), &count)) return UINT64_MAX;
  }
  return count;
}

// Appends nested lists of zeros, or of what else is simplest for the type.
void AddZeros(const std::vector<int64_t>& dims, size_t axis, const char* zero, std::string* out) {
  if (axis == dims.size()) {
    *out += zero;
    return;
  }
  *out += '[';
  for (int64_t i = 0; i < dims[axis]; ++i) {
    if (i) *out += ", ";
    AddZeros(dims, axis + 1, zero, out);
  }
  *out += ']';
}

// The inputs that a request must have.
std::vector<const tw_model_value*> Needed(const tw_model_signature& s) {
  std::vector<const tw_model_value*> needed;
  std::copy_if(s.inputs, s.inputs + s.n_inputs, std::back_inserter(needed), [](const tw_model_value* v) { return !v->is_optional; });
  return needed;
}

// A request of TensorFlow Serving's protocol with few values; nothing if they are too many, or if an input has none: lists without
// values may be many.
std::optional<std::string> JsonExample(const std::string& address, const tw_model_signature& s) {
  std::string body = "{\"inputs\": {";
  uint64_t total = 0;
  for (const tw_model_value* v : Needed(s)) {
    const std::vector<int64_t> dims = ExampleDims(*v->shape);
    const uint64_t count = CountOf(dims);
    if (count == 0 || count > kMostValues || (total += count) > kMostValues) return std::nullopt;
    if (body.back() != '{') body += ", ";
    body += JsonQuote(v->name) + ": ";
    AddZeros(dims, 0, v->dtype == TW_STRING ? "\"\"" : v->dtype == TW_BOOL ? "false" : "0", &body);
  }
  return "curl " + Quoted("http://" + address + ":predict") + " -d " + Quoted(body + "}}");
}

// A request of the Open Inference Protocol whose values are bytes of zero; nothing if an input has strings or they are too many.
std::optional<std::string> BinaryExample(const std::string& address, const tw_model_signature& s) {
  std::string header = "{\"inputs\": [";
  uint64_t total = 0;
  for (const tw_model_value* v : Needed(s)) {
    const std::vector<int64_t> dims = ExampleDims(*v->shape);
    uint64_t bytes = 0;
    if (v->dtype == TW_STRING || __builtin_mul_overflow(CountOf(dims), uint64_t(tw_dtype_bytes(v->dtype)), &bytes)) return std::nullopt;
    if (bytes > kMostBytes || (total += bytes) > kMostBytes) return std::nullopt;
    if (header.back() != '[') header += ", ";
    header += "{\"name\": " + JsonQuote(v->name) + ", \"shape\": " + DimsText(dims) + ", \"datatype\": \"" + DatatypeName(v->dtype) +
              "\", \"parameters\": {\"binary_data_size\": " + std::to_string(bytes) + "}}";
  }
  header += "]}";
  return "(printf %s " + Quoted(header) + "; head -c " + std::to_string(total) + " /dev/zero) | curl " +
         Quoted("http://" + address + "/infer") +
         " --data-binary @- -H 'Content-Type: application/octet-stream' -H 'Inference-Header-Content-Length: " +
         std::to_string(header.size()) + "'";
}

// Returns a command that sends the model a request whose values are all zero.
std::string Example(const ModelCall& call, const ServedModel& model, const tw_model_signature& s) {
  const std::vector<const tw_model_value*> needed = Needed(s);
  const bool carried = std::all_of(needed.begin(), needed.end(), [](const tw_model_value* v) { return IsCarried(v->dtype); });
  if (!carried) return "no request: an input has a type that the protocols do not carry";
  const std::string host = Host(call), name = Segment(model.name());
  const auto json = JsonExample(host + "/v1/models/" + name, s);
  const auto binary = json ? json : BinaryExample(host + "/v2/models/" + name, s);
  return binary.value_or("a request is too large for an example; send binary tensor data to /v2/models/" + name + "/infer");
}

void AddValues(const char* kind, const tw_model_value* const* values, uint32_t n, std::string* out) {
  for (uint32_t i = 0; i < n; ++i) {
    const tw_model_value& v = *values[i];
    *out += std::string("  ") + kind + " " + OneLine(v.name) + ": " + DatatypeName(v.dtype) + " " + DimsText(*v.shape) +
            (v.is_optional ? ", may be left out" : "") + "\n";
  }
}

void AddModel(const ModelCall& call, const std::string& name, std::string* out) {
  *out += "\nmodel '" + OneLine(name) + "'";
  try {
    const std::shared_ptr<ServedModel> model = call.repository->Find(name, "");
    const tw_model_signature& s = model->signature("");
    *out += ", version " + model->version() + "\n";
    AddValues("input ", s.inputs, s.n_inputs, out);
    AddValues("output", s.outputs, s.n_outputs, out);
    *out += "  " + Example(call, *model, s) + "\n";
  } catch (const HttpError& e) {
    *out += "\n  " + OneLine(e.what()) + "\n";
  }
}

}  // namespace

Answer FrontPage(const ModelCall& call) {
  const std::vector<std::string> names = call.repository->Names();
  std::string out = std::string("Thalweg ") + tw_version_string() + " serves these models:\n";
  for (size_t i = 0; i < names.size() && i < kMostModels; ++i) AddModel(call, names[i], &out);
  if (names.size() > kMostModels) out += "\nand " + std::to_string(names.size() - kMostModels) + " more\n";
  if (names.empty()) out += "\nnone\n";
  out +=
      "\n/v2/models/NAME and /v1/models/NAME/metadata describe a model, /v2/health/ready says whether all have a version that is served,\n"
      "/metrics has counts and times for Prometheus.\n";
  return {200, std::move(out), "text/plain; charset=utf-8", {{"X-Content-Type-Options", "nosniff"}}};
}

}  // namespace thalweg::cli::serve
