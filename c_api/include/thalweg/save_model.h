/* Saves a model in one file: its signatures, the operations that they need, and the values of the variables that these read. The file is a
 * SavedModel message, as TensorFlow's `saved_model.pb`, whose initialisation assigns the values; tw_model_load (model.h) loads it, and so
 * does TensorFlow from a folder that has it under that name, if it has all ops of the model: ScaledDotProductAttention, which attention
 * layers use, is ours. Threads: any. Everything here: since 0.1. */
#ifndef THALWEG_SAVE_MODEL_H
#define THALWEG_SAVE_MODEL_H
#include "thalweg/export.h"
#include "thalweg/graph.h"
#include "thalweg/session.h"
#ifdef __cplusplus
extern "C" {
#endif

/* A way to call the model. Set `size` to sizeof(tw_saved_signature) and unused fields to 0. */
typedef struct tw_saved_signature {
  uint32_t size, flags;
  const char* name;                /* NULL: "serving_default", which loaders take if no name is given */
  const char* const* input_names;  /* n_inputs different texts */
  const tw_output* inputs;         /* n_inputs values, which a call feeds */
  const char* const* output_names; /* n_outputs different texts */
  const tw_output* outputs;        /* n_outputs values, which a call fetches */
  uint32_t n_inputs, n_outputs;
} tw_saved_signature;

/* Writes the model; an older file of that name stays until the new one is complete. graph: that of the session. signatures: n records of
 * different names; n above 0. Operations that only training needs are left out, and so are requests for devices. Variables keep their names
 * and can be trained on after loading. path: its folder must exist; `scheme://...` for file systems of plugins.
 * Errors: INVALID_ARGUMENT naming the signature, and the placeholder that an output needs and no input feeds; FAILED_PRECONDITION naming a
 * variable without contents; UNIMPLEMENTED for other state than variables (queues, tables) and for variables by reference;
 * RESOURCE_EXHAUSTED for a model beyond 2 GiB, which a message cannot hold; those of the file system. Threads: any; steps that update the
 * variables meanwhile may be seen half done. */
TW_EXPORT tw_status* tw_model_save(tw_graph* graph, tw_session* session, const tw_saved_signature* signatures, uint32_t n,
                                   const char* path);

#ifdef __cplusplus
}
#endif
#endif
