// TensorFlow Serving's protocol over HTTP: predict, status and metadata of a model.
#pragma once
#include "protocol.h"

namespace thalweg::cli::serve {

// Answers a request whose path begins with v1. Throws HttpError and tw::StatusError.
Answer ServeV1(ModelCall* call);

}  // namespace thalweg::cli::serve
