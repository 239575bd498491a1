#include "import.h"

#include <algorithm>
#include <map>
#include <set>

#include "module_reader.h"

namespace thalweg::stablehlo {
namespace {

std::string Joined(const std::vector<std::string>& parts, const char* between) {
  std::string all;
  for (const std::string& part : parts) all += (all.empty() ? "" : between) + part;
  return all;
}

// Counts the operations, of called functions too, that have no translator.
class UnknownOps {
 public:
  explicit UnknownOps(const Module& module) : module_(module) {}

  void Scan(const Function& function) {
    std::vector<const Function*> open = {&function};
    scanned_.insert(&function);
    while (!open.empty()) {
      const Function* f = open.back();
      open.pop_back();
      Scan(f->body, &open);
    }
  }
  std::vector<std::string> all() const {
    std::vector<std::string> texts;
    for (const auto& [name, count] : unknown_) texts.push_back(std::string(name) + " (" + std::to_string(count) + ")");
    return texts;
  }

 private:
  void Scan(const Block& block, std::vector<const Function*>* open) {
    for (const Operation& o : block.operations) {
      for (const Block& inner : o.regions) Scan(inner, open);
      if (o.name == "stablehlo.return") continue;
      if (!FindTranslator(o.name)) ++unknown_[o.name];
      const Attribute* callee = o.attribute(o.name == "func.call" ? "callee" : "decomposition");
      const Function* called = callee ? module_.find(callee->text) : nullptr;
      if (called && scanned_.insert(called).second) open->push_back(called);
    }
  }
  const Module& module_;
  std::set<const Function*> scanned_;
  std::map<std::string_view, int64_t> unknown_;
};

const Function& Main(const Module& module) {
  const Function* main = module.find("main");
  if (!main) {
    std::vector<std::string> names;
    for (const Function& f : module.functions) {
      if (f.is_private) continue;
      names.push_back("'" + std::string(f.name.substr(0, 200)) + "'");
      main = &f;
    }
    if (names.size() != 1) {
      const std::string found = names.empty() ? "it has none that is public" : "its public ones are " + Joined(names, ", ");
      throw Error{TW_UNIMPLEMENTED, "the module has no function 'main'; " + found.substr(0, 1000)};
    }
  }
  if (!main->has_body) throw Error{TW_INVALID_ARGUMENT, "function '" + std::string(main->name) + "' has no body"};
  return *main;
}

// A path of JAX as a name: "params['layer'][0].w" is "params.layer.0.w".
std::string NameOf(std::string_view path) {
  std::string name;
  for (const char c : Printable(path.substr(0, 200))) {
    if (c == '\'' || c == '"' || c == ']') continue;
    const char plain = c == '[' ? '.' : c;
    if (plain == '.' && (name.empty() || name.back() == '.')) continue;
    name += plain;
  }
  while (!name.empty() && name.back() == '.') name.pop_back();
  return name;
}

// The names of inputs or outputs, each once.
class Names {
 public:
  std::string operator()(std::string name, const char* otherwise, size_t i) {
    if (name.empty()) name = otherwise + std::to_string(i);
    std::string free = name;
    // The number is kept, so that many equal names cost no search each.
    for (int& k = taken_[name]; !used_.insert(free).second;) free = name + "_" + std::to_string(++k);
    return free;
  }

