// A version of a model that is loaded.
// Threads: any number of requests. It lives as long as a request holds it.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "batcher.h"
#include "metrics.h"
#include "part.h"
#include "settings.h"
#include "thalweg/cpp/thalweg.hpp"

namespace thalweg::cli::serve {

class ServedModel : public std::enable_shared_from_this<ServedModel> {
 public:
  // Loads the file or folder. runners: for joined runs. Throws tw::StatusError. REQUIRES: a shared_ptr owns it.
  ServedModel(const tw::Runtime& runtime, const std::string& name, uint64_t version, const std::string& path,
              const tw::ModelOptions& options, const Settings& settings, Metrics* metrics, Runners* runners);

  const std::string& name() const { return name_; }
  const std::string& version() const { return version_; }
  const tw::Model& model() const { return model_; }
  // Returns the signature; "": the default one. Throws HttpError 400 listing the names.
  const tw_model_signature& signature(const std::string& name) const;
  // "model 'm', input 'x'", for errors.
  std::string Where(const char* kind, const std::string& value) const;

  // Runs the signature on values by input, an empty one for an input that is left out, joined with others if that is wanted. charge: that
  // of the inputs. Throws HttpError and tw::StatusError.
  std::vector<Part> Run(const tw_model_signature& signature, Inputs inputs, Charge charge, Deadline deadline, Cancellation* cancellation);

 private:
  void Check(const tw_model_signature& signature, const Inputs& inputs) const;
  std::vector<tw::Tensor> RunNow(const tw_model_signature& signature, const Inputs& inputs, Deadline deadline, const CancelToken& cancel);

  const std::string name_, version_;
  tw::Model model_;
  Metrics* const metrics_;
  Batcher batcher_;
};

}  // namespace thalweg::cli::serve
