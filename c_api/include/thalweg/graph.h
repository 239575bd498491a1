/* Graphs are programs. A graph holds operations; each operation reads values of other operations
 * and produces values of its own. Operations are added (op.h, scope.h, import), checked at once,
 * and never changed or removed. A failed call leaves the graph unchanged. A graph may grow while
 * sessions run it.
 * Threads: any; adding locks, looking does not. Everything here: since 0.1. */
#ifndef THALWEG_GRAPH_H
#define THALWEG_GRAPH_H
#include "thalweg/buffer.h"
#include "thalweg/export.h"
#include "thalweg/runtime.h"
#include "thalweg/types.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_graph tw_graph;
typedef struct tw_operation tw_operation; /* one operation of a graph; lives as long as the graph handle */
typedef uint64_t tw_output;               /* an output of an operation; a plain number, valid for this graph only; 0: none */

/* Makes an empty graph. runtime: defines the known ops; NULL means the default one. The caller owns
 * *out_graph.
 * Errors: those of creating the default runtime. */
TW_EXPORT tw_status* tw_graph_create(tw_runtime* runtime, tw_graph** out_graph);
/* Ends the graph handle and the handles of its operations; sessions of the graph go on. NULL is
 * fine. */
TW_EXPORT void tw_graph_destroy(tw_graph* graph);

/* ---- Looking ---- */

/* Returns the number of operations. Operation 0 was added first. 0 for NULL. */
TW_EXPORT uint32_t tw_graph_count(const tw_graph* graph);
/* Returns operation i; NULL past the end. */
TW_EXPORT const tw_operation* tw_graph_operation(const tw_graph* graph, uint32_t i);
/* Finds the operation of that name. Errors: NOT_FOUND, naming the closest existing name. */
TW_EXPORT tw_status* tw_graph_find(const tw_graph* graph, const char* name, const tw_operation** out_operation);
/* Returns 1 if the graph has an operation of that name; 0 if not, and for NULL. Use it for names
 * that are often free: tw_graph_find, when it fails, searches all names for the closest one. */
TW_EXPORT uint32_t tw_graph_has(const tw_graph* graph, const char* name);
/* Finds the value that a text names: "name" is output 0 of that operation, "name:1" is its output
 * 1.
 * Errors: NOT_FOUND; INVALID_ARGUMENT for another form, and for an output that the operation does
 * not have. */
TW_EXPORT tw_status* tw_graph_find_output(const tw_graph* graph, const char* name, tw_output* out_output);
/* Returns the operation that produces the value, and the index of the output. Either may be NULL.
 * Errors: INVALID_ARGUMENT for a value that is not of this graph. */
TW_EXPORT tw_status* tw_graph_producer(const tw_graph* graph, tw_output output, const tw_operation** out_operation, uint32_t* out_index);
/* Returns element type and shape of the value, as far as they are known without feeds; rank -1 and
 * dims -1 are unknown. The dims live as long as the graph. Either output may be NULL. Errors:
 * INVALID_ARGUMENT for a value that is not of this graph. */
TW_EXPORT tw_status* tw_graph_describe(const tw_graph* graph, tw_output output, uint32_t* out_dtype, tw_shape* out_shape);
/* The same, for the contents of the variable that `handle` (a value of type resource) refers to.
 * out_dtype: 0 if nothing is known.
 * Errors: INVALID_ARGUMENT for a value that is not of this graph. */
TW_EXPORT tw_status* tw_graph_describe_contents(const tw_graph* graph, tw_output handle, uint32_t* out_dtype, tw_shape* out_shape);

/* ---- Loops ----
 * A loop of Enter, Merge, Switch, Exit and NextIteration is closed at a Merge. Make the Merge
 * before the NextIteration exists, with any value of the right type in its place, such as the value
 * that enters. */

/* Replaces input `input` of a Merge by the value of a NextIteration. Allowed once for each input,
 * and before an operation that needs the Merge has run. One input must stay as it is.
 * Errors: INVALID_ARGUMENT for other operations, an input that does not exist, another element
 * type; FAILED_PRECONDITION for an input that is closed already, and for the last one. */
TW_EXPORT tw_status* tw_graph_close_loop(tw_graph* graph, const tw_operation* merge, uint32_t input, const tw_operation* next_iteration);

/* ---- Files: GraphDef, wire-compatible with TensorFlow's ---- */

/* Options of an import. Set `size` to sizeof(tw_import_options) and unused fields to 0. */
typedef struct tw_import_options {
  uint32_t size, flags;
  const char* prefix; /* put in front of every name, with a slash; NULL: none */
  const char* device; /* for operations that name none; NULL: none */
  /* Limits for the graph; since the record's second version. 0 means the default given here. */
  uint64_t max_bytes;          /* of data; default 2^31 - 1 */
  uint64_t max_operations;     /* default 2^20 */
  uint64_t max_unfolded_bytes; /* that constants may take beyond the size of data, as a fill with one value can; default 64 MiB */
} tw_import_options;

/* Adds every operation of a serialised GraphDef, or none. data: borrowed. options: NULL means all
 * defaults. The import runs only operations without effects on constants of at most 1,024 elements.
 * Sessions do not trust imported operations: see the options allow_files, allow_ops, deny_ops,
 * trust_imported and memory_limit of tw_session_option.
 * Without a prefix, operations of unknown ops and the operations that need them are left out;
 * looking for one reports the missing ops, and an export contains them. Errors: INVALID_ARGUMENT
 * (malformed, cyclic, wrong types, unknown attribute: names the node), NOT_FOUND (unknown op under
 * a prefix, naming node and op), ALREADY_EXISTS (a name is taken), FAILED_PRECONDITION (made for a
 * newer consumer), RESOURCE_EXHAUSTED (a limit, with its value). */
TW_EXPORT tw_status* tw_graph_import(tw_graph* graph, const void* data, uint64_t bytes, const tw_import_options* options);
/* Exports the whole graph as a serialised GraphDef; equal graphs give equal bytes. The caller owns
 * *out_bytes. */
TW_EXPORT tw_status* tw_graph_export(const tw_graph* graph, tw_buffer** out_bytes);
/* Checks a serialised GraphDef as import does, without a graph, and checks that some device of the
 * runtime has a kernel for every operation. Errors: those of tw_graph_import; NOT_FOUND naming all
 * unknown ops; UNIMPLEMENTED naming the operation without a kernel, its types and the devices. */
TW_EXPORT tw_status* tw_graph_verify(tw_runtime* runtime, const void* data, uint64_t bytes);

#ifdef __cplusplus
}
#endif
#endif
