// thalweg convert: writes a model of any format that has an importer as one file, which `tw_model_load`
// and, as a folder, TensorFlow read; or as an ONNX file.
#include <cstdio>
#include <filesystem>
#include <map>

#include "command.h"
#include "counted.h"
#include "handles.h"
#include "model_file.h"
#include "onnx/export.h"
#include "thalweg/save_model.h"
#include "thalweg/version.h"

namespace thalweg::cli {
namespace {

// The record of a signature of the model, with the memory that it refers to.
struct SavedSignature {
  std::string name;
  std::vector<const char*> input_names, output_names;
  std::vector<tw_output> inputs, outputs;
  explicit SavedSignature(const tw_model_signature& s) : name(s.name) {
    for (uint32_t i = 0; i < s.n_inputs; ++i) Add(*s.inputs[i], &input_names, &inputs);
    for (uint32_t i = 0; i < s.n_outputs; ++i) Add(*s.outputs[i], &output_names, &outputs);
  }
  tw_saved_signature record() const {
    tw_saved_signature r = {};
    r.size = sizeof r;
    r.name = name.c_str();
    r.input_names = input_names.data();
    r.inputs = inputs.data();
    r.output_names = output_names.data();
    r.outputs = outputs.data();
    r.n_inputs = uint32_t(inputs.size());
    r.n_outputs = uint32_t(outputs.size());
    return r;
  }

 private:
  static void Add(const tw_model_value& v, std::vector<const char*>* names, std::vector<tw_output>* values) {
    names->push_back(v.name);
    values->push_back(v.output);
  }
};

// A path that ends with a slash, and a folder, stand for the file in it that TensorFlow looks for.
std::string TargetFile(const std::string& path) {
  namespace fs = std::filesystem;
  if (path.back() != '/' && !fs::is_directory(path)) return path;
  fs::create_directories(path);
  return (fs::path(path) / "saved_model.pb").string();
}

void SaveModel(const tw::Model& model, const std::string& file) {
  std::vector<SavedSignature> signatures;
  for (const tw_model_signature* s : model.signatures()) signatures.emplace_back(*s);
  std::vector<tw_saved_signature> records;
  for (const SavedSignature& s : signatures) records.push_back(s.record());
  tw::raise(tw_model_save(tw_model_graph(model.c()), tw_model_session(model.c()), records.data(), uint32_t(records.size()), file.c_str()));
}

void SaveOnnx(const tw::Model& model, const std::string& file) {
  if (model.signatures().size() > 1) {
    std::string names;
    for (const tw_model_signature* s : model.signatures()) names += std::string(names.empty() ? "" : ", ") + "'" + s->name + "'";
    throw UsageError{"an ONNX file holds one signature, and the model has " + names + "; choose by --signature"};
  }
  WriteFile(file, onnx::Export(model, *model.signatures()[0], tw_version_string()));
}

int Convert(const Args& args) {
  const std::string from = args.positional()[0], to = args.positional()[1];
  if (to.empty()) throw UsageError{"the file to write has no name"};
  const tw::Runtime runtime = MakeRuntime(args);
  tw::ModelOptions options;
  if (args.has("--importer")) options.importer = args.get("--importer");
  options.options = args.all("--model-option");
  options.signatures = args.all("--signature");
  const tw::Model model(runtime, from, options);
  const size_t signatures = model.signatures().size();
  if (signatures == 0) throw std::runtime_error("'" + from + "' has no signature, so there is nothing to convert");
  const std::string file = TargetFile(to);
  std::filesystem::path(file).extension() == ".onnx" ? SaveOnnx(model, file) : SaveModel(model, file);
  std::printf("%s: %s, %s\n", file.c_str(), Counted(signatures, "signature").c_str(), BytesText(std::filesystem::file_size(file)).c_str());
  return kGood;
}

std::vector<Option> Options() {
  std::vector<Option> options = {{"--signature", "NAME", "keep this signature; may be repeated; without it all are kept"}};
  for (const Option& o : ModelFileOptions()) options.push_back(o);
  options.push_back(kRuntimeOption);
  options.push_back(kPluginOption);
  return options;
}

}  // namespace

const Command& ConvertCommand() {
  static const Command command = {
      "convert",
      "FROM TO",
      "Writes a model of any known format as one file, which can be loaded without its first format's importer.",
      "TO is a file, or a folder for TensorFlow, in which the file is saved_model.pb; a name that ends with / is a folder.\n"
      "A name that ends with .onnx is an ONNX file of opset 18, for models of operations that ONNX has.\n\n"
      "Examples:\n"
      "  thalweg convert model.onnx model.tw\n"
      "  thalweg convert exported/1 model.tw && thalweg run model.tw --inputs inputs.npz --check outputs.npz\n"
      "  thalweg convert model.onnx for-tensorflow/\n"
      "  thalweg convert model.tw model.onnx\n",
      Options(),
      2,
      2,
      Convert};
  return command;
}

}  // namespace thalweg::cli
