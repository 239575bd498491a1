#include "framework/graph/function.h"

#include <algorithm>
#include <mutex>
#include <unordered_set>

#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/graph/function_def.h"
#include "framework/json/utf8.h"
#include "framework/proto/wire.h"

namespace thalweg {
namespace {

std::string TypesText(const std::vector<Edge>& values) {
  std::string text;
  for (const Edge& e : values) {
    const Shape& shape = e.node->shape(e.port);
    text += StrCat(text.empty() ? "" : ", ", DTypeName(e.node->out_type(e.port)), shape.has_rank() && shape.rank() > 0 ? shape.text() : "");
  }
  return text;
}

// Tracing programs generate function names that no node may have, such as
// `__inference_<lambda>_12`.
bool IsFunctionName(std::string_view s) { return !s.empty() && s.find(' ') == s.npos && OneLine(s) == s; }

class Checker {
 public:
  explicit Checker(const FunctionSpec& f) : f_(f), args_(f.args.size()) {}

  Status Run() {
    if (!IsFunctionName(f_.name)) return InvalidArgument("it is not a function's name; use UTF-8 without spaces and control characters");
    for (size_t i = 0; i < f_.args.size(); ++i) RETURN_IF_ERROR(CheckArgument(i));
    for (size_t o = 0; o < f_.results.size(); ++o) {
      const Edge& e = f_.results[o];
      if (!Own(e.node) || e.port < 0 || e.port >= e.node->n_out()) return InvalidArgument("result ", o, " is no value of its body");
    }
    for (size_t t = 0; t < f_.targets.size(); ++t) {
      if (!Own(f_.targets[t])) return InvalidArgument("target ", t, " is no operation of its body");
    }
    return CheckNeeded();
  }

 private:
  bool Own(const Node* n) const { return n && n->id() >= 0 && n->id() < f_.body->size() && f_.body->node(n->id()) == n; }

  Status CheckArgument(size_t i) {
    const Edge& e = f_.args[i];
    if (!Own(e.node) || e.port != 0 || e.node->op().role != "placeholder")
      return InvalidArgument("argument ", i, " is no placeholder of its body");
    if (!args_.insert(e.node).second) return InvalidArgument("argument ", i, ", '", Shown(e.node->name()), "', stands twice");
    return Status();
  }

  // Checks that nothing that the function computes depends on a placeholder that nobody feeds.
  Status CheckNeeded() const {
    std::unordered_set<const Node*> seen;
    std::vector<const Node*> todo(f_.targets);
    for (const Edge& e : f_.results) todo.push_back(e.node);
    while (!todo.empty()) {
      const Node* n = todo.back();
      todo.pop_back();
      if (args_.count(n) || !seen.insert(n).second) continue;
      if (n->op().role == "placeholder") {
        return OfNode(*n, InvalidArgument("it needs '", Shown(n->name()), "', a placeholder that is none of its arguments; make it one"));
      }
      for (const Edge& e : n->inputs()) todo.push_back(e.node);
      todo.insert(todo.end(), n->controls().begin(), n->controls().end());
    }
    return Status();
  }

