/* C++ sugar over plugin/function.h, for kernels that call functions:
 *     class Twice {
 *       tw::Function f_;
 *      public:
 *       explicit Twice(const tw::Node& n) : f_(tw::function(n, "f")) {}
 *       void operator()(tw::Frame f, tw::Many<tw::Any> x, tw::ManyOut<tw::Any> y) const { tw::give(y, f_(f, f_(f, tw::keep(f, x)))); }
 *     };
 * with a kernel spec that says `keep x; gives y`. */
#ifndef THALWEG_CPP_FUNCTION_HPP
#define THALWEG_CPP_FUNCTION_HPP
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "thalweg/cpp/plugin.hpp"
#include "thalweg/plugin/function.h"

namespace tw {
inline namespace TW_CAT(TW_CAT(m, TW_MINOR), TW_CAT(t, THALWEG_TARGET_MINOR)) {

/* A reference to a tensor of the host. */
class Value {
 public:
  Value() = default;
  /* Takes over a reference. */
  Value(const tw_host* host, tw_tensor* t) : host_(host), t_(t) {}
  Value(Value&& o) noexcept : host_(o.host_), t_(std::exchange(o.t_, nullptr)) {}
  Value& operator=(Value&& o) noexcept {
    std::swap(host_, o.host_);
    std::swap(t_, o.t_);
    return *this;
  }
  Value(const Value& o) : host_(o.host_), t_(o.t_) {
    if (t_) host_->tensor->retain(t_);
  }
  ~Value() {
    if (t_) host_->tensor->release(t_);
  }
  tw_tensor* get() const { return t_; }
  tw_tensor* release() { return std::exchange(t_, nullptr); }
  const tw_view& view() const { return *host_->tensor->view(t_); }

 private:
  const tw_host* host_ = nullptr;
  tw_tensor* t_ = nullptr;
};
using Values = std::vector<Value>;

/* Returns the tensors of inputs that the spec's `keep` names. */
inline Values keep(Frame f, const Many<Any>& inputs) {
  Values values;
  values.reserve(inputs.size());
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    tw_tensor* t = nullptr;
    check(f.f->host->tensor->keep(f.f, inputs.first + i, &t));
    values.emplace_back(f.f->host, t);
  }
  return values;
}

/* Gives the values to outputs that the spec's `gives` names. */
inline void give(const ManyOut<Any>& outputs, const Values& values) {
  if (outputs.size() != values.size()) {
    throw Error{TW_INVALID_ARGUMENT,
                "the function gives " + std::to_string(values.size()) + " values where " + std::to_string(outputs.size()) + " are wanted"};
  }
  for (uint32_t o = 0; o < outputs.size(); ++o) check(outputs.f->host->tensor->give(outputs.f, outputs.first + o, values[o].get()));
}

/* A function, looked up by its name at the first call. */
class Function {
 public:
  explicit Function(std::string name) : name_(std::move(name)) {}
  Function(Function&& o) noexcept : name_(std::move(o.name_)), api_(o.api_.load()), found_(o.found_.load()) {}
  const std::string& name() const { return name_; }

  /* Numbers of arguments and results. */
  uint32_t args(Frame f) const { return Find(f)->args(found_); }
  uint32_t results(Frame f) const { return Find(f)->results(found_); }
  /* Calls the function. INVALID_ARGUMENT for a wrong number of arguments. anywhere: results may be
   * in memory of devices, see tw_function_call. */
  Values operator()(Frame f, Values args, bool anywhere = false) const {
    Begun call(this, f, std::move(args), anywhere);
    check(anywhere ? Find(f)->run(f.f, &call.record) : Find(f)->call(f.f, found_, call.in, call.out));
    return call.results();
  }
  /* Starts an asynchronous call, for a kernel whose frame has a token. Calls done(tw_status*,
   * Values) at its end, as tw_function_call says. Throws only before the call has begun. */
  template <class Done>
  void start(Frame f, Values args, bool anywhere, Done done) const {
    struct Started : Begun {
      Started(const Function* fn, Frame f, Values args, bool anywhere, Done d)
          : Begun(fn, f, std::move(args), anywhere), done(std::move(d)) {}
      Done done;
    };
    auto call = std::make_unique<Started>(this, f, std::move(args), anywhere, std::move(done));
    call->record.arg = call.get();
    call->record.done = [](void* arg, tw_status* s) {
      const std::unique_ptr<Started> over(static_cast<Started*>(arg));
      over->done(s, s ? Values() : over->results());
    };
    check(Find(f)->run(f.f, &call.release()->record));
  }

