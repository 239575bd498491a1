/* Ops and operations. An op is a kind of operation ("MatMul") and defines inputs, outputs and
 * attributes. An operation is one use of an op in a graph, with a name. This header adds
 * operations, inspects them, and lists the ops that a runtime knows.
 * Names, attributes and their meaning are TensorFlow's; `thalweg ops NAME` shows one.
 * Everything here: since 0.1. */
#ifndef THALWEG_OP_H
#define THALWEG_OP_H
#include "thalweg/export.h"
#include "thalweg/graph.h"
#include "thalweg/runtime.h"
#include "thalweg/types.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- Adding an operation ----
 * Describe the operation, then finish it. The calls that describe it return no status; the builder
 * keeps the first failure, and tw_op_finish returns it.
 * Threads: one builder belongs to one thread at a time.
 *
 *     tw_op* op = tw_op_create(graph, "MatMul", "head/mm");
 *     tw_op_add_input(op, a);
 *     tw_op_add_input(op, b);
 *     tw_op_set_bool(op, "transpose_b", 1);
 *     tw_status* s = tw_op_finish(op, &operation); */

typedef struct tw_op tw_op; /* an operation that is being described */

/* Starts the description of an operation. graph: must live until the builder is finished. type:
 * name of the op; copied. name: letters, digits and `_.-/>`; NULL or "" means a name made from the
 * type; copied. Returns NULL only if memory is out; the other calls accept NULL. */
TW_EXPORT tw_op* tw_op_create(tw_graph* graph, const char* type, const char* name);
/* Adds inputs in the order of the op's arguments. A list argument takes its values one after the
 * other. */
TW_EXPORT void tw_op_add_input(tw_op* op, tw_output value);
TW_EXPORT void tw_op_add_inputs(tw_op* op, const tw_output* values, uint32_t n);
/* Makes the operation run after `before` in every step that runs both. */
TW_EXPORT void tw_op_add_control(tw_op* op, const tw_operation* before);
/* Restricts the devices that may run the operation: "CPU:0", "/device:CPU:0", "/job:worker/task:1",
 * or parts of these. device: NULL or "" means any. */
TW_EXPORT void tw_op_set_device(tw_op* op, const char* device);
/* Makes the operation run on the device of `other`. */
TW_EXPORT void tw_op_colocate_with(tw_op* op, const tw_operation* other);

/* Sets the priority: of the operations that are ready, those with a larger number run first; the
 * default is 0. This is only a hint. An operation still runs after its inputs and control inputs,
 * and a running operation is not preempted. Graphs store it as attribute "_priority". */
TW_EXPORT void tw_op_set_priority(tw_op* op, int32_t priority);

/* Makes the gradient of an operation that calls functions (a call, If, Case, While) recompute the
 * values inside the functions that it reads, as tw_gradients_add_recomputing (gradients.h) does for
 * all such operations. Results of stateful operations inside, such as random draws, are kept. Graphs
 * store it as attribute "_thalweg_recompute". Has no effect on other operations. */
TW_EXPORT void tw_op_set_recompute(tw_op* op);

/* Records where in the program the operation is made, such as "train.py:18", or TW_PLACE for this
 * line of C. place: copied; NULL or "" means unknown. Error messages about the operation and its
 * gradients, when it is added, planned or run, then contain the place. Exports of the graph do not
 * contain it. A binding sets it for its users. */
TW_EXPORT void tw_op_set_place(tw_op* op, const char* place);
#define TW_PLACE_TEXT_(line) #line
#define TW_PLACE_TEXT(line) TW_PLACE_TEXT_(line)
#define TW_PLACE __FILE__ ":" TW_PLACE_TEXT(__LINE__)

/* Attributes: one call per kind, then the list forms. Values are copied, tensors retained. A list
 * of n = 0 may be NULL.
 * Floating-point values are rounded to float, as in a stored graph. Attributes with defaults, and
 * types and counts that follow from the inputs, may be left out. Every operation accepts a bool
 * `_of_graph`, which no op declares. It says that the `shared_name` of the operation belongs to its
 * graph, so that other graphs do not share its resource (session.h, "State"). */
