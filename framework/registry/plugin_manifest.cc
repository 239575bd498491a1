#include "framework/registry/plugin_manifest.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <utility>

namespace thalweg {
namespace {

void AddLine(std::string* out, std::string_view word, std::string_view rest) {
  out->append(word).append(" ").append(EscapeLine(rest)).append("\n");
}

bool ParseNumber(std::string_view text, uint32_t* out) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size();
}

// Takes the first word of `rest` as a number and leaves what follows it.
bool TakeNumber(std::string_view* rest, uint32_t* out) {
  const size_t space = rest->find(' ');
  if (space == rest->npos || !ParseNumber(rest->substr(0, space), out)) return false;
  rest->remove_prefix(space + 1);
  return true;
}

bool TakeKernels(std::string_view rest, PluginManifest* m) {
  PluginManifest::Kernels k;
  if (!TakeNumber(&rest, &k.count)) return false;
  const size_t space = rest.find(' ');
  if (space == rest.npos) return false;
  m->kernels.push_back(std::move(k));
  return UnescapeLine(rest.substr(0, space), &m->kernels.back().kind) && UnescapeLine(rest.substr(space + 1), &m->kernels.back().op);
}

bool TakeDevice(std::string_view rest, PluginManifest* m) {
  uint32_t streams = 0;
  if (!TakeNumber(&rest, &streams) || streams > 1) return false;
  m->devices.push_back({"", streams == 1});
  return UnescapeLine(rest, &m->devices.back().kind);
}

// Parses the rest of a line of a role for a device kind: the kind, then the name.
bool TakeRoleFor(std::string_view rest, PluginManifest* m) {
  const size_t space = rest.find(' ');
  if (space == rest.npos) return false;
  PluginManifest::Role& role = m->roles.emplace_back();
  return UnescapeLine(rest.substr(0, space), &role.kind) && UnescapeLine(rest.substr(space + 1), &role.name);
}

bool TakePart(std::string_view word, std::string_view rest, PluginManifest* m) {
  auto add = [rest](std::vector<std::string>* to) { return UnescapeLine(rest, &to->emplace_back()); };
  if (word == "id") return UnescapeLine(rest, &m->id);
  if (word == "version") return UnescapeLine(rest, &m->version);
  if (word == "build") return UnescapeLine(rest, &m->build);
  if (word == "epoch") return ParseNumber(rest, &m->epoch);
  if (word == "floor") return ParseNumber(rest, &m->floor);
  if (word == "target") return ParseNumber(rest, &m->target);
  if (word == "op") return add(&m->ops);
  if (word == "op_role") return add(&m->op_roles);
  if (word == "left_out") return add(&m->left_out);
  if (word == "resource") return add(&m->resources);
  if (word == "role") return UnescapeLine(rest, &m->roles.emplace_back().name);
  if (word == "role_for") return TakeRoleFor(rest, m);
  if (word == "kernels") return TakeKernels(rest, m);
  if (word == "device") return TakeDevice(rest, m);
  return false;
}

int HexDigit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; }

}  // namespace

bool HasKernel(const PluginManifest& m, std::string_view op, std::string_view kind) {
  auto before = [](const PluginManifest::Kernels& k, std::string_view name) { return k.op < name; };
  for (auto k = std::lower_bound(m.kernels.begin(), m.kernels.end(), op, before); k != m.kernels.end() && k->op == op; ++k) {
    if (kind.empty() || k->kind == kind) return true;
  }
  return false;
}

Status CheckKernelsOnce(const Registration& r) {
  std::set<std::string_view> specs;
  for (const auto& k : r.kernels) {
    if (!specs.insert(k->spec.text).second) return AlreadyExists("kernel '", k->spec.text, "' is registered twice");
  }
  return Status();
}

PluginManifest ManifestOf(const PluginRecord& record, const tw_plugin& d, const Registration& r) {
  PluginManifest m;
  m.id = record.id;
  m.version = record.version;
  m.build = record.build;
  m.epoch = d.epoch;
  m.floor = d.floor;
  m.target = d.target;
  for (const auto& op : r.ops) {
    m.ops.push_back(op->name);
    if (!op->role.empty()) m.op_roles.push_back(op->role);
  }
  std::map<std::pair<std::string_view, std::string_view>, uint32_t> count;
  for (const auto& k : r.kernels) ++count[{k->spec.op, k->spec.kind}];
  for (const auto& [key, n] : count) m.kernels.push_back({std::string(key.first), std::string(key.second), n});
  for (const auto& t : r.resources) m.resources.push_back(t->type);
  for (const auto& k : r.devices) m.devices.push_back({k->kind, k->has_streams});
  for (const auto& role : r.roles) m.roles.push_back({StrCat(role->role, " ", role->name), role->kind});
  m.left_out = record.left_out;
  return m;
}

std::string ManifestText(const PluginManifest& m) {
  std::string out;
  AddLine(&out, "id", m.id);
  AddLine(&out, "version", m.version);
  AddLine(&out, "build", m.build);
  AddLine(&out, "epoch", StrCat(m.epoch));
  AddLine(&out, "floor", StrCat(m.floor));
  AddLine(&out, "target", StrCat(m.target));
  for (const std::string& op : m.ops) AddLine(&out, "op", op);
  for (const std::string& role : m.op_roles) AddLine(&out, "op_role", role);
  for (const auto& k : m.kernels) AddLine(&out, "kernels", StrCat(k.count, " ", k.kind, " ", k.op));
  for (const std::string& type : m.resources) AddLine(&out, "resource", type);
  for (const auto& d : m.devices) AddLine(&out, "device", StrCat(d.has_streams ? 1 : 0, " ", d.kind));
  for (const auto& role : m.roles) {
    role.kind.empty() ? AddLine(&out, "role", role.name) : AddLine(&out, "role_for", StrCat(role.kind, " ", role.name));
  }
  for (const std::string& l : m.left_out) AddLine(&out, "left_out", l);
  return out + "end\n";
}

bool TakeManifest(std::string_view* text, PluginManifest* m) {
  *m = PluginManifest();
  for (std::string_view word, rest; TakeLine(text, &word, &rest);) {
    if (word == "end") return rest.empty() && !m->id.empty();
    if (!TakePart(word, rest, m)) return false;
  }
  return false;
}

std::string EscapeLine(std::string_view text) {
  constexpr std::string_view kHexDigits = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    const auto b = static_cast<unsigned char>(c);
    if (b >= 0x20 && b != 0x7f && c != '%') {
      out += c;
    } else {
      out += {'%', kHexDigits[b >> 4], kHexDigits[b & 15]};
    }
  }
  return out;
}

bool UnescapeLine(std::string_view text, std::string* out) {
  const size_t plain = std::min(text.find('%'), text.size());  // nearly always the whole text
  out->assign(text.substr(0, plain));
  for (size_t i = plain; i < text.size(); ++i) {
    if (text[i] != '%') {
      *out += text[i];
      continue;
    }
    if (text.size() - i < 3 || HexDigit(text[i + 1]) < 0 || HexDigit(text[i + 2]) < 0) return false;
    *out += char(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2]));
    i += 2;
  }
  return true;
}

bool TakeLine(std::string_view* text, std::string_view* word, std::string_view* rest) {
  const size_t end = text->find('\n');
  if (end == text->npos) return false;
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(end + 1);
  const size_t space = line.find(' ');
  *word = line.substr(0, space);
  *rest = space == line.npos ? std::string_view() : line.substr(space + 1);
  return true;
}

}  // namespace thalweg
