// The table of functions, in which no member is NULL.
#include <cstdio>

#include "core.h"

namespace thalweg::ort {
namespace {

// The name of a function as a template argument.
template <size_t N>
struct Name {
  constexpr Name(const char (&text)[N]) {
    for (size_t i = 0; i < N; ++i) data[i] = text[i];
  }
  char data[N];
};

// Functions of the type of a table's member: Refuse::Call fails, Empty::Call does nothing.
template <Name kName, class Function>
struct Refuse;
template <Name kName, class... Args>
struct Refuse<kName, OrtStatus* (*)(Args...)> {
  static OrtStatus* Call(Args...) {
    return NewStatus(ORT_NOT_IMPLEMENTED, kName.data, "Thalweg's libonnxruntime does not serve this function");
  }
};
template <class Function>
struct Empty;
template <class Result, class... Args>
struct Empty<Result (*)(Args...)> {
  static Result Call(Args...) { return Result(); }
};

constexpr OrtApi Table() {
  OrtApi table{};
#define SERVED(name) table.name = api::name;
#define REFUSED(name) table.name = Refuse<#name, decltype(OrtApi::name)>::Call;
#define EMPTY(name) table.name = Empty<decltype(OrtApi::name)>::Call;
#include "served.inc"
#include "unserved.inc"
#undef SERVED
#undef REFUSED
#undef EMPTY
  return table;
}
constexpr OrtApi kTable = Table();

constexpr const char* kVersion = "1.29.0";

// The table only grows, so it serves every version up to its own.
const OrtApi* GetApi(uint32_t version) {
  if (version >= 1 && version <= ORT_API_VERSION) return &kTable;
  std::fprintf(stderr,
               "The requested API version [%u] is not available, only API versions [1, %u] are supported by Thalweg's libonnxruntime.\n",
               version, ORT_API_VERSION);
  return nullptr;
}
const char* GetVersionString() { return kVersion; }

constexpr OrtApiBase kBase = {GetApi, GetVersionString};

}  // namespace

const OrtApiBase* ApiBase() { return &kBase; }

namespace api {

const char* GetBuildInfoString() { return "ORT Build Info: Thalweg's libonnxruntime, API version 29"; }

}  // namespace api
}  // namespace thalweg::ort
