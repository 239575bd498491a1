// The page at `/`: the models that are served, their inputs and outputs, and for each a command that sends it a request.
#pragma once
#include "protocol.h"

namespace thalweg::cli::serve {

// Plain text, which a browser and curl show alike.
Answer FrontPage(const ModelCall& call);

}  // namespace thalweg::cli::serve
