#include "thalweg/eager.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "c_api/eager_handles.h"
#include "c_api/handles.h"
#include "c_api/option_list.h"
#include "c_api/shim.h"
#include "c_api/step_call.h"
#include "framework/eager/entry.h"
#include "framework/eager/options.h"

using thalweg::InvalidArgument;
using thalweg::Status;
using thalweg::StrCat;
using thalweg::Tensors;

namespace {

// Converts the attributes of a call to the framework's form, which borrows their names and values.
class Attrs {
 public:
  Status Read(const tw_eager_attr* attrs, uint32_t n) {
    if (n > inline_.size()) heap_.resize(n);
    n_ = n;
    for (uint32_t i = 0; i < n; ++i) {
      const tw_eager_attr& a = attrs[i];
      if (!a.name) return InvalidArgument("the name of attribute ", i, " is NULL");
      data()[i] = {a.name, std::strlen(a.name), a.values, a.kind, a.count, a.is_list, 0};
    }
    return Status();
  }
  std::span<const tw_attr> all() { return {data(), n_}; }

 private:
  tw_attr* data() { return heap_.empty() ? inline_.data() : heap_.data(); }
  std::array<tw_attr, 8> inline_;
  std::vector<tw_attr> heap_;
  uint32_t n_ = 0;
};

// Checks that the record has every array that its counts announce, and that no input is NULL.
Status CheckCall(const tw_eager_call& what, tw_tensor** out_outputs) {
  if (!what.op) return InvalidArgument("tw_eager_call: op is NULL");
  if (what.n_inputs > 0 && !what.inputs) return InvalidArgument(what.op, ": inputs is NULL, but there are ", what.n_inputs);
  if (what.n_attrs > 0 && !what.attrs) return InvalidArgument(what.op, ": attrs is NULL, but there are ", what.n_attrs);
  if (what.n_outputs > 0 && !out_outputs) return InvalidArgument(what.op, ": out_outputs is NULL, but n_outputs is ", what.n_outputs);
  for (uint32_t i = 0; i < what.n_inputs; ++i) {
    if (!what.inputs[i]) return InvalidArgument(what.op, ": input ", i, " is NULL");
  }
  return Status();
}

Status Run(thalweg::Eager* eager, const tw_eager_call& what, tw_tensor** out_outputs) {
  RETURN_IF_ERROR(CheckCall(what, out_outputs));
  Attrs attrs;
  if (Status s = attrs.Read(what.attrs, what.n_attrs); !s.ok()) return thalweg::Prefix(s, StrCat(what.op, ":"));
  Tensors in(what.n_inputs);
  for (uint32_t i = 0; i < what.n_inputs; ++i) in[i] = thalweg::Tensor::Share(what.inputs[i]);
  const thalweg::EagerCall call = {what.op, what.device ? what.device : "", {in.data(), what.n_inputs}, attrs.all()};
  ASSIGN_OR_RETURN(const std::shared_ptr<thalweg::EagerEntry> entry, eager->Find(call));
  const size_t n = entry->op().n_out();
  if (n > what.n_outputs)
    return InvalidArgument(what.op, " has ", n, " outputs, but n_outputs says that there is room for ", what.n_outputs);
  Tensors out{uint32_t(n)};
  RETURN_IF_ERROR(eager->Run(entry, &entry->op(), in.data(), out.data()));
  for (uint32_t o = 0; o < n; ++o) out_outputs[o] = out[o].release();
  return Status();
}

}  // namespace

tw_status* tw_eager_create(tw_runtime* runtime, const char* const* options, uint32_t n_options, tw_eager** out_eager) {
  NEED(out_eager);
  NEED_ARRAY(options, n_options);
  return thalweg::Enter([&]() -> Status {
    thalweg::EagerOptions parsed;
    RETURN_IF_ERROR(thalweg::SetOptions(options, n_options, thalweg::SetEagerOption, &parsed));
    ASSIGN_OR_RETURN(std::shared_ptr<thalweg::Runtime> owner, thalweg::RuntimeOf(runtime));
    auto handle = std::make_unique<tw_eager>();
    ASSIGN_OR_RETURN(handle->eager, thalweg::Eager::Create(std::move(owner), parsed));
    *out_eager = handle.release();
    return Status();
  });
}

const tw_option* tw_eager_option(uint32_t i) {
  const auto rows = thalweg::EagerOptionRows();
  return i < rows.size() ? &rows[i].about : nullptr;
}

tw_status* tw_eager_set_check_values(tw_eager* eager, const char* check) {
  NEED(eager);
  NEED(check);
  return thalweg::Enter([&]() -> Status {
    thalweg::EagerOptions parsed;
    RETURN_IF_ERROR(thalweg::SetEagerOption(&parsed, "check_values", check));
    eager->eager->SetCheck(thalweg::ValueCheckOf(parsed.check_values));
    return Status();
  });
}

void tw_eager_destroy(tw_eager* eager) { delete eager; }

tw_status* tw_eager_run(tw_eager* eager, const tw_eager_call* what, tw_tensor** out_outputs) {
  NEED(eager);
  NEED(what);
  return thalweg::Enter([&]() -> Status {
    RETURN_IF_ERROR(thalweg::CheckRecord("tw_eager_call", what->size, what->flags, sizeof(tw_eager_call)));
    if (out_outputs) std::fill(out_outputs, out_outputs + what->n_outputs, nullptr);
    Status s = Run(eager->eager.get(), *what, out_outputs);
    if (s.ok() || !what->place) return s;
    Status placed = thalweg::Error(s.code(), what->place, ": ", thalweg::Message(s));
    return thalweg::OfNode(thalweg::kEagerNode, what->place, thalweg::WithCookie(std::move(placed), thalweg::CookieOf(s)));
  });
}

tw_status* tw_eager_report(tw_eager* eager, tw_eager_info* out_info) {
  NEED(eager);
  NEED(out_info);
  return thalweg::Enter([&]() -> Status {
    RETURN_IF_ERROR(thalweg::CheckRecord("tw_eager_info", out_info->size, out_info->flags, sizeof(tw_eager_info)));
    const thalweg::EagerReport r = eager->eager->Report();
    out_info->entries = r.entries;
    out_info->hits = r.hits;
    out_info->misses = r.misses;
    out_info->evictions = r.evictions;
    return Status();
  });
}
