// A client of ONNX Runtime's C++ wrapper, which is made of headers alone. peer_test.py compiles it against these headers and compares its
// output with ONNX Runtime's library and with ours.
#include <onnxruntime_cxx_api.h>

#include <iostream>
#include <thread>
#include <vector>

#include "models.h"

namespace {

void PrintShape(const std::vector<int64_t>& shape) {
  std::cout << "[";
  for (const int64_t d : shape) std::cout << " " << d;
  std::cout << " ]\n";
}

void Describe(const Ort::Session& session) {
  Ort::AllocatorWithDefaultOptions allocator;
  for (size_t i = 0; i < session.GetInputCount(); ++i) {
    const auto name = session.GetInputNameAllocated(i, allocator);
    const Ort::TypeInfo type = session.GetInputTypeInfo(i);
    const auto info = type.GetTensorTypeAndShapeInfo();
    std::cout << name.get() << " of type " << info.GetElementType() << " ";
    PrintShape(info.GetShape());
  }
  std::cout << session.GetOutputCount() << " outputs\n";
  const Ort::ModelMetadata about = session.GetModelMetadata();
  std::cout << about.GetProducerNameAllocated(allocator).get() << ", version " << about.GetVersion() << "\n";
  for (const auto& key : about.GetCustomMetadataMapKeysAllocated(allocator)) std::cout << "key " << key.get() << "\n";
}

void Runs(Ort::Session& session) {
  const Ort::MemoryInfo memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  std::vector<float> x = {1, 2, 3, 4};
  const std::vector<int64_t> shape = {2, 2};
  const char* const inputs[] = {"x", "y"};
  const char* const outputs[] = {"z"};
  std::vector<Ort::Value> values;
  values.push_back(Ort::Value::CreateTensor<float>(memory, x.data(), x.size(), shape.data(), shape.size()));
  values.push_back(Ort::Value::CreateTensor<float>(memory, x.data(), x.size(), shape.data(), shape.size()));
  const std::vector<Ort::Value> results = session.Run(Ort::RunOptions{nullptr}, inputs, values.data(), 2, outputs, 1);
  PrintShape(results[0].GetTensorTypeAndShapeInfo().GetShape());
  for (int i = 0; i < 4; ++i) std::cout << results[0].GetTensorData<float>()[i] << "\n";

  Ort::IoBinding binding(session);
  binding.BindInput("x", values[0]);
  binding.BindInput("y", values[1]);
  binding.BindOutput("z", memory);
  session.Run(Ort::RunOptions(), binding);
  for (const std::string& name : binding.GetOutputNames()) std::cout << "bound " << name << "\n";
  std::cout << binding.GetOutputValues()[0].GetTensorData<float>()[3] << "\n";
}

// Prints the code of what the calls throw.
template <class Calls>
void Fails(const char* what, Calls&& calls) {
  try {
    calls();
    std::cout << what << ": no failure\n";
  } catch (const Ort::Exception& e) {
    std::cout << what << ": code " << e.GetOrtErrorCode() << (*e.what() ? "" : " without a message") << "\n";
  }
}

void Strings(const Ort::Env& env, const Ort::SessionOptions& options) {
  const Bytes model = unary_model("Identity", 8, 8, "n", nullptr, 0);
  Ort::Session session(env, model.data, model.size, options);
  Ort::AllocatorWithDefaultOptions allocator;
  const int64_t shape[] = {2};
  Ort::Value text = Ort::Value::CreateTensor(allocator, shape, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING);
  const char* const texts[] = {"first", "the second, longer string"};
  text.FillStringTensor(texts, 2);
  const char* const inputs[] = {"x"};
  const char* const outputs[] = {"y"};
  const auto results = session.Run(Ort::RunOptions(), inputs, &text, 1, outputs, 1);
  for (size_t i = 0; i < 2; ++i) {
    std::string found(results[0].GetStringTensorElementLength(i), ' ');
    results[0].GetStringTensorElement(found.size(), i, found.data());
    std::cout << found << "\n";
  }
}

}  // namespace

int main() {
  const Ort::Env env(ORT_LOGGING_LEVEL_FATAL, "cxx");
  Ort::SessionOptions options;
  options.SetIntraOpNumThreads(1).SetGraphOptimizationLevel(ORT_ENABLE_ALL).SetExecutionMode(ORT_SEQUENTIAL);
  const Bytes model = add_model();
  Ort::Session session(env, model.data, model.size, options);
  Describe(session);
  Runs(session);
  Strings(env, options);
  Fails("no file", [&] { const Ort::Session none(env, "/nowhere/model.onnx", options); });
  Fails("no model", [&] { const Ort::Session none(env, "\xff\xff", 2, options); });
  Fails("a wrong name", [&] {
    const char* const name[] = {"q"};
    session.Run(Ort::RunOptions(), nullptr, static_cast<const Ort::Value*>(nullptr), 0, name, 1);
  });
  std::thread([&] { Runs(session); }).join();
}
