// Answers packed with gzip, for clients that accept that.
#pragma once
#include <string>
#include <string_view>

#include "charged_text.h"

namespace thalweg::cli::serve {

// Returns whether the value of a header Accept-Encoding names gzip without forbidding it. Brotli is not used: at the strength that the
// HTTP library asks of it, packing an answer takes longer than a model's run.
bool AcceptsGzip(std::string_view accepted);

// Appends the bytes in gzip's format. Throws HttpError as ChargedText does, and 503 if zlib gets no memory.
void Gzip(std::string_view bytes, ChargedText* out);

}  // namespace thalweg::cli::serve
