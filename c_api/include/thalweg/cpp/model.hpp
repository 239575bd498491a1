/* tw::Model (model.h): models from files. Threads: as the C object. Since 0.1.
 *   tw::Model model("model.onnx");
 *   tw::Tensor scores = model.run({{"image", image}}).at("scores"); */
#ifndef THALWEG_CPP_MODEL_HPP
#define THALWEG_CPP_MODEL_HPP
#include <map>
#include <string>
#include <vector>

#include "thalweg/cpp/graph.hpp"
#include "thalweg/cpp/handle.hpp"
#include "thalweg/cpp/tensor.hpp"
#include "thalweg/model.h"

namespace tw {

/* The options of tw_model_options, with texts that the object owns. */
struct ModelOptions {
  std::string importer;
  std::vector<std::string> options, session_options, signatures;
};

class Model : public Owned<tw_model, tw_model_destroy> {
 public:
  explicit Model(const std::string& path, const ModelOptions& options = {}) : Model(nullptr, path, options) {}
  Model(const Runtime& runtime, const std::string& path, const ModelOptions& options = {}) : Model(runtime.c(), path, options) {}

  std::string importer() const { return tw_model_importer(c()); }
  std::vector<const tw_model_signature*> signatures() const {
    std::vector<const tw_model_signature*> all;
    for (uint32_t i = 0; i < tw_model_signature_count(c()); ++i) all.push_back(tw_model_signature_at(c(), i));
    return all;
  }
  /* name: "" means the default. */
  const tw_model_signature& signature(const std::string& name = "") const {
    const tw_model_signature* found = nullptr;
    raise(tw_model_find(c(), name.c_str(), &found));
    return *found;
  }
  /* Runs a signature on inputs by name; returns its outputs by name. */
  std::map<std::string, Tensor> run(const std::map<std::string, Tensor>& inputs, const std::string& name = "",
                                    const tw_run_options* options = nullptr) const {
    const tw_model_signature& s = signature(name);
    std::vector<tw_tensor*> in(s.n_inputs), out(s.n_outputs);
    size_t found = 0;
    for (uint32_t i = 0; i < s.n_inputs; ++i) {
      const auto input = inputs.find(s.inputs[i]->name);
      if (input == inputs.end()) continue;
      in[i] = input->second.c();
      ++found;
    }
    if (found != inputs.size()) throw StatusError(TW_INVALID_ARGUMENT, unknown_input(s, inputs));
    raise(tw_model_run(c(), s.name, in.data(), options, out.data()));
    std::map<std::string, Tensor> outputs;
    for (uint32_t i = 0; i < s.n_outputs; ++i) outputs.emplace(s.outputs[i]->name, Tensor::adopt(out[i]));
    return outputs;
  }

 private:
  Model(tw_runtime* runtime, const std::string& path, const ModelOptions& options) {
    const auto texts = [](const std::vector<std::string>& list) {
      std::vector<const char*> all;
      for (const std::string& text : list) all.push_back(text.c_str());
      return all;
    };
    const auto own_options = texts(options.options), session = texts(options.session_options), wanted = texts(options.signatures);
    tw_model_options o = {};
    o.size = sizeof(o);
    o.importer = options.importer.empty() ? nullptr : options.importer.c_str();
    o.options = own_options.data();
    o.n_options = uint32_t(own_options.size());
    o.session_options = session.data();
    o.n_session_options = uint32_t(session.size());
    o.signatures = wanted.data();
    o.n_signatures = uint32_t(wanted.size());
    tw_model* made = nullptr;
    raise(tw_model_load(runtime, path.c_str(), &o, &made));
    own(made);
  }
  static std::string unknown_input(const tw_model_signature& s, const std::map<std::string, Tensor>& inputs) {
    std::string text = "signature '" + std::string(s.name) + "' has the inputs";
    for (uint32_t i = 0; i < s.n_inputs; ++i) text += (i ? ", '" : " '") + std::string(s.inputs[i]->name) + "'";
    text += "; given were";
    for (const auto& input : inputs) text += " '" + input.first + "'";
    return text;
  }
};

}  // namespace tw
#endif
