#include "served_model.h"

#include <algorithm>

#include "datatype.h"
#include "http_error.h"

namespace thalweg::cli::serve {
namespace {

constexpr size_t kLongestSignature = 4096;  // bytes of a name; a longer one is not put into an error

bool Fits(const tw_shape& shape, const std::vector<int64_t>& dims) {
  if (shape.rank < 0) return true;
  if (size_t(shape.rank) != dims.size()) return false;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (shape.dims[i] >= 0 && shape.dims[i] != dims[i]) return false;
  }
  return true;
}

}  // namespace

ServedModel::ServedModel(const tw::Runtime& runtime, const std::string& name, uint64_t version, const std::string& path,
                         const tw::ModelOptions& options, const Settings& settings, Metrics* metrics, Runners* runners)
    : name_(name),
      version_(std::to_string(version)),
      model_(runtime, path, options),
      metrics_(metrics),
      batcher_(settings.max_batch, settings.batch_delay, runners,
               [this](const tw_model_signature& s, const Inputs& inputs, Deadline deadline, const CancelToken& cancel) {
                 return RunNow(s, inputs, deadline, cancel);
               }) {}

std::string ServedModel::Where(const char* kind, const std::string& value) const {
  return "model '" + name_ + "', " + kind + " '" + value + "'";
}

const tw_model_signature& ServedModel::signature(const std::string& name) const {
  if (name.size() > kLongestSignature) {
    throw HttpError(400, "model '" + name_ + "' has no signature whose name has " + std::to_string(name.size()) + " bytes");
  }
  try {
    return model_.signature(name);
  } catch (const tw::StatusError& e) {
    throw HttpError(400, "model '" + name_ + "': " + e.what());
  }
}

void ServedModel::Check(const tw_model_signature& signature, const Inputs& inputs) const {
  for (uint32_t i = 0; i < signature.n_inputs; ++i) {
    const tw_model_value& wanted = *signature.inputs[i];
    if (!inputs[i]) {
      if (!wanted.is_optional)
        throw HttpError(400, Where("input", wanted.name) + ": it is missing; " + DatatypeName(wanted.dtype) + " " +
                                 DimsText(*wanted.shape) + " is expected");
      continue;
    }
    if (!Fits(*wanted.shape, inputs[i].dims())) {
      throw HttpError(400, Where("input", wanted.name) + ": the shape is " + DimsText(inputs[i].dims()) + "; " + DimsText(*wanted.shape) +
                               " is expected");
    }
  }
}

std::vector<Part> ServedModel::Run(const tw_model_signature& signature, Inputs inputs, Charge charge, Deadline deadline,
                                   Cancellation* cancellation) {
  Check(signature, inputs);
  return batcher_.Request(signature, std::move(inputs), std::move(charge), deadline, cancellation, shared_from_this());
}

std::vector<tw::Tensor> ServedModel::RunNow(const tw_model_signature& signature, const Inputs& inputs, Deadline deadline,
                                            const CancelToken& cancel) {
  tw_run_options options = {};
  options.size = sizeof(options);
  options.cancel = cancel.c();
  if (deadline != Deadline::max()) {
    options.timeout_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - Clock::now()).count();
    if (options.timeout_ns <= 0) throw HttpError(504, "model '" + name_ + "': the request's time ran out before it could run");
  }
  const bool rows = !inputs.empty() && inputs[0] && tw_tensor_rank(inputs[0].c()) > 0;
  metrics_->Batch(name_, version_, rows ? uint64_t(tw_tensor_dim(inputs[0].c(), 0)) : 1);
  std::vector<tw_tensor*> in, out(signature.n_outputs);
  for (const tw::Tensor& t : inputs) in.push_back(t.c());
  tw::raise(tw_model_run(model_.c(), signature.name, in.data(), &options, out.data()));
  std::vector<tw::Tensor> outputs;
  for (tw_tensor* t : out) outputs.push_back(tw::Tensor::adopt(t));
  return outputs;
}

}  // namespace thalweg::cli::serve
