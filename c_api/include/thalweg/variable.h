/* Variables: tensors that stay between steps. A variable is a value of type resource (a handle) made by a VarHandleOp; other operations
 * read it, assign it and update it in place. Its contents live in the runtime, in the session's container (session.h), from the first
 * assignment on. Sharing weights. Variables of one name (tw_variable_create's) in one container of one runtime are one variable, whatever
 * graph or session they are seen from: with the option `container` one graph may train what others serve meanwhile, and each read sees
 * whole updates. Without it a graph's variables are its own. Between runtimes weights go as tensors, without a copy: fetch a read in one,
 * feed it to a tw_variable_assign in the other. Both then hold the same memory, and whoever updates its variable first makes a copy of its
 * own. (On devices whose memory is not the host's, each of the two steps copies.) Every function here adds operations through a scope
 * (scope.h), so failures are kept there. Threads: as the scope. Everything here: since 0.1. */
#ifndef THALWEG_VARIABLE_H
#define THALWEG_VARIABLE_H
#include "thalweg/export.h"
#include "thalweg/scope.h"
#ifdef __cplusplus
extern "C" {
#endif

/* A variable and the operation `name`/Assign that sets it to `initial`, which gives it dtype and shape. name: must be free; it is also
 * the name in checkpoints. Answers the handle. Running tw_variable_initializer runs the assignment. */
TW_EXPORT tw_output tw_variable_create(tw_scope* scope, const char* name, tw_output initial);
/* Its value as it is when the read runs; reads and updates of one step are ordered by data and control edges only. */
TW_EXPORT tw_output tw_variable_read(tw_scope* scope, tw_output variable);
/* Sets it to `value`, of the same dtype and shape. */
TW_EXPORT const tw_operation* tw_variable_assign(tw_scope* scope, tw_output variable, tw_output value);
/* An operation that runs the initial assignment of every variable of the graph so far, so call it last. name: must be free; "init" by
 * custom. */
TW_EXPORT const tw_operation* tw_variable_initializer(tw_scope* scope, const char* name);

typedef struct tw_variables tw_variables; /* the variables of a graph as they were when the list was made, in the order of adding */

/* The caller owns *out_variables. graph: must outlive the list. */
TW_EXPORT tw_status* tw_variables_create(tw_graph* graph, tw_variables** out_variables);
TW_EXPORT void tw_variables_destroy(tw_variables* variables); /* NULL is fine */
TW_EXPORT uint32_t tw_variables_count(const tw_variables* variables);
TW_EXPORT tw_output tw_variables_handle(const tw_variables* variables, uint32_t i); /* 0 past the end */
/* The name in containers and checkpoints; lives as long as the list; NULL past the end. */
TW_EXPORT const char* tw_variables_name(const tw_variables* variables, uint32_t i);
/* Element type and shape; the dims live as long as the list. Either output may be NULL. Errors: OUT_OF_RANGE. */
TW_EXPORT tw_status* tw_variables_describe(const tw_variables* variables, uint32_t i, uint32_t* out_dtype, tw_shape* out_shape);

#ifdef __cplusplus
}
#endif
#endif
