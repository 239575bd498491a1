// The base of all files here: failures as exceptions inside the library (common/failure.h), owners of Thalweg's handles, messages in
// buffers. Every exported function that takes a TF_Status runs its body in Guard, so that no exception leaves the library.
// Threads: values, no sharing.
#pragma once
#include <exception>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include <google/protobuf/message_lite.h>

#include "common/failure.h"
#include "tensorflow/c/c_api.h"
#include "thalweg/thalweg.h"

struct TF_Status {
  TF_Code code = TF_OK;
  std::string message;
  std::map<std::string, std::string> payloads;
};

namespace thalweg::tf {

using namespace bindings;
using Error = Failure<TF_Code>;
inline constexpr Thrower<TF_Code> Fail;

inline std::string OrEmpty(const char* text) { return text ? text : ""; }

// Throws a failure of Thalweg, whose codes have the same numbers, and releases it.
void Check(tw_status* status);

// Sets *status, which may be NULL.
void Set(TF_Status* status, TF_Code code, std::string message);

// Runs body(), sets *status, and returns the result of body(), or an empty value after a failure.
template <class Body>
auto Guard(TF_Status* status, Body&& body) noexcept -> decltype(body()) {
  using Result = decltype(body());
  try {
    Set(status, TF_OK, "");
    return body();
  } catch (const Error& e) {
    Set(status, e.code, e.message);
  } catch (const std::bad_alloc&) {
    Set(status, TF_RESOURCE_EXHAUSTED, "out of memory");
  } catch (const std::exception& e) {
    Set(status, TF_INTERNAL, e.what());
  }
  if constexpr (!std::is_void_v<Result>) return Result{};
}

using SessionRef = Owner<tw_session, tw_session_destroy>;
using GraphRef = Owner<tw_graph, tw_graph_destroy>;
using DevicesRef = Owner<tw_devices, tw_devices_destroy>;

inline std::string_view View(const BufferRef& b) { return {tw_buffer_data(b.get()), size_t(tw_buffer_bytes(b.get()))}; }

// Replaces what the client's buffer holds by a copy of the bytes.
void Fill(TF_Buffer* buffer, std::string_view bytes);
TF_Buffer* NewBuffer(std::string_view bytes);

// Parses a message; `what` names it in the error.
void Parse(const void* data, size_t bytes, std::string_view what, google::protobuf::MessageLite* message);
inline void Parse(const TF_Buffer* buffer, std::string_view what, google::protobuf::MessageLite* message) {
  if (!buffer) Fail(TF_INVALID_ARGUMENT, what, " is NULL");
  Parse(buffer->data, buffer->length, what, message);
}
// Serialises a message; the entries of maps are in the order of their keys.
std::string Serialise(const google::protobuf::MessageLite& message);

}  // namespace thalweg::tf
