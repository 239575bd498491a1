// Writes a signature of a model as an ONNX file.
#pragma once
#include <string>

#include "thalweg/cpp/thalweg.hpp"

namespace thalweg::cli::onnx {

// Returns the bytes of the file: opset 18, with the values of variables as constants. Throws std::runtime_error, which lists every
// operation that ONNX has no twin of. version: of the program, for the file's producer.
std::string Export(const tw::Model& model, const tw_model_signature& signature, const std::string& version);

}  // namespace thalweg::cli::onnx
