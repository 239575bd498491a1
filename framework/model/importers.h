// Chooses the importer of a file by its contents. Threads: any.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "framework/base/status.h"
#include "framework/model/model_source.h"
#include "framework/registry/registry.h"

namespace thalweg {

// Returns the importer of that name, or, if it is empty, the one that is surest about the contents;
// between equally sure ones the usual ending of the file's name decides, then the importer's name.
// NOT_FOUND and INVALID_ARGUMENT list the known importers.
StatusOr<std::shared_ptr<const ImporterRole>> ChooseImporter(const Registry& registry, const ModelSource& source, std::string_view name);

// Returns a line for each importer: name, format, usual endings, options, with tabs between them.
std::string DescribeImporters(const Registry& registry);

// Finds whether the importer has the option. INVALID_ARGUMENT lists its options.
Status CheckImporterOption(const ImporterRole& importer, std::string_view key);

}  // namespace thalweg
