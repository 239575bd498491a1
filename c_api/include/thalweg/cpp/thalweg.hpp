/* C++17 sugar over the application API: handles that clean up after themselves, exceptions instead of statuses, vectors instead of
 * pointers with counts. Header only, so nothing of C++ crosses the library's boundary. Whatever is missing here is one `.c()` away.
 *
 *   tw::Graph graph;
 *   tw::Scope s(graph);
 *   tw_output x = s.placeholder("x", TW_FLOAT, {});
 *   tw_output y = s.op("Add", {s.op("Mul", {x, x}), s.scalar(TW_FLOAT, 1)});
 *   s.finish();
 *   tw::Session session(graph);
 *   std::cout << session.run({{x, tw::Tensor(3.0f)}}, {y})[0].text();
 *
 * Errors: tw::StatusError, with the status's code and message. Threads: as the C objects. Since 0.1. */
#ifndef THALWEG_CPP_THALWEG_HPP
#define THALWEG_CPP_THALWEG_HPP
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "thalweg/thalweg.h"

namespace tw {

class StatusError : public std::runtime_error {
 public:
  StatusError(uint32_t code, const std::string& message, std::string operation = {})
      : std::runtime_error(message), code_(code), operation_(std::move(operation)) {}
  uint32_t code() const { return code_; }                     /* TW_NOT_FOUND, ... */
  const std::string& operation() const { return operation_; } /* the one that failed, by name; "": none */

 private:
  uint32_t code_;
  std::string operation_;
};

/* Throws what a status says and releases it; NULL passes. */
inline void raise(tw_status* status) {
  if (!status) return;
  const char* operation = tw_status_operation(status);
  const StatusError error(tw_status_code(status), tw_status_message(status), operation ? operation : "");
  tw_status_release(status);
  throw error;
}

/* The element type of a C++ type. */
template <class T>
inline constexpr uint32_t type_of = TW_INVALID_TYPE;
template <>
inline constexpr uint32_t type_of<float> = TW_FLOAT;
template <>
inline constexpr uint32_t type_of<double> = TW_DOUBLE;
template <>
inline constexpr uint32_t type_of<int8_t> = TW_INT8;
template <>
inline constexpr uint32_t type_of<int16_t> = TW_INT16;
template <>
inline constexpr uint32_t type_of<int32_t> = TW_INT32;
template <>
inline constexpr uint32_t type_of<int64_t> = TW_INT64;
template <>
inline constexpr uint32_t type_of<uint8_t> = TW_UINT8;
template <>
inline constexpr uint32_t type_of<uint16_t> = TW_UINT16;
template <>
inline constexpr uint32_t type_of<uint32_t> = TW_UINT32;
template <>
inline constexpr uint32_t type_of<uint64_t> = TW_UINT64;
template <>
inline constexpr uint32_t type_of<bool> = TW_BOOL;

/* Owns a C object; moves, does not copy. */
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

/* A text that a call hands out. */
inline std::string take_text(tw_buffer* buffer) {
  std::string text(tw_buffer_data(buffer), tw_buffer_bytes(buffer));
  tw_buffer_release(buffer);
  return text;
}

/* A shared reference to a tensor; copying shares. */
class Tensor {
 public:
  Tensor() = default;
  /* Takes over a reference. */
  static Tensor adopt(tw_tensor* t) {
    Tensor made;
    made.t_ = t;
    return made;
  }
  explicit Tensor(float value) { raise(tw_tensor_create_float(value, &t_)); }
  explicit Tensor(double value) { raise(tw_tensor_create_double(value, &t_)); }
  explicit Tensor(int32_t value) { raise(tw_tensor_create_int32(value, &t_)); }
  explicit Tensor(int64_t value) { raise(tw_tensor_create_int64(value, &t_)); }
  explicit Tensor(const std::string& value) { raise(tw_tensor_create_string(value.data(), value.size(), &t_)); }
  template <class T>
  Tensor(const std::vector<int64_t>& dims, const std::vector<T>& values) {
    static_assert(type_of<T> != TW_INVALID_TYPE && !std::is_same_v<T, bool>, "no element type of this C++ type");
    raise(tw_tensor_create_copy(type_of<T>, dims.data(), uint32_t(dims.size()), values.data(), values.size() * sizeof(T), &t_));
  }
  Tensor(const Tensor& o) : t_(o.t_) { tw_tensor_retain(t_); }
  Tensor(Tensor&& o) noexcept : t_(std::exchange(o.t_, nullptr)) {}
  Tensor& operator=(Tensor o) noexcept {
    std::swap(t_, o.t_);
    return *this;
  }
  ~Tensor() { tw_tensor_release(t_); }

  tw_tensor* c() const { return t_; }
  explicit operator bool() const { return t_ != nullptr; }
  uint32_t dtype() const { return tw_tensor_dtype(t_); }
  std::vector<int64_t> dims() const { return {tw_tensor_dims(t_), tw_tensor_dims(t_) + tw_tensor_rank(t_)}; }
  uint64_t count() const { return tw_tensor_count(t_); }
  /* Its elements. Throws if T is not its type. */
  template <class T>
  const T* data() const {
    if (dtype() != type_of<T>) throw StatusError(TW_INVALID_ARGUMENT, std::string("the tensor holds ") + name(dtype()));
    return static_cast<const T*>(tw_tensor_data(t_));
  }
  template <class T>
  std::vector<T> values() const {
    return {data<T>(), data<T>() + count()};
  }
  std::string string(uint64_t i = 0) const {
    const char* data = nullptr;
    uint64_t bytes = 0;
    raise(tw_tensor_get_string(t_, i, &data, &bytes));
    return {data, bytes};
  }
  std::string text(uint64_t max_elements = 0) const {
    tw_buffer* text = nullptr;
    raise(tw_tensor_text(t_, max_elements, &text));
    return take_text(text);
  }

