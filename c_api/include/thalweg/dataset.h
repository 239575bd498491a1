/* Datasets: pipelines of examples as operations of a graph. A dataset is a value (of type variant) that describes where elements come
 * from and what happens to them; making one reads nothing. An element is one or more tensors, its components. A program runs a
 * dataset as a tw_iterator (iterator.h), or has the steps of its own graph take the elements (tw_dataset_next).
 *
 *     tw_output d = tw_dataset_records(s, files);                               a string of each record
 *     d = tw_dataset_shuffle(s, d, 10000, 1, 1);
 *     tw_output record;
 *     tw_block* parse = tw_dataset_block(s, d, &record);                        a function of an element
 *     tw_output image = tw_scope_op1(tw_block_scope(parse), ...);
 *     tw_block_give(parse, &image, 1);
 *     d = tw_dataset_map(s, d, parse, TW_DATASET_AUTO);
 *     d = tw_dataset_batch(s, d, 64, 0);
 *     status = tw_scope_finish(s);
 *     tw_iterator* batches = NULL;
 *     if (!status) status = tw_dataset_iterator_create(graph, d, NULL, &batches);
 *
 * The ops are TensorFlow's (`thalweg ops BatchDatasetV2`), so imported graphs mix with these. Everything is deterministic: elements and
 * their order depend on the data, the parameters and the epoch, and not on threads. Functions run on the threads of the session.
 * Values that a block uses from outside are read when the dataset operation runs; variables are read when the function runs.
 *
 * Scopes keep the errors; the code is INVALID_ARGUMENT for every rule stated here. Arguments that are values (tw_output) are scalars
 * unless stated otherwise. Threads: as scopes. Everything here: since 0.1. */
#ifndef THALWEG_DATASET_H
#define THALWEG_DATASET_H
#include "thalweg/export.h"
#include "thalweg/flow.h"
#include "thalweg/graph.h"
#include "thalweg/iterator.h"
#include "thalweg/runtime.h"
#include "thalweg/scope.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TW_DATASET_AUTO (-1) /* the number of threads of the session */
#define TW_DATASET_ALL (-1)  /* all elements; without end */

/* ---- Sources ---- */

/* Makes a dataset with an element for each row of n tensors, whose first sizes are equal. */
TW_EXPORT tw_output tw_dataset_rows(tw_scope* scope, const tw_output* components, uint32_t n);
/* Makes a dataset of the int64 numbers from start to stop, without stop. step: not 0. */
TW_EXPORT tw_output tw_dataset_range(tw_scope* scope, int64_t start, int64_t stop, int64_t step);
/* Make datasets of strings: the records of TFRecord files, whose checksums are verified, and the lines of text files, without their
 * ends. filenames: string, a scalar or a vector; the files are read one after the other. Errors when elements are taken: NOT_FOUND;
 * DATA_LOSS naming the file and the offset in bytes of a damaged record. */
TW_EXPORT tw_output tw_dataset_records(tw_scope* scope, tw_output filenames);
TW_EXPORT tw_output tw_dataset_lines(tw_scope* scope, tw_output filenames);
/* The same for compressed files. compression, here and below: "gzip", "zlib", or NULL or "": none. */
TW_EXPORT tw_output tw_dataset_records_packed(tw_scope* scope, tw_output filenames, const char* compression);
TW_EXPORT tw_output tw_dataset_lines_packed(tw_scope* scope, tw_output filenames, const char* compression);

/* What a column of a file, a member of JSON objects or an array of an archive becomes: one component. Set `size` to
 * sizeof(tw_dataset_column) and unused fields to 0. */
typedef struct tw_dataset_column {
  uint32_t size, flags;
  const char* name;    /* NULL: the columns are those of a CSV file in order; then no column has a name */
  uint32_t dtype;      /* of the component */
  int32_t rank;        /* of the component; 0 for columns of CSV files */
  const int64_t* dims; /* rank of them; -1: any size */
  tw_output missing;   /* what stands for a missing value; 0: a missing value is an error. Unused for arrays */
} tw_dataset_column;
/* Defaults: no name, float, a scalar, none missing. NULL is fine. */
TW_EXPORT void tw_dataset_column_init(tw_dataset_column* column);

/* Set `size` to sizeof(tw_dataset_csv_options) and unused fields to 0. NULL as a text: the default. */
typedef struct tw_dataset_csv_options {
  uint32_t size, flags;
  const char* delimiter; /* one character */
  const char* missing;   /* a text that stands for a missing value, besides an empty field */
  const char* compression;
  uint32_t header; /* 1: the first record of each file has the names, by which columns are chosen */
  uint32_t quotes; /* 1: fields may be in quotes and then hold delimiters and ends of lines */
} tw_dataset_csv_options;
/* Defaults: ",", "", none, 1, 1. NULL is fine. */
TW_EXPORT void tw_dataset_csv_options_init(tw_dataset_csv_options* options);
/* The records of CSV files. columns: n of them, above 0, of type float, double, int32, int64 or string. With names and a header they
 * are the columns of these names, whose order may differ between files; otherwise they are all columns in order. options: NULL means
 * the defaults. Errors when elements are taken: INVALID_ARGUMENT naming file, line, column and text of a field that does not fit. */
