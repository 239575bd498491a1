/* C++17 sugar over the plugin API: ops, gradients and kernels as plain functions and classes. Header only; nothing here crosses the
 * boundary, so two plugins may use different versions of it. See plugins/examples/ and plugins/cpu/ for its use.
 *
 *   static void twice(tw::In<float> x, tw::Out<float> y) { for (uint64_t i = 0; i < x.size(); ++i) y[i] = 2 * x[i]; }
 *   TW_CPP_PLUGIN("org.example.twice", "1.0", p) {
 *     p.op<twice_gradient>("Twice(x: T[*s]) -> (y: T[*s]); T: {float}").kernel<twice>("Twice @CPU; cheap; inplace y=x");
 *   }
 *
 * Errors: throw tw::Error{code, text} anywhere inside a callback; it becomes a status. Threads: as the callbacks of the C API. */
#ifndef THALWEG_CPP_PLUGIN_HPP
#define THALWEG_CPP_PLUGIN_HPP
#include <cstring>
#include <exception>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "thalweg/plugin/plugin.h"

namespace tw {
/* The inline namespace keeps two plugins of one executable, built with two headers, from sharing inline functions. */
inline namespace TW_CAT(TW_CAT(m, TW_MINOR), TW_CAT(t, THALWEG_TARGET_MINOR)) {

/* ---- Errors ---- */
struct Error {
  uint32_t code;
  std::string text;
};
struct Raised { /* a status that is thrown */
  tw_status* status;
};
inline void check(tw_status* s) {
  if (s) throw Raised{s};
}
/* Converts the exception in flight to a status. Call it in a catch block. */
[[gnu::cold]] inline tw_status* caught(const tw_host* h) noexcept {
  try {
    throw;
  } catch (const Raised& r) {
    return r.status;
  } catch (const Error& e) {
    return tw_fail(h, e.code, e.text.data(), e.text.size());
  } catch (const std::bad_alloc&) {
    return tw_fail(h, TW_RESOURCE_EXHAUSTED, TW_S("out of host memory"));
  } catch (const std::exception& e) {
    return tw_fail(h, TW_INTERNAL, e.what(), std::strlen(e.what()));
  } catch (...) {
    return tw_fail(h, TW_INTERNAL, TW_S("unknown C++ exception"));
  }
}
/* Runs body and converts any exception to a status. */
template <class F>
tw_status* guard(const tw_host* h, F&& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (...) {
    return caught(h);
  }
}
inline std::string text(int64_t v) { return std::to_string(v); }
/* "[2, ?, 3]", or "unknown" for an unknown rank. */
inline std::string text(const int64_t* dims, int32_t rank) {
  if (rank < 0) return "unknown";
  std::string s = "[";
  for (int32_t i = 0; i < rank; ++i) {
    if (i) s += ", ";
    s += dims[i] < 0 ? "?" : std::to_string(dims[i]);
  }
  return s + "]";
}
inline std::string text(const tw_shape& s) { return text(s.dims, s.rank); }

/* ---- Element types: the name of a C++ type in kernel specs. A plugin may add its own (half,
 * complex): specialise dtype. ---- */
struct Any; /* In<Any>, Many<Any>, Out<Any> accept every type; see v->dtype */
template <class T>
inline constexpr const char* dtype = nullptr;
template <>
inline constexpr const char* dtype<Any> = "_";
template <>
inline constexpr const char* dtype<float> = "float";
template <>
inline constexpr const char* dtype<double> = "double";
template <>
inline constexpr const char* dtype<int8_t> = "int8";
template <>
inline constexpr const char* dtype<int16_t> = "int16";
template <>
inline constexpr const char* dtype<int32_t> = "int32";
template <>
inline constexpr const char* dtype<int64_t> = "int64";
template <>
inline constexpr const char* dtype<uint8_t> = "uint8";
template <>
inline constexpr const char* dtype<uint16_t> = "uint16";
template <>
inline constexpr const char* dtype<uint32_t> = "uint32";
template <>
inline constexpr const char* dtype<uint64_t> = "uint64";
template <>
inline constexpr const char* dtype<bool> = "bool";
template <>
inline constexpr const char* dtype<tw_string> = "string";

/* Names by type number, as in kernel specs. */
inline constexpr std::string_view dtype_names[] = {"none",
                                                   "float",
                                                   "double",
                                                   "int32",
                                                   "uint8",
                                                   "int16",
                                                   "int8",
                                                   "string",
                                                   "complex64",
                                                   "int64",
                                                   "bool",
                                                   "qint8",
                                                   "quint8",
                                                   "qint32",
                                                   "bfloat16",
                                                   "qint16",
                                                   "quint16",
                                                   "uint16",
                                                   "complex128",
                                                   "half",
                                                   "resource",
                                                   "variant",
                                                   "uint32",
                                                   "uint64",
                                                   "float8_e5m2",
                                                   "float8_e4m3fn",
                                                   "float8_e4m3fnuz",
                                                   "float8_e4m3b11fnuz",
                                                   "float8_e5m2fnuz",
                                                   "int4",
                                                   "uint4",
                                                   "int2",
                                                   "uint2"};
constexpr uint32_t dtype_number(std::string_view name) {
  uint32_t i = 0;
  for (std::string_view known : dtype_names) {
    if (known == name) return i;
    ++i;
  }
  return 0;
}
inline std::string dtype_text(uint32_t number) {
  return number < std::size(dtype_names) ? std::string(dtype_names[number]) : "dtype " + std::to_string(number);
}

/* ---- Parameters of a kernel, in schema order: In (test an input that may be absent), Many (variadic), Var (an opened resource, by
 * read or update), Handle (a resource that is not opened), Out; Frame, and in functions Self, anywhere. ---- */
struct Cursor {
  const tw_frame* f;
  uint32_t a = 0, o = 0;
};
inline void list(std::string& s, const char* t) { (s += s.empty() ? "" : ", ") += t; }

/* data() and [] are for host memory (kernels of devices with host memory, and arguments that the
 * spec's `host` names). On other devices the value is `offset()` bytes into handle(), an address of
 * the device or an object of its driver. */
template <class T>
struct View {
  using Element = std::conditional_t<std::is_same_v<std::remove_const_t<T>, Any>, unsigned char, T>;
  const tw_view* v;
  Element* data() const { return reinterpret_cast<Element*>(static_cast<char*>(v->data) + v->offset); }
  void* handle() const { return v->data; }
  uint64_t offset() const { return v->offset; }
  uint64_t size() const { return v->count; }
  int32_t rank() const { return v->rank; }
  int64_t dim(int32_t i) const { return v->dims[i < 0 ? i + v->rank : i]; }
  const int64_t* dims() const { return v->dims; }
  Element& operator[](uint64_t i) const { return data()[i]; }
  explicit operator bool() const { return v != nullptr; }
};
/* Refuses a variable of another type; a variable without a value has rank -1. */
template <class T>
struct Var : View<T> {
  static Var take(Cursor& c) {
    const uint32_t i = c.f->in_at[c.a++];
    const tw_view* v = c.f->in[i];
    if constexpr (!std::is_same_v<T, Any>) {
      constexpr uint32_t number = dtype_number(dtype<T>);
      static_assert(number != 0, "no element type; take an object of your own as Var<tw::Any>");
      if (v->rank >= 0 && v->dtype != number) {
        throw Error{TW_INVALID_ARGUMENT,
                    "the variable at input " + std::to_string(i) + " holds " + dtype_text(v->dtype) + ", not " + dtype<T>};
      }
    }
    return {{v}};
  }
  static void name(std::string& in, std::string&) { list(in, "resource"); }
};
struct Handle {
  const tw_frame* f;
  uint32_t i; /* flat input index, for the resource API */
  static Handle take(Cursor& c) { return {c.f, c.f->in_at[c.a++]}; }
  static void name(std::string& in, std::string&) { list(in, "resource"); }
};
template <class T>
struct In : View<const T> {
  static In take(Cursor& c) {
    uint32_t b = c.f->in_at[c.a], e = c.f->in_at[++c.a];
    return {{b == e ? nullptr : c.f->in[b]}};
  }
  static void name(std::string& in, std::string&) { list(in, dtype<T>); }
};
template <class T>
struct Many {
  const tw_view* const* v;
  uint32_t n, first; /* first: flat index of entry 0 */
  uint32_t size() const { return n; }
  In<T> operator[](uint32_t i) const { return {{v[i]}}; }
  static Many take(Cursor& c) {
    uint32_t b = c.f->in_at[c.a], e = c.f->in_at[++c.a];
    return {c.f->in + b, e - b, b};
  }
  static void name(std::string& in, std::string&) { list(in, dtype<T>); }
};
template <class T>
struct Out {
  using Element = typename View<T>::Element;
  const tw_frame* f;
  uint32_t o;
  const tw_view* v() const { return f->out[o]; }
  Element* data() const { return reinterpret_cast<Element*>(static_cast<char*>(v()->data) + v()->offset); }
  void* handle() const { return v()->data; }
  uint64_t offset() const { return v()->offset; }
  uint64_t size() const { return v()->count; }
  int32_t rank() const { return v()->rank; }
  int64_t dim(int32_t i) const { return v()->dims[i < 0 ? i + v()->rank : i]; }
  const int64_t* dims() const { return v()->dims; }
  Element& operator[](uint64_t i) const { return data()[i]; }
  void allocate(const std::vector<int64_t>& d) const { check(f->host->tensor->allocate(f, o, d.data(), uint32_t(d.size()))); }
  void set(uint64_t i, std::string_view s) const { check(f->host->tensor->set_string(v()->tensor, i, s.data(), s.size())); }
  /* Gives the output the elements of flat input i from number `first` on, under the output's dims;
   * shares memory if possible. */
  void forward_part(uint32_t i, uint64_t first) const {
    if (rank() < 0) throw Error{TW_FAILED_PRECONDITION, "output " + std::to_string(o) + " has no dims yet"};
    check(f->host->tensor->forward_part(f, i, first, o, v()->dims, uint32_t(v()->rank)));
  }
  static Out take(Cursor& c) { return {c.f, c.f->out_at[c.o++]}; }
  static void name(std::string&, std::string& out) { list(out, dtype<T>); }
};
/* A variadic output. */
template <class T>
struct ManyOut {
  const tw_frame* f;
  uint32_t first, n;
  uint32_t size() const { return n; }
  Out<T> operator[](uint32_t i) const { return {f, first + i}; }
  static ManyOut take(Cursor& c) {
    uint32_t b = c.f->out_at[c.o], e = c.f->out_at[++c.o];
    return {c.f, b, e - b};
  }
  static void name(std::string&, std::string& out) { list(out, dtype<T>); }
};
/* ---- The plugin's own state ---- */
template <class T>
inline constexpr char type_mark = 0; /* its address identifies the type */
/* Made by TW_CPP_PLUGIN_WITH; the `user` of every definition. */
struct Instance {
  const char* type;
};
template <class T>
struct Holder : Instance {
  T object;
  Holder() : Instance{&type_mark<T>}, object() {}
};
template <class T>
T& instance(void* user) {
  auto* held = static_cast<Instance*>(user);
  if (!held) throw Error{TW_INTERNAL, "the plugin has no instance; begin it with TW_CPP_PLUGIN_WITH"};
  if (held->type != &type_mark<T>)
    throw Error{TW_INTERNAL, "the plugin's instance is of another type than the kernel asks for; name the one of TW_CPP_PLUGIN_WITH"};
  return static_cast<Holder<T>*>(held)->object;
}
/* The plugin's instance, as a parameter of a kernel function. A kernel class gets it from its Node,
 * by self<T>(). */
template <class T>
struct Self {
  T* object;
  T& operator*() const { return *object; }
  T* operator->() const { return object; }
  static Self take(Cursor& c) { return {&instance<T>(c.f->state)}; }
  static void name(std::string&, std::string&) {}
};
template <class P>
inline constexpr bool is_self = false;
template <class T>
inline constexpr bool is_self<Self<T>> = true;

struct Frame {
  const tw_frame* f;
  static Frame take(Cursor& c) { return {c.f}; }
  static void name(std::string&, std::string&) {}
  /* Calls part(begin, end) over [0, n) on the host's pool. part must not throw. */
  template <class F>
  void parallel(uint64_t n, uint64_t grain, F&& part) const {
    using Body = std::remove_reference_t<F>;
    f->host->run->parallel(
        f, n, grain, [](void* arg, uint64_t b, uint64_t e) { (*static_cast<Body*>(arg))(b, e); },
        const_cast<void*>(static_cast<const void*>(&part)));
  }
  /* For asynchronous kernels. complete ends the call, which must not be touched afterwards. wait
   * suspends it at the resource of flat input i, see resource.h; operator() returns next. */
  void complete() const { f->host->run->complete(f->host, f->token, nullptr); }
  void wait(uint32_t i, uint64_t condition, uint64_t memo) const { check(f->host->resource->wait(f, i, condition, memo)); }
  uint64_t waiting(uint32_t i, uint64_t condition) const { return f->host->resource->waiting(f, i, condition); }
  uint64_t memo() const { return f->memo; }
};

/* ---- Attributes ----
 * An accessor throws if the attribute is missing or of another kind; its error names the accessor
 * to call. */
inline constexpr const char* attr_kinds[] = {"nothing", "int", "float", "bool", "string", "type", "shape", "tensor", "func"};
inline constexpr const char* attr_accessors[] = {"at", "i", "f", "b", "s", "type", "shape", "tensor", "s"};
struct Attrs {
  const tw_attr* attr_list;
  uint32_t attr_count;
  std::string_view of_op = {}; /* the op that has them, for errors; may be empty */
  const tw_attr* find(std::string_view name) const { return tw_find_attr(attr_list, attr_count, name.data(), name.size()); }
  const tw_attr& at(std::string_view name) const {
    const tw_attr* a = find(name);
    if (!a) missing(name);
    return *a;
  }
  int64_t i(std::string_view name) const { return one<int64_t>(name, TW_ATTR_INT); }
  double f(std::string_view name) const { return one<double>(name, TW_ATTR_FLOAT); }
  bool b(std::string_view name) const { return one<uint8_t>(name, TW_ATTR_BOOL) != 0; }
  uint32_t type(std::string_view name) const { return one<uint32_t>(name, TW_ATTR_TYPE); }
  /* Value of a string, or the name of a function. */
  std::string_view s(std::string_view name) const {
    const tw_attr& a = at(name);
    if (a.is_list || (a.kind != TW_ATTR_STRING && a.kind != TW_ATTR_FUNC)) refuse(a, "s");
    auto& v = *static_cast<const tw_string*>(a.data);
    return {v.data, v.size};
  }
  const tw_shape& shape(std::string_view name) const { return one<tw_shape>(name, TW_ATTR_SHAPE); }
  tw_tensor* tensor(std::string_view name) const { return one<tw_tensor*>(name, TW_ATTR_TENSOR); }
  /* Values of a list, or of a single attribute. */
  std::vector<int64_t> ints(std::string_view name) const {
    auto& a = at(name);
    if (a.kind != TW_ATTR_INT) refuse(a, "ints");
    auto* p = static_cast<const int64_t*>(a.data);
    return {p, p + a.count};
  }

 private:
  template <class T>
  const T& one(std::string_view name, uint32_t kind) const {
    const tw_attr& a = at(name);
    if (a.kind != kind || a.is_list) refuse(a, attr_accessors[kind]);
    return *static_cast<const T*>(a.data);
  }
  std::string whose() const { return of_op.empty() ? std::string() : "op '" + std::string(of_op) + "': "; }
  [[noreturn, gnu::cold]] void missing(std::string_view name) const {
    std::string names;
    for (uint32_t k = 0; k < attr_count; ++k) {
      (names += names.empty() ? "'" : ", '").append(attr_list[k].name, attr_list[k].name_len) += "'";
    }
    throw Error{TW_INTERNAL, whose() + "no attribute '" + std::string(name) + "'; it has " + (names.empty() ? "none" : names)};
  }
  [[noreturn, gnu::cold]] void refuse(const tw_attr& a, const char* called) const {
    const std::string name(a.name, a.name_len);
    const bool known = a.kind < std::size(attr_kinds);
    const std::string kind = known ? attr_kinds[a.kind] : "kind " + std::to_string(a.kind);
    const bool plain = known && (!a.is_list || a.kind == TW_ATTR_INT);
    const std::string accessor = !plain ? "at" : a.is_list ? "ints" : attr_accessors[a.kind];
    throw Error{TW_INTERNAL, whose() + "attribute '" + name + "' is " + (a.is_list ? "list(" + kind + ")" : kind) + ", which " + called +
                                 "(\"" + name + "\") does not read; call " + accessor + "(\"" + name + "\")"};
  }
};
/* Argument of a kernel class's constructor. */
struct Node : Attrs {
  const tw_node* node;
  explicit Node(const tw_node* n) : Attrs{n->attrs, n->n_attrs, {n->op, n->op_len}}, node(n) {}
  const tw_host* host() const { return node->host; }
  std::string_view name() const { return {node->name, node->name_len}; }
  uint32_t type_in(uint32_t i) const { return node->types[i]; }
  uint32_t type_out(uint32_t o) const { return node->types[node->n_in + o]; }
  /* As far as known; rank -1: not known. */
  const tw_shape& shape_in(uint32_t i) const { return node->shapes[i]; }
  const tw_shape& shape_out(uint32_t o) const { return node->shapes[node->n_in + o]; }
  /* In `fits`: the input's value, if it is the same in every step and known; else NULL. */
  const tw_view* value_in(uint32_t i) const { return TW_HAS(node, value) && node->value ? node->value[i] : nullptr; }
  /* The plugin's instance, from TW_CPP_PLUGIN_WITH. Lives until shutdown; kernels on several
   * threads share it. */
  template <class T>
  T& self() const {
    return instance<T>(node->user);
  }
};

/* The elements of a host view of integers; false if it is NULL or of another type. */
inline bool integers(const tw_view* v, std::vector<int64_t>* out) {
  if (!v) return false;
  out->resize(v->count);
  auto fill = [&](const auto* p) {
    for (uint64_t k = 0; k < v->count; ++k) (*out)[k] = int64_t(p[k]);
    return true;
  };
  switch (v->dtype) {
    case TW_INT8: return fill(static_cast<const int8_t*>(v->data));
    case TW_INT16: return fill(static_cast<const int16_t*>(v->data));
    case TW_INT32: return fill(static_cast<const int32_t*>(v->data));
    case TW_INT64: return fill(static_cast<const int64_t*>(v->data));
    case TW_UINT8: return fill(static_cast<const uint8_t*>(v->data));
    default: return false;
  }
}

/* ---- Shape rules ---- */
struct Shape : Attrs {
  const tw_shape_call* c;
  explicit Shape(const tw_shape_call* call) : Attrs{call->attrs, call->n_attrs}, c(call) {}
  const tw_graph_api* g() const { return c->host->graph; }
  const tw_shape& in(uint32_t i) const { return c->in[i]; }
  /* Flat index of the first entry of argument a, and the number of its entries. */
  uint32_t first(uint32_t a) const { return c->in_at[a]; }
  uint32_t many(uint32_t a) const { return c->in_at[a + 1] - c->in_at[a]; }
  bool known(uint32_t i) const { return c->in[i].rank >= 0; }
  int32_t rank(uint32_t i) const { return c->in[i].rank; }
  int64_t dim(uint32_t i, int32_t axis) const { return c->in[i].dims[axis < 0 ? axis + c->in[i].rank : axis]; }
  uint32_t type_in(uint32_t i) const { return c->types[i]; }
  uint32_t type_out(uint32_t o) const { return c->types[c->n_in + o]; }
  /* The value of an integer input if it is known during planning. */
  bool value(uint32_t i, std::vector<int64_t>* out_value) const { return integers(c->value[i], out_value); }
  void out(uint32_t o, const std::vector<int64_t>& dims) const { g()->set_shape(c->b, o, dims.data(), int32_t(dims.size())); }
  void out(uint32_t o, const tw_shape& s) const { g()->set_shape(c->b, o, s.dims, s.rank); }
  void unknown(uint32_t o) const { g()->set_shape(c->b, o, nullptr, -1); }
  /* Description of the variable behind the resource handle at input i; dtype 0, rank -1 if
   * unknown. */
  void handle(uint32_t i, uint32_t* out_dtype, tw_shape* out_shape) const { g()->handle(c->b, i, out_dtype, out_shape); }
  void set_handle(uint32_t o, uint32_t type, const tw_shape& s) const { g()->set_handle(c->b, o, type, s.dims, s.rank); }
  /* '+' '-' '*' '/' of sizes that may be unknown; '=' merges or fails. */
  int64_t calc(char op, int64_t x, int64_t y) const { return g()->dim(c->b, uint32_t(op), x, y); }
  /* Fails if input i is known to have another rank. */
  void want_rank(uint32_t i, int32_t rank, const char* what) const {
    if (known(i) && c->in[i].rank != rank)
      throw Error{TW_INVALID_ARGUMENT, std::string(what) + " must have rank " + text(rank) + " but is " + text(c->in[i])};
  }
};

/* ---- Gradients ---- */
/* An attribute for Grad::op. Lists and names are borrowed until the call. */
struct Attr {
  std::string_view name;
  uint32_t kind;
  union {
    int64_t i;
    double f;
    uint8_t b;
    uint32_t type;
    tw_string s;
    tw_shape shape;
    tw_tensor* tensor;
  };
  const void* list = nullptr;
  uint32_t count = 1;
  Attr(std::string_view n, int64_t v) : name(n), kind(TW_ATTR_INT), i(v) {}
  Attr(std::string_view n, int v) : Attr(n, int64_t(v)) {}
  Attr(std::string_view n, double v) : name(n), kind(TW_ATTR_FLOAT), f(v) {}
  Attr(std::string_view n, bool v) : name(n), kind(TW_ATTR_BOOL), b(v) {}
  Attr(std::string_view n, std::string_view v) : name(n), kind(TW_ATTR_STRING), s{v.data(), v.size()} {}
  Attr(std::string_view n, const char* v) : Attr(n, std::string_view(v)) {}
  Attr(std::string_view n, const tw_shape& v) : name(n), kind(TW_ATTR_SHAPE), shape(v) {}
  Attr(std::string_view n, const std::vector<int64_t>& v) : name(n), kind(TW_ATTR_INT), i(0), list(v.data()), count(uint32_t(v.size())) {
    if (!list) list = &i;
  }
  static Attr Type(std::string_view n, uint32_t v) {
    Attr a(n, int64_t(0));
    a.kind = TW_ATTR_TYPE;
    a.type = v;
    return a;
  }
  tw_attr c() const { return {name.data(), name.size(), list ? list : static_cast<const void*>(&i), kind, count, list ? 1u : 0u, 0}; }
};
struct Grad : Attrs {
  const tw_grad_call* c;
  explicit Grad(const tw_grad_call* call) : Attrs{call->attrs, call->n_attrs}, c(call) {}
  const tw_graph_api* g() const { return c->host->graph; }
  using Attrs::ints;
  using Attrs::shape;
  uint32_t inputs() const { return c->n_in; }
  /* The value of an integer input if it is known during building. */
  bool value(uint32_t i, std::vector<int64_t>* out_value) const { return integers(c->value[i], out_value); }
  const tw_shape& shape_in(uint32_t i) const { return c->shapes[i]; }
  const tw_shape& shape_out(uint32_t o) const { return c->shapes[c->n_in + o]; }
  uint32_t type_in(uint32_t i) const { return c->types[i]; }
  uint32_t type_out(uint32_t o) const { return c->types[c->n_in + o]; }
  tw_edge x(uint32_t i) const { return g()->input(c->b, i); }
  tw_edge y(uint32_t o = 0) const { return g()->result(c->b, o); }
  tw_edge dy(uint32_t o = 0) const { return g()->dy(c->b, o); }
  bool has_dy(uint32_t o = 0) const { return g()->has_dy(c->b, o) != 0; }
  tw_edge shape(uint32_t i) const { return g()->shape(c->b, i); } /* int32 vector */
  tw_edge scalar(double v, uint32_t type = 0) const { return g()->scalar(c->b, type ? type : c->types[0], v); }
  tw_edge ints(std::initializer_list<int64_t> v, uint32_t type = TW_INT32) const { return ints(std::vector<int64_t>(v), type); }
  tw_edge ints(const std::vector<int64_t>& v, uint32_t type = TW_INT32) const {
    int64_t n = int64_t(v.size());
    if (type == TW_INT64) return g()->constant(c->b, TW_INT64, &n, 1, v.data(), v.size() * sizeof(int64_t));
    std::vector<int32_t> w(v.begin(), v.end());
    return g()->constant(c->b, TW_INT32, &n, 1, w.data(), w.size() * sizeof(int32_t));
  }
  void dx(uint32_t i, tw_edge e) const { g()->dx(c->b, i, e); }
  void dx_sparse(uint32_t i, tw_edge rows, tw_edge values) const { g()->dx_sparse(c->b, i, rows, values); }
  tw_edge op(std::string_view name, std::initializer_list<tw_edge> in, std::initializer_list<Attr> attrs = {}) const {
    return op(name, std::vector<tw_edge>(in), attrs);
  }
  tw_edge op(std::string_view name, const std::vector<tw_edge>& in, std::initializer_list<Attr> attrs = {}) const {
    std::vector<tw_attr> a;
    for (auto& x : attrs) a.push_back(x.c());
    return g()->emit(c->b, name.data(), name.size(), in.data(), uint32_t(in.size()), a.data(), uint32_t(a.size()));
  }
  tw_edge out(tw_edge node, uint32_t i) const { return g()->output(c->b, node, i); }
};

/* ---- Registration ---- */
template <class>
struct Call;
template <class... P>
struct Call<void (*)(P...)> {
  template <class K>
  static tw_status* run(const K& k, const tw_frame* f) {
    return guard(f->host, [&] {
      Cursor c{f};
      std::tuple<P...> args{P::take(c)...};
      std::apply(k, args);
    });
  }
  /* "Op @CPU" becomes "Op(float -> float) @CPU"; a spec that already has types is unchanged. */
  static std::string spec(std::string_view s) {
    auto cut = s.find(' ');
    if (s.substr(0, cut).find('(') != s.npos) return std::string(s);
    std::string in, out;
    (P::name(in, out), ...);
    return std::string(s.substr(0, cut)) + "(" + in + (out.empty() ? ")" : " -> " + out + ")") + std::string(s.substr(cut));
  }
};
template <class C, class... P>
struct Call<void (C::*)(P...) const> : Call<void (*)(P...)> {
  static_assert((!is_self<P> && ...), "a kernel class takes the instance in its constructor: n.self<T>()");
};

/* A kernel class may define its scratch: `uint64_t scratch(const Node&) const`. */
template <class K, class = void>
struct Scratch {
  static constexpr tw_status* (*prepare)(const tw_node*, void*, uint64_t*) = nullptr;
};
template <class K>
struct Scratch<K, std::void_t<decltype(std::declval<const K&>().scratch(std::declval<const Node&>()))>> {
  static tw_status* prepare(const tw_node* n, void* state, uint64_t* out) {
    return guard(n->host, [&] { *out = static_cast<const K*>(state)->scratch(Node(n)); });
  }
};

/* A kernel class may decline nodes: `static void fits(const Node&)` throws an Error of UNIMPLEMENTED
 * with the reason. */
template <class K, class = void>
struct Fits {
  static constexpr tw_status* (*fits)(const tw_node*) = nullptr;
};
template <class K>
struct Fits<K, std::void_t<decltype(K::fits(std::declval<const Node&>()))>> {
  static tw_status* fits(const tw_node* n) {
    return guard(n->host, [&] { K::fits(Node(n)); });
  }
};

struct Plugin {
  const tw_host* h;
  tw_registrar* r;
  Instance* self = nullptr; /* of TW_CPP_PLUGIN_WITH */
  template <void (*Gradient)(const Grad&) = nullptr, void (*Rule)(const Shape&) = nullptr>
  Plugin& op(std::string_view schema) {
    tw_status* (*gradient)(const tw_grad_call*) = nullptr;
    tw_status* (*rule)(const tw_shape_call*) = nullptr;
    if constexpr (Gradient != nullptr) gradient = [](const tw_grad_call* c) { return guard(c->host, [&] { Gradient(Grad(c)); }); };
    if constexpr (Rule != nullptr) rule = [](const tw_shape_call* c) { return guard(c->host, [&] { Rule(Shape(c)); }); };
    return add_op(schema, gradient, rule);
  }
  /* Functions: kernel<twice<float>, twice<double>>("Twice @CPU"). */
  template <auto... F>
  Plugin& kernel(std::string_view spec) {
    (add(
         Call<decltype(F)>::spec(spec), nullptr, [](const tw_frame* f) { return Call<decltype(F)>::run([](auto... a) { F(a...); }, f); },
         nullptr, nullptr),
     ...);
    return *this;
  }
  /* Classes: the constructor K(const Node&) is create, operator()(...) const is execute. */
  template <class... K>
  Plugin& kernel(std::string_view spec) {
    (add(
         Call<decltype(&K::operator())>::spec(spec),
         [](const tw_node* n, void** out) { return guard(n->host, [&] { *out = new K(Node(n)); }); },
         [](const tw_frame* f) { return Call<decltype(&K::operator())>::run(*static_cast<K*>(f->state), f); },
         [](const tw_host*, void* s) { delete static_cast<K*>(s); }, Scratch<K>::prepare, Fits<K>::fits),
     ...);
    return *this;
  }
  Plugin& device(const tw_device_def& d) {
    check(tw_add_device(r, &d));
    return *this;
  }
  Plugin& resource(const tw_resource_def& d) {
    check(tw_add_resource(r, &d));
    return *this;
  }
  Plugin& add_op(std::string_view schema, tw_status* (*gradient)(const tw_grad_call*), tw_status* (*rule)(const tw_shape_call*)) {
    tw_op_def d{};
    d.size = sizeof d;
    d.schema = schema.data();
    d.schema_len = schema.size();
    d.gradient = gradient;
    d.shape = rule;
    check(tw_add_op(r, &d));
    return *this;
  }
  void add(const std::string& spec, tw_status* (*make)(const tw_node*, void**), tw_status* (*run)(const tw_frame*),
           void (*end)(const tw_host*, void*), tw_status* (*prepare)(const tw_node*, void*, uint64_t*),
           tw_status* (*fits)(const tw_node*) = nullptr) {
    tw_kernel_def d{};
    d.size = sizeof d;
    d.spec = spec.data();
    d.spec_len = spec.size();
    d.user = self;
    d.create = make;
    d.execute = run;
    d.destroy = end;
    d.prepare = prepare;
    d.fits = fits;
    check(tw_add_kernel(r, &d));
  }
};

/* clang-format off */
}  // the inline namespace
/* clang-format on */
}  // namespace tw

