// Requests to the model server (tools/thalweg/serve) behind HTTP's parser: paths, headers, JSON tensors of both protocols, binary tensor
// data. An input is a request as text: "METHOD PATH", header lines, an empty line, the body; every line ends with \n alone.
//
// The models return their inputs (Identity), one for each type that the protocols carry, and `two` has two inputs. So the answer to a
// request, sent as a request, must get the same answer again. No request may cause an internal error or an answer that no client can read.
#include <stdlib.h>
#include <strings.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/fuzz/broken.h"
#include "tests/fuzz/handles.h"
#include "tools/thalweg/serve/datatype.h"
#include "tools/thalweg/serve/repository.h"
#include "tools/thalweg/serve/service.h"

namespace {

using namespace thalweg::cli::serve;
using nlohmann::json;
using thalweg::fuzz::Broken;
using thalweg::fuzz::Must;

constexpr size_t kMostBytes = 32 << 10;
constexpr const char* kLengthHeader = "Inference-Header-Content-Length";
constexpr uint32_t kTypes[] = {TW_BOOL,  TW_UINT8, TW_UINT16, TW_UINT32, TW_UINT64, TW_INT8,   TW_INT16,
                               TW_INT32, TW_INT64, TW_HALF,   TW_FLOAT,  TW_DOUBLE, TW_STRING, TW_BFLOAT16};

// ---- The server ----

void AddIdentity(tw_graph* graph, const char* input, const char* output, uint32_t dtype, const std::vector<int64_t>& dims, int32_t rank) {
  const tw_operation* made = nullptr;
  tw_op* op = tw_op_create(graph, "Placeholder", input);
  tw_op_set_type(op, "dtype", dtype);
  tw_op_set_shape(op, "shape", dims.data(), rank);
  Must(tw_op_finish(op, &made), "making an input");
  op = tw_op_create(graph, "Identity", output);
  tw_op_add_input(op, tw_operation_output(made, 0));
  Must(tw_op_finish(op, &made), "making an output");
}

void Write(const tw_graph* graph, const std::filesystem::path& path) {
  tw_buffer* bytes = nullptr;
  Must(tw_graph_export(graph, &bytes), "writing a graph");
  std::ofstream(path, std::ios::binary).write(static_cast<const char*>(tw_buffer_data(bytes)), std::streamsize(tw_buffer_bytes(bytes)));
  tw_buffer_release(bytes);
}

// All of a server but HTTP.
struct Server {
  tw::Runtime runtime{std::vector<const char*>{"threads=1", "disabled_plugins=org.thalweg.opencl"}};
  Settings settings = {};
  Metrics metrics;
  RequestBudget budget{64 << 20};
  Runners runners{8};
  std::unique_ptr<Repository> repository;
  std::unique_ptr<Service> service;

  Server() {
    settings.max_request_bytes = kMostBytes;
    settings.max_requests = 8;
    settings.timeout = std::chrono::seconds(10);
    settings.max_batch = 1;
    settings.allow_origins = {"https://example.org"};
    const auto load = [this](const std::string& name, uint64_t version, const std::string& path) {
      return std::make_shared<ServedModel>(runtime, name, version, path, tw::ModelOptions(), settings, &metrics, &runners);
    };
    repository =
        std::make_unique<Repository>(false, Repository::Labels{{"FP32", {{"stable", 1}}}}, load, &metrics, [](const std::string&) {});
    service = std::make_unique<Service>(settings, repository.get(), &budget, &metrics);
    char name[] = "/dev/shm/serve_fuzz_XXXXXX";
    if (!mkdtemp(name)) Broken("cannot make a folder in /dev/shm");
    const std::filesystem::path folder = name;
    for (const uint32_t dtype : kTypes) {
      Add(folder, DatatypeName(dtype), [&](tw_graph* graph) { AddIdentity(graph, "x", "y", dtype, {}, -1); });
    }
    Add(folder, "two", [](tw_graph* graph) {
      AddIdentity(graph, "a", "y", TW_FLOAT, {-1, 2}, 2);
      AddIdentity(graph, "b", "z", TW_INT32, {-1}, 1);
    });
    std::filesystem::remove_all(folder);  // graphs without weights are read whole
  }

