#include "http_error.h"

#include "json.h"
#include "thalweg/types.h"

namespace thalweg::cli::serve {

void Wrong(const std::string& where, const std::string& what) { throw HttpError(400, where + ": " + what); }

int HttpStatus(uint32_t code) {
  switch (code) {
    case TW_INVALID_ARGUMENT:
    case TW_OUT_OF_RANGE: return 400;
    case TW_PERMISSION_DENIED: return 403;
    case TW_NOT_FOUND: return 404;
    case TW_UNIMPLEMENTED: return 501;
    case TW_RESOURCE_EXHAUSTED:
    case TW_CANCELLED:
    case TW_UNAVAILABLE: return 503;
    case TW_DEADLINE_EXCEEDED: return 504;
    default: return 500;
  }
}

std::string ErrorBody(const std::string& text) { return Json().Object().Text("error", text).End().text(); }

}  // namespace thalweg::cli::serve
