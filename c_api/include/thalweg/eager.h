/* Eager calls: a call runs one op on tensors at once, without a graph. Ops, kernels, devices and
 * errors are those of sessions. The first call prepares an entry, which is a graph of one operation
 * with its plans, and keeps the entry in the context. Later calls with the same op, attributes,
 * element types and device find the entry and only run the kernel. New shapes add plans to the same
 * entry. tape.h differentiates eager calls.
 * Threads: any number of calls on one context at once. Everything here: since 0.1. */
#ifndef THALWEG_EAGER_H
#define THALWEG_EAGER_H
#include "thalweg/export.h"
#include "thalweg/option.h"
#include "thalweg/types.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_eager tw_eager; /* a context: a cache of prepared ops, and a container of state */

/* Creates a context. runtime: kept alive; NULL is the default one. options: n texts "key=value",
 * such as "max_entries=100"; tw_eager_option lists the keys. The caller owns *out_eager.
 * Errors: INVALID_ARGUMENT naming the option and the values that it takes; FAILED_PRECONDITION if no
 * plugin provides a device. */
TW_EXPORT tw_status* tw_eager_create(tw_runtime* runtime, const char* const* options, uint32_t n_options, tw_eager** out_eager);
/* Returns option i of a context; NULL past the end. Static. */
TW_EXPORT const tw_option* tw_eager_option(uint32_t i);
/* Sets the option check_values of a context from now on: "off", "nan" or "finite". Gradients are
 * checked if the calls that they differentiate were. Errors: INVALID_ARGUMENT. Threads: any; calls
 * that run meanwhile see the old or the new setting. */
TW_EXPORT tw_status* tw_eager_set_check_values(tw_eager* eager, const char* check);
/* Destroys the context. REQUIRES: no call on it runs. Tensors that calls made stay valid. State in
 * the context's own container is destroyed once no tape of the context is left. NULL is fine. */
TW_EXPORT void tw_eager_destroy(tw_eager* eager);

/* One attribute: `count` values of the C type that `kind` (TW_ATTR_*, types.h) names. A single
 * value has is_list 0 and count 1. A frozen value; it has the parts that tw_operation_attr returns. */
typedef struct tw_eager_attr {
  const char* name;
  const void* values;
  uint32_t kind, is_list, count, reserved;
} tw_eager_attr;

/* One call. Set `size` to sizeof(tw_eager_call) and unused fields to 0. */
typedef struct tw_eager_call {
  uint32_t size, flags;
  const char* op;             /* "MatMul" */
  tw_tensor* const* inputs;   /* n_inputs tensors in the order of the op's schema; a list's tensors in a row */
  const tw_eager_attr* attrs; /* n_attrs; attributes with defaults, and types and counts that the inputs determine, may be left out */
  const char* device;         /* such as "CPU:0"; NULL: the device of a handle's variable or of the first input in device
                                 memory, else the option `device` */
  const char* place;          /* the line of the program, such as TW_PLACE (op.h); error messages begin with it; NULL: none */
  uint32_t n_inputs, n_attrs;
  uint32_t n_outputs; /* capacity of out_outputs; at least the number of outputs of the op */
  uint32_t reserved;
} tw_eager_call;

/* Runs the op and blocks until it ends. what: its inputs, attributes and texts are borrowed; the
 * call does not write to inputs. out_outputs: room for what->n_outputs tensors. On success each
 * output of the op is a reference that the caller owns, and further entries are NULL; on failure all
 * entries are NULL. An output stays in the memory of the device that made it. An op that opens state
 * by name (VarHandleOp, queues, tables) needs the attribute `shared_name`. The state is in the
 * context's container, which sessions with the same option `container` share. Calls see the contents
 * of a variable, not the shape that its VarHandleOp declares: an assignment of another shape is not
 * refused. A random generator of an op continues where the last call of the same entry ended. Errors: NOT_FOUND (no such op);
 * INVALID_ARGUMENT (types, shapes, attributes, an input that is NULL, too little room, state without
 * a name); UNIMPLEMENTED for attributes that are functions; errors of the kernel. Messages name op
 * and value: "MatMul 'eager' on CPU:0: inner dimensions differ: ...". */
TW_EXPORT tw_status* tw_eager_run(tw_eager* eager, const tw_eager_call* what, tw_tensor** out_outputs);

/* Counts since the context was created. Set `size` to sizeof(tw_eager_info) before the call, which
 * fills the other fields. */
typedef struct tw_eager_info {
  uint32_t size, flags;
  uint64_t entries;   /* prepared ops that the context keeps now, including those of gradients */
  uint64_t hits;      /* calls that found an entry */
  uint64_t misses;    /* calls that made an entry */
  uint64_t evictions; /* entries that were evicted for others; see the option max_entries */
} tw_eager_info;

/* Fills out_info, as far as its size reaches, with the counts of the context.
 * Errors: INVALID_ARGUMENT. */
TW_EXPORT tw_status* tw_eager_report(tw_eager* eager, tw_eager_info* out_info);

#ifdef __cplusplus
}
#endif
#endif