 private:
  template <class Fill>
  void Add(const std::filesystem::path& folder, const std::string& name, const Fill& fill) {
    tw_graph* graph = nullptr;
    Must(tw_graph_create(runtime.c(), &graph), "making a graph");
    const thalweg::fuzz::Graph owned(graph);
    fill(graph);
    const std::filesystem::path file = folder / (name + ".pb");
    Write(graph, file);
    repository->Add(name, file);
  }
};

// Never destroyed, so that it cannot appear as a leak.
Server& TheServer() {
  static Server* server = new Server;
  return *server;
}

// ---- Requests ----

struct Request {
  std::string method, path, body;
  std::vector<std::pair<std::string, std::string>> headers;
};

std::string_view Line(std::string_view* rest) {
  const size_t end = std::min(rest->find('\n'), rest->size());
  const std::string_view line = rest->substr(0, end);
  rest->remove_prefix(std::min(end + 1, rest->size()));
  return line;
}

Request Parse(std::string_view text) {
  Request request;
  const std::string_view first = Line(&text);
  const size_t blank = std::min(first.find(' '), first.size());
  request.method = first.substr(0, blank);
  request.path = first.substr(std::min(blank + 1, first.size()));
  while (!text.empty()) {
    const std::string_view line = Line(&text);
    if (line.empty()) break;
    const size_t colon = line.find(": ");
    if (colon != line.npos) request.headers.emplace_back(line.substr(0, colon), line.substr(colon + 2));
  }
  request.body = text;
  return request;
}

// Copies the body so that byte `aligned` of it is aligned, as the server's own reader of bodies does.
Body Place(const std::string& text, size_t aligned) {
  auto storage = std::make_shared<std::string>();
  storage->reserve(text.size() + kAlignment);
  const size_t front = (kAlignment - (reinterpret_cast<uintptr_t>(storage->data()) + aligned) % kAlignment) % kAlignment;
  storage->append(front, ' ').append(text);
  const std::string_view whole(*storage);
  return {std::move(storage), whole.substr(front)};
}

std::string Header(const Request& request, const char* name) {
  for (const auto& [key, value] : request.headers) {
    if (strcasecmp(key.c_str(), name) == 0) return value;
  }
  return "";
}

std::string Header(const Answer& answer, const std::string& name) {
  for (const auto& [key, value] : answer.headers) {
    if (key == name) return value;
  }
  return "";
}

Answer Ask(const Request& request) {
  Call call;
  call.method = request.method;
  call.path = request.path;
  call.client = "client";
  call.header = [&](const char* name) { return Header(request, name); };
  call.body = [&](size_t aligned) { return Place(request.body, aligned); };
  call.memory = std::make_shared<RequestMemory>(&TheServer().budget);
  Answer answer = TheServer().service->Serve(call);
  if (answer.charge.bytes() > 0 && answer.charge.bytes() < answer.body.size()) Broken("an answer has more bytes than are charged");
  call.memory.reset();
  answer.charge = Charge();
  if (TheServer().budget.held() != 0) Broken(std::to_string(TheServer().budget.held()) + " bytes are charged to no request");
  for (const auto& [key, value] : answer.headers) {
    if (value.find_first_of(std::string_view("\r\n\0", 3)) != value.npos) Broken("header " + key + " has an end of line");
  }
  if (answer.status == 200) return answer;
  if (answer.status < 400 || answer.status == 500 || answer.status > 504)
    Broken("status " + std::to_string(answer.status) + ": " + answer.body);
  const json said = json::parse(answer.body, nullptr, false);
  if (!said.is_object() || said.size() != 1 || !said.contains("error") || said["error"].get<std::string>().empty()) {
    Broken("an error does not say what is wrong: " + answer.body);
  }
  return answer;
}

// ---- What is written reads as the same ----

void Same(const std::string& a, const std::string& b) {
  if (a != b) Broken("an answer that is sent as a request gets another answer: " + a + " and " + b);
}

// Whether the answer has a word that stands for a number which JSON does not have. Requests may not have these words.
bool HasWords(const std::string& answer) { return answer.find("NaN") != answer.npos || answer.find("Infinity") != answer.npos; }

// Sends the one output of an answer as the input of the same model.
void SendBackV2(const Request& request, const Answer& answer) {
  const std::string length = Header(answer, kLengthHeader);
  const size_t n = length.empty() ? answer.body.size() : std::stoull(length);
  if (n > answer.body.size()) Broken("the answer's JSON is longer than the answer");
  const json got = json::parse(answer.body.substr(0, n), nullptr, false);
  if (got.is_discarded()) {
    if (!length.empty() || !HasWords(answer.body)) Broken("an answer is no JSON: " + answer.body);
    return;
  }
  if (got.at("outputs").size() != 1) return;
  json input = got["outputs"][0];
  input["name"] = "x";
  json sent = {{"inputs", {input}}};
  if (!length.empty()) sent["parameters"] = {{"binary_data_output", true}};
  const std::string text = sent.dump();
  Request again = {"POST", request.path, text + answer.body.substr(n), {}};
  if (!length.empty()) again.headers.emplace_back(kLengthHeader, std::to_string(text.size()));
  const Answer second = Ask(again);
  if (second.status == 413 && length.empty() && !Header(request, kLengthHeader).empty()) return;  // values take more memory as JSON
  if (second.status != 200) Broken("an answer is no request: " + second.body);
  const std::string second_length = Header(second, kLengthHeader);
  const size_t m = second_length.empty() ? second.body.size() : std::stoull(second_length);
  Same(got["outputs"].dump() + answer.body.substr(n), json::parse(second.body.substr(0, m)).at("outputs").dump() + second.body.substr(m));
}

void SendBackV1(const Request& request, const Answer& answer) {
  const json got = json::parse(answer.body, nullptr, false);
  if (got.is_discarded()) {
    if (!HasWords(answer.body)) Broken("an answer is no JSON: " + answer.body);
    return;
  }
  json sent;
  if (got.contains("outputs")) sent["inputs"] = got["outputs"];
  if (got.contains("predictions")) sent["instances"] = got["predictions"];
  const Answer second = Ask({"POST", request.path, sent.dump(), {}});
  if (second.status != 200) Broken("an answer is no request: " + second.body);
  Same(answer.body, second.body);
}

// Sizes below an empty list are not in its JSON.
bool HasEmptyList(const std::string& text) { return text.find("[]") != text.npos; }

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size > kMostBytes) return -1;
  const Request request = Parse(std::string_view(reinterpret_cast<const char*>(data), size));
  const Answer answer = Ask(request);
  if (answer.status != 200 || request.method != "POST" || request.path.find("two") != request.path.npos) return 0;
  if (request.path.ends_with("/infer")) SendBackV2(request, answer);
  if (request.path.ends_with(":predict") && !HasEmptyList(answer.body)) SendBackV1(request, answer);
  return 0;
}
