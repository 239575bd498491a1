/* Variables are tensors that persist between steps. A variable is a value of type resource (a
 * handle) that a VarHandleOp makes; other operations read it, assign it and update it in place. Its
 * contents live in the runtime, in the session's container (session.h), from the first assignment
 * on. Sharing weights: variables with one name (of tw_variable_create) in one container of one
 * runtime are one variable, for all graphs and sessions. With the option `container` one graph may
 * train variables that other graphs serve at the same time; each read sees whole updates. Without
 * it a graph's variables are its own. Weights move between runtimes as tensors, without a copy:
 * fetch a read in one, and feed it to a tw_variable_assign in the other. Both variables then share
 * memory, and the first update of either makes a copy. (On devices with memory of their own, each
 * of the two steps copies.) Every function here adds operations through a scope (scope.h), which
 * keeps the failures. Threads: as the scope. Everything here: since 0.1. */
#ifndef THALWEG_VARIABLE_H
#define THALWEG_VARIABLE_H
#include "thalweg/export.h"
#include "thalweg/scope.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Makes a variable, and the operation `name`/Assign that sets it to `initial`, whose dtype and
 * shape the variable has. name: must be free; it is also the name in checkpoints. Returns the
 * handle. tw_variable_initializer's operation runs the assignment. */
TW_EXPORT tw_output tw_variable_create(tw_scope* scope, const char* name, tw_output initial);
/* Returns the value at the time of the read; only data and control edges order reads and updates of
 * one step. */
TW_EXPORT tw_output tw_variable_read(tw_scope* scope, tw_output variable);
/* Sets the variable to `value`, which must have its dtype and shape. */
TW_EXPORT const tw_operation* tw_variable_assign(tw_scope* scope, tw_output variable, tw_output value);
/* Returns an operation that runs the initial assignment of every variable that the graph has now,
 * so call it last. name: must be free; "init" by convention. */
TW_EXPORT const tw_operation* tw_variable_initializer(tw_scope* scope, const char* name);

typedef struct tw_variables tw_variables; /* a snapshot of the variables of a graph, in the order of adding */

/* Makes a list of the graph's variables. The caller owns *out_variables. graph: must outlive the
 * list. */
TW_EXPORT tw_status* tw_variables_create(tw_graph* graph, tw_variables** out_variables);
TW_EXPORT void tw_variables_destroy(tw_variables* variables); /* NULL is fine */
TW_EXPORT uint32_t tw_variables_count(const tw_variables* variables);
TW_EXPORT tw_output tw_variables_handle(const tw_variables* variables, uint32_t i); /* 0 past the end */
/* Returns the name in containers and checkpoints; lives as long as the list; NULL past the end. */
TW_EXPORT const char* tw_variables_name(const tw_variables* variables, uint32_t i);
/* Returns element type and shape; the dims live as long as the list. Either output may be NULL.
 * Errors: OUT_OF_RANGE. */
TW_EXPORT tw_status* tw_variables_describe(const tw_variables* variables, uint32_t i, uint32_t* out_dtype, tw_shape* out_shape);

#ifdef __cplusplus
}
#endif
#endif
