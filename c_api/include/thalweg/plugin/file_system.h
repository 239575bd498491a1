/* File systems: where `scheme://...` leads. Checkpoints, readers and everything else of the host that touches files goes through the
 * plugin whose scheme the path has; a path without one is the machine's own. A plugin reaches all of them through the set "files".
 * Paths are handed over whole, scheme included. Errors: NOT_FOUND, ALREADY_EXISTS, PERMISSION_DENIED, RESOURCE_EXHAUSTED (full),
 * UNAVAILABLE (try again), DATA_LOSS; the host adds the path. `..` in a path means nothing to the host: do not let it lead elsewhere.
 * Threads: any; one file that is written is used by one thread at a time, reads of one file run several at once. All entries may block. */
#ifndef THALWEG_PLUGIN_FILE_SYSTEM_H
#define THALWEG_PLUGIN_FILE_SYSTEM_H
#include "thalweg/plugin/abi.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_file_system_def {
  TW_HEAD;
  TW_TEXT(scheme); /* lower-case letters, digits, +, -, . after a letter: mem, s3 */
  void* user;
  /* A new file, to be appended to; ALREADY_EXISTS if the name is taken. */
  TW_R tw_status* (*create)(const tw_host* h, void* user, const char* path, uint64_t len, void** out_file);
  TW_R tw_status* (*append)(const tw_host* h, void* file, const void* bytes, uint64_t n); /* at its end */
  TW_R tw_status* (*sync)(const tw_host* h, void* file);  /* what was appended survives a crash of the machine */
  TW_R tw_status* (*close)(const tw_host* h, void* file); /* frees `file` either way; an error says that the contents are not safe */
  /* A file as it is now; NOT_FOUND. */
  TW_R tw_status* (*open)(const tw_host* h, void* user, const char* path, uint64_t len, void** out_file, uint64_t* out_bytes);
  /* Exactly n bytes from `offset`; OUT_OF_RANGE if the file ends before. */
  TW_R tw_status* (*read)(const tw_host* h, void* file, uint64_t offset, void* to, uint64_t n);
  TW_R void (*release)(const tw_host* h, void* file); /* of a file from open */
  /* Replaces what has the new name, all at once: at any moment a reader sees the old file or the new one. */
  TW_R tw_status* (*rename)(const tw_host* h, void* user, const char* from, uint64_t from_len, const char* to, uint64_t to_len);
  TW_R tw_status* (*remove)(const tw_host* h, void* user, const char* path, uint64_t len); /* a file; NOT_FOUND */
  /* Puts each name in the folder (files and folders, without the path before it), followed by a zero byte; in any order. A folder's path
   * may end in '/'. NOT_FOUND, or nothing where folders need not be made. */
  TW_R tw_status* (*list)(const tw_host* h, void* user, const char* folder, uint64_t len, tw_sink* to);
  TW_O tw_status* (*make_folder)(const tw_host* h, void* user, const char* folder,
                                 uint64_t len); /* fine where it is; default: need not be */
  TW_O tw_status* (*remove_folder)(const tw_host* h, void* user, const char* folder, uint64_t len); /* an empty one */
  /* Names made, changed and removed beside `path` survive a crash. Default: rename and remove see to it themselves. */
  TW_O tw_status* (*sync_folder_of)(const tw_host* h, void* user, const char* path, uint64_t len);
  /* Keeps other savers out of the folder of `path` until unlock; UNAVAILABLE when it takes too long. Default: within the process only. */
  TW_O tw_status* (*lock_folder_of)(const tw_host* h, void* user, const char* path, uint64_t len, void** out_lock);
  TW_O void (*unlock)(const tw_host* h, void* lock); /* ends and frees it */
} tw_file_system_def;

/* Optional set "files", version 1: host->query(h, TW_S(TW_FILES_SET), 1) answers a const tw_files_api*. Any path, of any file system.
 * h: in a kernel always the host of its frame or node (see checkpoint.h); PERMISSION_DENIED for what the node may not touch. */
#define TW_FILES_SET "files"
typedef struct tw_file tw_file; /* open for reading */
typedef struct tw_files_api {
  TW_HEAD;
  TW_R tw_status* (*open)(const tw_host* h, const char* path, uint64_t len, tw_file** out_file); /* NOT_FOUND */
  TW_R uint64_t (*bytes)(const tw_file* f);                                                      /* its size when it was opened */
  TW_R tw_status* (*read)(tw_file* f, uint64_t offset, void* to, uint64_t n); /* exactly n bytes; OUT_OF_RANGE if the file ends before */
  TW_R void (*close)(tw_file* f);                                             /* NULL is fine */
  /* Writes a whole file: under a temporary name, synced, then renamed to `path`. */
  TW_R tw_status* (*write)(const tw_host* h, const char* path, uint64_t len, const void* bytes, uint64_t n);
  TW_R tw_status* (*list)(const tw_host* h, const char* folder, uint64_t len, tw_sink* to); /* each name, then a zero byte; sorted */
  TW_R tw_status* (*remove)(const tw_host* h, const char* path, uint64_t len);              /* NOT_FOUND */
  TW_R tw_status* (*make_folder)(const tw_host* h, const char* folder, uint64_t len);       /* fine where it is; the one above must be */
} tw_files_api;

#ifdef __cplusplus
}
#endif
#endif