TW_EXPORT tw_output tw_dataset_csv(tw_scope* scope, tw_output filenames, const tw_dataset_column* const* columns, uint32_t n,
                                   const tw_dataset_csv_options* options);
/* Members of the JSON objects in the lines of files; blank lines are left out. columns: n of them, above 0, with names, of the types of
 * tw_dataset_csv or bool; a shape is that of an array. Errors when elements are taken: INVALID_ARGUMENT naming file, line and member. */
TW_EXPORT tw_output tw_dataset_json_lines(tw_scope* scope, tw_output filenames, const tw_dataset_column* const* columns, uint32_t n,
                                          const char* compression);
/* The rows of the arrays in .npy files and in IDX files, read as they are taken. dtype, dims, rank: of a row; a dim of -1: any size.
 * Errors when elements are taken: DATA_LOSS for damaged files; INVALID_ARGUMENT for an array of another type or shape. */
TW_EXPORT tw_output tw_dataset_npy(tw_scope* scope, tw_output filenames, uint32_t dtype, const int64_t* dims, int32_t rank,
                                   const char* compression);
TW_EXPORT tw_output tw_dataset_idx(tw_scope* scope, tw_output filenames, uint32_t dtype, const int64_t* dims, int32_t rank,
                                   const char* compression);
/* The rows of arrays in .npz files side by side. arrays: n of them, above 0, with names; dtype and shape are those of a row. The
 * checksum of an array is verified behind its last row. Errors: as tw_dataset_npy. */
TW_EXPORT tw_output tw_dataset_npz(tw_scope* scope, tw_output filenames, const tw_dataset_column* const* arrays, uint32_t n);

/* ---- The same elements, fewer, or in another order ---- */

/* The first `count` elements, or those behind them. TW_DATASET_ALL: all of them. */
TW_EXPORT tw_output tw_dataset_take(tw_scope* scope, tw_output dataset, int64_t count);
TW_EXPORT tw_output tw_dataset_skip(tw_scope* scope, tw_output dataset, int64_t count);
/* Every `shards`-th element, from number `index` on: shard `index` of a reader among `shards`. 0 <= index < shards. */
TW_EXPORT tw_output tw_dataset_shard(tw_scope* scope, tw_output dataset, int64_t shards, int64_t index);
/* The elements `count` times, one pass after the other; TW_DATASET_ALL: without end. */
TW_EXPORT tw_output tw_dataset_repeat(tw_scope* scope, tw_output dataset, int64_t count);
/* The elements of `first`, then those of `second`, of equal types. */
TW_EXPORT tw_output tw_dataset_concatenate(tw_scope* scope, tw_output first, tw_output second);
/* The components of an element of each dataset, side by side; ends with the shortest. n: above 0. */
TW_EXPORT tw_output tw_dataset_zip(tw_scope* scope, const tw_output* datasets, uint32_t n);
/* The elements in a random order: each is drawn from a buffer of the next `buffer` elements, so an element moves forward by at most
 * that many places. buffer: above 0; TW_DATASET_ALL: all elements, a uniform order. each_pass: 1: each pass and each epoch of an
 * iterator has an order of its own; 0: all have the same. A saved position holds the buffer: shuffle names or records rather than
 * decoded images. */
TW_EXPORT tw_output tw_dataset_shuffle(tw_scope* scope, tw_output dataset, int64_t buffer, int64_t seed, uint32_t each_pass);
/* The elements; the first pass that reaches the end keeps them in memory for all later passes. */
TW_EXPORT tw_output tw_dataset_cache(tw_scope* scope, tw_output dataset);
/* The elements; an iterator over this dataset computes up to `count` of them before they are taken. count: above 0, or
 * TW_DATASET_AUTO: 2. Only the last operation of a pipeline has this effect. */
TW_EXPORT tw_output tw_dataset_prefetch(tw_scope* scope, tw_output dataset, int64_t count);
/* The elements without those that fail, such as damaged records. log: 1: the log says how many were skipped, and why. Errors that are
 * not those of an element (cancellation, deadline, memory that is out, what cannot be reached) are given still. */
TW_EXPORT tw_output tw_dataset_ignore_errors(tw_scope* scope, tw_output dataset, uint32_t log);

/* ---- Several elements become one, or one several ---- */

