#include "core.h"

namespace thalweg::ort {

OrtErrorCode CodeOf(uint32_t code) {
  switch (code) {
    case TW_INVALID_ARGUMENT:
    case TW_OUT_OF_RANGE: return ORT_INVALID_ARGUMENT;
    case TW_NOT_FOUND: return ORT_NO_SUCHFILE;
    case TW_UNIMPLEMENTED: return ORT_NOT_IMPLEMENTED;
    case TW_RESOURCE_EXHAUSTED:
    case TW_INTERNAL: return ORT_RUNTIME_EXCEPTION;
    default: return ORT_FAIL;
  }
}

void Check(tw_status* status) {
  if (status) Throw(status, CodeOf(tw_status_code(status)));
}

static OrtStatus* OutOfMemory() {
  static OrtStatus status{ORT_RUNTIME_EXCEPTION, "out of memory"};
  return &status;
}

OrtStatus* NewStatus(OrtErrorCode code, const std::string& function, const std::string& message) noexcept {
  try {
    return new OrtStatus{code, function.empty() ? message : Text(function, ": ", message)};
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

namespace api {

OrtStatus* CreateStatus(OrtErrorCode code, const char* message) { return NewStatus(code, "", message ? message : ""); }
OrtErrorCode GetErrorCode(const OrtStatus* status) { return status ? status->code : ORT_OK; }
const char* GetErrorMessage(const OrtStatus* status) { return status ? status->message.c_str() : ""; }
void ReleaseStatus(OrtStatus* status) {
  if (status != OutOfMemory()) delete status;
}

}  // namespace api
}  // namespace thalweg::ort
