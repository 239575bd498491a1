/* Makes and removes a test's folder. REQUIRES: the includer has defined _XOPEN_SOURCE as 700
 * before the first header. */
#ifndef FOLDER_H
#define FOLDER_H
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

#include <sys/stat.h>

/* Makes a folder in $TMPDIR, or /tmp; `name` is a part of its name. Returns 0, or errno. */
static inline int make_folder(char* folder, size_t size, const char* name) {
  const char* temporary = getenv("TMPDIR");
  snprintf(folder, size, "%s/thalweg-%s-XXXXXX", temporary ? temporary : "/tmp", name);
  return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_one(const char* name, const struct stat* status, int type, struct FTW* at) {
  (void)status, (void)type, (void)at;
  return remove(name);
}

/* Removes the folder and everything in it. */
static inline int remove_folder(const char* folder) { return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS); }

#endif