TW_EXPORT void tw_op_set_int(tw_op* op, const char* attr, int64_t value);
TW_EXPORT void tw_op_set_float(tw_op* op, const char* attr, double value);
TW_EXPORT void tw_op_set_bool(tw_op* op, const char* attr, uint8_t value); /* 0 or 1 */
TW_EXPORT void tw_op_set_string(tw_op* op, const char* attr, const char* data, uint64_t bytes);
TW_EXPORT void tw_op_set_type(tw_op* op, const char* attr, uint32_t dtype);
TW_EXPORT void tw_op_set_shape(tw_op* op, const char* attr, const int64_t* dims, int32_t rank); /* rank -1, dims of -1: unknown */
TW_EXPORT void tw_op_set_tensor(tw_op* op, const char* attr, tw_tensor* value);
TW_EXPORT void tw_op_set_func(tw_op* op, const char* attr, const char* function);
TW_EXPORT void tw_op_set_ints(tw_op* op, const char* attr, const int64_t* values, uint32_t n);
TW_EXPORT void tw_op_set_floats(tw_op* op, const char* attr, const double* values, uint32_t n);
TW_EXPORT void tw_op_set_bools(tw_op* op, const char* attr, const uint8_t* values, uint32_t n);
TW_EXPORT void tw_op_set_strings(tw_op* op, const char* attr, const tw_string* values, uint32_t n);
TW_EXPORT void tw_op_set_types(tw_op* op, const char* attr, const uint32_t* dtypes, uint32_t n);
TW_EXPORT void tw_op_set_shapes(tw_op* op, const char* attr, const tw_shape* values, uint32_t n);
TW_EXPORT void tw_op_set_tensors(tw_op* op, const char* attr, tw_tensor* const* values, uint32_t n);
TW_EXPORT void tw_op_set_funcs(tw_op* op, const char* attr, const tw_string* functions, uint32_t n);

/* Sets an attribute from a serialised AttrValue, as in the NodeDef of a GraphDef. data: copied; `bytes` bytes. The op must declare the
 * attribute, unless its name begins with an underscore: the graph then keeps the bytes for exports, and the name may not be `_class`
 * (use tw_op_colocate_with). The builder's failure is INVALID_ARGUMENT for bytes that are no AttrValue, placeholders of function bodies
 * and functions with attributes of their own; for an op that is not known it is that of tw_op_finish. */
TW_EXPORT void tw_op_set_message(tw_op* op, const char* attr, const void* data, uint64_t bytes);

/* Adds the operation to the graph and destroys the builder, also on failure. out_operation: may be
 * NULL.
 * Errors: INVALID_ARGUMENT, NOT_FOUND (no such op), ALREADY_EXISTS (the name); each begins with op
 * and name, such as "MatMul 'head/mm': inner dimensions differ: ...". The graph is then unchanged. */
TW_EXPORT tw_status* tw_op_finish(tw_op* op, const tw_operation** out_operation);
/* Discards the description. NULL is fine. */
TW_EXPORT void tw_op_destroy(tw_op* op);

/* ---- Looking at an operation; texts and arrays live as long as the graph handle. Threads: any.
 * NULL, "" or 0 for NULL ---- */

TW_EXPORT const char* tw_operation_name(const tw_operation* operation);   /* unique in its graph */
TW_EXPORT const char* tw_operation_type(const tw_operation* operation);   /* the op: "MatMul" */
TW_EXPORT const char* tw_operation_device(const tw_operation* operation); /* as requested; "": any */
TW_EXPORT const char* tw_operation_place(const tw_operation* operation);  /* place of creation; "": unknown */
TW_EXPORT uint32_t tw_operation_input_count(const tw_operation* operation);
TW_EXPORT tw_output tw_operation_input(const tw_operation* operation, uint32_t i); /* 0 past the end */
TW_EXPORT uint32_t tw_operation_output_count(const tw_operation* operation);
TW_EXPORT tw_output tw_operation_output(const tw_operation* operation, uint32_t i); /* 0 past the end */
/* Returns the type of resource that output i is a handle to, as the op's schema declares it
 * ("variable", "org.example.bloom.filter"); NULL if it declares none. out_saved: 1 if checkpoints
 * can hold the resource (variables, and resources that a plugin can save and restore); may be NULL.
 * The name lives as long as the graph. */
TW_EXPORT const char* tw_operation_resource(const tw_operation* operation, uint32_t i, uint32_t* out_saved);
/* Returns 1 if the op keeps or changes state beyond its outputs (variables, random numbers, files),
 * so that two equal operations must not be merged. */
