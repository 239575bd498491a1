#include "framework/runtime/state/saved_resource.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/base/shown.h"
#include "framework/base/sink.h"
#include "framework/tensor/memory_budget.h"
#include "framework/tensor/payer.h"

namespace thalweg {
namespace {

// Formats "org.example.bloom.filter 'known' of plugin 'org.example.bloom'".
std::string Title(const Resource& r) { return StrCat(r.type(), " '", Shown(r.name()), "' of plugin '", r.def()->plugin, "'"); }

// Owns a plugin's object until Take.
class Object {
 public:
  explicit Object(const ResourceType* type) : type_(type) {}
  Object(Object&& o) noexcept : type_(o.type_), object_(o.Take()) {}
  ~Object() {
    if (object_) type_->def.destroy(type_->host, object_);
  }
  void** place() { return &object_; }
  void* Take() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  const ResourceType* type_;
  void* object_ = nullptr;
};

// Collects the bytes that a plugin saves and charges them while they exist. After a failure it
// refuses further bytes, as BytesSink.
class Saved {
 public:
  explicit Saved(MemoryBudget* budget) : budget_(budget) {}
  Saved(const Saved&) = delete;
  ~Saved() {
    if (budget_) budget_->Give(to_.bytes.size());
  }
  tw_sink* sink() { return &sink_; }
  const std::string& bytes() const { return to_.bytes; }
  Status Whole() const { return refused_.ok() ? to_.Whole() : refused_; }

 private:
  static tw_status* Put(tw_sink* s, const void* from, uint64_t n) {
    return Guard([&] { return static_cast<Saved*>(s->user)->Add(from, n); });
  }
  Status Add(const void* from, uint64_t n) {
    RETURN_IF_ERROR(Whole());
    if (budget_) RETURN_IF_ERROR(refused_ = budget_->Take(n));
    Status added = FromC(to_.c.put(&to_.c, from, n));
    if (!added.ok() && budget_) budget_->Give(n);
    return added;
  }

  MemoryBudget* const budget_;
  BytesSink to_;
  Status refused_;
  tw_sink sink_{TW_SIZED(tw_sink), this, &Put};
};

class ReadLock {
 public:
  explicit ReadLock(Resource* r) : r_(r) { r->LockRead(); }
  ~ReadLock() { r_->UnlockRead(); }
  ReadLock(const ReadLock&) = delete;

 private:
  Resource* r_;
};

std::string_view TextOf(const tw_string& s) { return {s.data, s.size}; }

// Checks that the saved value is for this resource and returns its format.
StatusOr<uint64_t> FormatOf(const Resource& r, const tw_string* saved) {
  const std::string_view type = TextOf(saved[0]), number = TextOf(saved[1]);
  uint64_t format = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), format);
  if (error != std::errc() || end != number.data() + number.size()) {
    return DataLoss(Title(r), ": '", Shown(number), "' was saved as its format, which is no number");
  }
  const ResourceType& is = *r.def();
  if (type != is.type) {
    return InvalidArgument(Title(r), " cannot become what was saved, a ", Shown(type), " of format ", format,
                           "; give that a resource of its type, or this another name");
  }
  if (format > is.def.format) {
    return Unimplemented(Title(r), " was saved in format ", format, ", and the plugin reads up to ", is.def.format, "; load a newer one");
  }
  return format;
}

StatusOr<Object> Read(const Resource& r, const tw_string* saved) {
  ASSIGN_OR_RETURN(const uint64_t format, FormatOf(r, saved));
  const ResourceType& is = *r.def();
  BytesSource from(TextOf(saved[2]));
  Object object(&is);
  Status s = FromC(is.def.restore(is.host, is.def.user, format, &from.c, object.place()));
  if (!s.ok()) {
    object.Take();  // not ours: out_object counts on success only
    return Prefix(s, StrCat(Title(r), ":"));
  }
  if (!object) return Internal(Title(r), ": restore answered neither an object nor an error");
  return object;
}

Status CheckSaved(const Resource& r, const tw_view& saved) {
  if (r.is_variable()) return InvalidArgument("'", Shown(r.name()), "' is a variable; restore it with AssignVariableOp");
  if (saved.dtype != TW_STRING) return InvalidArgument(Title(r), ": what was saved is ", DTypeName(saved.dtype), ", not string");
  if (saved.rank == 1 && (saved.count == 3 || saved.count == 0)) return Status();
  return DataLoss(Title(r), ": what was saved has shape ", ShapeText(saved.dims, saved.rank), "; [3] is needed: type, format, bytes");
}

}  // namespace

StatusOr<Tensor> SaveResource(Resource* r, MemoryBudget* budget) {
  if (r->is_variable()) return InvalidArgument("'", Shown(r->name()), "' is a variable; save what ReadVariableOp answers");
  const ResourceType& is = *r->def();
  Saved to(budget);
  {
    const ReadLock lock(r);
    if (!r->object()) return FailedPrecondition(Title(*r), " has no contents; initialise it first");
    if (Status s = FromC(is.def.save(is.host, r->object(), to.sink())); !s.ok()) return Prefix(s, StrCat(Title(*r), ":"));
    RETURN_IF_ERROR(to.Whole());
  }
  const int64_t n = 3;
  ASSIGN_OR_RETURN(Tensor saved, Tensor::Make(TW_STRING, &n, 1, nullptr, budget));
  RETURN_IF_ERROR(saved.SetString(0, is.type));
  RETURN_IF_ERROR(saved.SetString(1, std::to_string(is.def.format)));
  RETURN_IF_ERROR(saved.SetString(2, to.bytes()));
  return saved;
}

// All objects are made before the first resource is changed.
Status RestoreResources(const std::vector<Resource*>& resources, const std::vector<const tw_view*>& saved, MemoryBudget* budget) {
  const PaysFor pays(budget);
  std::vector<std::pair<Resource*, Object>> made;
  made.reserve(resources.size());
  for (size_t k = 0; k < resources.size(); ++k) {
    Resource* r = resources[k];
    RETURN_IF_ERROR(CheckSaved(*r, *saved[k]));
    if (saved[k]->count == 0) continue;
    if (std::count(resources.begin(), resources.end(), r) > 1) return InvalidArgument(Title(*r), " is to be restored twice");
    ASSIGN_OR_RETURN(Object object, Read(*r, static_cast<const tw_string*>(saved[k]->data)));
    made.emplace_back(r, std::move(object));
  }
  for (auto& [r, object] : made) {
    r->LockUpdate();
    r->set_object(object.Take());
    r->UnlockUpdate();
  }
  return Status();
}

}  // namespace thalweg
