/* Importers read model files of one format: bytes or a folder in; a graph, signatures, initial
 * values and assets out. The host knows no format. It asks every importer whether it recognises the
 * contents of a file, and the surest one loads it (model.h, tw_model_load).
 *
 * Files: an importer reads only what the host opens for it: the file that the program named, and
 * files beneath the model's folder (that file's folder, or the named folder). The host refuses `..`,
 * absolute paths, symbolic and hard links, devices and pipes with PERMISSION_DENIED or
 * INVALID_ARGUMENT. call->host is confined to the same folder and cannot write, so the sets "files"
 * and "checkpoint" are safe to use with it, with names relative to the folder. The host of init is
 * not confined: never use it to open what a model names.
 * Contents are not trusted: check every length, and bound the memory that a load takes by the bytes
 * that were read.
 *
 * Threads: recognise and load run on any thread, several at once for different files; both may
 * block. A builder belongs to its call. */
#ifndef THALWEG_PLUGIN_IMPORTER_H
#define THALWEG_PLUGIN_IMPORTER_H
#include "thalweg/plugin/abi.h"
#include "thalweg/plugin/op.h"
#include "thalweg/plugin/tensor.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of a file in read-only memory: mapped where the file system can, so that opening a large
 * file costs little, else read. The host makes it; it stays valid until release, which may come
 * after the load, on any thread. */
typedef struct tw_model_bytes {
  TW_HEAD;
  const void* data; /* page-aligned if mapped; NULL if bytes is 0 */
  uint64_t bytes;
  TW_R void (*retain)(struct tw_model_bytes* b);
  TW_R void (*release)(struct tw_model_bytes* b); /* ends one reference */
} tw_model_bytes;

/* The file or folder that the program named. Lives until the callback returns. */
typedef struct tw_model_source {
  TW_HEAD;
  TW_TEXT(path);                /* as the program wrote it, for messages */
  const void* head;             /* the first bytes of a file, for recognise; NULL for a folder */
  uint64_t head_bytes;          /* the whole file, at most 4096 */
  uint64_t bytes;               /* size of the file; 0 for a folder */
  uint32_t is_folder, reserved; /* is_folder 1: the program named a folder */
  void* self;
  /* Opens the file `name` beneath the model's folder; len 0: the file itself. The caller owns
   * *out_bytes. Errors: NOT_FOUND; PERMISSION_DENIED for a name that leads elsewhere;
   * INVALID_ARGUMENT for what is no regular file; RESOURCE_EXHAUSTED beyond the limit for bytes that
   * a load may open in all. */
  TW_R tw_status* (*open)(const struct tw_model_source* s, const char* name, uint64_t len, tw_model_bytes** out_bytes);
  /* Writes each name in a folder beneath the model's folder (len 0: that folder), then a zero byte;
   * sorted. Errors: those of open. */
  TW_R tw_status* (*list)(const struct tw_model_source* s, const char* folder, uint64_t len, tw_sink* to);
} tw_model_source;

/* Memory that becomes a tensor without a copy; for weights inside tw_model_bytes, for instance. */
typedef struct tw_import_memory {
  TW_HEAD;
  const int64_t* dims; /* rank of them, all known */
  const void* data;    /* dense elements in the machine's byte order; not for strings, resources and variants */
  uint64_t bytes;      /* must be what dtype and dims need */
  uint32_t dtype, rank;
  /* Called once when nobody needs `data` any more, on any thread, also if the call fails; the plugin
   * stays loaded until then. NULL: the memory lives until the model ends or longer. */
  TW_O void (*release)(void* user);
  void* user;
} tw_import_memory;

/* An input or output of a signature. */
typedef struct tw_import_value {
  TW_HEAD;
  TW_TEXT(name); /* in the signature, as the model file has it */
  tw_edge edge;  /* of the main graph. Input: fed, whatever node it is of. Output: fetched */
  /* NULL: dims without names. Else a text for each of `n_symbols` axes, "" for none: equal texts are
   * equal sizes, also in other values of the signature. Only for axes whose size is unknown. */
  const tw_string* symbols;
  uint32_t n_symbols, reserved;
  const tw_shape* shape;    /* as the file declares it; NULL: what the graph knows of the edge */
  tw_tensor* default_value; /* for an input that may be left out; NULL: it must be given. Retained */
} tw_import_value;

