#include "thalweg/status.h"

#include "c_api/shim.h"

namespace {
constexpr const char* kCodeNames[] = {"OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
                                      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
                                      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
                                      "DATA_LOSS", "UNAUTHENTICATED"};
}  // namespace

uint32_t tw_status_code(const tw_status* status) { return status ? uint32_t(status->status.raw_code()) : uint32_t(TW_OK); }

const char* tw_status_message(const tw_status* status) { return status ? status->text.c_str() : ""; }

const char* tw_status_operation(const tw_status* status) { return status && !status->node.empty() ? status->node.c_str() : nullptr; }

const char* tw_status_place(const tw_status* status) { return status && !status->place.empty() ? status->place.c_str() : nullptr; }

uint64_t tw_status_cookie(const tw_status* status) { return status ? status->cookie : 0; }

tw_status* tw_status_create(uint32_t code, const char* message) {
  const bool known = code > TW_OK && code <= TW_UNAUTHENTICATED;
  return thalweg::Enter([&] {
    return thalweg::Error(known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown, thalweg::TextOrEmpty(message));
  });
}

void tw_status_release(tw_status* status) { (void)thalweg::FromC(status); }

const char* tw_status_code_name(uint32_t code) { return kCodeNames[code <= TW_UNAUTHENTICATED ? code : uint32_t(TW_UNKNOWN)]; }
