// The eager API's contexts and handles of tensors, for the calls of ops. Threads: as TensorFlow's; a context may be used by several.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "core.h"
#include "framework/proto/graph.pb.h"
#include "tensorflow/c/eager/c_api.h"

struct TFE_Context {
  thalweg::tf::EagerRef eager;
  thalweg::tf::DevicesRef devices;
  std::string container;  // of eager calls and of functions
  TFE_ContextDevicePlacementPolicy policy;
  std::mutex mu;
  std::map<std::string, thalweg::proto::FunctionDef> functions;  // guarded by mu
  uint64_t id;
};

struct TFE_TensorHandle {
  thalweg::tf::TensorRef tensor;
  std::string device;  // full name
  std::string kind;    // of the device
};

namespace thalweg::tf {

TensorRef Share(const TensorRef& tensor);
TFE_TensorHandle* NewHandle(TensorRef tensor);
// Returns the tensor of a handle. Fails for NULL.
const tw_tensor* Need(const TFE_TensorHandle* handle);
// Returns the full name of a device, of which the client may give a part; "" for "".
std::string FullName(const TFE_Context& context, const std::string& wanted);

}  // namespace thalweg::tf
