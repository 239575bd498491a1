// cuDNN itself, without a GPU. Its graphs are finalised, its heuristics name engines, and engines
// that need no driver become plans, all for the device properties that the test sets. Nothing runs
// on cuDNN: in the end the plan is refused, and the plugin's own kernels serve.
#include <cudnn.h>
#include <dlfcn.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

struct State {
  void* library = nullptr;
  std::string device, told;
  cudnnBackendDescriptor_t properties = nullptr;
  std::map<cudnnBackendDescriptor_t, cudnnBackendDescriptorType_t> types;
  bool made = false;  // a plan of the last graph was made
};
State& Now() {
  static State state;
  return state;
}

template <class F>
F* Real(const char* name) {
  return reinterpret_cast<F*>(dlsym(Now().library, name));
}
#define REAL(name) Real<decltype(name)>(#name)

void Tell(const std::string& text) { Now().told += text + "\n"; }

// Returns the status, and reports it if it is a failure.
cudnnStatus_t Told(cudnnStatus_t status, const std::string& what) {
  if (status == CUDNN_STATUS_SUCCESS) return status;
  char why[2000] = {};
  REAL(cudnnGetLastErrorString)(why, sizeof why);
  Tell("wrong: " + what + ": " + REAL(cudnnGetErrorString)(status) + " " + why);
  return status;
}

cudnnStatus_t SetProperties(cudnnBackendDescriptor_t of, cudnnBackendAttributeName_t name) {
  State& s = Now();
  if (!s.properties) {
    Told(REAL(cudnnBackendCreateDescriptor)(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &s.properties), "properties");
    Told(REAL(cudnnBackendSetAttribute)(s.properties, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, int64_t(s.device.size()),
                                        s.device.data()),
         "properties");
    Told(REAL(cudnnBackendFinalize)(s.properties), "properties");
  }
  return Told(REAL(cudnnBackendSetAttribute)(of, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &s.properties), "setting properties");
}

template <class T>
std::vector<T> All(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t most) {
  std::vector<T> values(size_t(most), T{});
  int64_t n = 0;
  if (REAL(cudnnBackendGetAttribute)(d, name, type, most, &n, values.data()) != CUDNN_STATUS_SUCCESS) n = 0;
  values.resize(size_t(n));
  return values;
}

// Returns true if the plan's code is compiled when the plan is made, which needs a driver.
bool IsCompiled(cudnnBackendDescriptor_t config) {
  cudnnBackendDescriptor_t engine = nullptr;
  REAL(cudnnBackendCreateDescriptor)(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine);
  int64_t n = 0;
  bool compiled = REAL(cudnnBackendGetAttribute)(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine) !=
                  CUDNN_STATUS_SUCCESS;
  for (cudnnBackendBehaviorNote_t note :
       All<cudnnBackendBehaviorNote_t>(engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT))
    compiled = compiled || note == CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION;
  REAL(cudnnBackendDestroyDescriptor)(engine);
  return compiled;
}

}  // namespace

// Opens the files of cuDNN, driver.c and NVRTC; device: its properties as JSON. Returns NULL, or
// the error. Call it first, once.
EXPORT const char* engines_open(const char* library, const char* driver, const char* compiler, const char* device) {
  for (const char* needed : {driver, compiler})  // cuDNN then finds them under their names
    if (!dlopen(needed, RTLD_NOW | RTLD_LOCAL)) return dlerror();
  Now().library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  Now().device = device;
  return Now().library ? nullptr : dlerror();
}
// Returns the events since the last call: "graph" for a finalised graph, "plan" for a requested
// plan, "made" for a plan that could be made, "wrong: ..." for a failed call. Valid until the next
// call.
EXPORT const char* engines_told() {
  static std::string told;
  told.swap(Now().told);
  Now().told.clear();
  return told.c_str();
}

EXPORT cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* made) {
  const cudnnStatus_t status = Told(REAL(cudnnBackendCreateDescriptor)(type, made), "making an object");
  Now().types[*made] = type;
  return status;
}
EXPORT cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d) { return REAL(cudnnBackendDestroyDescriptor)(d); }

EXPORT cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t n, const void* values) {
  if (name == CUDNN_ATTR_OPERATIONGRAPH_HANDLE) return CUDNN_STATUS_SUCCESS;
  if (name == CUDNN_ATTR_EXECUTION_PLAN_HANDLE) return SetProperties(d, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
  if (name == CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG) {
    if (Now().made) return CUDNN_STATUS_NOT_SUPPORTED;  // one is enough
    Tell("plan");
    if (IsCompiled(*static_cast<const cudnnBackendDescriptor_t*>(values))) return CUDNN_STATUS_NOT_SUPPORTED;
  }
  if (name == CUDNN_ATTR_ENGINEHEUR_MODE) SetProperties(d, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
  return Told(REAL(cudnnBackendSetAttribute)(d, name, type, n, values), "setting attribute " + std::to_string(name));
}

EXPORT cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t d) {
  const cudnnBackendDescriptorType_t type = Now().types[d];
  const cudnnStatus_t status = Told(REAL(cudnnBackendFinalize)(d), "finishing an object of type " + std::to_string(type));
  if (status == CUDNN_STATUS_SUCCESS && type == CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
    Tell("graph");
    Now().made = false;
  }
  return status;
}

// For a plan: checks that its text makes a plan with the same workspace; then reports a workspace
// larger than the plugin accepts.
EXPORT cudnnStatus_t cudnnBackendGetAttribute(const cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type, int64_t room, int64_t* n, void* values) {
  const cudnnStatus_t status =
      Told(REAL(cudnnBackendGetAttribute)(d, name, type, room, n, values), "reading attribute " + std::to_string(name));
  if (name != CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE || status != CUDNN_STATUS_SUCCESS) return status;
  int64_t bytes = 0;
  Told(REAL(cudnnBackendGetAttribute)(d, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 0, &bytes, nullptr), "a text");
  const auto text = All<char>(d, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, bytes);
  cudnnBackendDescriptor_t again = nullptr;
  Told(REAL(cudnnBackendCreateDescriptor)(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &again), "a plan from its text");
  SetProperties(again, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
  Told(REAL(cudnnBackendSetAttribute)(again, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, int64_t(text.size()),
                                      text.data()),
       "a plan from its text");
  Told(REAL(cudnnBackendFinalize)(again), "a plan from its text");
  const auto wanted = All<int64_t>(again, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1);
  REAL(cudnnBackendDestroyDescriptor)(again);
  const bool same = wanted.size() == 1 && wanted[0] == *static_cast<int64_t*>(values);
  Tell(same ? "made" : "wrong: a plan from its text is another");
  Now().made = same;
  *static_cast<int64_t*>(values) = INT64_MAX;
  return status;
}

EXPORT size_t cudnnGetVersion() { return REAL(cudnnGetVersion)(); }
EXPORT const char* cudnnGetErrorString(cudnnStatus_t status) { return REAL(cudnnGetErrorString)(status); }
EXPORT cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  static char none;
  *handle = reinterpret_cast<cudnnHandle_t>(&none);
  return CUDNN_STATUS_SUCCESS;
}
