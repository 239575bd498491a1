/* Checkpoints: named tensors in files, in TensorFlow's V2 bundle format: `prefix`.index and
 * `prefix`.data-00000-of-00001, .... This header reads and writes them without a graph; saver.h
 * saves and restores a session.
 * Files are written under temporary names, synced and renamed, so a prefix names the old checkpoint
 * or the new one, never half of one.
 * A path `scheme://...` names a file in the file system that a plugin provides for that scheme. The
 * plugin belongs to the default runtime, or to the runtime given to a function whose name ends in
 * _in.
 * Error messages name the file and the tensor. All calls may block on files. Threads: any.
 * Everything here: since 0.1. */
#ifndef THALWEG_CHECKPOINT_H
#define THALWEG_CHECKPOINT_H
#include "thalweg/buffer.h"
#include "thalweg/export.h"
#include "thalweg/types.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_checkpoint tw_checkpoint; /* a checkpoint that is open for reading */

/* Writes n tensors under n different names. names, tensors: borrowed. Creates the folder of the
 * prefix if it is missing and its parent exists. Errors: INVALID_ARGUMENT (a repeated name, a
 * resource); the errors of the file system. After a failure the previous checkpoint is untouched. */
TW_EXPORT tw_status* tw_checkpoint_write(const char* prefix, const char* const* names, tw_tensor* const* tensors, uint32_t n);
/* The same, in `shards` data files of about the same size. shards: 1 to 1,000. Errors: those of
 * tw_checkpoint_write; INVALID_ARGUMENT for another number. */
TW_EXPORT tw_status* tw_checkpoint_write_sharded(const char* prefix, const char* const* names, tw_tensor* const* tensors, uint32_t n,
                                                 uint32_t shards);
/* The same, with the file systems of `runtime`; NULL means the default one. Errors: those of
 * tw_checkpoint_write_sharded; FAILED_PRECONDITION for a scheme that no plugin of the runtime
 * provides. */
TW_EXPORT tw_status* tw_checkpoint_write_in(tw_runtime* runtime, const char* prefix, const char* const* names, tw_tensor* const* tensors,
                                            uint32_t n, uint32_t shards);

/* Finds the prefix of the latest complete checkpoint of a folder. The folder's file `checkpoint`
 * names it. If that checkpoint is missing or damaged, the search goes on with the others, newest
 * first. A checkpoint is complete if its index can be read and its data files have their sizes;
 * checksums are compared when tensors are read. out_skipped: a line with the reason for each
 * checkpoint that was skipped; may be NULL. The caller releases both. Errors: NOT_FOUND if the
 * folder has none; DATA_LOSS, with those lines, if it has some and none is complete.
 * Source: TensorFlow's tf.train.latest_checkpoint, which does not fall back. */
TW_EXPORT tw_status* tw_checkpoint_latest(const char* folder, tw_buffer** out_prefix, tw_buffer** out_skipped);
/* The same, with the file systems of `runtime`; NULL means the default one. The caller owns
 * *out_prefix and *out_skipped. */
TW_EXPORT tw_status* tw_checkpoint_latest_in(tw_runtime* runtime, const char* folder, tw_buffer** out_prefix, tw_buffer** out_skipped);

/* Opens a checkpoint and reads its index. The object keeps the files open, so a later save under
 * the same prefix does not disturb it. Errors: NOT_FOUND; DATA_LOSS if the index is damaged or of
 * another format. */
TW_EXPORT tw_status* tw_checkpoint_open(const char* prefix, tw_checkpoint** out_checkpoint);
/* The same, with the file systems of `runtime`; NULL means the default one. The caller owns
 * *out_checkpoint. */
TW_EXPORT tw_status* tw_checkpoint_open_in(tw_runtime* runtime, const char* prefix, tw_checkpoint** out_checkpoint);
TW_EXPORT void tw_checkpoint_close(tw_checkpoint* checkpoint); /* NULL is fine */
/* The tensors of the checkpoint, sorted by name. Names and dims live until it is closed. */
TW_EXPORT uint32_t tw_checkpoint_count(const tw_checkpoint* checkpoint);
TW_EXPORT const char* tw_checkpoint_name(const tw_checkpoint* checkpoint, uint32_t i); /* NULL past the end */
/* Returns element type, shape and bytes in the file of the tensor `name`. Outputs that are not
 * wanted may be NULL. Errors: NOT_FOUND. */
TW_EXPORT tw_status* tw_checkpoint_describe(const tw_checkpoint* checkpoint, const char* name, uint32_t* out_dtype, tw_shape* out_shape,
                                            uint64_t* out_bytes);
/* Reads one tensor and verifies its checksum; the caller owns *out_tensor. Errors: NOT_FOUND;
 * DATA_LOSS. */
TW_EXPORT tw_status* tw_checkpoint_read(tw_checkpoint* checkpoint, const char* name, tw_tensor** out_tensor);
/* Compares the checksum of tensor `name` with its bytes in the file; name NULL verifies all
 * tensors. Needs little memory. Errors: DATA_LOSS naming file and tensor, the first damaged one if
 * name is NULL; NOT_FOUND. */
TW_EXPORT tw_status* tw_checkpoint_verify(tw_checkpoint* checkpoint, const char* name);

#ifdef __cplusplus
}
#endif
#endif
