// From a file, or bytes in memory, to a session.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include <sys/mman.h>
#include <sys/stat.h>

#include "session.h"

namespace thalweg::ort {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  const int fd_;
};

// A file in memory; unmapped at the end.
class Mapped {
 public:
  explicit Mapped(const std::string& path) {
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat about{};
    if (file.get() < 0 || ::fstat(file.get(), &about) != 0) {
      const OrtErrorCode code = errno == ENOENT || errno == ENOTDIR ? ORT_NO_SUCHFILE : ORT_FAIL;
      Fail(code, "model '", path, "' cannot be opened: ", std::strerror(errno));
    }
    if (!S_ISREG(about.st_mode)) Fail(ORT_INVALID_ARGUMENT, "model '", path, "' is no regular file; give the path of an .onnx file");
    bytes_ = static_cast<size_t>(about.st_size);
    if (bytes_ == 0) return;
    data_ = ::mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (data_ == MAP_FAILED) Fail(ORT_FAIL, "model '", path, "' cannot be read: ", std::strerror(errno));
  }
  Mapped(const Mapped&) = delete;
  ~Mapped() {
    if (bytes_ > 0 && data_ != MAP_FAILED) ::munmap(data_, bytes_);
  }
  std::string_view bytes() const { return {static_cast<const char*>(data_), bytes_}; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// The code of ONNX Runtime for a failure of a load.
OrtErrorCode LoadCodeOf(uint32_t code) {
  switch (code) {
    case TW_INVALID_ARGUMENT:
    case TW_DATA_LOSS: return ORT_INVALID_GRAPH;
    case TW_CANCELLED: return ORT_MODEL_LOAD_CANCELED;
    default: return CodeOf(code);
  }
}

void LoadModel(OrtSession* session, const std::string& path, const OrtSessionOptions& options) {
  const std::vector<std::string> texts = SessionOptionTexts(options);
  std::vector<const char*> words;
  for (const std::string& t : texts) words.push_back(t.c_str());
  tw_model_options load{};
  load.size = sizeof load;
  load.importer = "onnx";
  load.session_options = words.data();
  load.n_session_options = static_cast<uint32_t>(words.size());
  tw_model* model = nullptr;
  if (tw_status* failed = tw_model_load(session->runtime.get(), path.c_str(), &load, &model)) {
    Throw(failed, LoadCodeOf(tw_status_code(failed)));
  }
  session->model.reset(model);
}

// Fills in what the graph knows and the file does not say.
void Complete(const tw_model_value& known, OrtTypeInfo* type) {
  if (type->kind == ONNX_TYPE_UNKNOWN) type->kind = ONNX_TYPE_TENSOR;
  if (type->kind != ONNX_TYPE_TENSOR) return;
  OrtTensorTypeAndShapeInfo& t = type->tensor;
  if (t.type == ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED) t.type = ElementOf(known.dtype);
  if (known.shape->rank < 0) return;
  const auto rank = static_cast<size_t>(known.shape->rank);
  if (!t.has_shape) {
    t.has_shape = true;
    t.dims.assign(rank, -1);
    t.symbols.assign(rank, "");
    for (size_t i = 0; known.symbols && i < rank; ++i) t.symbols[i] = known.symbols[i];
  }
  if (t.dims.size() != rank) return;
  for (size_t i = 0; i < rank; ++i) {
    if (t.dims[i] < 0 && t.symbols[i].empty() && known.shape->dims[i] >= 0) t.dims[i] = known.shape->dims[i];
  }
}

void Match(std::vector<Port>* ports, const tw_model_value* const* known, uint32_t count, std::map<std::string, uint32_t>* index,
           std::vector<tw_output>* values) {
  for (uint32_t i = 0; i < count; ++i) {
    if (i >= ports->size() || (*ports)[i].name != known[i]->name) {
      Fail(ORT_INVALID_GRAPH, "the inputs or outputs of the model differ from those of its file at '", known[i]->name, "'");
    }
    Complete(*known[i], &(*ports)[i].type);
    index->emplace(known[i]->name, i);
    values->push_back(known[i]->output);
  }
  if (ports->size() != count) Fail(ORT_INVALID_GRAPH, "'", (*ports)[count].name, "' is no input or output of the loaded model");
}

std::unique_ptr<OrtSession> NewSession(const OrtEnv& env, std::string_view bytes, const std::string& path, const OrtSessionOptions* given) {
  const OrtSessionOptions defaults;
  const OrtSessionOptions& options = given ? *given : defaults;
  tw_runtime_retain(env.runtime.get());
  auto session = std::make_unique<OrtSession>(RuntimeRef(env.runtime.get()));
  session->logger = LoggerOf(options);
  session->file = ReadModel(bytes);
  if (options.cancel_load->load()) Fail(ORT_MODEL_LOAD_CANCELED, "the load was cancelled by SessionOptionsSetLoadCancellationFlag");
  LoadModel(session.get(), path, options);
  if (options.cancel_load->load()) Fail(ORT_MODEL_LOAD_CANCELED, "the load was cancelled by SessionOptionsSetLoadCancellationFlag");
  const tw_model_signature* signature = nullptr;
  Check(tw_model_find(session->model.get(), nullptr, &signature));
  Match(&session->file.inputs, signature->inputs, signature->n_inputs, &session->input_index, &session->feeds);
  Match(&session->file.outputs, signature->outputs, signature->n_outputs, &session->output_index, &session->fetches);
  FixSizes(options.fixed_sizes, &session->file);
  session->profile.on = options.profile;
  session->profile.prefix = options.profile_prefix;
  session->profile.start_ns = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
  session->logger.Write(ORT_LOGGING_LEVEL_INFO, "session",
                        Text("model '", path, "' is loaded: ", std::to_string(session->feeds.size()), " inputs, ",
                             std::to_string(session->fetches.size()), " outputs"));
  return session;
}

OrtSession* FromFile(const OrtEnv* env, const char* path, const OrtSessionOptions* options) {
  Need(env, "env");
  const std::string name = Need(path, "model_path");
  const Mapped file(name);
  return NewSession(*env, file.bytes(), name, options).release();
}

// The importer reads files, so the bytes go into a file without a name, which is in memory and ends with its last mapping.
OrtSession* FromBytes(const OrtEnv* env, const void* data, size_t bytes, const OrtSessionOptions* options) {
  Need(env, "env");
  if (bytes > 0) Need(data, "model_data");
  const std::string_view model(static_cast<const char*>(data), bytes);
  ReadModel(model);  // before the bytes are copied
  const Descriptor file(::memfd_create("model.onnx", MFD_CLOEXEC));
  if (file.get() < 0) Fail(ORT_FAIL, "no file in memory can be made: ", std::strerror(errno));
  for (std::string_view rest = model; !rest.empty();) {
    const ssize_t written = ::write(file.get(), rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) Fail(ORT_FAIL, "the model cannot be written to a file in memory: ", std::strerror(errno));
    rest.remove_prefix(static_cast<size_t>(written));
  }
  return NewSession(*env, model, Text("/proc/self/fd/", std::to_string(file.get())), options).release();
}

}  // namespace

namespace api {

OrtStatus* CreateSession(const OrtEnv* env, const char* path, const OrtSessionOptions* options, OrtSession** out) {
  return Guard(__func__, [&] {
    OrtSession*& session = Result(out);
    session = FromFile(env, path, options);
  });
}
OrtStatus* CreateSessionFromArray(const OrtEnv* env, const void* data, size_t bytes, const OrtSessionOptions* options, OrtSession** out) {
  return Guard(__func__, [&] {
    OrtSession*& session = Result(out);
    session = FromBytes(env, data, bytes, options);
  });
}

// Weights that are packed for kernels belong to the session here, so a container shares nothing.
OrtStatus* CreatePrepackedWeightsContainer(OrtPrepackedWeightsContainer** out) {
  return Guard(__func__, [&] {
    auto& result = Result(out);
    result = reinterpret_cast<OrtPrepackedWeightsContainer*>(new char);
  });
}
void ReleasePrepackedWeightsContainer(OrtPrepackedWeightsContainer* container) { delete reinterpret_cast<char*>(container); }
OrtStatus* CreateSessionWithPrepackedWeightsContainer(const OrtEnv* env, const char* path, const OrtSessionOptions* options,
                                                      OrtPrepackedWeightsContainer* container, OrtSession** out) {
  return Guard(__func__, [&] {
    OrtSession*& session = Result(out);
    Need(container, "prepacked_weights_container");
    session = FromFile(env, path, options);
  });
}
OrtStatus* CreateSessionFromArrayWithPrepackedWeightsContainer(const OrtEnv* env, const void* data, size_t bytes,
                                                               const OrtSessionOptions* options, OrtPrepackedWeightsContainer* container,
                                                               OrtSession** out) {
  return Guard(__func__, [&] {
    OrtSession*& session = Result(out);
    Need(container, "prepacked_weights_container");
    session = FromBytes(env, data, bytes, options);
  });
}
void ReleaseSession(OrtSession* session) { delete session; }

}  // namespace api
}  // namespace thalweg::ort