typedef struct tw_import_signature {
  TW_HEAD;
  TW_TEXT(name);                         /* unique in the model */
  TW_TEXT(doc);                          /* for people, one line; may be empty */
  const tw_import_value* const* inputs;  /* n_inputs, in the order of the file; each edge once */
  const tw_import_value* const* outputs; /* n_outputs; edges may repeat */
  const tw_edge* effects;                /* n_effects nodes (any output) that run with it for their effects */
  uint32_t n_inputs, n_outputs, n_effects;
  uint32_t is_default; /* 1: the signature of calls that name none. Default: the first one */
} tw_import_signature;

/* A step that runs once, when the load has returned, before the program gets the model: it assigns
 * variables, fills tables. */
typedef struct tw_import_step {
  TW_HEAD;
  const tw_edge* feeds;          /* n_feeds edges of the main graph, each once */
  tw_tensor* const* feed_values; /* one for each; retained until the step has run */
  const tw_edge* effects;        /* n_effects nodes (any output) that run for their effects */
  uint32_t n_feeds, n_effects;
} tw_import_step;

/* A function for If, While, PartitionedCall and the like, from a body of begin_function. */
typedef struct tw_import_function {
  TW_HEAD;
  TW_TEXT(name);          /* wanted; a number is added if it is taken */
  const tw_edge* args;    /* n_args edges from `input` of the body, each once, in the order of the call's inputs */
  const tw_edge* results; /* n_results edges of the body; may repeat, may be arguments */
  const tw_edge* effects; /* n_effects nodes of the body that run for their effects */
  uint32_t n_args, n_results, n_effects, reserved;
} tw_import_function;

typedef struct tw_model_builder tw_model_builder;

/* Receives a model. `graph` is the builder of the main graph: host->graph->emit, output, scalar,
 * constant and describe add nodes to it, and to the bodies of functions. Constants of strings are
 * given as tw_string. Edges belong to their graph: an edge of the main graph is no edge of a body
 * (pass it to the call as an input, and give the body an argument). All nodes count as imported: a
 * session does not trust them (session.h).
 * Failures are sticky, as with tw_graph_api: after one, functions that return an edge return 0, and
 * the load fails with the first. `problem` collects what the importer finds itself. */
struct tw_model_builder {
  TW_HEAD;
  tw_builder* graph; /* the main graph */
  void* self;

  /* ---- Nodes; b: the main graph or a body ---- */
  /* Sets the wanted name of the next node that is added to b; illegal characters are replaced and a
   * number is added if the name is taken. Default: the op's name. */
  TW_R void (*name)(tw_model_builder* to, tw_builder* b, const char* name, uint64_t len);
  /* Sets the place in the model file of the nodes that are added from now on, for messages, such as
   * "Conv 'layer1/conv' of resnet.onnx"; len 0: none. */
  TW_R void (*place)(tw_model_builder* to, const char* text, uint64_t len);
  /* Adds a value that the caller gives: an input of the main graph or an argument of a function.
   * shape: -1 for an unknown size, rank -1 for an unknown rank. */
  TW_R tw_edge (*input)(tw_model_builder* to, tw_builder* b, const char* name, uint64_t len, uint32_t dtype, const tw_shape* shape);
  /* Adds a constant that holds the tensor, without a copy. value: borrowed; from borrow, or from
   * host->tensor->make and no longer written to. */
  TW_R tw_edge (*constant)(tw_model_builder* to, tw_builder* b, tw_tensor* value);
  /* Makes a tensor of memory that the importer lends; copies elements that are not aligned to their
   * size. The caller owns *out_tensor. Errors: INVALID_ARGUMENT for bytes that do not fit dtype and
   * dims, and for types that are not plain. */
  TW_R tw_status* (*borrow)(tw_model_builder* to, const tw_import_memory* memory, tw_tensor** out_tensor);
  /* Returns the elements of an edge that are known without running (constants, and small values that
   * follow from constants); NULL if they are not. Host memory; lives until load returns. */
  TW_R const tw_view* (*value)(tw_model_builder* to, tw_builder* b, tw_edge e);
  /* 1: an op of that name can be emitted; the plugin that provides it is loaded if need be. */
  TW_R uint32_t (*has_op)(tw_model_builder* to, const char* op, uint64_t len);