  const FunctionSpec& f_;
  std::unordered_set<const Node*> args_;
};

}  // namespace

StatusOr<std::shared_ptr<const Function>> Function::Make(FunctionSpec spec) {
  Status s = Checker(spec).Run();
  if (!s.ok()) return Prefix(s, StrCat("function '", Shown(spec.name), "':"));
  return std::shared_ptr<const Function>(new Function(std::move(spec)));
}

std::string Function::title() const { return StrCat("'", Shown(name()), "' (", TypesText(args()), ") -> (", TypesText(results()), ")"); }

StatusOr<std::shared_ptr<const Function>> FunctionLibrary::Find(std::string_view name) {
  std::string stored;
  AttrMessages attrs;
  bool is_instance = false;
  {
    std::shared_lock lock(mu_);
    auto it = all_.find(name);
    if (it != all_.end() && it->second.function) return it->second.function;
    is_instance = it != all_.end() && it->second.is_instance();
    if (is_instance) {
      attrs = it->second.attrs;
      it = all_.find(it->second.origin);
    }
    if (it == all_.end() || it->second.bytes.empty()) {
      return NotFound("the graph has no function '", Shown(name), "'; add it before it is called");
    }
    stored = it->second.bytes;
  }
  ASSIGN_OR_RETURN(auto read, ImportFunctionDef(stored, Graph::Body(*graph_), is_instance ? name : "", attrs));
  std::unique_lock lock(mu_);
  std::shared_ptr<const Function>& place = all_.find(name)->second.function;
  if (!place) place = std::move(read);  // otherwise another thread was first
  return place;
}

StatusOr<std::string> FunctionLibrary::Stored(std::string_view name) const {
  std::shared_lock lock(mu_);
  auto it = all_.find(name);
  if (it == all_.end() || it->second.bytes.empty()) return NotFound("the graph has no stored function '", Shown(name), "'");
  return it->second.bytes;
}

std::string FunctionLibrary::Instance(std::string_view name, const AttrMessages& attrs) {
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  const auto add = [&hash](std::string_view text) {
    for (char c : text) hash = (hash ^ uint8_t(c)) * 1099511628211u;
    hash *= 1099511628211u;
  };
  for (const auto& [key, value] : attrs) {
    add(key);
    add(value);
  }
  std::string base = StrCat(name, ".", Hex(hash));
  std::unique_lock lock(mu_);
  for (std::string instance = base;; base += "_", instance = base) {
    auto [at, is_new] = all_.try_emplace(instance);
    Entry& e = at->second;
    if (!is_new && e.origin == name && e.attrs == attrs) return instance;
    if (!is_new) continue;
    e.origin = name;
    e.attrs = attrs;
    return instance;
  }
}

std::optional<StoredGradient> FunctionLibrary::GradientOf(std::string_view name) {
  StoredGradient found;
  AttrMessages attrs;
  {
    std::shared_lock lock(mu_);
    auto entry = all_.find(name);
    const bool is_instance = entry != all_.end() && entry->second.is_instance();
    if (is_instance) attrs = entry->second.attrs;
    auto it = gradients_.find(is_instance ? std::string_view(entry->second.origin) : name);
    if (it == gradients_.end()) return std::nullopt;
    found = it->second;
  }
  if (!attrs.empty()) found.function = Instance(found.function, attrs);
  return found;
}

Status FunctionLibrary::Add(std::shared_ptr<const Function> f) { return Add(std::move(f), /*hidden=*/false); }
Status FunctionLibrary::AddHidden(std::shared_ptr<const Function> f) { return Add(std::move(f), /*hidden=*/true); }

Status FunctionLibrary::Add(std::shared_ptr<const Function> f, bool hidden) {
  std::unique_lock lock(mu_);
  Entry& place = all_[f->name()];
  if (place.function || !place.bytes.empty() || place.is_instance()) {
    return AlreadyExists("function '", Shown(f->name()), "': the graph has a function of that name; choose another");
  }
  if (hidden) place.origin = f->name();
  place.function = std::move(f);
  return Status();
}

std::shared_ptr<const LoopCall> FunctionLibrary::FindLoop(const std::vector<const Node*>& nodes) const {
  std::shared_lock lock(mu_);
  auto it = loops_.find(nodes);
  return it == loops_.end() ? nullptr : it->second;
}

std::shared_ptr<const LoopCall> FunctionLibrary::KeepLoop(std::vector<const Node*> nodes, LoopCall call) {
  auto kept = std::make_shared<const LoopCall>(std::move(call));
  std::unique_lock lock(mu_);
  return loops_.try_emplace(std::move(nodes), std::move(kept)).first->second;
}

std::vector<std::string> FunctionLibrary::Names() const {
  std::shared_lock lock(mu_);
  std::vector<std::string> names;
  for (const auto& [name, entry] : all_) {
    if ((entry.function && !entry.is_instance()) || !entry.bytes.empty()) names.push_back(name);
  }
  return names;
}

namespace {

enum LibraryField : uint32_t { kFunctionOfLibrary = 1, kGradientOfLibrary = 2, kRegisteredGradient = 3 };

// Reads the two names of a GradientDef or RegisteredGradient.
StatusOr<std::pair<std::string, std::string>> ReadNames(std::string_view bytes) {
  std::pair<std::string, std::string> names;
  WireReader reader(bytes);
  for (WireField f; reader.Next(&f);) {
    if (f.number == 1 && f.type == WireField::kBytes) names.first = f.bytes;
    if (f.number == 2 && f.type == WireField::kBytes) names.second = f.bytes;
  }
  if (reader.ok()) return names;
  return InvalidArgument("a gradient of the function library is damaged or cut short at its byte ", reader.offset());
}

}  // namespace

Status ForEachFunction(std::string_view library, const std::function<Status(const std::string& name, std::string_view def)>& each) {
  WireReader reader(library);
  for (WireField f; reader.Next(&f);) {
    if (f.number != kFunctionOfLibrary || f.type != WireField::kBytes) continue;
    ASSIGN_OR_RETURN(const std::string name, FunctionName(f.bytes));
    RETURN_IF_ERROR(each(name, f.bytes));
  }
  return reader.ok() ? Status() : InvalidArgument("the function library is damaged or cut short at its byte ", reader.offset());
}

Status FunctionLibrary::Check(std::string_view library) const {
  std::shared_lock lock(mu_);
  return ForEachFunction(library, [this](const std::string& name, std::string_view bytes) -> Status {
    auto it = all_.find(name);
    if (it == all_.end() || it->second.bytes == bytes) return Status();
    return AlreadyExists("function '", Shown(name), "': the graph has another function of that name; rename one of them");
  });
}

Status FunctionLibrary::Store(std::string_view library) {
  std::unique_lock lock(mu_);
  WireReader reader(library);
  for (WireField f; reader.Next(&f);) {
    if (f.type != WireField::kBytes || (f.number != kGradientOfLibrary && f.number != kRegisteredGradient)) continue;
    ASSIGN_OR_RETURN(auto names, ReadNames(f.bytes));
    const bool takes_inputs = f.number == kGradientOfLibrary;  // a RegisteredGradient has the gradient first
    if (!takes_inputs) std::swap(names.first, names.second);
    gradients_[names.first] = {names.second, takes_inputs};
  }
  return ForEachFunction(library, [this](const std::string& name, std::string_view bytes) {
    all_[name].bytes = bytes;
    return Status();
  });
}

StatusOr<std::string> FunctionLibrary::ExportAdded() const {
  std::shared_lock lock(mu_);
  std::string out;
  for (const auto& [name, entry] : all_) {
    if (!entry.function || !entry.bytes.empty() || entry.is_instance()) continue;
    ASSIGN_OR_RETURN(const std::string message, ExportFunctionDef(*entry.function));
    PutBytesField(kFunctionOfLibrary, message, &out);
  }
  return out;
}

std::string FunctionLibrary::UniqueName(std::string_view base) {
  std::unique_lock lock(mu_);
  std::string name(base);
  for (int i = 1; all_.count(name); ++i) name = StrCat(base, "_", i);
  all_.emplace(name, Entry());
  return name;
}

}  // namespace thalweg
