/* The application API of Thalweg, a dataflow machine-learning runtime: build or load a graph,
 * differentiate it, train, save, serve. This header only includes; each noun has a header of its
 * own, which is its manual. Link libthalweg.so. C99 or later, or C++17.
 *
 * The contract, once:
 *  - Failure. Every fallible function returns tw_status*; NULL means success. The caller releases
 *    it. No function aborts, throws or leaks: after a failure the objects are as before and may be
 *    used again. A NULL handle is INVALID_ARGUMENT, never a crash. Two builders (tw_op, tw_scope)
 *    keep their first failure until they are finished. A function that cannot fail returns its
 *    value. Any function may return INVALID_ARGUMENT for an invalid argument and RESOURCE_EXHAUSTED
 *    when memory is out; a header lists the other codes, and these two if there is more to say.
 *  - Results come last, in `out_...` parameters, written on success only unless the header says
 *    more.
 *  - Ownership. Release a result of `_create` or `_open` with `_destroy` or `_close`, and a shared
 *    object (runtime, tensor, buffer, status) with `_release`. All of these accept NULL. Pointers
 *    passed in are borrowed for the call, unless said otherwise. Texts and arrays passed out belong
 *    to the object that returned them, and live as long.
 *  - Text is UTF-8 with a terminating zero; bytes come with a length.
 *  - Records (tw_signature, tw_adam, ...) start with `size`, which the program that fills them sets
 *    to sizeof, so that they can grow, and `flags`, 0. Fields beyond `size` have their defaults,
 *    and fields that this library does not know yet are not read; a size below that of the first
 *    version and an unknown flag are INVALID_ARGUMENT. Values (tw_string, tw_shape, tw_gradient)
 *    have neither field and never change.
 *  - Threads. Any number of threads may use a handle at once. Exceptions: a header may give a
 *    handle to one thread at a time (builders, scopes), and no thread may use an object that
 *    another thread destroys.
 *  - Versions. Functions are added, never changed or removed within a major version;
 *    c_api/CHANGELOG.md has a line for each. */
#ifndef THALWEG_THALWEG_H
#define THALWEG_THALWEG_H
#include "thalweg/accumulate.h"
#include "thalweg/average.h"
#include "thalweg/buffer.h"
#include "thalweg/checkpoint.h"
#include "thalweg/checkpointer.h"
#include "thalweg/clip.h"
#include "thalweg/dataset.h"
#include "thalweg/device.h"
#include "thalweg/dlpack.h"
#include "thalweg/eager.h"
#include "thalweg/flow.h"
#include "thalweg/function.h"
#include "thalweg/gradients.h"
#include "thalweg/graph.h"
#include "thalweg/host_function.h"
#include "thalweg/iterator.h"
#include "thalweg/layer.h"
#include "thalweg/lbfgs.h"
#include "thalweg/log.h"
#include "thalweg/metric.h"
#include "thalweg/model.h"
#include "thalweg/op.h"
#include "thalweg/option.h"
#include "thalweg/plugin.h"
#include "thalweg/recurrent.h"
#include "thalweg/runtime.h"
#include "thalweg/sampled.h"
#include "thalweg/save_model.h"
#include "thalweg/saver.h"
#include "thalweg/schedule.h"
#include "thalweg/scope.h"
#include "thalweg/server.h"
#include "thalweg/session.h"
#include "thalweg/sharded.h"
#include "thalweg/spread.h"
#include "thalweg/status.h"
#include "thalweg/step_span.h"
#include "thalweg/step_stats.h"
#include "thalweg/summary.h"
#include "thalweg/sync.h"
#include "thalweg/tape.h"
#include "thalweg/tensor.h"
#include "thalweg/thread_pool.h"
#include "thalweg/train.h"
#include "thalweg/trainer.h"
#include "thalweg/types.h"
#include "thalweg/variable.h"
#include "thalweg/version.h"
#endif
