/* Functions: graphs that operations of another graph call by name, through a `func` attribute (If,
 * Case, While, For, PartitionedCall). A function is made from a body, a graph of its own whose
 * placeholders stand for the arguments. Bodies may call any function of the graph, also their own.
 *     tw_graph_create_body(graph, &body);
 *     ... placeholder x, operations, result y ...
 *     tw_function_spec spec = {sizeof spec, 0, "twice", &x, &y, NULL, 1, 1, 0, 0};
 *     tw_graph_add_function(graph, body, &spec, NULL);
 *     tw_graph_destroy(body);
 * An operation PartitionedCall with the attribute f = "twice" then calls it. A session plans a
 * function once for each set of argument shapes. Threads: as graphs. Everything here: since 0.1. */
#ifndef THALWEG_FUNCTION_H
#define THALWEG_FUNCTION_H
#include "thalweg/buffer.h"
#include "thalweg/export.h"
#include "thalweg/graph.h"
#include "thalweg/types.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Arguments, results and targets of a function, by values and operations of its body. Set `size` to
 * sizeof(tw_function_spec) and unused fields to 0. */
typedef struct tw_function_spec {
  uint32_t size, flags;
  const char* name;                   /* same rules as for the name of an operation */
  const tw_output* args;              /* n_args placeholders, each once */
  const tw_output* results;           /* n_results values; may repeat, may be arguments */
  const tw_operation* const* targets; /* n_targets operations that run for their effects */
  uint32_t n_args, n_results, n_targets;
  uint32_t make_unique; /* 1: a number is added if the graph has a function of that name; 0: that is an error */
} tw_function_spec;

/* Makes an empty graph to become the body of a function of `graph`, or of the graph that `graph` is
 * a body for. The caller owns *out_body and must not use it after `graph` is destroyed. Errors:
 * INVALID_ARGUMENT. */
TW_EXPORT tw_status* tw_graph_create_body(tw_graph* graph, tw_graph** out_body);
/* The same, but an open body: calls on it accept values of `graph`, and values of the graphs around
 * `graph` if that is an open body itself. Such a value becomes an argument at its first use, as by
 * tw_graph_capture; later uses share that argument. Errors: INVALID_ARGUMENT. */
TW_EXPORT tw_status* tw_graph_open_body(tw_graph* graph, tw_graph** out_body);
/* Returns 1 if the graph is a body; 0 if not, and for NULL. */
TW_EXPORT uint32_t tw_graph_is_body(const tw_graph* graph);
/* Adds an argument to an open body: a placeholder with the element type of `like`, a value of a
 * graph around. It has the shape of `like`, or `shape` unless shape: NULL (-1 and rank -1:
 * unknown). An argument for a handle keeps the description of the variable. Errors:
 * INVALID_ARGUMENT, also for graphs that are not open bodies. */
TW_EXPORT tw_status* tw_graph_add_argument(tw_graph* body, tw_output like, const tw_shape* shape, tw_output* out_argument);
/* Maps a value to one of `graph` itself. If `graph` is an open body, a value of a graph around maps
 * to its argument or copy. Errors: INVALID_ARGUMENT. */
TW_EXPORT tw_status* tw_graph_own(tw_graph* graph, tw_output value, tw_output* out_own);
/* Returns how many values of graphs around an open body captured as arguments; copied constants do
 * not count. 0 for other graphs and NULL. */
TW_EXPORT uint32_t tw_graph_captured_count(const tw_graph* body);
/* Returns the i-th captured value, in the order of first use: the value of the graph around, and
 * its argument. Either may be NULL.
 * Errors: INVALID_ARGUMENT past the end. */
TW_EXPORT tw_status* tw_graph_captured(const tw_graph* body, uint32_t i, tw_output* out_value, tw_output* out_argument);
/* Makes a value of `body` that stands for a value of another graph: a placeholder of the same type
 * and shape (for a handle, also with the description of the variable), and *out_is_argument is 1.
 * Make that placeholder an argument; callers of the function pass the value. A small constant is
 * copied instead, and *out_is_argument is 0. name: NULL means a generated one; ignored in an open
 * body. Errors: INVALID_ARGUMENT, ALREADY_EXISTS (the name). */
TW_EXPORT tw_status* tw_graph_capture(tw_graph* body, const tw_graph* from, tw_output output, const char* name, tw_output* out_value,
                                      uint32_t* out_is_argument);
/* Adds the body to `graph` as a function. The graph keeps all that it needs, so the body's handle
 * may be destroyed. *out_name: the function's name, which lives as long as the graph; out_name may
 * be NULL. Errors: INVALID_ARGUMENT naming the function and the mistake (an argument that is not a
 * placeholder or is listed twice, a placeholder that is needed and is not an argument, a value of
 * another graph); ALREADY_EXISTS. */
TW_EXPORT tw_status* tw_graph_add_function(tw_graph* graph, tw_graph* body, const tw_function_spec* what, const char** out_name);
/* Outlines a part of `graph` (the opposite of inlining): makes a function of the part and adds an
 * operation that calls it. The op is PartitionedCall, or StatefulPartitionedCall if the part has
 * state; its outputs are the results. what: args are any values of the graph; the function's
 * arguments replace them. The part is every operation that results and targets need and args do
 * not. Values that the part reads from before its args, and handles of variables, become additional
 * arguments behind the args; constants are copied. The operations of the part stay in the graph. A
 * consumer that reads the call's outputs instead of the results, and waits for the call instead of
 * the targets, no longer needs them.
 * *out_call: lives as long as the graph. Errors: INVALID_ARGUMENT for values of another graph, a
 * placeholder that the part needs and that is not in args, operations of control flow or on
 * references (naming them: begin with a value behind them), a target that the args wait for;
 * ALREADY_EXISTS. After a failure the graph is unchanged. */
TW_EXPORT tw_status* tw_graph_outline(tw_graph* graph, const tw_function_spec* what, const tw_operation** out_call);
/* Copies a part of `graph` into a new graph without calls of functions, for programs that translate
 * graphs. The part is every operation that the outputs need by values and the inputs do not. Inputs
 * become placeholders of the new graph. Calls become the operations of their functions, If and Case
 * with a known choice those of the chosen branch, PlaceholderWithDefault its default, and known values
 * constants. A copy has the name of its operation, behind the names of the calls that it came from
 * ("call/name"). Control inputs, and operations that only have effects, are left out. The copies use
 * the variables of `graph`. out_inputs, out_outputs: room for the n_inputs and n_outputs values of the
 * new graph. The caller owns *out_graph and must not use it after `graph` is destroyed.
 * Errors: INVALID_ARGUMENT for values of another graph, for Switch and Merge and operations on
 * references (naming them), and for functions that call themselves without end; RESOURCE_EXHAUSTED
 * beyond 2^20 operations. */
TW_EXPORT tw_status* tw_graph_flatten(const tw_graph* graph, const tw_output* inputs, uint32_t n_inputs, const tw_output* outputs,
                                      uint32_t n_outputs, tw_graph** out_graph, tw_output* out_inputs, tw_output* out_outputs);
/* Returns how many functions a graph has, imported ones included. */
TW_EXPORT uint32_t tw_graph_function_count(const tw_graph* graph);
/* Returns the name of function i, in the order of the names. The caller owns *out_name. Errors:
 * INVALID_ARGUMENT past the end. */
TW_EXPORT tw_status* tw_graph_function_name(const tw_graph* graph, uint32_t i, tw_buffer** out_name);

#ifdef __cplusplus
}
#endif
#endif