/* `size` elements stacked along a new first axis; components must agree in shape. whole: 1: a last batch of fewer elements is left
 * out; 0: it is given. */
TW_EXPORT tw_output tw_dataset_batch(tw_scope* scope, tw_output dataset, int64_t size, uint32_t whole);
/* The same for components of different sizes. shapes: one for each component, or NULL: the known sizes; -1 is the largest size in the
 * batch. padding: one scalar for each component, of its type, or NULL: 0 and "". */
TW_EXPORT tw_output tw_dataset_padded_batch(tw_scope* scope, tw_output dataset, int64_t size, const tw_shape* shapes,
                                            const tw_output* padding, uint32_t whole);
/* An element for each row of an element. */
TW_EXPORT tw_output tw_dataset_unbatch(tw_scope* scope, tw_output dataset);
/* For each window of `size` elements, each `stride` behind the one before, a dataset for each component. Windows begin `shift`
 * elements apart. whole: as in tw_dataset_batch. */
TW_EXPORT tw_output tw_dataset_window(tw_scope* scope, tw_output dataset, int64_t size, int64_t shift, int64_t stride, uint32_t whole);

/* ---- Functions of elements ---- */

/* Begins a block whose arguments are the components of an element. out_arguments: room for tw_dataset_component_count of them. The
 * caller owns the block until another function takes it. */
TW_EXPORT tw_block* tw_dataset_block(tw_scope* scope, tw_output dataset, tw_output* out_arguments);
/* The results of the block for each element, in order. block: taken; from tw_dataset_block. parallel: the number of elements that are
 * computed at once; TW_DATASET_AUTO. */
TW_EXPORT tw_output tw_dataset_map(tw_scope* scope, tw_output dataset, tw_block* block, int64_t parallel);
/* The elements for which the block's result, one bool scalar, is true; and the elements before the first for which it is not. */
TW_EXPORT tw_output tw_dataset_filter(tw_scope* scope, tw_output dataset, tw_block* block);
TW_EXPORT tw_output tw_dataset_take_while(tw_scope* scope, tw_output dataset, tw_block* block);
/* The elements of the datasets that the block makes of each element. The block's result is one dataset, from a function of this
 * header with the block's scope. tw_dataset_flat_map: one dataset after the other. tw_dataset_interleave: up to block_length elements
 * of each of `cycle` datasets in turn; a dataset that has ended is replaced by that of the next element. cycle, block_length: above 0. */
TW_EXPORT tw_output tw_dataset_flat_map(tw_scope* scope, tw_output dataset, tw_block* block);
TW_EXPORT tw_output tw_dataset_interleave(tw_scope* scope, tw_output dataset, tw_block* block, int64_t cycle, int64_t block_length);

/* Begins a block for tw_dataset_group_by_window: *out_key is the key, int64, of a window; *out_window is the dataset of its elements,
 * which have the components of `dataset`. The caller owns the block until another function takes it. */
TW_EXPORT tw_block* tw_dataset_window_block(tw_scope* scope, tw_output dataset, tw_output* out_key, tw_output* out_window);
/* The elements of the datasets that `reduce` makes of each window. A window has the next `size` elements for which the result of `key`,
 * one int64 scalar, is the same. At the end of the elements the windows that are not full follow, in the order of their keys.
 * key: taken; from tw_dataset_block.   reduce: taken; from tw_dataset_window_block; its result is one dataset.   size: above 0. */
TW_EXPORT tw_output tw_dataset_group_by_window(tw_scope* scope, tw_output dataset, tw_block* key, tw_block* reduce, int64_t size);

/* Set `size` to sizeof(tw_dataset_bucket_options) and unused fields to 0. */
typedef struct tw_dataset_bucket_options {
  uint32_t size, flags;
  const tw_shape* shapes;   /* as in tw_dataset_padded_batch */
  const tw_output* padding; /* as in tw_dataset_padded_batch */
  uint32_t to_boundary; /* 1: unknown sizes become boundaries[k] - 1, not the largest of the batch. A length that reaches the last boundary
                           is then INVALID_ARGUMENT when elements are taken */
  uint32_t stacked;     /* 1: elements are stacked without padding, as by tw_dataset_batch */
  uint32_t whole;       /* 1: batches that are not full at the end are left out */
  uint32_t reserved;
} tw_dataset_bucket_options;
/* Defaults: the known shapes, padding of 0 and "", all batches. NULL is fine. */
TW_EXPORT void tw_dataset_bucket_options_init(tw_dataset_bucket_options* options);
/* Batches of elements of similar lengths, which need little padding. length: a block that gives one whole number for an element; taken;
 * from tw_dataset_block.   boundaries: n of them, above 0, growing; an element with boundaries[k - 1] <= length < boundaries[k] is in
 * bucket k.   sizes: of the batches of each bucket; n + 1 of them, above 0.   options: NULL means the defaults.
 * A saved position holds the elements of the batches that are not full. */
