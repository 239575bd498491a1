#include "framework/runtime/step/check_results.h"

#include <vector>

#include "framework/base/checked.h"
#include "framework/base/dtype.h"
#include "framework/tensor/shape.h"

namespace thalweg {
namespace {

// A value in host memory: the value itself, or a copy of one in the memory of a device.
class OnHost {
 public:
  // holder: the device in whose memory the value lies; a device without memory of its own, or NULL,
  // means host memory.
  static StatusOr<OnHost> Of(const tw_view& value, Device* holder) {
    OnHost h;
    h.view_ = value;
    if (!holder || holder->host_memory() || !value.data || value.bytes == 0) return h;
    h.copy_.resize(size_t(value.bytes));
    RETURN_IF_ERROR(holder->CopyOut(value.data, value.offset, h.copy_.data(), value.bytes, nullptr));
    h.view_.data = h.copy_.data();
    h.view_.offset = 0;
    return h;
  }
  const tw_view& view() const { return view_; }

 private:
  tw_view view_;
  std::vector<char> copy_;
};

Status Check(ValueCheck check, const std::string& what, const tw_view& value, Device* holder) {
  const DTypeInfo* info = FindDType(value.dtype);
  if (!info || !info->plain) return Status();
  ASSIGN_OR_RETURN(const OnHost here, OnHost::Of(value, holder));
  if (!IsRefused(here.view(), check)) return Status();
  const tw_view& v = here.view();
  return InvalidArgument(what, " is the first value with ", check == ValueCheck::kNan ? "NaN" : "NaN or infinities", ": ",
                         DTypeName(v.dtype), ShapeText(v.dims, v.rank), RangeText(v), ", the first at ", FirstRefused(v, check));
}

Device* HolderOfOutput(const NodeRun& run, uint32_t o) {
  if (!run.lands.empty() && run.lands[o]) return run.lands[o];
  return run.host_out[o] ? nullptr : run.device;
}

}  // namespace

Status CheckResults(ValueCheck check, const KernelFrame& call, DeviceQueues* queues) {
  const NodeRun& run = *call.run;
  if (queues) RETURN_IF_ERROR(queues->Settle());
  for (uint32_t o = 0; o < call.c.n_out; ++o) RETURN_IF_ERROR(Check(check, StrCat("output ", o), *call.c.out[o], HolderOfOutput(run, o)));
  if (run.async) return Status();  // its variables are closed already
  for (uint32_t i : run.open_update) RETURN_IF_ERROR(Check(check, StrCat("the variable at input ", i), *call.c.in[i], run.device));
  return Status();
}

std::string InputRange(const KernelFrame& call, uint32_t i) {
  const NodeRun& run = *call.run;
  if (!run.kernel) return "";
  const tw_view& value = call.source[i]->view;
  const DTypeInfo* info = FindDType(value.dtype);
  if (!info || !info->plain) return "";
  auto here = OnHost::Of(value, run.host_in[i] ? nullptr : run.device);
  return here.ok() ? RangeText(here->view()) : "";
}

}  // namespace thalweg
