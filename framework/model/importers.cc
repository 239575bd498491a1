#include "framework/model/importers.h"

#include <algorithm>
#include <tuple>
#include <vector>

#include "framework/base/shown.h"
#include "framework/runtime/host/host_table.h"

namespace thalweg {
namespace {

std::string_view Doc(const ImporterRole& r) { return {r.def.doc, r.def.doc_len}; }
std::string_view Endings(const ImporterRole& r) { return {r.def.files, r.def.files_len}; }
std::string_view Options(const ImporterRole& r) { return {r.def.options, r.def.options_len}; }

// Calls f with each part between separators.
template <class F>
void Each(std::string_view text, char separator, F&& f) {
  while (!text.empty()) {
    const size_t end = text.find(separator);
    if (const std::string_view part = text.substr(0, end); !part.empty()) f(part);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
}

bool HasUsualEnding(const ImporterRole& r, const ModelSource& source) {
  bool found = false;
  Each(Endings(r), ' ',
       [&](std::string_view ending) { found |= source.is_folder() ? ending == "/" : std::string_view(source.path()).ends_with(ending); });
  return found;
}

uint32_t Confidence(const ImporterRole& r, const ModelSource& source) {
  const auto host = ConfinedHost(r.host, source.files());
  uint32_t sure = 0;
  const Status s = FromC(r.def.recognise(host.get(), r.def.user, source.c(), &sure));
  return s.ok() ? std::min(sure, 100u) : 0;
}

std::string Known(const std::vector<std::shared_ptr<const ImporterRole>>& all) {
  std::string text;
  for (const auto& r : all) text += StrCat(text.empty() ? "" : ", ", r->name, " (", Shown(Doc(*r)), ")");
  return text.empty() ? "no loaded plugin has an importer; load the plugin of the format"
                      : StrCat("there are importers ", text, "; load the plugin of another format");
}

}  // namespace

StatusOr<std::shared_ptr<const ImporterRole>> ChooseImporter(const Registry& registry, const ModelSource& source, std::string_view name) {
  const auto all = registry.RolesOf<ImporterRole>();
  std::shared_ptr<const ImporterRole> best;
  std::tuple<uint32_t, bool> rank{0, false};
  for (const auto& r : all) {  // sorted by name
    if (!name.empty()) {
      if (r->name == name) return r;
      continue;
    }
    const std::tuple<uint32_t, bool> mine{Confidence(*r, source), HasUsualEnding(*r, source)};
    if (std::get<0>(mine) == 0 || mine <= rank) continue;
    rank = mine;
    best = r;
  }
  if (best) return best;
  if (!name.empty()) return NotFound("there is no importer '", Shown(name), "': ", Known(all));
  return InvalidArgument("'", Shown(source.path()), "': no importer recognises what the ", source.is_folder() ? "folder" : "file",
                         " holds: ", Known(all));
}

std::string DescribeImporters(const Registry& registry) {
  std::string text;
  for (const auto& r : registry.RolesOf<ImporterRole>()) {
    std::string options(Options(*r));
    while (!options.empty() && options.back() == '\n') options.pop_back();
    std::replace(options.begin(), options.end(), '\n', ';');
    text += StrCat(r->name, "\t", Doc(*r), "\t", Endings(*r), "\t", options, "\n");
  }
  return text;
}

Status CheckImporterOption(const ImporterRole& importer, std::string_view key) {
  bool found = false;
  std::string all;
  Each(Options(importer), '\n', [&](std::string_view line) {
    const std::string_view option = line.substr(0, line.find(':'));
    found |= option == key;
    all += StrCat(all.empty() ? "" : ", ", "'", option, "'");
  });
  if (found) return Status();
  return InvalidArgument("importer '", importer.name, "' has no option '", Shown(key), "'; ",
                         all.empty() ? "it has none" : StrCat("its options are ", all));
}

}  // namespace thalweg