  /* ---- Functions ---- */
  /* Begins the body of a function. It may call functions that exist, and itself if its name is
   * free. Errors: INVALID_ARGUMENT. The body lives until load returns. */
  TW_R tw_status* (*begin_function)(tw_model_builder* to, tw_builder** out_body);
  /* Makes a function of a body, once. *out_name lives until load returns: the value of a `func`
   * attribute. Errors: INVALID_ARGUMENT naming the function and the mistake. */
  TW_R tw_status* (*end_function)(tw_model_builder* to, tw_builder* body, const tw_import_function* f, tw_string* out_name);

  /* ---- GraphDefs ---- */
  /* Adds the nodes and functions of a serialised GraphDef to the main graph, under the program's
   * limits; data: borrowed. Nodes of unknown ops, and those that need them, are left out. Errors:
   * those of tw_graph_import. */
  TW_R tw_status* (*graph_def)(tw_model_builder* to, const void* data, uint64_t bytes);
  /* Finds "name" (output 0) or "name:1" in the main graph; for a node without outputs "name" gives
   * an edge that is good for `effects`. Errors: NOT_FOUND; for a node that was left out naming the
   * ops that it misses. */
  TW_R tw_status* (*find)(tw_model_builder* to, const char* name, uint64_t len, tw_edge* out_edge);

  /* ---- The model ---- */
  /* Returns 1 if the program wants the signature: it named it, or none. Parts of a model that only
   * other signatures need should not be read. */
  TW_R uint32_t (*wants)(tw_model_builder* to, const char* signature, uint64_t len);
  TW_R tw_status* (*signature)(tw_model_builder* to, const tw_import_signature* s); /* errors: INVALID_ARGUMENT, ALREADY_EXISTS */
  /* Adds a step; steps run in the order in which they were added. */
  TW_R tw_status* (*step)(tw_model_builder* to, const tw_import_step* s);
  /* Declares that nodes of the model read the file `name` beneath its folder; writes the path that
   * they can open. A session of the model may then read files of that folder, and write none.
   * Errors: as source->open. */
  TW_R tw_status* (*asset)(tw_model_builder* to, const char* name, uint64_t len, tw_sink* out_path);
  /* Describes the model for people: "producer", "tensorflow 2.21". A later text replaces an earlier
   * one. */
  TW_R tw_status* (*property)(tw_model_builder* to, const char* key, uint64_t key_len, const char* text, uint64_t len);
  /* Reports why the model cannot be loaded, and what would help: an op that is missing, with the
   * plugin or version that has it. The import should go on to find more: the load fails with one
   * error that lists all problems, each once. code: that of the first one becomes the error's. */
  TW_R void (*problem)(tw_model_builder* to, uint32_t code, const char* text, uint64_t len);
};

typedef struct tw_import_option {
  TW_TEXT(key);
  TW_TEXT(value);
} tw_import_option; /* a value, frozen */

typedef struct tw_import_call {
  TW_HEAD;
  const tw_host* host; /* confined to the model's folder, read only */
  void* user;          /* the definition's */
  const tw_model_source* source;
  const tw_import_option* options; /* n_options, whose keys the definition lists; the last of equal keys counts */
  uint32_t n_options, reserved;
  tw_model_builder* to;
} tw_import_call;

typedef struct tw_importer_def {
  TW_HEAD;
  TW_TEXT(name);    /* lower-case letters, digits, _: savedmodel, onnx */
  TW_TEXT(doc);     /* the format, in a few words: "TensorFlow SavedModels" */
  TW_TEXT(files);   /* usual endings of file names, separated by spaces: ".onnx .ort"; "/" for folders. Only for messages and to
                       decide between importers that are equally sure */
  TW_TEXT(options); /* one line for each option of the format: "tags: meta graph to load, names separated by ','"; lines end with \n */
  void* user;
  /* Says how sure the importer is that it can load the source, by its contents: 0 not at all, 100
   * certain; 50 or less if the contents would be another format's, too. Reads little, changes
   * nothing, and gives the same answer each time. An error counts as 0. */
  TW_R tw_status* (*recognise)(const tw_host* h, void* user, const tw_model_source* source, uint32_t* out_confidence);
  /* Fills c->to. Errors: INVALID_ARGUMENT and DATA_LOSS for damaged contents, naming the place;
   * NOT_FOUND, UNIMPLEMENTED. After an error the host drops all that was built. */
  TW_R tw_status* (*load)(const tw_import_call* c);
} tw_importer_def;

#ifdef __cplusplus
}
#endif
#endif
