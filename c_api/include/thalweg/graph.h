/* Graphs: the program. A graph holds operations; each reads values that other operations make and makes values of its own.
 * Operations are added (op.h, scope.h, import), checked as they come, and never changed or removed; a failed call leaves the graph as
 * it was. A graph may grow while sessions run it.
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
typedef uint64_t tw_output;               /* one value: an output of an operation. A plain number, good for this graph only; 0: none */

/* An empty graph. runtime: says which ops there are; NULL: the default one. The caller owns *out_graph.
 * Errors: those of making the default runtime. */
TW_EXPORT tw_status* tw_graph_create(tw_runtime* runtime, tw_graph** out_graph);
/* Its operations' handles end here; sessions of the graph go on. NULL is fine. */
TW_EXPORT void tw_graph_destroy(tw_graph* graph);

/* ---- Looking ---- */

/* Operations so far, in the order of adding: 0 .. count - 1. 0 for NULL. */
TW_EXPORT uint32_t tw_graph_count(const tw_graph* graph);
/* Operation i; NULL past the end. */
TW_EXPORT const tw_operation* tw_graph_operation(const tw_graph* graph, uint32_t i);
/* The operation of that name. Errors: NOT_FOUND, naming the closest name that exists. */
TW_EXPORT tw_status* tw_graph_find(const tw_graph* graph, const char* name, const tw_operation** out_operation);
/* 1 if the graph has an operation of that name; 0 if not, and for NULL. For names that may well be free: a failing find looks through all
 * names for the closest one. */
TW_EXPORT uint32_t tw_graph_has(const tw_graph* graph, const char* name);
/* The value that a text names: "name" is output 0 of that operation, "name:1" its output 1.
 * Errors: NOT_FOUND; INVALID_ARGUMENT for another form, and for an output that the operation does not have. */
TW_EXPORT tw_status* tw_graph_find_output(const tw_graph* graph, const char* name, tw_output* out_output);
/* Who makes the value, and as which output. Either may be NULL. Errors: INVALID_ARGUMENT for a value that is none of this graph. */
TW_EXPORT tw_status* tw_graph_producer(const tw_graph* graph, tw_output output, const tw_operation** out_operation, uint32_t* out_index);
/* Element type and shape of the value as far as they are known when nothing is fed; rank -1 and dims -1 are unknown. The dims live as
 * long as the graph. Either output may be NULL. Errors: INVALID_ARGUMENT for a value that is none of this graph. */
TW_EXPORT tw_status* tw_graph_describe(const tw_graph* graph, tw_output output, uint32_t* out_dtype, tw_shape* out_shape);
/* The same about the contents of the variable that a handle (a value of type resource) leads to. out_dtype: 0 where nothing is known.
 * Errors: INVALID_ARGUMENT for a value that is none of this graph. */
TW_EXPORT tw_status* tw_graph_describe_contents(const tw_graph* graph, tw_output handle, uint32_t* out_dtype, tw_shape* out_shape);

/* ---- Loops ----
 * A loop of Enter, Merge, Switch, Exit and NextIteration goes round through a Merge, which is made before what comes round to it: with any
 * value of that type, such as the one that enters, in that place. */

/* Input `input` of a Merge is from now on the value of a NextIteration, in place of what the Merge was made with; once for each input, and
 * before anything that needs the Merge is run. One input must stay as it is.
 * Errors: INVALID_ARGUMENT for other operations, an input that there is not, another element type; FAILED_PRECONDITION for an input that is
 * closed already, and for the last one. */
TW_EXPORT tw_status* tw_graph_close_loop(tw_graph* graph, const tw_operation* merge, uint32_t input, const tw_operation* next_iteration);

/* ---- Files: GraphDef, wire-compatible with TensorFlow's ---- */

/* How to import. Set `size` to sizeof(tw_import_options) and what is not wanted to 0. */
typedef struct tw_import_options {
  uint32_t size, flags;
  const char* prefix; /* put in front of every name, with a slash; NULL: none */
  const char* device; /* for operations that name none; NULL: none */
  /* What the graph may cost; since the record's second version. 0: the value given here. */
  uint64_t max_bytes;          /* of data: 2^31 - 1 */
  uint64_t max_operations;     /* 2^20 */
  uint64_t max_unfolded_bytes; /* that constants may take beyond what data spells out, as a fill of one value can: 64 MiB */
} tw_import_options;

/* Adds every operation of a serialised GraphDef, or none. data: borrowed. options: NULL is all defaults. Nothing of it runs here but
 * operations without effect on constants of at most 1,024 elements. Sessions do not trust what was imported: see the options allow_files,
 * allow_ops, deny_ops, trust_imported and memory_limit of tw_session_option.
 * Operations of unknown ops, and those that need them, are left out, unless there is a prefix: asking for one says which ops are missing,
 * and an export has them. Errors: INVALID_ARGUMENT (malformed, cyclic, wrong types, unknown attribute: names the node), NOT_FOUND (unknown
 * op under a prefix, naming node and op), ALREADY_EXISTS (a name is taken), FAILED_PRECONDITION (made for a newer consumer),
 * RESOURCE_EXHAUSTED (a limit, with its value). */
TW_EXPORT tw_status* tw_graph_import(tw_graph* graph, const void* data, uint64_t bytes, const tw_import_options* options);
/* The whole graph as a serialised GraphDef, the same bytes for the same graph; the caller owns *out_bytes. */
TW_EXPORT tw_status* tw_graph_export(const tw_graph* graph, tw_buffer** out_bytes);
/* Checks a serialised GraphDef as import does, without a graph to import into, and that some device of the runtime has a kernel for every
 * operation. Errors: those of tw_graph_import; NOT_FOUND naming all unknown ops; UNIMPLEMENTED naming the operation without a kernel, its
 * types and the devices. */
TW_EXPORT tw_status* tw_graph_verify(tw_runtime* runtime, const void* data, uint64_t bytes);

#ifdef __cplusplus
}
#endif
#endif
