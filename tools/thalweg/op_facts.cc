#include "op_facts.h"

#include <algorithm>
#include <cstdio>
#include <set>

namespace thalweg::cli {
namespace {

std::string Joined(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : ", ") + text;
  return out;
}

std::string ValueText(const std::string& kind, const JsonValue& value) {
  if (kind == "bool") return value.number() != 0 ? "true" : "false";
  if (kind == "string" || kind == "func") return "\"" + value.text() + "\"";
  if (kind == "type" || kind == "tensor") return value.text();
  if (kind == "shape") {
    if (value.null()) return "unknown";
    std::vector<std::string> dims;
    for (const JsonValue& dim : value.items()) dims.push_back(ValueText("int", dim));
    return "[" + Joined(dims) + "]";
  }
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", value.number());
  return text;
}

std::vector<std::string> Allowed(const JsonValue& attr) {
  std::vector<std::string> texts;
  for (const JsonValue& one : attr["allowed"].items()) texts.push_back(one.text());
  return texts;
}

// Parses a kernel's text such as "a, b -> c" into types per argument; "" if the kernel covers all
// types.
std::vector<std::string> KernelTypes(const std::string& spec, char side) {
  const size_t open = spec.find('('), close = spec.find(')', open);
  if (open == spec.npos || close == spec.npos) return {};
  const std::string inside = spec.substr(open + 1, close - open - 1);
  const size_t arrow = inside.find("->");
  std::string part = side == 'i' ? inside.substr(0, arrow) : arrow == inside.npos ? "" : inside.substr(arrow + 2);
  std::vector<std::string> types;
  for (size_t at = 0; at < part.size();) {
    const size_t end = std::min(part.find(',', at), part.size());
    const size_t begin = part.find_first_not_of(' ', at);
    if (begin < end) types.push_back(part.substr(begin, part.find_last_not_of(' ', end - 1) + 1 - begin));
    at = end + 1;
  }
  return types;
}

std::string Place(const JsonValue& op, size_t k, bool with_plugins) {
  const std::string& spec = op["kernels"].items()[k].text();
  const size_t at = spec.find('@');
  std::string place = at == spec.npos ? "" : spec.substr(at + 1, spec.find_first_of("; ", at) - at - 1);
  if (with_plugins && k < op["kernel_plugins"].items().size()) place += " (" + op["kernel_plugins"].items()[k].text() + ")";
  return place;
}

// Returns a kernel's type for a type attribute: the type of the first argument with the attribute,
// or "_" for all types.
std::string KernelTypeOf(const JsonValue& op, const std::string& spec, const std::string& attr) {
  for (const char side : {'i', 'o'}) {
    const std::vector<std::string> types = KernelTypes(spec, side);
    const std::vector<JsonValue>& arguments = op[side == 'i' ? "inputs" : "outputs"].items();
    for (size_t i = 0; i < arguments.size() && i < types.size(); ++i) {
      if (arguments[i]["type_attr"].text() == attr && types[i] != "_") return types[i];
    }
  }
  return "_";
}

// Lists the types in the schema's order.
std::string TypesText(const std::set<std::string>& have, const std::vector<std::string>& allowed) {
  if (have.count("_")) return "all";
  std::vector<std::string> of;
  if (allowed.empty()) return Joined({have.begin(), have.end()});
  for (const std::string& type : allowed) {
    if (have.count(type)) of.push_back(type);
  }
  return of.size() == allowed.size() ? "all" : Joined(of);
}

}  // namespace

std::string ArgumentKind(const JsonValue& argument) {
  if (!argument["list_attr"].null()) return "any number, of the types " + argument["list_attr"].text();
  std::string kind = argument["type_attr"].null() ? argument["type"].text() : argument["type_attr"].text();
  if (!argument["resource"].null()) kind = argument["resource"].text() + " (a handle)";
  if (!argument["ref"].null()) kind = "reference to " + kind;
  return argument["number_attr"].null() ? kind : argument["number_attr"].text() + " of " + kind;
}