 private:
  std::map<std::string, int> taken_;  // wanted names, with the last number behind them
  std::set<std::string> used_;
};

std::string TextOf(const Attribute* dictionary, std::string_view name) {
  const Attribute* a = dictionary ? Find(dictionary->fields, name) : nullptr;
  return a && a->kind == Attribute::Kind::kString ? std::string(a->text) : "";
}

// The names of main's arguments. With symbolic sizes, JAX names only those of the function that main calls, behind the sizes.
std::vector<std::string> ArgumentNames(const Module& module, const Function& main) {
  std::vector<std::string> names = main.argument_names;
  const bool none = std::all_of(names.begin(), names.end(), [](const std::string& n) { return n.empty(); });
  const Function* inner = module.find("_wrapped_jax_export_main");
  if (none && inner && inner->argument_names.size() >= names.size()) {
    names.assign(inner->argument_names.end() - static_cast<int64_t>(names.size()), inner->argument_names.end());
  }
  return names;
}

std::string ResultName(const Attribute* attributes) {
  std::string info = TextOf(attributes, "jax.result_info");
  if (info.rfind("result", 0) == 0) info = info.substr(6);
  const std::string name = NameOf(info);
  // "result[0]" alone would be a number.
  return name.empty() || name.find_first_not_of("0123456789") == std::string::npos ? "" : name;
}

// The sizes of an input or output that are expressions, where the graph does not know a size.
std::vector<std::string> Symbols(const std::vector<Aval>& avals, size_t i, const Type& type) {
  if (i >= avals.size() || avals[i].dims.size() != type.dims.size()) return {};
  std::vector<std::string> symbols;
  for (size_t k = 0; k < type.dims.size(); ++k) symbols.push_back(type.dims[k] < 0 ? avals[i].dims[k] : "");
  return symbols;
}

constexpr const char* kPlatform = "_platform_index";

// Which of the platforms that an export was made for is this one. Kernels of ours run programs for any; those for the CPU fit best.
int64_t PlatformOf(const Exported& exported) {
  const auto cpu = std::find(exported.platforms.begin(), exported.platforms.end(), "cpu");
  return cpu == exported.platforms.end() ? 0 : cpu - exported.platforms.begin();
}

void Check(const Exported& exported) {
  if (exported.present && exported.devices > 1) {
    throw Error{TW_UNIMPLEMENTED, "the function was exported for " + std::to_string(exported.devices) +
                                      " devices, whose program cannot run on one; export it without shardings"};
  }
}

}  // namespace

Translate FindTranslator(std::string_view op) {
  static const auto* index = [] {
    auto* made = new std::map<std::string_view, Translate>;
    for (const Family family : {
#define TRANSLATORS(name) name##_translators(),
#include "translators/files.inc"
#undef TRANSLATORS
         }) {
      for (const Entry* e = family.begin; e != family.end; ++e) made->emplace(e->op, e->run);
    }
    return made;
  }();
  const auto found = index->find(op);
  return found == index->end() ? nullptr : found->second;
}

uint32_t Recognise(std::string_view head, uint64_t bytes) {
  // Other dialects are written as bytecode, too.
  if (IsBytecode(head)) return head.substr(0, 64).find("StableHLO_v") == std::string_view::npos ? 60 : 98;
  return IsExported(head, bytes) ? 90 : 0;
}

File ReadFile(std::string_view bytes, std::shared_ptr<const void> keep) {
  File file;
  if (IsBytecode(bytes)) {
    file.module = ReadModule(bytes, std::move(keep));
    return file;
  }
  file.exported = ReadExported(bytes);
  if (!IsBytecode(file.exported.module)) {
    throw Error{TW_INVALID_ARGUMENT, "the export of JAX holds no MLIR bytecode; it is damaged or of a version that is unknown here"};
  }
  file.module = ReadModule(file.exported.module, std::move(keep));
  return file;
}

Ports ImportFile(const File& file, Sink& sink, Spent* spent) {
  const Module& module = *file.module;
  Check(file.exported);
  const Function& main = Main(module);
  UnknownOps unknown(module);
  unknown.Scan(main);
  if (!unknown.all().empty()) {
    throw Error{TW_UNIMPLEMENTED, "the module uses ops that the importer does not have, with their counts: " + Joined(unknown.all(), ", ")};
  }
  Import import{module, {}, 0, 0, spent ? spent->operations : 0, {}, {}, {}, spent ? spent->nodes : 0};
  Translation t(import, sink, nullptr);
  Ports ports;
  Names in_names, out_names;
  const std::vector<std::string> wanted = ArgumentNames(module, main);
  // Inputs of the exported function that the program does not use are no arguments of main.
  size_t next = 0;
  std::vector<Value> arguments;
  for (size_t i = 0; i < main.arguments().size(); ++i) {
    const Type& type = *main.arguments()[i];
    const Attribute* attributes = main.argument_attribute(i);
    if (type.kind == Type::Kind::kToken) {
      arguments.push_back(t.token());
      continue;
    }
    if (TextOf(attributes, "jax.global_constant") == kPlatform) {
      const uint32_t dtype = type.tensor() && type.dims.empty() ? DtypeOf(type.element) : 0;
      if (dtype != TW_INT32 && dtype != TW_INT64) throw Error{TW_INVALID_ARGUMENT, "argument " + std::to_string(i) + " is no platform"};
      arguments.push_back(t.scalar(dtype, static_cast<double>(PlatformOf(file.exported))));
      continue;
    }
    const size_t at = next < file.exported.kept.size() ? file.exported.kept[next] : next;
    ++next;
    const std::string name = in_names(NameOf(wanted[i]), "arg", at);
    try {
      if (!type.tensor()) throw Error{TW_UNIMPLEMENTED, "is no tensor but " + Text(type)};
      const Value v = t.argument(name, DtypeOf(type.element), {type.dims, type.ranked});
      arguments.push_back(v);
      ports.inputs.push_back({name, v, t.edge(v), Symbols(file.exported.in, at, type)});
    } catch (const Error& e) {
      throw e.code == TW_OK ? e : Error{e.code, "input '" + name + "': " + e.text};
    }
  }
  Operation place;
  place.name = "func.call";
  const Op op(t, place, main);
  std::vector<Value> results;
  try {
    results = t.call(op, main.name, arguments);
  } catch (const Error& e) {
    if (import.errors.empty()) throw;
  }
  if (!import.errors.empty()) throw Error{import.code, Joined(import.errors, "; ")};
  if (results.size() != main.results().size())
    throw Error{TW_INVALID_ARGUMENT, "function '" + std::string(main.name) + "' returns other values than declared"};
  size_t outputs = 0;
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].token()) continue;
    const std::string name = out_names(ResultName(main.result_attribute(i)), "output", outputs);
    ports.outputs.push_back({name, results[i], t.edge(results[i]), Symbols(file.exported.out, outputs, *main.results()[i])});
    ++outputs;
  }
  ports.effects = std::move(import.effects);
  if (spent) *spent = {import.operations, import.nodes};
  return ports;
}

}  // namespace thalweg::stablehlo
