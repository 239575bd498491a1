// Files of models, in any format that an importer knows, for `run` and `inspect`.
#pragma once
#include <optional>
#include <string>

#include "command.h"
#include "model.h"

namespace thalweg::cli {

// Loads the file as a model if the arguments ask for that (--signature, --inputs,
// --random-inputs, --importer), or if it is no plain graph file (GraphDef).
std::optional<tw::Model> OpenModelFile(const Args& args, const tw::Runtime& runtime, const std::string& path);

// Prints signatures and what the file says of itself, as a table or, with --json, as JSON.
void PrintModel(const Args& args, const tw::Model& model, const std::string& path);

// Returns the inputs and outputs of --signature with the values of --feed, --inputs and
// --random-inputs. An
// optional input without a value is not among the feeds. Throws UsageError for unknown names.
Signature ReadModelSignature(const Args& args, const tw::Runtime& runtime, const tw::Model& model);

// Runs the signature and returns the values of its fetches.
std::vector<tw::Tensor> RunModel(const Args& args, const tw::Model& model, const Signature& signature, int64_t timeout_ns,
                                 tw_step_stats* stats);

std::vector<Option> ModelFileOptions();

}  // namespace thalweg::cli
