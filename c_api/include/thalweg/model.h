/* Models are loaded from files: SavedModel, ONNX and every other format that a plugin has an
 * importer for (plugin/importer.h). A model has signatures, each with inputs and outputs by name,
 * and a graph and a session of its own, so that two models never share state.
 *
 *     tw_model_load(NULL, "model.onnx", NULL, &model);
 *     tw_model_run(model, NULL, &image, NULL, &scores);
 *
 * Safety: loading runs no code of the file beyond its graph, reads nothing outside the model's
 * folder and writes nothing. The graph is imported: session.h says what its operations may do. A
 * file must not be changed while a model of it lives, because weights may be mapped.
 * Threads: any number of threads may run a model at once. Everything here: since 0.1. */
#ifndef THALWEG_MODEL_H
#define THALWEG_MODEL_H
#include "thalweg/buffer.h"
#include "thalweg/export.h"
#include "thalweg/graph.h"
#include "thalweg/runtime.h"
#include "thalweg/session.h"
#include "thalweg/types.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_model tw_model;

/* Options of a load. Set `size` to sizeof(tw_model_options) and unused fields to 0. */
typedef struct tw_model_options {
  uint32_t size, flags;
  const char* importer;               /* name of the importer to use; NULL: the surest one */
  const char* const* options;         /* n_options texts "key=value" for the importer, such as "tags=serve" */
  const char* const* session_options; /* n_session_options texts for the model's session: tw_session_option lists them */
  const char* const* signatures;      /* n_signatures names: only they, and what they need, are loaded; NULL: all */
  uint32_t n_options, n_session_options, n_signatures, reserved;
  /* Limits for the file. 0 means the default given here. */
  uint64_t max_bytes;          /* of a serialised graph; default 2^31 - 1 */
  uint64_t max_operations;     /* default 2^20 */
  uint64_t max_unfolded_bytes; /* that constants may take beyond the size of the graph; default 64 MiB */
  uint64_t max_file_bytes;     /* that the importer may open in all; default 2^40 */
} tw_model_options;

/* An input or output of a signature. Lives as long as the model, as all texts and lists here. */
typedef struct tw_model_value {
  uint32_t size, flags;
  const char* name;
  const tw_shape* shape;      /* -1: unknown size; rank -1: unknown rank */
  const char* const* symbols; /* a text for each axis, "" for a size without a name; NULL: no axis has one. Equal texts are equal sizes */
  tw_output output;           /* of tw_model_graph: fed or fetched */
  uint32_t dtype;
  uint32_t is_optional; /* 1: an input that may be left out, because the model has a default for it */
} tw_model_value;

typedef struct tw_model_signature {
  uint32_t size, flags;
  const char* name;
  const char* doc; /* for people; "" if the file has none */
  const tw_model_value* const* inputs;
  const tw_model_value* const* outputs;
  uint32_t n_inputs, n_outputs;
} tw_model_signature;

/* Loads a model and runs its initialisation. runtime: NULL means the default one. path: a file or a
 * folder, of the machine or `scheme://...`. options: NULL means all defaults. The caller owns
 * *out_model.
 * Errors: NOT_FOUND for a missing file; INVALID_ARGUMENT naming the known formats if no importer
 * recognises the contents, and for damaged contents and unknown options; the error of a model that
 * needs what is not there lists all of it; PERMISSION_DENIED for a file that leads out of its
 * folder; RESOURCE_EXHAUSTED naming the limit. */
TW_EXPORT tw_status* tw_model_load(tw_runtime* runtime, const char* path, const tw_model_options* options, tw_model** out_model);
/* Finds the importer that would load the file, and reads only what it needs for that. The caller
 * owns *out_importer, its name. Errors: those of tw_model_load for missing and unknown files. */
TW_EXPORT tw_status* tw_model_recognise(tw_runtime* runtime, const char* path, tw_buffer** out_importer);
/* Returns a text of one line for each importer: name, format, usual file names and options, with
 * tabs between them. Loads the plugins of all importers. The caller owns *out_text. */
TW_EXPORT tw_status* tw_model_importers(tw_runtime* runtime, tw_buffer** out_text);
/* Closes the session, which waits for runs, and frees the model. Fetched tensors stay. NULL is fine. */
TW_EXPORT void tw_model_destroy(tw_model* model);

/* ---- Looking ---- */

TW_EXPORT const char* tw_model_importer(const tw_model* model);    /* its name; NULL for NULL */
TW_EXPORT uint32_t tw_model_property_count(const tw_model* model); /* facts about the file, for people */
/* Returns fact i, such as "producer" and "tensorflow 2.21". Either output may be NULL. Errors:
 * INVALID_ARGUMENT past the end. */
TW_EXPORT tw_status* tw_model_property(const tw_model* model, uint32_t i, const char** out_key, const char** out_text);
TW_EXPORT uint32_t tw_model_signature_count(const tw_model* model);
/* Returns signature i, in the order of the file; NULL past the end. */
TW_EXPORT const tw_model_signature* tw_model_signature_at(const tw_model* model, uint32_t i);
/* Finds a signature. name: NULL means the model's default one. Errors: NOT_FOUND listing the names. */
TW_EXPORT tw_status* tw_model_find(const tw_model* model, const char* name, const tw_model_signature** out_signature);
/* The model's graph and session; borrowed, they live as long as the model. The graph may be extended:
 * the program's own operations are trusted. NULL for NULL. */
TW_EXPORT tw_graph* tw_model_graph(tw_model* model);
TW_EXPORT tw_session* tw_model_session(tw_model* model);
/* Returns the prepared run of a signature, made at the first use; borrowed, lives as long as the
 * model. Its feeds are the inputs, its fetches the outputs. name: NULL means the default. Errors:
 * those of tw_model_find and tw_callable_create. */
TW_EXPORT tw_status* tw_model_callable(tw_model* model, const char* name, tw_callable** out_callable);

/* ---- Running ---- */

/* Runs a signature and blocks until it has ended. signature: its name; NULL means the default.
 * inputs: a tensor for each input of the signature, borrowed; NULL for one that is left out.
 * options: may be NULL. out_outputs: room for the outputs; on success each is a reference that the
 * caller owns, on failure all are NULL. Errors: those of tw_model_find; INVALID_ARGUMENT naming an
 * input that is missing, or has another type or shape, with symbols that differ; those of
 * tw_session_run. */
TW_EXPORT tw_status* tw_model_run(tw_model* model, const char* signature, tw_tensor* const* inputs, const tw_run_options* options,
                                  tw_tensor** out_outputs);

#ifdef __cplusplus
}
#endif
#endif
