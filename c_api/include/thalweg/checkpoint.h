/* Checkpoints: named tensors in files, in TensorFlow's V2 bundle format: `prefix`.index and `prefix`.data-00000-of-00001, .... This header
 * reads and writes them without a graph; saver.h does it from a session.
 * Files are written under temporary names, synced and renamed: a prefix names the old checkpoint or the new one, never half of one.
 * A path `scheme://...` leads to the file system that a plugin of a runtime has for that scheme: of the default runtime, or of the one that
 * the functions ending in _in are given.
 * Errors name the file and the tensor. All calls may block on files. Threads: any. Everything here: since 0.1. */
#ifndef THALWEG_CHECKPOINT_H
#define THALWEG_CHECKPOINT_H
#include "thalweg/buffer.h"
#include "thalweg/export.h"
#include "thalweg/types.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_checkpoint tw_checkpoint; /* one that is open for reading */

/* Writes n tensors under n different names. Tensors are borrowed. The folder of the prefix is made where it is missing and the one above it
 * is there. Errors: INVALID_ARGUMENT (a name twice, a resource), whatever the file system says; the checkpoint that was there before is
 * then untouched. */
TW_EXPORT tw_status* tw_checkpoint_write(const char* prefix, const char* const* names, tw_tensor* const* tensors, uint32_t n);
/* The same in that many data files, 1 to 1,000, of about the same size. Errors: those of tw_checkpoint_write; INVALID_ARGUMENT for
 * another number. */
TW_EXPORT tw_status* tw_checkpoint_write_sharded(const char* prefix, const char* const* names, tw_tensor* const* tensors, uint32_t n,
                                                 uint32_t shards);
/* The same with the file systems of a runtime; NULL: the default one. Errors: also FAILED_PRECONDITION for a scheme that no plugin of it
 * has. */
TW_EXPORT tw_status* tw_checkpoint_write_in(tw_runtime* runtime, const char* prefix, const char* const* names, tw_tensor* const* tensors,
                                            uint32_t n, uint32_t shards);

/* The prefix of the latest whole checkpoint of a folder: the one that its file `checkpoint` names or, where that is missing or torn, the
 * next that is not, from the newest on. Whole means that the index can be read and the data files have their sizes; their checksums are
 * compared when tensors are read. out_skipped: a line for each thing that was passed over, with the reason; may be NULL. The caller
 * releases both. Errors: NOT_FOUND if there is none; DATA_LOSS, with those lines, if there are some and none is whole.
 * Source: TensorFlow's tf.train.latest_checkpoint, which does not fall back. */
TW_EXPORT tw_status* tw_checkpoint_latest(const char* folder, tw_buffer** out_prefix, tw_buffer** out_skipped);
/* The same with the file systems of a runtime; NULL: the default one. The caller owns *out_prefix and *out_skipped. */
TW_EXPORT tw_status* tw_checkpoint_latest_in(tw_runtime* runtime, const char* folder, tw_buffer** out_prefix, tw_buffer** out_skipped);

/* Opens one and reads its index. Errors: NOT_FOUND; DATA_LOSS if the index is damaged or not of this format. It keeps its files open: a
 * later save under the same prefix does not disturb it. */
TW_EXPORT tw_status* tw_checkpoint_open(const char* prefix, tw_checkpoint** out_checkpoint);
/* The same with the file systems of a runtime; NULL: the default one. The caller owns *out_checkpoint. */
TW_EXPORT tw_status* tw_checkpoint_open_in(tw_runtime* runtime, const char* prefix, tw_checkpoint** out_checkpoint);
TW_EXPORT void tw_checkpoint_close(tw_checkpoint* checkpoint); /* NULL is fine */
/* Its tensors, sorted by name. The texts and dims live until it is closed. */
TW_EXPORT uint32_t tw_checkpoint_count(const tw_checkpoint* checkpoint);
TW_EXPORT const char* tw_checkpoint_name(const tw_checkpoint* checkpoint, uint32_t i); /* NULL past the end */
/* Element type, shape and bytes in the file of the tensor of that name. Outputs that are not wanted may be NULL. Errors: NOT_FOUND. */
TW_EXPORT tw_status* tw_checkpoint_describe(const tw_checkpoint* checkpoint, const char* name, uint32_t* out_dtype, tw_shape* out_shape,
                                            uint64_t* out_bytes);
/* Reads one, its checksum verified; the caller owns *out_tensor. Errors: NOT_FOUND; DATA_LOSS. */
TW_EXPORT tw_status* tw_checkpoint_read(tw_checkpoint* checkpoint, const char* name, tw_tensor** out_tensor);
/* Compares the checksum of one tensor with its bytes in the file, or, with name NULL, of all, in little memory.
 * Errors: DATA_LOSS naming file and tensor, for all the first; NOT_FOUND. */
TW_EXPORT tw_status* tw_checkpoint_verify(tw_checkpoint* checkpoint, const char* name);

#ifdef __cplusplus
}
#endif
#endif
