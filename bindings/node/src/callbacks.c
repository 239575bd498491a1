/* The part of the addon that is written by hand: memory of C as buffers, functions of JavaScript as callbacks, and asynchronous runs. */
#include <pthread.h>

#include "support.h"

/* ---- Memory ---- */

/* bytes(address, count): a copy of memory as an ArrayBuffer. */
static napi_value bytes(napi_env env, napi_callback_info info) {
  call c;
  if (!begin(&c, env, info, "bytes", 2)) return NULL;
  const void* from = arg_pointer(&c, 0, "address");
  const uint64_t n = arg_u64(&c, 1, "count");
  napi_value buffer = NULL;
  void* to = NULL;
  if (c.failed) return NULL;
  if (napi_create_arraybuffer(env, n, &to, &buffer) != napi_ok) {
    napi_throw_range_error(env, "RESOURCE_EXHAUSTED", "bytes: out of memory");
    return NULL;
  }
  if (n) memcpy(to, from, n);
  return buffer;
}

/* address(buffer): where its memory is; valid as long as the buffer. */
static napi_value address(napi_env env, napi_callback_info info) {
  call c;
  if (!begin(&c, env, info, "address", 1)) return NULL;
  void* p = arg_pointer(&c, 0, "buffer");
  return c.failed ? NULL : of_pointer(env, p);
}

/* text(address): a copy of a text that ends with zero, or null. */
static napi_value text(napi_env env, napi_callback_info info) {
  call c;
  if (!begin(&c, env, info, "text", 1)) return NULL;
  const char* p = arg_pointer(&c, 0, "address");
  return c.failed ? NULL : of_text(env, p);
}

static void release_view(napi_env env, void* data, void* tensor) {
  (void)env, (void)data;
  tw_tensor_release(tensor);
}

/* view(tensor): an ArrayBuffer over a tensor's elements, which keeps the tensor. */
static napi_value view(napi_env env, napi_callback_info info) {
  call c;
  if (!begin(&c, env, info, "view", 1)) return NULL;
  tw_tensor* tensor = arg_pointer(&c, 0, "tensor");
  napi_value buffer = NULL;
  void* unused = NULL;
  if (c.failed) return NULL;
  const uint64_t n = tw_tensor_bytes(tensor);
  void* data = (void*)tw_tensor_data(tensor);
  if (!n || !data) {
    napi_create_arraybuffer(env, 0, &unused, &buffer);
    return buffer;
  }
  tw_tensor_retain(tensor);
  if (napi_create_external_arraybuffer(env, data, n, release_view, tensor, &buffer) == napi_ok) return buffer;
  /* An engine without memory of others: a copy. */
  if (napi_create_arraybuffer(env, n, &unused, &buffer) == napi_ok) memcpy(unused, data, n);
  tw_tensor_release(tensor);
  return buffer;
}

/* ---- Functions of JavaScript that C calls on the thread that called C ---- */

typedef struct function {
  napi_env env;
  napi_ref callee, thrown; /* thrown: what the function threw, until `thrown` takes it */
  pthread_t thread;
  uint32_t n_tensors;
} function;

/* The functions of one iterator or training loop call one function of JavaScript as callee(what, a, b), which returns the address of a
 * status, or 0. What it throws is kept, and the call of C fails. */
static tw_status* call_back(function* f, const char* what, const void* a, double b) {
  napi_handle_scope scope;
  napi_value callee, global, argv[3], result, cause;
  tw_status* status = NULL;
  if (!pthread_equal(f->thread, pthread_self()))
    return tw_status_create(TW_FAILED_PRECONDITION, "a function of JavaScript is called on another thread");
  if (napi_open_handle_scope(f->env, &scope) != napi_ok) return tw_status_create(TW_INTERNAL, "the engine runs no functions any more");
  napi_get_reference_value(f->env, f->callee, &callee);
  napi_get_global(f->env, &global);
  argv[0] = of_text(f->env, what), argv[1] = of_pointer(f->env, a), argv[2] = of_number(f->env, b);
  const napi_status called = napi_call_function(f->env, global, callee, 3, argv, &result);
  if (called == napi_ok) {
    double answer = 0;
    napi_get_value_double(f->env, result, &answer);
    status = (tw_status*)(uintptr_t)answer;
  } else {
    bool pending = false;
    napi_is_exception_pending(f->env, &pending);
    if (pending && napi_get_and_clear_last_exception(f->env, &cause) == napi_ok && !f->thrown) {
      napi_value holder; /* any value may be thrown, but only objects can be referred to */
      napi_create_object(f->env, &holder);
      napi_set_named_property(f->env, holder, "cause", cause);
      napi_create_reference(f->env, holder, 1, &f->thrown);
    }
    status = tw_status_create(TW_UNKNOWN, "a function of JavaScript threw");
  }
  napi_close_handle_scope(f->env, scope);
  return status;
}