#define TW_CPP_PLUGIN(ID, VERSION, p)                                    \
  static void tw_register(tw::Plugin& p);                                \
  static tw_status* tw_init(const tw_host* h, tw_registrar* r, void**) { \
    return tw::guard(h, [&] {                                            \
      tw::Plugin q{h, r};                                                \
      tw_register(q);                                                    \
    });                                                                  \
  }                                                                      \
  TW_PLUGIN(ID, VERSION, tw_init)                                        \
  static void tw_register(tw::Plugin& p)

/* A plugin with state of its own, one INSTANCE per runtime. It is made before the body runs, which
 * gets it as `self`, and destroyed at shutdown, or at once if the body throws. Kernel functions get
 * it as a parameter Self<INSTANCE>, classes from their Node by self<INSTANCE>(). */
#define TW_CPP_PLUGIN_WITH(ID, VERSION, INSTANCE, p, self)                                                         \
  static void tw_register(tw::Plugin& p, INSTANCE& self);                                                          \
  static tw_status* tw_init(const tw_host* h, tw_registrar* r, void** o) {                                         \
    return tw::guard(h, [&] {                                                                                      \
      auto instance = std::make_unique<tw::Holder<INSTANCE>>();                                                    \
      tw::Plugin q{h, r, instance.get()};                                                                          \
      tw_register(q, instance->object);                                                                            \
      *o = instance.release();                                                                                     \
    });                                                                                                            \
  }                                                                                                                \
  static void tw_shutdown(const tw_host*, void* instance) { delete static_cast<tw::Holder<INSTANCE>*>(instance); } \
  TW_PLUGIN_WITH(ID, VERSION, tw_init, tw_shutdown)                                                                \
  static void tw_register(tw::Plugin& p, INSTANCE& self)
#endif
