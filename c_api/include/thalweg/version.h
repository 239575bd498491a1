/* Version of the headers and of the library. Threads: any. Everything here: since 0.1. */
#ifndef THALWEG_VERSION_H
#define THALWEG_VERSION_H
#include <stdint.h>

#include "thalweg/export.h"
#ifdef __cplusplus
extern "C" {
#endif

/* Version of these headers. Programs built with an older minor keep running on a newer library of the same major. */
#define TW_VERSION_MAJOR 0
#define TW_VERSION_MINOR 1
#define TW_VERSION_PATCH 0

/* Version of the library that runs: "0.1.0". Static. */
TW_EXPORT const char* tw_version_string(void);
/* The same as a number to compare: major * 1000000 + minor * 1000 + patch. */
TW_EXPORT uint32_t tw_version_number(void);
/* Draft number of the plugin ABI that this library speaks; plugins of another number are refused. */
TW_EXPORT uint32_t tw_version_plugin_epoch(void);

#ifdef __cplusplus
}
#endif
#endif
