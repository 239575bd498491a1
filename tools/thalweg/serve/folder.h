// What a folder of models holds: FOLDER/NAME/VERSION/, where VERSION is a whole number and holds one model. This is the layout of
// TensorFlow Serving and of Triton.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "thalweg/cpp/thalweg.hpp"

namespace thalweg::cli::serve {

using Versions = std::map<uint64_t, std::string>;  // the folder of each version

// Returns the models of a folder, also those without versions. Names that begin with a dot are left out. Throws
// std::filesystem::filesystem_error.
std::map<std::string, Versions> ListModels(const std::string& folder);

// Returns the model in the folder of a version: the folder itself if it is a SavedModel, its only entry, or the only one that an
// importer recognises. Throws std::runtime_error naming what is there.
std::string FindModel(const tw::Runtime& runtime, const std::string& folder);

// Returns a text that changes when a file below the folder is added, removed or written.
std::string Fingerprint(const std::string& folder);

}  // namespace thalweg::cli::serve