 private:
  static const char* name(uint32_t dtype) { return tw_dtype_name(dtype) ? tw_dtype_name(dtype) : "nothing"; }
  tw_tensor* t_ = nullptr;
};

class Runtime : public Owned<tw_runtime, tw_runtime_release> {
 public:
  explicit Runtime(const std::vector<const char*>& options = {}) {
    tw_runtime* made = nullptr;
    raise(tw_runtime_create(options.data(), uint32_t(options.size()), &made));
    own(made);
  }
};

class Graph : public Owned<tw_graph, tw_graph_destroy> {
 public:
  Graph() { create(nullptr); }
  explicit Graph(const Runtime& runtime) { create(runtime.c()); }
  const tw_operation* find(const std::string& name) const {
    const tw_operation* found = nullptr;
    raise(tw_graph_find(c(), name.c_str(), &found));
    return found;
  }
  tw_output output(const std::string& name) const {
    tw_output found = 0;
    raise(tw_graph_find_output(c(), name.c_str(), &found));
    return found;
  }
  void import_graph_def(const std::string& graph_def, const char* prefix = nullptr) {
    tw_import_options options = {};
    options.size = sizeof(options);
    options.prefix = prefix;
    raise(tw_graph_import(c(), graph_def.data(), graph_def.size(), &options));
  }
  std::string graph_def() const {
    tw_buffer* bytes = nullptr;
    raise(tw_graph_export(c(), &bytes));
    return take_text(bytes);
  }

 private:
  void create(tw_runtime* runtime) {
    tw_graph* made = nullptr;
    raise(tw_graph_create(runtime, &made));
    own(made);
  }
};

/* Adds operations; the first failure is thrown by finish, and lost without it. */
class Scope {
 public:
  explicit Scope(const Graph& graph, const char* prefix = nullptr) : s_(tw_scope_create(graph.c(), prefix)) {}
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() { tw_status_release(finished_ ? nullptr : tw_scope_finish(s_)); }
  void finish() {
    finished_ = true;
    raise(tw_scope_finish(std::exchange(s_, nullptr)));
  }
  tw_scope* c() const { return s_; }

  /* describe(tw_op*) may add attributes, controls and a device. */
  tw_output op(const char* type, const std::vector<tw_output>& inputs) {
    return tw_scope_op(s_, type, inputs.data(), uint32_t(inputs.size()));
  }
  template <class Describe>
  tw_output op(const char* type, const std::vector<tw_output>& inputs, Describe&& describe, const char* name = nullptr) {
    tw_op* op = tw_scope_begin(s_, type, name);
    tw_op_add_inputs(op, inputs.data(), uint32_t(inputs.size()));
    describe(op);
    return tw_scope_end(s_, op);
  }
  tw_output constant(const Tensor& value) { return tw_scope_constant(s_, value.c()); }
  tw_output scalar(uint32_t dtype, double value) { return tw_scope_scalar(s_, dtype, value); }
  tw_output ints(const std::vector<int32_t>& values) { return tw_scope_ints(s_, values.data(), uint32_t(values.size())); }
  tw_output placeholder(const char* name, uint32_t dtype, const std::vector<int64_t>& dims) {
    return tw_scope_placeholder(s_, name, dtype, dims.data(), int32_t(dims.size()));
  }
  tw_output variable(const char* name, tw_output initial) { return tw_variable_create(s_, name, initial); }
  tw_output read(tw_output variable) { return tw_variable_read(s_, variable); }
  tw_output name(const char* name, tw_output value) { return tw_scope_name(s_, name, value); }
  std::vector<tw_gradient> gradients(tw_output loss, const std::vector<tw_output>& xs) {
    std::vector<tw_gradient> found(xs.size());
    tw_scope_gradients(s_, loss, xs.data(), uint32_t(xs.size()), found.data());
    return found;
  }

 private:
  tw_scope* s_;
  bool finished_ = false;
};

using Feeds = std::vector<std::pair<tw_output, Tensor>>;

class Session : public Owned<tw_session, tw_session_destroy> {
 public:
  explicit Session(const Graph& graph, const std::vector<const char*>& options = {}) {
    tw_session* made = nullptr;
    raise(tw_session_create(graph.c(), options.data(), uint32_t(options.size()), &made));
    own(made);
  }
  std::vector<Tensor> run(const Feeds& feeds, const std::vector<tw_output>& fetches, const std::vector<const tw_operation*>& targets = {},
                          const tw_run_options* options = nullptr) {
    std::vector<tw_output> names;
    std::vector<tw_tensor*> values, out(fetches.size());
    for (const auto& [name, value] : feeds) {
      names.push_back(name);
      values.push_back(value.c());
    }
    tw_signature what = {};
    what.size = sizeof(what);
    what.feeds = names.data();
    what.n_feeds = uint32_t(names.size());
    what.fetches = fetches.data();
    what.n_fetches = uint32_t(fetches.size());
    what.targets = targets.data();
    what.n_targets = uint32_t(targets.size());
    raise(tw_session_run(c(), &what, values.data(), options, out.data()));
    std::vector<Tensor> results;
    for (tw_tensor* t : out) results.push_back(Tensor::adopt(t));
    return results;
  }
  void close() { raise(tw_session_close(c())); }
};

}  // namespace tw
#endif