static tw_status* next(void* user, tw_tensor** out, uint32_t* end) {
  /* The function writes addresses into out; where `end` is to be, it writes, too. */
  uint64_t places[2] = {(uint64_t)(uintptr_t)out, (uint64_t)(uintptr_t)end};
  return call_back(user, "next", places, 0);
}
static tw_status* reset(void* user, int64_t epoch) { return call_back(user, "reset", NULL, (double)epoch); }
static tw_status* after_step(void* user, const tw_fit_progress* at, uint32_t* stop) {
  tw_status* status = call_back(user, "afterStep", at, 0);
  if (!status) return NULL;
  if (status != (tw_status*)1) return status;
  *stop = 1; /* 1 is no address: it asks to stop */
  return NULL;
}
static tw_status* epoch_end(void* user, const tw_fit_progress* at, uint32_t* stop) {
  tw_status* status = call_back(user, "epochEnd", at, 0);
  if (!status) return NULL;
  if (status != (tw_status*)1) return status;
  *stop = 1;
  return NULL;
}

/* keep(callee): keeps a function for callbacks; the address is their `user`. */
static napi_value keep(napi_env env, napi_callback_info info) {
  call c;
  if (!begin(&c, env, info, "keep", 1)) return NULL;
  function* f = calloc(1, sizeof *f);
  if (!f) return NULL;
  f->env = env, f->thread = pthread_self();
  if (napi_create_reference(env, c.argv[0], 1, &f->callee) != napi_ok) {
    free(f);
    refuse(&c, "callee", "a function");
    return NULL;
  }
  return of_pointer(env, f);
}

/* thrown(user): the exception that the function threw last, as {cause}, or null. */
static napi_value thrown(napi_env env, napi_callback_info info) {
  call c;
  if (!begin(&c, env, info, "thrown", 1)) return NULL;
  function* f = arg_pointer(&c, 0, "user");
  napi_value holder = NULL;
  if (c.failed || !f) return NULL;
  if (!f->thrown) {
    napi_get_null(env, &holder);
    return holder;
  }
  napi_get_reference_value(env, f->thrown, &holder);
  napi_delete_reference(env, f->thrown);
  f->thrown = NULL;
  return holder;
}

static napi_value forget(napi_env env, napi_callback_info info) {
  call c;
  if (!begin(&c, env, info, "forget", 1)) return NULL;
  function* f = arg_pointer(&c, 0, "user");
  if (c.failed || !f) return NULL;
  if (f->thrown) napi_delete_reference(env, f->thrown);
  napi_delete_reference(env, f->callee);
  free(f);
  return NULL;
}

/* write(places, i, tensor): for `next`: puts a retained tensor into room i; tensor 0 reports the end. */
static napi_value write_batch(napi_env env, napi_callback_info info) {
  call c;
  if (!begin(&c, env, info, "write", 3)) return NULL;
  const uint64_t* places = arg_pointer(&c, 0, "places");
  const uint32_t i = arg_u32(&c, 1, "i");
  tw_tensor* tensor = arg_pointer(&c, 2, "tensor");
  if (c.failed) return NULL;
  if (!tensor) {
    *(uint32_t*)(uintptr_t)places[1] = 1;
    return NULL;
  }
  tw_tensor_retain(tensor);
  ((tw_tensor**)(uintptr_t)places[0])[i] = tensor;
  return NULL;
}

