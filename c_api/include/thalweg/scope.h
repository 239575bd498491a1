/* Scopes build graphs, so that C code reads like the formula. A scope adds operations to a graph
 * and returns their values. It keeps the first failure; after that every call returns 0 (or NULL)
 * and does nothing, and tw_scope_finish returns the failure.
 *
 *     tw_scope* s = tw_scope_create(graph, NULL);
 *     tw_output y = tw_scope_op1(s, "Tanh", tw_scope_op2(s, "Add", tw_scope_op2(s, "MatMul", x, w), b));
 *     tw_status* status = tw_scope_finish(s);
 *
 * Threads: one scope belongs to one thread at a time; several may build one graph at once.
 * Everything here: since 0.1. */
#ifndef THALWEG_SCOPE_H
#define THALWEG_SCOPE_H
#include "thalweg/export.h"
#include "thalweg/graph.h"
#include "thalweg/op.h"
#include "thalweg/types.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_scope tw_scope;

/* Makes a scope over `graph`, which must live until the scope is finished. prefix: every name
 * starts with it and a slash; NULL means none; copied. Returns NULL only if memory is out; the
 * other calls accept NULL. */
TW_EXPORT tw_scope* tw_scope_create(tw_graph* graph, const char* prefix);
/* Destroys the scope and returns its first failure, or NULL. Errors for a NULL scope:
 * RESOURCE_EXHAUSTED. */
TW_EXPORT tw_status* tw_scope_finish(tw_scope* scope);
/* Returns the code of the first failure so far; TW_OK if there is none. */
TW_EXPORT uint32_t tw_scope_code(const tw_scope* scope);
/* Reports a failure of a function that builds on scopes. status: taken; kept if it is the first.
 * NULL does nothing. */
TW_EXPORT void tw_scope_fail(tw_scope* scope, tw_status* status);
TW_EXPORT tw_graph* tw_scope_graph(const tw_scope* scope);    /* borrowed; NULL after a failure */
TW_EXPORT const char* tw_scope_prefix(const tw_scope* scope); /* with its slash; "" if there is none */

/* Sets the place in the program of the operations that are added from now on, as tw_op_set_place
 * does for one. place: copied; NULL or "" means unknown. */
TW_EXPORT void tw_scope_set_place(tw_scope* scope, const char* place);
TW_EXPORT const char* tw_scope_place(const tw_scope* scope); /* "": none is set. Lives until the next call that sets it */

/* Sets the device of the operations that are added from now on and name none, as tw_op_set_device
 * does for one. This includes operations that functions over scopes add (variables, optimizers).
 * Exceptions: operations on state (reads, updates) run where the state is; constants and gradients
 * get no device; groups get only the job and task of the device. device: copied; NULL or "" means
 * any.
 * Errors: INVALID_ARGUMENT for a name that cannot be parsed. */
TW_EXPORT void tw_scope_set_device(tw_scope* scope, const char* device);
TW_EXPORT const char* tw_scope_device(const tw_scope* scope); /* "": any. Lives until the next call that sets it */

/* Sets the container for state of operations that are added from now on and name none: variables,
 * also those of optimizers, queues, tables. Graphs that name the same container share its state
 * (session.h, "State"). container: copied; NULL or "" means the session's.
 * Errors: INVALID_ARGUMENT for a name that begins with '<', which is reserved for graphs. */
TW_EXPORT void tw_scope_set_container(tw_scope* scope, const char* container);
TW_EXPORT const char* tw_scope_container(const tw_scope* scope); /* "": the session's. Lives until the next call that sets it */

/* ---- Operations ---- */

/* Adds an operation of 1, 2, 3 or n inputs with default attributes and returns its output 0. Its
 * name is made from the type. */
TW_EXPORT tw_output tw_scope_op1(tw_scope* scope, const char* type, tw_output a);
TW_EXPORT tw_output tw_scope_op2(tw_scope* scope, const char* type, tw_output a, tw_output b);
TW_EXPORT tw_output tw_scope_op3(tw_scope* scope, const char* type, tw_output a, tw_output b, tw_output c);
TW_EXPORT tw_output tw_scope_op(tw_scope* scope, const char* type, const tw_output* inputs, uint32_t n);
/* Adds an operation with a name, attributes, controls or a device: describe the result of begin
 * with tw_op_add_... and tw_op_set_..., then pass it to end. The caller owns the result of begin
 * until then. name: must be free; NULL means a name made from the type. end returns output 0. op:
 * taken. */
TW_EXPORT tw_op* tw_scope_begin(tw_scope* scope, const char* type, const char* name);
TW_EXPORT tw_output tw_scope_end(tw_scope* scope, tw_op* op);
/* The same; returns the operation instead of its output. */
TW_EXPORT const tw_operation* tw_scope_end_operation(tw_scope* scope, tw_op* op);
/* Returns output i of the operation that produces `output`, for ops with several outputs. */
TW_EXPORT tw_output tw_scope_output(tw_scope* scope, tw_output output, uint32_t i);
/* Adds an Identity, so that the value can be fed or fetched by that name. The name must be free. */
TW_EXPORT tw_output tw_scope_name(tw_scope* scope, const char* name, tw_output value);
/* Adds an operation that only waits for n other operations; run it to run them all. name: must be
 * free; NULL means a generated one. */
TW_EXPORT const tw_operation* tw_scope_group(tw_scope* scope, const char* name, const tw_operation* const* operations, uint32_t n);

/* ---- Values from outside ---- */

/* Adds a constant. The tensor is retained. */
TW_EXPORT tw_output tw_scope_constant(tw_scope* scope, tw_tensor* value);
/* Adds a scalar constant of a numeric type or bool; the value is rounded to that type. */
TW_EXPORT tw_output tw_scope_scalar(tw_scope* scope, uint32_t dtype, double value);
/* Adds an int32 vector constant: shapes, axes, permutations. */
TW_EXPORT tw_output tw_scope_ints(tw_scope* scope, const int32_t* values, uint32_t n);
/* Adds a value that each step must feed. dims: -1 for an unknown size. rank -1: any rank. */
TW_EXPORT tw_output tw_scope_placeholder(tw_scope* scope, const char* name, uint32_t dtype, const int64_t* dims, int32_t rank);

#ifdef __cplusplus
}
#endif
#endif
