#include "framework/model/loaded_model.h"

#include <algorithm>
#include <utility>

#include "framework/base/shown.h"
#include "framework/model/importers.h"
#include "framework/model/model_builder.h"
#include "framework/model/model_source.h"
#include "framework/runtime/host/host_table.h"
#include "framework/runtime/runtime.h"

namespace thalweg {

StatusOr<LoadedModel> LoadModel(std::shared_ptr<Runtime> runtime, const std::string& path, const LoadOptions& options) {
  ASSIGN_OR_RETURN(const auto source, ModelSource::Open(path, &runtime->files(), options.max_file_bytes));
  ASSIGN_OR_RETURN(const auto importer, ChooseImporter(runtime->registry(), *source, options.importer));
  std::vector<tw_import_option> given;
  for (const auto& [key, value] : options.options) {
    RETURN_IF_ERROR(CheckImporterOption(*importer, key));
    given.push_back({key.data(), key.size(), value.data(), value.size()});
  }
  ModelBuilder builder(runtime, importer, source.get(), &options);
  const auto host = ConfinedHost(importer->host, source->files());
  tw_import_call call = {TW_SIZED(tw_import_call), host.get(), importer->def.user, source->c(), given.data(),
                         uint32_t(given.size()),   0,          builder.c()};
  auto model = builder.Finish(FromC(importer->def.load(&call)));
  if (!model.ok()) return Prefix(model.status(), StrCat("cannot load '", Shown(path), "' with importer '", importer->name, "':"));
  return model;
}

StatusOr<size_t> FindSignature(const LoadedModel& model, std::string_view name) {
  if (name.empty()) return model.default_signature;
  std::string all;
  for (size_t i = 0; i < model.signatures.size(); ++i) {
    if (model.signatures[i].name == name) return i;
    all += StrCat(all.empty() ? "'" : ", '", Shown(model.signatures[i].name), "'");
  }
  return NotFound("the model has no signature '", Shown(name), "'; ", all.empty() ? "it has none" : StrCat("it has ", all));
}

}  // namespace thalweg
