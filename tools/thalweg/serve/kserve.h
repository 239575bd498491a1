// The Open Inference Protocol, version 2, over HTTP, as KServe and Triton serve it, with the extension for binary tensor data.
#pragma once
#include "protocol.h"

namespace thalweg::cli::serve {

// Answers a request whose path begins with v2. Throws HttpError and tw::StatusError.
Answer ServeV2(ModelCall* call);

}  // namespace thalweg::cli::serve