std::string SignatureText(const JsonValue& op) {
  std::string text = op["name"].text();
  for (const char* side : {"inputs", "outputs"}) {
    text += side[0] == 'i' ? "(" : " -> (";
    bool first = true;
    for (const JsonValue& a : op[side].items()) {
      const std::string type = !a["list_attr"].null()   ? a["list_attr"].text()
                               : !a["type_attr"].null() ? a["type_attr"].text()
                                                        : a["type"].text();
      text += (first ? "" : ", ") + a["name"].text() + ": " + (a["ref"].null() ? type : "ref(" + type + ")");
      if (!a["number_attr"].null()) text += " * " + a["number_attr"].text();
      first = false;
    }
    text += ")";
  }
  return text;
}

std::string AttrKind(const JsonValue& attr) {
  const std::vector<std::string> allowed = Allowed(attr);
  std::string kind = attr["kind"].text();
  if (!allowed.empty()) kind = "one of " + Joined(allowed);
  if (attr["list"].number() != 0) kind = "list of " + kind;
  if (!attr["minimum"].null()) {
    const std::string least = ValueText("int", attr["minimum"]);
    kind += attr["list"].number() != 0 ? ", at least " + least + " of them" : ", at least " + least;
  }
  return kind;
}

std::string DefaultText(const JsonValue& attr) {
  const JsonValue& value = attr["default"];
  const std::string& kind = attr["kind"].text();
  if (!attr.has("default")) return "";
  if (attr["list"].number() == 0) return ValueText(kind, value);
  std::vector<std::string> entries;
  for (const JsonValue& entry : value.items()) entries.push_back(ValueText(kind, entry));
  return "[" + Joined(entries) + "]";
}

std::vector<const JsonValue*> GivenAttrs(const JsonValue& op) {
  std::set<std::string> told;
  for (const JsonValue& input : op["inputs"].items()) {
    for (const char* key : {"type_attr", "number_attr", "list_attr"}) told.insert(input[key].text());
  }
  std::vector<const JsonValue*> given;
  for (const JsonValue& attr : op["attrs"].items()) {
    if (!told.count(attr["name"].text())) given.push_back(&attr);
  }
  return given;
}

std::string GradientText(const JsonValue& op) {
  const std::string& gradient = op["gradient"].text();
  return gradient == "none" ? "none: " + op["no_gradient"].text() : gradient;
}

std::vector<TypeFacts> TypesOf(const JsonValue& op, bool with_plugins) {
  std::vector<TypeFacts> all;
  for (const JsonValue& attr : op["attrs"].items()) {
    if (attr["kind"].text() != "type") continue;
    const std::vector<std::string> allowed = Allowed(attr);
    TypeFacts facts{attr["name"].text(), allowed.empty() ? "any" : Joined(allowed), {}};
    std::vector<std::pair<std::string, std::set<std::string>>> places;
    for (size_t k = 0; k < op["kernels"].items().size(); ++k) {
      const std::string place = Place(op, k, with_plugins);
      auto at = std::find_if(places.begin(), places.end(), [&](const auto& p) { return p.first == place; });
      if (at == places.end()) at = places.insert(places.end(), {place, {}});
      at->second.insert(KernelTypeOf(op, op["kernels"].items()[k].text(), facts.attr));
    }
    for (const auto& [place, types] : places) facts.kernels.emplace_back(place, TypesText(types, allowed));
    all.push_back(std::move(facts));
  }
  return all;
}

std::vector<std::string> KernelPlaces(const JsonValue& op, bool with_plugins) {
  std::vector<std::string> places;
  for (size_t k = 0; k < op["kernels"].items().size(); ++k) {
    const std::string place = Place(op, k, with_plugins);
    if (std::find(places.begin(), places.end(), place) == places.end()) places.push_back(place);
  }
  return places;
}

}  // namespace thalweg::cli
