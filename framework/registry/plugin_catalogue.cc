#include "framework/registry/plugin_catalogue.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace thalweg {
namespace {

using Part = PluginSource::Part;

std::string Key(Part part, std::string_view name, std::string_view kind = {}) {
  std::string key(1, char('a' + int(part)));
  key.append(name).append(1, '\0').append(kind);
  return key;
}

std::string_view FirstWord(std::string_view text) { return text.substr(0, text.find(' ')); }

// A thing that only one plugin may provide, and its owner.
struct Claim {
  std::string what;  // such as "op 'Twice'"
  std::string owner;
};

// Returns true for roles whose name is a scheme, which belongs to one plugin. The names of other
// roles are each plugin's own.
bool IsScheme(std::string_view role) {
  const std::array kSchemes = {FileSystemRole::kRole, TransportRole::kRole, MembershipRole::kRole};
  return std::find(kSchemes.begin(), kSchemes.end(), FirstWord(role)) != kSchemes.end();
}

std::vector<Claim> ClaimsOf(const PluginManifest& m, const Registry& registry) {
  std::vector<Claim> claims;
  auto add = [&](std::string_view what, std::string_view name, std::string_view owner) {
    claims.push_back({StrCat(what, " '", name, "'"), std::string(owner)});
  };
  for (const std::string& name : m.ops) {
    const OpSchema* op = registry.FindOp(name);
    add("op", name, op ? op->plugin : "");
  }
  for (const std::string& role : m.op_roles) {
    auto op = registry.FindRole(role);
    add("role", role, op.ok() ? (*op)->plugin : "");
  }
  for (const std::string& name : m.resources) {
    const ResourceType* type = registry.FindResourceType(name);
    add("resource type", name, type ? type->plugin : "");
  }
  for (const auto& [text, kind] : m.roles) {
    if (!IsScheme(text)) continue;
    const std::string_view role = FirstWord(text), name = std::string_view(text).substr(role.size() + 1);
    auto others = registry.Roles(role, name);
    add(role, name, others.empty() ? "" : others[0]->plugin);
  }
  return claims;
}

void Shadow(KnownPlugin* loser, std::string_view what, std::string_view winner, std::string_view rule, std::string_view fix) {
  Status why = AlreadyExists(what, " is also in plugin ", winner, ", which goes first: ", rule);
  Refuse(loser->record.get(), PluginRecord::kShadowed, why, fix).IgnoreError();
}

}  // namespace

size_t RankOf(const std::vector<std::string>& preferred, std::string_view id) {
  return size_t(std::find(preferred.begin(), preferred.end(), id) - preferred.begin());
}

void PluginCatalogue::Add(std::unique_ptr<KnownPlugin> plugin) {
  KnownPlugin* p = plugin.get();
  auto index = [&](Part part, std::string_view name, std::string_view kind = {}) {
    auto& those = by_part_[Key(part, name, kind)];
    if (those.empty() || those.back() != p) those.push_back(p);
  };
  auto index_all = [&](Part part, const std::vector<std::string>& names) {
    for (const std::string& name : names) index(part, name);
    if (!names.empty()) index(part, "");
  };
  PluginManifest& m = p->manifest;
  std::sort(m.kernels.begin(), m.kernels.end(), [](const auto& a, const auto& b) { return a.op < b.op; });
  index_all(Part::kOp, m.ops);
  index_all(Part::kOpRole, m.op_roles);
  index_all(Part::kResource, m.resources);
  for (const auto& [role, kind] : m.roles) {
    for (std::string_view of : {std::string_view(), std::string_view(kind)}) {
      index(Part::kRole, role, of);
      index(Part::kRole, FirstWord(role), of);
      index(Part::kRole, "", of);
    }
  }
  if (!m.kernels.empty()) index(Part::kKernel, "");
  for (size_t i = 0; i < m.kernels.size(); ++i) {  // by kind only: Find looks for the op in the manifest
    if (i == 0 || m.kernels[i].kind != m.kernels[i - 1].kind) index(Part::kKernel, "", m.kernels[i].kind);
  }
  for (const auto& d : m.devices) {
    index(Part::kDevice, d.kind);
    index(Part::kDevice, "");
  }
  plugins_.push_back(std::move(plugin));
}

std::vector<KnownPlugin*> PluginCatalogue::Find(Part part, std::string_view name, std::string_view kind) const {
  std::vector<KnownPlugin*> found;
  const bool kernel = part == Part::kKernel;
  auto it = by_part_.find(Key(part, kernel ? std::string_view() : name, kind));
  if (it == by_part_.end()) return found;
  for (KnownPlugin* p : it->second) {
    if (p->progress != KnownPlugin::kWaiting) continue;
    if (!kernel || name.empty() || HasKernel(p->manifest, name, kind) || HasKernel(p->manifest, "*", kind)) found.push_back(p);
  }
  return found;
}

std::vector<KnownPlugin*> PluginCatalogue::Waiting() const {
  std::vector<KnownPlugin*> all;
  for (const auto& p : plugins_) {
    if (p->progress == KnownPlugin::kWaiting) all.push_back(p.get());
  }
  return all;
}

std::vector<std::unique_ptr<KnownPlugin>> SettleConflicts(std::vector<std::unique_ptr<KnownPlugin>> found, const Registry& registry,
                                                          const std::vector<std::string>& preferred) {
  auto order = [&](const auto& p) { return std::tuple(RankOf(preferred, p->manifest.id), std::string_view(p->manifest.id)); };
  std::stable_sort(found.begin(), found.end(), [&](const auto& a, const auto& b) { return order(a) < order(b); });
  std::map<std::string, const KnownPlugin*> taken;
  std::vector<std::unique_ptr<KnownPlugin>> staying;
  for (auto& p : found) {
    std::vector<Claim> claims = ClaimsOf(p->manifest, registry);
    bool stays = true;
    for (const Claim& claim : claims) {
      auto it = taken.find(claim.what);
      if (!claim.owner.empty()) {
        Shadow(p.get(), claim.what, StrCat("'", claim.owner, "'"), "it is loaded already",
               "rename what the two share, or disable one of them");
      } else if (it != taken.end()) {
        const KnownPlugin& first = *it->second;
        const bool by_setting = RankOf(preferred, first.manifest.id) < preferred.size();
        Shadow(p.get(), claim.what, StrCat("'", first.manifest.id, "' (", first.record->path, ")"),
               by_setting ? "plugin_prefer names it" : "its id is the smaller one",
               StrCat("set plugin_prefer=", p->manifest.id, ", or disable one of the two"));
      } else {
        continue;
      }
      stays = false;
      break;
    }
    if (!stays) continue;
    for (Claim& claim : claims) taken.emplace(std::move(claim.what), p.get());
    staying.push_back(std::move(p));
  }
  return staying;
}

}  // namespace thalweg
