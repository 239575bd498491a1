/* Eager calls: one op runs on tensors now, without a graph. The op, its kernels, devices and errors are those of sessions: a call prepares
 * what a session would (a graph of one operation and its plans) and keeps it in the context, so that the next call of the same op,
 * attributes, element types and device only runs the kernel. New shapes are new plans of the same entry. tape.h differentiates such calls.
 * Threads: any number of calls on one context at once. Everything here: since 0.1. */
#ifndef THALWEG_EAGER_H
#define THALWEG_EAGER_H
#include "thalweg/export.h"
#include "thalweg/option.h"
#include "thalweg/types.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_eager tw_eager; /* a context: prepared ops, and a container of state */

/* runtime: NULL is the default one; it is kept alive. options: n texts "key=value", such as "max_entries=100"; tw_eager_option lists them.
 * The caller owns *out_eager. Errors: INVALID_ARGUMENT naming the option and what it takes; FAILED_PRECONDITION if no plugin provides a
 * device. */
TW_EXPORT tw_status* tw_eager_create(tw_runtime* runtime, const char* const* options, uint32_t n_options, tw_eager** out_eager);
/* Option i of a context; NULL past the end. Static. */
TW_EXPORT const tw_option* tw_eager_option(uint32_t i);
/* Not while a call runs. Tensors that calls made stay; state in the context's own container goes once no tape of the context is left. NULL
 * is fine. */
TW_EXPORT void tw_eager_destroy(tw_eager* eager);

/* One attribute: `count` values of the C type that `kind` (TW_ATTR_*, types.h) names; a single value has is_list 0 and count 1. A frozen
 * value; the same parts as tw_operation_attr answers. */
typedef struct tw_eager_attr {
  const char* name;
  const void* values;
  uint32_t kind, is_list, count, reserved;
} tw_eager_attr;

/* What to run. Set `size` to sizeof(tw_eager_call) and what is not used to 0. */
typedef struct tw_eager_call {
  uint32_t size, flags;
  const char* op;             /* "MatMul" */
  tw_tensor* const* inputs;   /* n_inputs of them, those of lists in a row, in the order of the op's schema */
  const tw_eager_attr* attrs; /* n_attrs; those with defaults, and types and counts that the inputs tell, may be left out */
  const char* device;         /* such as "CPU:0"; NULL: where the first input in a device's memory is, else as the option `device` says */
  const char* place;          /* the line of the program, such as TW_PLACE (op.h): messages of failures begin with it; NULL: none */
  uint32_t n_inputs, n_attrs;
  uint32_t n_outputs; /* for how many out_outputs has room: at least as many as the op has */
  uint32_t reserved;
} tw_eager_call;

/* Runs the op and blocks until it is over. what: its inputs, attributes and texts are borrowed; inputs are not written to. out_outputs:
 * room for what->n_outputs tensors; on success each output of the op is a reference that the caller owns, and the rest, on failure all, is
 * NULL. An output stays in the memory of the device that made it. An op that opens state by name (VarHandleOp, queues, tables) needs the
 * attribute `shared_name`; the state is in the context's container, which sessions with the same option `container` share. An op with a
 * random generator goes on where its last call of the same entry ended. Errors: NOT_FOUND (no such op); INVALID_ARGUMENT (types, shapes,
 * attributes, an input that is NULL, too little room, a state without a name); UNIMPLEMENTED for attributes that are functions; whatever
 * the kernel fails with. Messages name op and value: "MatMul 'eager' on CPU:0: inner dimensions differ: ...". */
TW_EXPORT tw_status* tw_eager_run(tw_eager* eager, const tw_eager_call* what, tw_tensor** out_outputs);

/* Counts since the context was made. Set `size` to sizeof(tw_eager_info) before the call, which fills the rest. */
typedef struct tw_eager_info {
  uint32_t size, flags;
  uint64_t entries;   /* prepared ops that are kept, those of gradients included */
  uint64_t hits;      /* calls that found their entry */
  uint64_t misses;    /* calls that an entry had to be made for */
  uint64_t evictions; /* entries that were dropped for others; see the option max_entries */
} tw_eager_info;

/* What the context has done and keeps. out_info: as far as its size reaches. Errors: INVALID_ARGUMENT. */
TW_EXPORT tw_status* tw_eager_report(tw_eager* eager, tw_eager_info* out_info);

#ifdef __cplusplus
}
#endif
#endif
