/* Scopes: building graphs so that C reads like the formula. A scope adds operations to a graph and answers their values; when something
 * fails it keeps the first failure, every later call answers 0 (or NULL) and does nothing, and tw_scope_finish tells the story.
 *
 *     tw_scope* s = tw_scope_create(graph, NULL);
 *     tw_output y = tw_scope_op1(s, "Tanh", tw_scope_op2(s, "Add", tw_scope_op2(s, "MatMul", x, w), b));
 *     tw_status* status = tw_scope_finish(s);
 *
 * Threads: one scope belongs to one thread at a time; several may build one graph at once. Everything here: since 0.1. */
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

/* A scope over `graph`, which must live until it is finished. prefix: every name starts with it and a slash; NULL: none; copied.
 * NULL only if memory is out, which the other calls accept. */
TW_EXPORT tw_scope* tw_scope_create(tw_graph* graph, const char* prefix);
/* The first failure, or NULL; destroys the scope. Errors for a NULL scope: RESOURCE_EXHAUSTED. */
TW_EXPORT tw_status* tw_scope_finish(tw_scope* scope);
/* The code of the first failure so far, TW_OK: none. */
TW_EXPORT uint32_t tw_scope_code(const tw_scope* scope);
/* Reports a failure from a function that builds on scopes. status: taken; kept if it is the first. NULL does nothing. */
TW_EXPORT void tw_scope_fail(tw_scope* scope, tw_status* status);
TW_EXPORT tw_graph* tw_scope_graph(const tw_scope* scope);    /* borrowed; NULL after a failure */
TW_EXPORT const char* tw_scope_prefix(const tw_scope* scope); /* with its slash; "" if there is none */

/* Where in the program the operations are made that are added from now on: tw_op_set_place for each. place: copied; NULL, "": not known. */
TW_EXPORT void tw_scope_set_place(tw_scope* scope, const char* place);
TW_EXPORT const char* tw_scope_place(const tw_scope* scope); /* "": none is set. Lives until the next is set */

/* Where the operations may run that are added from now on and name no device themselves: tw_op_set_device for each, so also of those that
 * functions over scopes add (variables, optimizers). What works on state (reads, updates) runs where the state is, whatever is said here;
 * constants and gradients are left open, and of a device groups take the job and task only. device: copied; NULL, "": anywhere.
 * Errors: INVALID_ARGUMENT for a name that cannot be read. */
TW_EXPORT void tw_scope_set_device(tw_scope* scope, const char* device);
TW_EXPORT const char* tw_scope_device(const tw_scope* scope); /* "": anywhere. Lives until the next is set */

/* The container of the state that operations make which are added from now on and name none: variables, also those of optimizers, queues,
 * tables. Whoever names the same container shares it, from whatever graph (session.h, "State"). container: copied; NULL, "": the session's.
 * Errors: INVALID_ARGUMENT for a name that begins with '<', which are of graphs. */
TW_EXPORT void tw_scope_set_container(tw_scope* scope, const char* container);
TW_EXPORT const char* tw_scope_container(const tw_scope* scope); /* "": the session's. Lives until the next is set */

/* ---- Operations ---- */

/* An operation of 1, 2, 3 or n inputs with default attributes: its output 0. Its name is made from the type. */
TW_EXPORT tw_output tw_scope_op1(tw_scope* scope, const char* type, tw_output a);
TW_EXPORT tw_output tw_scope_op2(tw_scope* scope, const char* type, tw_output a, tw_output b);
TW_EXPORT tw_output tw_scope_op3(tw_scope* scope, const char* type, tw_output a, tw_output b, tw_output c);
TW_EXPORT tw_output tw_scope_op(tw_scope* scope, const char* type, const tw_output* inputs, uint32_t n);
/* An operation with a name, attributes, controls or a device: describe what begin answers with tw_op_add_... and tw_op_set_..., then
 * end it: the caller owns what begin answers until then. name: must be free; NULL: made from the type. end answers output 0.
 * op: taken. */
TW_EXPORT tw_op* tw_scope_begin(tw_scope* scope, const char* type, const char* name);
TW_EXPORT tw_output tw_scope_end(tw_scope* scope, tw_op* op);
/* The same where the operation matters, not its output. */
TW_EXPORT const tw_operation* tw_scope_end_operation(tw_scope* scope, tw_op* op);
/* Output i of the operation that makes `output`: for ops with several. */
TW_EXPORT tw_output tw_scope_output(tw_scope* scope, tw_output output, uint32_t i);
/* The value under a name to feed or fetch it by (an Identity). The name must be free. */
TW_EXPORT tw_output tw_scope_name(tw_scope* scope, const char* name, tw_output value);
/* An operation that does nothing but wait for `n` others: run it to run them all. name: must be free; NULL: made. */
TW_EXPORT const tw_operation* tw_scope_group(tw_scope* scope, const char* name, const tw_operation* const* operations, uint32_t n);

/* ---- Values from outside ---- */

/* A constant. The tensor is retained. */
TW_EXPORT tw_output tw_scope_constant(tw_scope* scope, tw_tensor* value);
/* A scalar constant of a numeric type or bool; the value is rounded to it. */
TW_EXPORT tw_output tw_scope_scalar(tw_scope* scope, uint32_t dtype, double value);
/* An int32 vector constant: shapes, axes, permutations. */
TW_EXPORT tw_output tw_scope_ints(tw_scope* scope, const int32_t* values, uint32_t n);
/* A value that each step must feed. dims: -1 where any size will do. rank -1: any rank. */
TW_EXPORT tw_output tw_scope_placeholder(tw_scope* scope, const char* name, uint32_t dtype, const int64_t* dims, int32_t rank);

#ifdef __cplusplus
}
#endif
#endif