TW_EXPORT uint32_t tw_operation_is_stateful(const tw_operation* operation);
TW_EXPORT uint32_t tw_operation_control_count(const tw_operation* operation);
TW_EXPORT const tw_operation* tw_operation_control(const tw_operation* operation, uint32_t i); /* NULL past the end */
/* Attributes as resolved from the description, the inputs and the defaults. */
TW_EXPORT uint32_t tw_operation_attr_count(const tw_operation* operation);
TW_EXPORT const char* tw_operation_attr_name(const tw_operation* operation, uint32_t i); /* NULL past the end */
/* Returns one attribute: its kind (TW_ATTR_*, types.h), whether it is a list, and `count` values of
 * the C type that the kind names. Outputs that are not wanted may be NULL. Errors: NOT_FOUND. */
TW_EXPORT tw_status* tw_operation_attr(const tw_operation* operation, const char* attr, uint32_t* out_kind, uint32_t* out_is_list,
                                       uint32_t* out_count, const void** out_values);
/* The same as text for people: `3`, `"SAME"`, `[1, 2]`, `float`. The caller owns *out_text. Errors:
 * NOT_FOUND. */
TW_EXPORT tw_status* tw_operation_attr_text(const tw_operation* operation, const char* attr, tw_buffer** out_text);

/* Returns the operation as a serialised NodeDef, as tw_graph_export writes it: attributes that no op declares are included, and the op of
 * a call that was imported under the name of its function is that name. The caller owns *out_bytes. Takes time that grows with the number
 * of links between nodes of the graph. Errors: RESOURCE_EXHAUSTED. */
TW_EXPORT tw_status* tw_operation_message(const tw_operation* operation, tw_buffer** out_bytes);

/* ---- The ops that a runtime knows: a snapshot, sorted by name. Threads: any ---- */

typedef struct tw_ops tw_ops;

/* Makes a list of the runtime's ops. runtime: NULL means the default one; kept alive by the list.
 * The caller owns *out_ops. */
TW_EXPORT tw_status* tw_ops_create(tw_runtime* runtime, tw_ops** out_ops);
TW_EXPORT void tw_ops_destroy(tw_ops* ops); /* NULL is fine */
TW_EXPORT uint32_t tw_ops_count(const tw_ops* ops);
/* Properties of op i. Texts live as long as the list; NULL past the end. */
TW_EXPORT const char* tw_ops_name(const tw_ops* ops, uint32_t i);
TW_EXPORT const char* tw_ops_schema(const tw_ops* ops, uint32_t i);      /* as registered; grammar in plugin/op.h */
TW_EXPORT const char* tw_ops_doc(const tw_ops* ops, uint32_t i);         /* one line, may be "" */
TW_EXPORT const char* tw_ops_plugin(const tw_ops* ops, uint32_t i);      /* id of the plugin that registered it */
TW_EXPORT const char* tw_ops_no_gradient(const tw_ops* ops, uint32_t i); /* the reason why it is not differentiable; "": it is */
TW_EXPORT uint32_t tw_ops_kernel_count(const tw_ops* ops, uint32_t i);
TW_EXPORT const char* tw_ops_kernel(const tw_ops* ops, uint32_t i, uint32_t k); /* its spec text, best first; see plugin/kernel.h */
/* Returns op i in full, with its schema parsed, for programs that generate functions from ops. The
 * caller owns *out_json: an object
 *   {"name", "doc", "plugin", "schema", "stateful", "touches" ("", "files", "files and network", ...),
 *    "gradient" ("yes", "none" for a reason that the schema gives, or "missing"), "no_gradient" (the
 *    reason), "kernels": [text], "kernel_plugins": [id of the plugin of each kernel],
 *    "inputs" and "outputs": [{"name", then "type" (a fixed element type), or "type_attr", or
 *        "list_attr" (a list of types, one an entry); "number_attr" if an attribute gives the number
 *        of entries of one type; "ref": true for references; "resource", the type of resource that a
 *        handle refers to, if the schema declares it}],
 *    "attrs": [{"name", "kind", "list"; "default" if it may be left out; "allowed": [values] and
 *        "minimum" if the schema has them}]}
 * kind: int, float, bool, string, type, shape, tensor or func. Types are texts, shapes lists of
 * sizes with -1 for unknown ones and null for an unknown rank, tensors texts for people. Errors:
 * OUT_OF_RANGE. */
TW_EXPORT tw_status* tw_ops_json(const tw_ops* ops, uint32_t i, tw_buffer** out_json);
/* Returns op i as a serialised OpDef: arguments, attributes with defaults and allowed values, the doc as summary, and whether the op is
 * stateful or commutative. The caller owns *out_bytes. Errors: OUT_OF_RANGE. */
TW_EXPORT tw_status* tw_ops_message(const tw_ops* ops, uint32_t i, tw_buffer** out_bytes);

#ifdef __cplusplus
}
#endif
#endif