  /* Returns true if `loop` accepts cond, body and n values: the host has loops, and the functions'
   * types match. */
  static bool may_loop(Frame f, const Function& cond, const Function& body, size_t n) {
    const tw_function_api* api = cond.Find(f);
    if (!TW_HAS(api, loop) || !api->loop || cond.args(f) != n || cond.results(f) != 1 || body.args(f) != n || body.results(f) != n)
      return false;
    bool may = api->result_type(cond.found_, 0) == TW_BOOL;
    for (uint32_t i = 0; may && i < n; ++i) {
      const uint32_t type = api->arg_type(body.found_, i);
      may = api->result_type(body.found_, i) == type && api->arg_type(cond.found_, i) == type;
    }
    return may;
  }
  /* Calls body as long as cond holds, and returns its last results. *iterations: completed runs of
   * body, also on failure. INVALID_ARGUMENT unless cond and body fit each other and the values. */
  static Values loop(Frame f, const Function& cond, const Function& body, Values values, bool anywhere, uint64_t* iterations) {
    const tw_function_api* api = cond.Find(f);
    *iterations = 0;
    body.WantArgs(f, values.size());
    std::vector<tw_tensor*> all;
    for (Value& v : values) all.push_back(v.release());
    tw_function_loop record = {TW_SIZED(tw_function_loop), cond.found_, body.found_, all.data(), anywhere ? 1u : 0u, 0};
    check(api->loop(f.f, &record, iterations));
    for (size_t i = 0; i < all.size(); ++i) values[i] = Value(f.f->host, all[i]);
    return values;
  }

 private:
  /* A call and its values. Results use the room of the arguments, so a loop of calls that passes
   * them on allocates no memory. */
  struct Begun {
    Begun(const Function* fn, Frame f, Values args, bool anywhere) : host(f.f->host), values(std::move(args)) {
      const tw_function_api& api = *fn->Find(f);
      n_in = values.size();
      fn->WantArgs(f, n_in);
      n_out = api.results(fn->found_);
      if (n_in + n_out > kFew) more.resize(n_in + n_out);
      in = more.empty() ? few : more.data();
      out = in + n_in;
      for (size_t i = 0; i < n_in; ++i) in[i] = values[i].release();
      for (size_t o = 0; o < n_out; ++o) out[o] = nullptr;
      record = {TW_SIZED(tw_function_call), fn->found_, in, out, anywhere ? 1u : 0u, 0, nullptr, nullptr};
    }
    Begun(const Begun&) = delete;
    Begun& operator=(const Begun&) = delete;
    Values results() {
      values.clear();
      values.reserve(n_out);
      for (size_t o = 0; o < n_out; ++o) values.emplace_back(host, out[o]);
      return std::move(values);
    }
    static constexpr size_t kFew = 16;
    const tw_host* host;
    Values values;
    size_t n_in, n_out;
    tw_tensor* few[kFew];
    std::vector<tw_tensor*> more; /* used if there are more than kFew values */
    tw_tensor **in, **out;
    tw_function_call record;
  };

  void WantArgs(Frame f, size_t n) const {
    if (n == args(f)) return;
    throw Error{TW_INVALID_ARGUMENT,
                "function '" + name_ + "' takes " + std::to_string(args(f)) + " arguments, but gets " + std::to_string(n)};
  }
  const tw_function_api* Find(Frame f) const {
    if (!found_.load(std::memory_order_acquire)) {
      const auto* api = static_cast<const tw_function_api*>(f.f->host->query(f.f->host, TW_S(TW_FUNCTION_SET), 1));
      if (!api) throw Error{TW_UNIMPLEMENTED, "this host calls no functions"};
      const tw_function* found = nullptr;
      check(api->find(f.f, name_.data(), name_.size(), &found));
      api_.store(api, std::memory_order_relaxed);
      found_.store(found, std::memory_order_release);
    }
    return api_.load(std::memory_order_relaxed);
  }

  std::string name_;
  mutable std::atomic<const tw_function_api*> api_{nullptr};
  mutable std::atomic<const tw_function*> found_{nullptr};
};

/* Functions of attributes of kind func and list(func). */
inline Function function(const Attrs& a, std::string_view name) { return Function(std::string(a.s(name))); }
inline std::vector<Function> functions(const Attrs& a, std::string_view name) {
  const tw_attr& list = a.at(name);
  std::vector<Function> all;
  for (uint32_t i = 0; i < list.count; ++i) {
    const auto& s = static_cast<const tw_string*>(list.data)[i];
    all.emplace_back(std::string(s.data, s.size));
  }
  return all;
}

/* clang-format off */
}  // the inline namespace
/* clang-format on */
}  // namespace tw
#endif
