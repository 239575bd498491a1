/* File systems serve paths `scheme://...`. Checkpoints, readers and all other file access of the
 * host use the plugin that has the scheme of the path; a path without a scheme is in the machine's
 * own file system. A plugin can use all file systems through the set "files".
 * Plugins receive whole paths, scheme included. Errors: NOT_FOUND, ALREADY_EXISTS,
 * PERMISSION_DENIED, RESOURCE_EXHAUSTED (full), UNAVAILABLE (try again), DATA_LOSS; the host adds
 * the path. The host does not interpret `..` in a path: do not let it lead elsewhere.
 * Threads: any; one file that is written is used by one thread at a time, reads of one file run
 * several at once. All entries may block. */
#ifndef THALWEG_PLUGIN_FILE_SYSTEM_H
#define THALWEG_PLUGIN_FILE_SYSTEM_H
#include "thalweg/plugin/abi.h"
#include "thalweg/plugin/role.h"
#ifdef __cplusplus
extern "C" {
#endif

/* A file to create or open. */
typedef struct tw_file_request {
  TW_HEAD;
  TW_TEXT(path); /* with the scheme */
} tw_file_request;

typedef struct tw_file_system_def {
  TW_HEAD;
  TW_TEXT(scheme); /* lower-case letters, digits, +, -, . after a letter: mem, s3 */
  void* user;
  /* Creates a file for appending; ALREADY_EXISTS if the name is taken. */
  TW_R tw_status* (*create)(const tw_host* h, void* user, const tw_file_request* r, void** out_file);
  TW_R tw_status* (*append)(const tw_host* h, void* file, const void* bytes, uint64_t n); /* at its end */
  TW_R tw_status* (*sync)(const tw_host* h, void* file);  /* appended bytes survive a crash of the machine */
  TW_R tw_status* (*close)(const tw_host* h, void* file); /* frees `file` on success and failure; an error means that the contents are
                                                             not safe */
  /* Opens a file with its current contents; NOT_FOUND. */
  TW_R tw_status* (*open)(const tw_host* h, void* user, const tw_file_request* r, void** out_file, uint64_t* out_bytes);
  /* Reads exactly n bytes from `offset`; OUT_OF_RANGE if the file ends before. */
  TW_R tw_status* (*read)(const tw_host* h, void* file, uint64_t offset, void* to, uint64_t n);
  TW_R void (*release)(const tw_host* h, void* file); /* closes a file from open */
  /* Replaces a file of the new name atomically: at any moment a reader sees the old file or the new
   * one. UNAVAILABLE and DEADLINE_EXCEEDED: the file may have been renamed, or may still be; after
   * other errors it was not. */
  TW_R tw_status* (*rename)(const tw_host* h, void* user, const char* from, uint64_t from_len, const char* to, uint64_t to_len);
  TW_R tw_status* (*remove)(const tw_host* h, void* user, const char* path, uint64_t len); /* removes a file; NOT_FOUND */
  /* Writes each name in the folder (files and folders, without the path before it), followed by a
   * zero byte, in any order. A folder's path may end in '/'. A missing folder is NOT_FOUND, or has
   * no names if folders need not be created. */
  TW_R tw_status* (*list)(const tw_host* h, void* user, const char* folder, uint64_t len, tw_sink* to);
  TW_O tw_status* (*make_folder)(const tw_host* h, void* user, const char* folder,
                                 uint64_t len); /* no effect if it exists; default: folders need not be created */
  TW_O tw_status* (*remove_folder)(const tw_host* h, void* user, const char* folder, uint64_t len); /* removes an empty folder */
  /* Makes created, changed and removed names beside `path` survive a crash. Default: rename and
   * remove do this themselves. */
  TW_O tw_status* (*sync_folder_of)(const tw_host* h, void* user, const char* path, uint64_t len);
  /* Locks the folder of `path` against other savers until unlock; UNAVAILABLE when it takes too
   * long. Default: locks within the process only. */
  TW_O tw_status* (*lock_folder_of)(const tw_host* h, void* user, const char* path, uint64_t len, void** out_lock);
  TW_O void (*unlock)(const tw_host* h, void* lock); /* unlocks and frees it */
  /* Writes at most 256 bytes that identify an open file and its contents: the number of the file and
   * its version, or its name and an entity tag. The host calls it once, after open. Two open files
   * get equal bytes only if they are one file, under whatever names, and were opened with the same
   * contents; a file with the name and the contents of the one that it replaced may count as that
   * one. Files of different names with equal contents get different bytes. From the bytes the host
   * learns whether a path still leads to the file that it opened, without reading the file again, and
   * whether two paths lead to one file. No bytes: this file cannot be identified. file: from open.
   * Default: no file can be identified; the host compares contents. */
  TW_O tw_status* (*TW_FILE_SYSTEM_SINCE_1(identify))(const tw_host* h, void* file, tw_sink* to);
} tw_file_system_def;

/* Optional set "files", version 1: host->query(h, TW_S(TW_FILES_SET), 1) returns a const
 * tw_files_api*. It accepts paths of all file systems.
 * h: in a kernel always the host of its frame or node (see checkpoint.h); PERMISSION_DENIED for
 * files that the node may not touch. */
#define TW_FILES_SET "files"
typedef struct tw_file tw_file; /* open for reading */
typedef struct tw_files_api {
  TW_HEAD;
  TW_R tw_status* (*open)(const tw_host* h, const char* path, uint64_t len, tw_file** out_file); /* NOT_FOUND */
  TW_R uint64_t (*bytes)(const tw_file* f);                                                      /* its size when it was opened */
  TW_R tw_status* (*read)(tw_file* f, uint64_t offset, void* to, uint64_t n); /* exactly n bytes; OUT_OF_RANGE if the file ends before */
  TW_R void (*close)(tw_file* f);                                             /* NULL is fine */
  /* Writes a whole file under a temporary name, syncs it, then renames it to `path`. */
  TW_R tw_status* (*write)(const tw_host* h, const char* path, uint64_t len, const void* bytes, uint64_t n);
  TW_R tw_status* (*list)(const tw_host* h, const char* folder, uint64_t len, tw_sink* to); /* each name, then a zero byte; sorted */
  TW_R tw_status* (*remove)(const tw_host* h, const char* path, uint64_t len);              /* NOT_FOUND */
  TW_R tw_status* (*make_folder)(const tw_host* h, const char* folder, uint64_t len);       /* no effect if it exists; its parent must
                                                                                               exist */
} tw_files_api;

#ifdef __cplusplus
}
#endif
#endif
