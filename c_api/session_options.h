// The options of sessions, and of calls that ask a cluster without a session.
#pragma once
#include <cstdint>
#include <cstdlib>

#include "c_api/option_list.h"
#include "framework/base/status.h"
#include "framework/session/options.h"

namespace thalweg {

// Reads "key=value" texts. An option `target` without `credentials` and `insecure` takes the
// credentials that the environment variable THALWEG_CREDENTIALS names, as `thalweg launch` sets it.
// secure_getenv: in a process with more rights than its starter the environment is not trusted.
inline Status ReadSessionOptions(const char* const* options, uint32_t n, SessionOptions* out) {
  RETURN_IF_ERROR(SetOptions(options, n, SetSessionOption, out));
  if (out->target.empty() || out->insecure || !out->credentials.empty()) return Status();
  if (const char* folder = secure_getenv("THALWEG_CREDENTIALS")) out->credentials = folder;
  return Status();
}

}  // namespace thalweg