TW_EXPORT tw_output tw_dataset_bucket_by_length(tw_scope* scope, tw_output dataset, tw_block* length, const int64_t* boundaries,
                                                const int64_t* sizes, uint32_t n, const tw_dataset_bucket_options* options);

/* ---- Looking ---- */

/* Returns the number of components of the elements; 0 for a value that is no dataset operation's. */
TW_EXPORT uint32_t tw_dataset_component_count(const tw_graph* graph, tw_output dataset);
/* Returns element type and shape of component i. The dims live as long as the graph. Either output may be NULL. Errors:
 * INVALID_ARGUMENT for a value that is no dataset, and past the end. */
TW_EXPORT tw_status* tw_dataset_component(const tw_graph* graph, tw_output dataset, uint32_t i, uint32_t* out_dtype, tw_shape* out_shape);

/* ---- Elements in the steps of a graph ---- */

/* Adds the named state that holds a position in datasets of the types of `dataset`. name: of the operation and of the state in
 * checkpoints; NULL means a generated one. Savers save it. Returns its handle. */
TW_EXPORT tw_output tw_dataset_position(tw_scope* scope, const char* name, tw_output dataset);
/* Adds the operation that moves the position to the first element of the dataset. If the position was restored from a checkpoint, the
 * operation keeps it instead, once: run it after restoring. Errors when it runs: INVALID_ARGUMENT if the restored position is of
 * another pipeline, naming both. */
TW_EXPORT const tw_operation* tw_dataset_start(tw_scope* scope, tw_output dataset, tw_output position);
/* Adds the operation that takes the next element. out_components: room for all. Errors when it runs: OUT_OF_RANGE at the end;
 * FAILED_PRECONDITION before tw_dataset_start has run. */
TW_EXPORT void tw_dataset_next(tw_scope* scope, tw_output dataset, tw_output position, tw_output* out_components);

/* ---- Elements for a program ---- */

/* Set `size` to sizeof(tw_dataset_iterator_options) and unused fields to 0. */
typedef struct tw_dataset_iterator_options {
  uint32_t size, flags;
  int64_t prefetch; /* elements computed before they are taken; 0: none; TW_DATASET_AUTO: as a last tw_dataset_prefetch says, else 0 */
  const char* const* session; /* options of the session, as of tw_session_create; n_session of them */
  uint32_t n_session, reserved;
} tw_dataset_iterator_options;
/* Defaults: prefetch TW_DATASET_AUTO, no session options. NULL is fine. */
TW_EXPORT void tw_dataset_iterator_options_init(tw_dataset_iterator_options* options);
/* Makes an iterator over a dataset of `graph`, with a session of its own; the graph's handle may be destroyed before it. It resets to
 * any epoch; an epoch is one pass, and a shuffle of each pass has an order for each epoch. Saved positions include the elements that
 * were computed and not taken, and fit an iterator over an equal pipeline in any process: each element is given exactly once over any
 * number of restarts. Components of type resource and variant cannot be saved.
 * An error of an element ends `next` with that error; further calls go on with the elements behind it. options: NULL means the
 * defaults. The caller owns *out_iterator. Errors: INVALID_ARGUMENT; those of creating a session. */
TW_EXPORT tw_status* tw_dataset_iterator_create(tw_graph* graph, tw_output dataset, const tw_dataset_iterator_options* options,
                                                tw_iterator** out_iterator);

/* ---- Files of records ---- */

typedef struct tw_record_writer tw_record_writer; /* a TFRecord file that is being written. Threads: one at a time */

/* Begins a file of records under a temporary name beside `path`; the file appears under `path`, replacing one of that name, when it is
 * closed. runtime: knows the file systems of paths with a scheme; NULL means the default one. The caller owns *out_writer. Errors:
 * INVALID_ARGUMENT; those of the file system, naming the path. */
TW_EXPORT tw_status* tw_record_writer_create(tw_runtime* runtime, const char* path, tw_record_writer** out_writer);
/* Appends a record with its checksums. data: borrowed until return; NULL only if bytes is 0. Errors: INVALID_ARGUMENT;
 * FAILED_PRECONDITION after close or after a failure; those of the file system. */
TW_EXPORT tw_status* tw_record_writer_write(tw_record_writer* writer, const void* data, uint64_t bytes);
/* Syncs the file and gives it its name. Errors: as write. */
TW_EXPORT tw_status* tw_record_writer_close(tw_record_writer* writer);
/* Frees the writer; the records of a file that was not closed are discarded. NULL is fine. */
TW_EXPORT void tw_record_writer_destroy(tw_record_writer* writer);

#ifdef __cplusplus
}
#endif
#endif
