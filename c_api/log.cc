#include "thalweg/log.h"

#include <algorithm>
#include <cstdio>

#include "c_api/handles.h"
#include "c_api/shim.h"

using thalweg::Status;

Status thalweg::CheckLogLevel(uint32_t level) {
  if (level <= TW_LOG_ERROR) return Status();
  return InvalidArgument("log level ", level, " is none of 0 (debug) to 3 (error)");
}

tw_status* tw_log_set_sink(tw_runtime* runtime, tw_log_sink sink, void* user, uint32_t min_level) {
  return thalweg::Enter([&]() -> Status {
    RETURN_IF_ERROR(thalweg::CheckLogLevel(min_level));
    ASSIGN_OR_RETURN(auto r, thalweg::RuntimeOf(runtime));
    r->SetLog(sink, user, min_level);
    return Status();
  });
}

tw_status* tw_log_write(tw_runtime* runtime, uint32_t level, const char* text) {
  NEED(text);
  return thalweg::Enter([&]() -> Status {
    RETURN_IF_ERROR(thalweg::CheckLogLevel(level));
    ASSIGN_OR_RETURN(auto r, thalweg::RuntimeOf(runtime));
    r->Log(level, text);
    return Status();
  });
}

void tw_log_to_stderr(void*, uint32_t level, const char* text, uint64_t bytes) {
  static constexpr const char* kNames[] = {"debug", "info", "warning", "error"};
  // A single call, so that lines of several threads do not mix.
  std::fprintf(stderr, "thalweg: %s: %.*s\n", kNames[std::min<uint32_t>(level, TW_LOG_ERROR)], int(std::min<uint64_t>(bytes, 1u << 20)),
               text ? text : "");
}
