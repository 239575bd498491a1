/* Base of the C++ sugar: the exception for a status, and owning handles. Threads: as the C objects.
 * Since 0.1. */
#ifndef THALWEG_CPP_HANDLE_HPP
#define THALWEG_CPP_HANDLE_HPP
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "thalweg/buffer.h"
#include "thalweg/status.h"

namespace tw {

class StatusError : public std::runtime_error {
 public:
  StatusError(uint32_t code, const std::string& message, std::string operation = {}, std::string place = {})
      : std::runtime_error(message), code_(code), operation_(std::move(operation)), place_(std::move(place)) {}
  uint32_t code() const { return code_; }                     /* TW_NOT_FOUND, ... */
  const std::string& operation() const { return operation_; } /* name of the failed operation; "": none */
  const std::string& place() const { return place_; }         /* where it was made, see tw_op_set_place; "": unknown */

 private:
  uint32_t code_;
  std::string operation_, place_;
};

/* Throws a failure and releases its status; does nothing for NULL. */
inline void raise(tw_status* status) {
  if (!status) return;
  const char *operation = tw_status_operation(status), *place = tw_status_place(status);
  const StatusError error(tw_status_code(status), tw_status_message(status), operation ? operation : "", place ? place : "");
  tw_status_release(status);
  throw error;
}

/* Owns a C object; movable, not copyable. */
template <class T, void (*Destroy)(T*)>
class Owned {
 public:
  T* c() const { return object_.get(); }

 protected:
  void own(T* object) { object_.reset(object); }
  T* disown() { return object_.release(); }

 private:
  struct Delete {
    void operator()(T* object) const { Destroy(object); }
  };
  std::unique_ptr<T, Delete> object_;
};

/* Converts a buffer that a call returned to a string, and releases it. */
inline std::string take_text(tw_buffer* buffer) {
  std::string text(tw_buffer_data(buffer), tw_buffer_bytes(buffer));
  tw_buffer_release(buffer);
  return text;
}

}  // namespace tw
#endif
