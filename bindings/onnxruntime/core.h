// The base of all files here: failures as exceptions inside the library (common/failure.h), checks of the client's arguments, owners of
// Thalweg's handles. Every function of the table that returns a status runs its body in Guard, so that no exception leaves the library.
// Threads: values, no sharing.
#pragma once
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "common/failure.h"
#include "onnxruntime_c_api.h"
#include "thalweg/thalweg.h"

struct OrtStatus {
  OrtErrorCode code = ORT_OK;
  std::string message;
};

namespace thalweg::ort {

using namespace bindings;
using Error = Failure<OrtErrorCode>;
inline constexpr Thrower<OrtErrorCode> Fail;

// Throws if the client's argument is NULL; returns it otherwise.
template <class T>
T* Need(T* argument, std::string_view name) {
  if (!argument) Fail(ORT_INVALID_ARGUMENT, "'", name, "' is NULL");
  return argument;
}
// The same for the place of a result, which is set to an empty value. Call it in a statement of its own: in `Result(out) = new X` the new
// object is made first, and lost if `out` is NULL.
template <class T>
T& Result(T* place, std::string_view name = "out") {
  Need(place, name);
  *place = T{};
  return *place;
}

// The code of ONNX Runtime for a failure of Thalweg in a run.
OrtErrorCode CodeOf(uint32_t code);
// Throws a failure of Thalweg and releases it.
void Check(tw_status* status);

// Makes a status; never NULL, also when memory is out.
OrtStatus* NewStatus(OrtErrorCode code, const std::string& function, const std::string& message) noexcept;

// Runs body(). Returns NULL, or the failure with the name of the function in front.
template <class Body>
OrtStatus* Guard(const char* function, Body&& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (const Error& e) {
    return NewStatus(e.code, function, e.message);
  } catch (const std::bad_alloc&) {
    return NewStatus(ORT_RUNTIME_EXCEPTION, function, "out of memory");
  } catch (const std::exception& e) {
    return NewStatus(ORT_RUNTIME_EXCEPTION, function, e.what());
  }
}

using ModelRef = Owner<tw_model, tw_model_destroy>;
using CallableRef = Owner<tw_callable, tw_callable_destroy>;
using RuntimeRef = Owner<tw_runtime, tw_runtime_release>;

// Returns the result of OrtGetApiBase.
const OrtApiBase* ApiBase();

// The functions of the table, each with the type of its member.
namespace api {
#define SERVED(name) std::remove_pointer_t<decltype(OrtApi::name)> name;
#include "served.inc"
#undef SERVED
}  // namespace api

}  // namespace thalweg::ort