/* functions(): addresses for records. */
static napi_value functions(napi_env env, napi_callback_info info) {
  (void)info;
  napi_value all;
  napi_create_object(env, &all);
  napi_set_named_property(env, all, "next", of_pointer(env, (void*)next));
  napi_set_named_property(env, all, "reset", of_pointer(env, (void*)reset));
  napi_set_named_property(env, all, "afterStep", of_pointer(env, (void*)after_step));
  napi_set_named_property(env, all, "epochEnd", of_pointer(env, (void*)epoch_end));
  return all;
}

/* ---- Asynchronous runs ---- */

typedef struct pending_run {
  napi_threadsafe_function deliver;
  tw_status* status;
  uint32_t n;
  tw_tensor* fetches[];
} pending_run;

/* On the thread of JavaScript: callee(status, fetches). */
static void deliver(napi_env env, napi_value callee, void* context, void* data) {
  pending_run* run = data;
  (void)context;
  if (!env) { /* the engine ends */
    tw_status_release(run->status);
    for (uint32_t i = 0; i < run->n; ++i) tw_tensor_release(run->fetches[i]);
  } else {
    napi_value argv[2], global;
    argv[0] = of_pointer(env, run->status);
    napi_create_array_with_length(env, run->n, &argv[1]);
    for (uint32_t i = 0; i < run->n; ++i) napi_set_element(env, argv[1], i, of_pointer(env, run->fetches[i]));
    napi_get_global(env, &global);
    napi_call_function(env, global, callee, 2, argv, NULL);
  }
  free(run);
}

static void done(void* user, tw_status* status, tw_tensor** fetches) {
  pending_run* run = user;
  napi_threadsafe_function to = run->deliver;
  run->status = status;
  for (uint32_t i = 0; i < run->n; ++i) run->fetches[i] = fetches[i];
  if (napi_call_threadsafe_function(to, run, napi_tsfn_blocking) != napi_ok) deliver(NULL, NULL, NULL, run);
  napi_release_threadsafe_function(to, napi_tsfn_release);
}

/* runAsync(callable, feeds, options, fetches, callee): a status, or 0: callee(status, tensors) is called once. */
static napi_value run_async(napi_env env, napi_callback_info info) {
  call c;
  if (!begin(&c, env, info, "runAsync", 5)) return NULL;
  tw_callable* callable = arg_pointer(&c, 0, "callable");
  tw_tensor* const* feeds = arg_pointer(&c, 1, "feeds");
  const tw_run_options* options = arg_pointer(&c, 2, "options");
  const uint32_t n = arg_u32(&c, 3, "fetches");
  napi_value name;
  if (c.failed) return NULL;
  pending_run* run = calloc(1, sizeof *run + n * sizeof *run->fetches);
  napi_create_string_utf8(env, "thalweg.run", NAPI_AUTO_LENGTH, &name);
  if (run) run->n = n;
  if (!run || napi_create_threadsafe_function(env, c.argv[4], NULL, name, 0, 1, NULL, NULL, NULL, deliver, &run->deliver) != napi_ok) {
    free(run);
    refuse(&c, "callee", "a function");
    return NULL;
  }
  tw_status* status = tw_callable_run_async(callable, feeds, options, done, run);
  if (status) {
    napi_release_threadsafe_function(run->deliver, napi_tsfn_release);
    free(run);
  }
  return of_pointer(env, status);
}

void add_callbacks(napi_env env, napi_value exports) {
  add_function(env, exports, "bytes", bytes);
  add_function(env, exports, "address", address);
  add_function(env, exports, "text", text);
  add_function(env, exports, "view", view);
  add_function(env, exports, "keep", keep);
  add_function(env, exports, "thrown", thrown);
  add_function(env, exports, "forget", forget);
  add_function(env, exports, "write", write_batch);
  add_function(env, exports, "functions", functions);
  add_function(env, exports, "runAsync", run_async);
}

NAPI_MODULE_INIT() {
  add_low(env, exports);
  add_callbacks(env, exports);
  return exports;
}
