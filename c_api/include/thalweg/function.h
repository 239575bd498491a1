/* Functions: graphs that operations of another graph call by name, as the value of a `func` attribute: If, Case, While, For,
 * PartitionedCall. A function is made of a body, a graph of its own in which placeholders stand for the arguments; bodies may hold calls
 * again, of any function of the graph, their own included.
 *     tw_graph_create_body(graph, &body);
 *     ... placeholder x, operations, result y ...
 *     tw_function_spec spec = {sizeof spec, 0, "twice", &x, &y, NULL, 1, 1, 0, 0};
 *     tw_graph_add_function(graph, body, &spec, NULL);
 *     tw_graph_destroy(body);
 * and then an operation PartitionedCall with the attribute f = "twice". A session plans a function once for each set of argument shapes.
 * Threads: as graphs. Everything here: since 0.1. */
#ifndef THALWEG_FUNCTION_H
#define THALWEG_FUNCTION_H
#include "thalweg/buffer.h"
#include "thalweg/export.h"
#include "thalweg/graph.h"
#include "thalweg/types.h"
#ifdef __cplusplus
extern "C" {
#endif

/* What a function takes, gives and does, by values and operations of its body. Set `size` to sizeof(tw_function_spec) and what is not used
 * to 0. */
typedef struct tw_function_spec {
  uint32_t size, flags;
  const char* name;                   /* as of an operation */
  const tw_output* args;              /* n_args placeholders, each once */
  const tw_output* results;           /* n_results values; may repeat, may be arguments */
  const tw_operation* const* targets; /* n_targets operations that run for what they do */
  uint32_t n_args, n_results, n_targets;
  uint32_t make_unique; /* 1: where the graph has a function of that name a number is put behind it; 0: that is an error */
} tw_function_spec;

/* An empty graph to be the body of a function of `graph`, or of a function of the graph that `graph` is a body for. The caller owns
 * *out_body; it must not be used once `graph` is gone. Errors: INVALID_ARGUMENT. */
TW_EXPORT tw_status* tw_graph_create_body(tw_graph* graph, tw_graph** out_body);
/* The same, and calls on the body may be given values of `graph`, and of what is around that if it is an open body itself: each becomes an
 * argument when it is first used, as by tw_graph_capture, and there is one for it from then on. Errors: INVALID_ARGUMENT. */
TW_EXPORT tw_status* tw_graph_open_body(tw_graph* graph, tw_graph** out_body);
/* 1 if the graph is a body; 0 if not, and for NULL. */
TW_EXPORT uint32_t tw_graph_is_body(const tw_graph* graph);
/* An argument of an open body: a placeholder of the type of `like`, a value from around, of its shape or, unless that is NULL, of another
 * (-1, rank -1: unknown), and, of a handle, with what is known of the variable. Errors: INVALID_ARGUMENT, also for other graphs. */
TW_EXPORT tw_status* tw_graph_add_argument(tw_graph* body, tw_output like, const tw_shape* shape, tw_output* out_argument);
/* A value as one of the graph itself: of an open body, also what stands in it for a value from around. Errors: INVALID_ARGUMENT. */
TW_EXPORT tw_status* tw_graph_own(tw_graph* graph, tw_output value, tw_output* out_own);
/* How many values from around an open body has arguments for; constants that were copied do not count. 0 for other graphs and NULL. */
TW_EXPORT uint32_t tw_graph_captured_count(const tw_graph* body);
/* The i-th of them in the order of first use: the value of the graph around, and the argument. Either may be NULL.
 * Errors: INVALID_ARGUMENT past the end. */
TW_EXPORT tw_status* tw_graph_captured(const tw_graph* body, uint32_t i, tw_output* out_value, tw_output* out_argument);
/* What stands in a body for a value of another graph: a placeholder of its type and shape (and, of a handle, what is known of the
 * variable), which is to be an argument and to be given the value by whoever calls; *out_is_argument is 1. A small constant is copied
 * instead; *out_is_argument is 0. name: NULL: made; not used in an open body. Errors: INVALID_ARGUMENT, ALREADY_EXISTS (the name). */
TW_EXPORT tw_status* tw_graph_capture(tw_graph* body, const tw_graph* from, tw_output output, const char* name, tw_output* out_value,
                                      uint32_t* out_is_argument);
/* Makes a body a function of `graph`, which keeps what it needs of it: the handle may be destroyed. *out_name, unless out_name is NULL: the
 * function's name; lives as long as the graph. Errors: INVALID_ARGUMENT naming the function and what is wrong (an argument that is no
 * placeholder or stands twice, a placeholder that is needed and is no argument, a value of another graph); ALREADY_EXISTS. */
TW_EXPORT tw_status* tw_graph_add_function(tw_graph* graph, tw_graph* body, const tw_function_spec* what, const char** out_name);
/* The opposite of inlining: makes a function of a part of `graph` itself and adds an operation that calls it, PartitionedCall or, where the
 * part has state, StatefulPartitionedCall, whose outputs are the results. what: args are any values of the graph, in whose place stand the
 * function's arguments; the part is all that results and targets need and args do not. What it takes from before its args, and handles of
 * variables, become arguments behind those; constants are copied. The operations of the part stay in the graph: whoever reads the
 * call's outputs in place of the results, and waits for the call in place of the targets, does without them.
 * *out_call: lives as long as the graph. Errors: INVALID_ARGUMENT for values of another graph, a placeholder that the part needs and that
 * is none of its args, operations of control flow or on references (naming them: begin with a value behind them), a target that the args
 * wait for; ALREADY_EXISTS. The graph is then as it was. */
TW_EXPORT tw_status* tw_graph_outline(tw_graph* graph, const tw_function_spec* what, const tw_operation** out_call);
/* How many functions a graph has, those that were imported with it included. */
TW_EXPORT uint32_t tw_graph_function_count(const tw_graph* graph);
/* The name of the i-th of them in the order of their names. The caller owns *out_name. Errors: INVALID_ARGUMENT past the end. */
TW_EXPORT tw_status* tw_graph_function_name(const tw_graph* graph, uint32_t i, tw_buffer** out_name);

#ifdef __cplusplus
}
#endif
#endif
