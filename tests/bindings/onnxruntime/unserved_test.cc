// Every member of the table is a function. One that is not served fails with NOT_IMPLEMENTED and its name, and each function with a status
// fails, and does not crash, if all of its arguments are NULL. The exported functions have the symbols of all releases.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <type_traits>

#include "onnxruntime_c_api.h"

namespace {

int failures = 0;
const OrtApi* ort = nullptr;

void Expect(bool condition, const char* function, const char* what) {
  if (condition) return;
  ++failures;
  std::fprintf(stderr, "%s: %s\n", function, what);
}

template <class Result, class... Args>
Result CallWithNothing(Result (*function)(Args...)) {
  return function(std::remove_cv_t<std::remove_reference_t<Args>>{}...);
}

void Refused(const char* name, OrtStatus* status) {
  Expect(status && ort->GetErrorCode(status) == ORT_NOT_IMPLEMENTED, name, "does not fail with NOT_IMPLEMENTED");
  Expect(status && std::strstr(ort->GetErrorMessage(status), name), name, "is not named in its failure");
  ort->ReleaseStatus(status);
}

// These take no handle, so nothing is missing.
bool NeedsNothing(const std::string& name) { return name == "ReleaseAvailableProviders" || name == "CreateStatus"; }

template <class Function>
void Served(const char* name, Function function) {
  Expect(function != nullptr, name, "is NULL");
  using Result = decltype(CallWithNothing(function));
  if constexpr (std::is_same_v<Result, OrtStatus*>) {
    OrtStatus* status = CallWithNothing(function);
    if (!NeedsNothing(name)) {
      Expect(status && ort->GetErrorCode(status) != ORT_OK, name, "accepts NULL");
      Expect(status && std::strncmp(ort->GetErrorMessage(status), name, std::strlen(name)) == 0, name, "is not named in its failure");
    }
    ort->ReleaseStatus(status);
  } else {
    CallWithNothing(function);
  }
}

// A program that is linked with ONNX Runtime 1.16.3 asks the loader for OrtGetApiBase@VERS_1.16.3.
void CheckReleases() {
  for (int minor = 0; minor < 40; ++minor) {
    for (int patch = 0; patch < 6; ++patch) {
      const std::string version = "VERS_1." + std::to_string(minor) + "." + std::to_string(patch);
      for (const char* function : {"OrtGetApiBase", "OrtSessionOptionsAppendExecutionProvider_CPU"}) {
        Expect(dlvsym(RTLD_DEFAULT, function, version.c_str()) == dlsym(RTLD_DEFAULT, function), function, version.c_str());
      }
    }
  }
  Expect(dlvsym(RTLD_DEFAULT, "OrtGetApiBase", "VERS_1.40.0") == nullptr, "OrtGetApiBase",
         "has the version of a release that is not known");
}

}  // namespace

int main() {
  ort = OrtGetApiBase()->GetApi(ORT_API_VERSION);
  if (!ort) return 1;
  for (size_t i = 0; i < sizeof(OrtApi) / sizeof(void*); ++i) {
    Expect(reinterpret_cast<const void* const*>(ort)[i] != nullptr, std::to_string(i).c_str(), "is NULL");
  }
  CheckReleases();
  int count = 0;
#define SERVED(name) ++count, Served(#name, ort->name);
#define REFUSED(name) ++count, Refused(#name, CallWithNothing(ort->name));
#define EMPTY(name) ++count, static_cast<void>(CallWithNothing(ort->name));
#include "bindings/onnxruntime/served.inc"
#include "bindings/onnxruntime/unserved.inc"
  Expect(count == sizeof(OrtApi) / sizeof(void*), "the lists", "do not have every function");
  std::printf("%d functions, %d failures\n", count, failures);
  return failures != 0;
}
