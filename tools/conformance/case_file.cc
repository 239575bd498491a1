#include "tools/conformance/case_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "tools/conformance/case_values.h"

namespace thalweg::conformance {
namespace {

// Returns the type that the schema gives flat input i under these attributes; 0: it gives none, or an
// argument of the op is a list.
uint32_t InputType(const OpSchema& op, const Attrs& attrs, size_t i) {
  for (const ArgSpec& a : op.inputs) {
    if (!a.number_attr.empty() || !a.list_attr.empty()) return 0;
  }
  if (i >= op.inputs.size()) return 0;
  const ArgSpec& arg = op.inputs[i];
  const auto at = attrs.find(arg.type_attr);
  return at != attrs.end() ? at->second.types()[0] : arg.dtype;
}

// Reads an input: a value, a variable, or a resource that an op makes.
Status ReadInput(const OpSchema& op, const Registry& registry, const JsonValue& v, Case* c) {
  const auto i = uint32_t(c->inputs.size());
  if (!v.has("variable") && !v.has("made_by")) {
    ASSIGN_OR_RETURN(Tensor t, TensorOf(v, InputType(op, c->attrs, i)));
    c->inputs.push_back(std::move(t));
    return Status();
  }
  RETURN_IF_ERROR(OnlyHas(v, {"variable", "made_by"}));
  Held& held = c->held[i];
  if (v.has("variable")) {
    ASSIGN_OR_RETURN(held.value, TensorOf(v["variable"], 0));
  } else {
    const JsonValue& made = v["made_by"];
    if (made.is(JsonValue::Kind::kObject)) RETURN_IF_ERROR(OnlyHas(made, {"op", "attrs"}));
    ASSIGN_OR_RETURN(held.maker, StringOf(made.is(JsonValue::Kind::kObject) ? made["op"] : made));
    const OpSchema* maker = registry.FindOp(held.maker);
    if (!maker) return NotFound("there is no op '", held.maker, "' to make it");
    if (!maker->inputs.empty()) return Unimplemented("op '", held.maker, "' has inputs; what makes a resource for a case may have none");
    ASSIGN_OR_RETURN(held.attrs, AttrsOf(*maker, made["attrs"]));
  }
  ASSIGN_OR_RETURN(Tensor handle, Tensor::Make(TW_RESOURCE, nullptr, 0));
  c->inputs.push_back(std::move(handle));
  return Status();
}

Status ReadWanted(const JsonValue& list, const std::string& what, std::vector<std::optional<Tensor>>* out) {
  if (list.null()) return Status();
  if (!list.is(JsonValue::Kind::kArray))
    return InvalidArgument(what, "s are ", JsonText(list), "; write a list, with null for what is not compared");
  for (const JsonValue& v : list.items()) {
    out->emplace_back();
    if (v.null()) continue;
    auto t = TensorOf(v, 0);
    if (!t.ok()) return Prefix(t.status(), StrCat(what, " ", out->size() - 1, ":"));
    out->back() = *std::move(t);
  }
  return Status();
}

Status ReadCase(const OpSchema& op, const Registry& registry, const JsonValue& v, AuthorCase* out) {
  RETURN_IF_ERROR(OnlyHas(v, {"attrs", "inputs", "outputs", "variables", "tolerance", "comment"}));
  out->c.op = op.name;
  out->c.author = true;
  ASSIGN_OR_RETURN(out->c.attrs, AttrsOf(op, v["attrs"]));
  if (v.has("inputs") && !v["inputs"].is(JsonValue::Kind::kArray))
    return InvalidArgument("inputs are ", JsonText(v["inputs"]), "; write a list");
  for (const JsonValue& in : v["inputs"].items()) {
    const size_t i = out->c.inputs.size();
    if (Status s = ReadInput(op, registry, in, &out->c); !s.ok()) return Prefix(s, StrCat("input ", i, ":"));
  }
  RETURN_IF_ERROR(ReadWanted(v["outputs"], "output", &out->wanted));
  RETURN_IF_ERROR(ReadWanted(v["variables"], "variable", &out->left));
  if (!v.has("tolerance")) return Status();
  ASSIGN_OR_RETURN(out->tolerance, NumberOf(v["tolerance"]));
  if (!(*out->tolerance >= 0)) return InvalidArgument("its tolerance is ", JsonText(v["tolerance"]), "; write a number of at least 0");
  return Status();
}

Status ReadNode(const Registry& registry, const JsonValue& v, AuthorGraph::Node* out) {
  RETURN_IF_ERROR(OnlyHas(v, {"name", "op", "inputs", "attrs"}));
  const OpSchema* op = registry.FindOp(v["op"].text());
  if (!op) return NotFound("there is no op ", JsonText(v["op"]));
  out->name = v["name"].text();
  out->op = op->name;
  ASSIGN_OR_RETURN(out->attrs, AttrsOf(*op, v["attrs"]));
  ASSIGN_OR_RETURN(out->inputs, ListOf<std::string>(v["inputs"], StringOf));
  return Status();
}

Status ReadGraph(const Registry& registry, const JsonValue& v, const std::string& where, AuthorGraph* out) {
  RETURN_IF_ERROR(OnlyHas(v, {"name", "feeds", "nodes", "comment"}));
  out->name = v.has("name") ? v["name"].text() : where;
  const JsonValue& feeds = v["feeds"];
  for (size_t i = 0; i < feeds.keys().size(); ++i) {
    auto t = TensorOf(feeds.items()[i], 0);
    if (!t.ok()) return Prefix(t.status(), StrCat("feed '", feeds.keys()[i], "':"));
    out->feeds.emplace_back(feeds.keys()[i], *std::move(t));
  }
  for (const JsonValue& node : v["nodes"].items()) {
    out->nodes.emplace_back();
    if (Status s = ReadNode(registry, node, &out->nodes.back()); !s.ok()) return Prefix(s, StrCat("node ", out->nodes.size(), ":"));
  }
  return out->feeds.empty() || out->nodes.empty() ? InvalidArgument("it needs at least one feed and one node") : Status();
}

}  // namespace

std::string CaseFile::Beside(const std::string& plugin) { return std::filesystem::path(plugin).replace_extension(".cases.json").string(); }

StatusOr<std::shared_ptr<const CaseFile>> CaseFile::Read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return NotFound("cannot read '", path, "': ", std::strerror(errno));
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  auto file = std::make_shared<CaseFile>();
  file->name_ = std::filesystem::path(path).filename().string();
  try {
    file->root_ = cli::JsonValue::Parse(text);
  } catch (const std::runtime_error& e) {
    return InvalidArgument("'", path, "': ", e.what());
  }
  if (Status s = OnlyHas(file->root_, {"ops", "graphs", "comment"}); !s.ok()) return Prefix(s, StrCat("'", path, "':"));
  for (const char* member : {"ops", "graphs"}) {
    const JsonValue& v = file->root_[member];
    const JsonValue::Kind wanted = std::string_view(member) == "ops" ? JsonValue::Kind::kObject : JsonValue::Kind::kArray;
    if (file->root_.has(member) && !v.is(wanted)) {
      return InvalidArgument("'", path, "': '", member, "' is no ",
                             wanted == JsonValue::Kind::kObject ? "object with lists of cases by op" : "list");
    }
  }
  for (const JsonValue& cases : file->root_["ops"].items()) {
    if (!cases.is(JsonValue::Kind::kArray))
      return InvalidArgument("'", path, "': the cases of an op are ", JsonText(cases), "; write a list");
  }
  return std::shared_ptr<const CaseFile>(std::move(file));
}

std::vector<std::string> CaseFile::Ops() const { return root_["ops"].keys(); }

StatusOr<std::vector<AuthorCase>> CaseFile::Of(const OpSchema& op, const Registry& registry) const {
  std::vector<AuthorCase> out;
  const JsonValue& cases = root_["ops"][op.name];
  for (const JsonValue& v : cases.items()) {
    out.emplace_back();
    out.back().where = StrCat("case ", out.size(), " of op '", op.name, "' in ", name_);
    if (Status s = ReadCase(op, registry, v, &out.back()); !s.ok()) return Prefix(s, StrCat(out.back().where, ":"));
  }
  return out;
}

StatusOr<std::vector<AuthorGraph>> CaseFile::Graphs(const Registry& registry) const {
  std::vector<AuthorGraph> out;
  for (const JsonValue& v : root_["graphs"].items()) {
    const std::string where = StrCat("graph ", out.size() + 1, " in ", name_);
    out.emplace_back();
    if (Status s = ReadGraph(registry, v, where, &out.back()); !s.ok()) return Prefix(s, where + ":");
  }
  return out;
}

}  // namespace thalweg::conformance
