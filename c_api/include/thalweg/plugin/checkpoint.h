/* Optional set "checkpoint", version 1: tensors in files of the host's checkpoint format
 * (TensorFlow's V2 bundles), for save and restore kernels. host->query(h, TW_S(TW_CHECKPOINT_SET),
 * 1) returns a const tw_checkpoint_api*, or NULL if the host has none.
 * h: in a kernel always the host of its frame or node, never one kept from elsewhere. It knows
 * which files this node may use, and returns PERMISSION_DENIED for others. Ops with such kernels
 * declare `touches files`.
 * Threads: one writer or reader is used by one thread at a time. All entries may block. */
#ifndef THALWEG_PLUGIN_CHECKPOINT_H
#define THALWEG_PLUGIN_CHECKPOINT_H
#include "thalweg/plugin/abi.h"
#include "thalweg/plugin/tensor.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TW_CHECKPOINT_SET "checkpoint"

typedef struct tw_checkpoint_writer tw_checkpoint_writer;
typedef struct tw_checkpoint_reader tw_checkpoint_reader;

typedef struct tw_checkpoint_api {
  TW_HEAD;
  /* Starts a data file under a temporary name; nothing is visible under the prefix until commit.
   * commit makes `prefix`.index and one data file beside it: data-00000-of-00001, or
   * data-00001-of-00002 if an existing checkpoint uses the first name. */
  TW_R tw_status* (*create)(const tw_host* h, const char* prefix, uint64_t len, tw_checkpoint_writer** out_writer);
  TW_R tw_status* (*add)(tw_checkpoint_writer* w, const char* name, uint64_t len, const tw_view* value); /* value: host memory */
  TW_R tw_status* (*commit)(tw_checkpoint_writer* w); /* writes checksums, syncs, renames, syncs the folder; frees w on success and
                                                         failure */
  TW_R void (*discard)(tw_checkpoint_writer* w);      /* removes the unfinished files and frees w; NULL is fine */
  /* Opens a checkpoint for reading. Errors: NOT_FOUND, DATA_LOSS. */
  TW_R tw_status* (*open)(const tw_host* h, const char* prefix, uint64_t len, tw_checkpoint_reader** out_reader);
  /* Reads the tensor of that name and verifies its checksum. Errors: NOT_FOUND, DATA_LOSS naming
   * file and tensor. */
  TW_R tw_status* (*read)(tw_checkpoint_reader* r, const char* name, uint64_t len, tw_tensor** out_tensor);
  TW_R void (*close)(tw_checkpoint_reader* r); /* NULL is fine */
  /* Adds a piece of a tensor whose sizes are `dims`: sizes[i] elements from starts[i] on axis i, or
   * all of the axis with start 0 and size -1. Other pieces may be in other checkpoints, to be
   * merged with this one. rank: of all three lists. */
  TW_C tw_status* (*add_piece)(tw_checkpoint_writer* w, const char* name, uint64_t len, const int64_t* dims, const int64_t* starts,
                               const int64_t* sizes, int32_t rank, const tw_view* value);
  /* Reads a part of a tensor, described in the same way; dims must be the tensor's sizes. Needs
   * only the pieces that overlap the part. */
  TW_C tw_status* (*read_part)(tw_checkpoint_reader* r, const char* name, uint64_t len, const int64_t* dims, const int64_t* starts,
                               const int64_t* sizes, int32_t rank, tw_tensor** out_tensor);
  /* Merges n checkpoints into one and removes them. remove_folders 1: also removes their folders if
   * they are empty. */
  TW_C tw_status* (*merge)(const tw_host* h, const tw_string* parts, uint64_t n, const char* prefix, uint64_t len, uint32_t remove_folders);
  /* As create, but first creates the folder of the prefix if it is missing and its parent exists. */
  TW_C tw_status* (*create_in_folder)(const tw_host* h, const char* prefix, uint64_t len, tw_checkpoint_writer** out_writer);
} tw_checkpoint_api;

#ifdef __cplusplus
}
#endif
#endif
