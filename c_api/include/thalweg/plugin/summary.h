/* Optional set "summary", version 1: summaries and event files, which TensorBoard draws, for
 * kernels. host->query(h, TW_S(TW_SUMMARY_SET), 1) returns a const tw_summary_api*, or NULL if the
 * host has none.
 * The first six entries write a Summary message to `to`, in the layout of TensorFlow's summary ops.
 * Messages are joined by writing one behind the other. Tensors lie in host memory. tag: UTF-8.
 * Errors: INVALID_ARGUMENT, naming tag and value.
 * Threads: any number; the entries from `open` on may block. */
#ifndef THALWEG_PLUGIN_SUMMARY_H
#define THALWEG_PLUGIN_SUMMARY_H
#include "thalweg/plugin/abi.h"
#include "thalweg/plugin/tensor.h"
#ifdef __cplusplus
extern "C" {
#endif

#define TW_SUMMARY_SET "summary"

typedef struct tw_event_writer tw_event_writer; /* an event file that is being written */

/* The fields of an Event message that `write` fills. */
enum { TW_EVENT_GRAPH = 4, TW_EVENT_SUMMARY = 5, TW_EVENT_RUN_METADATA = 8, TW_EVENT_META_GRAPH = 9 };

typedef struct tw_event_writer_options {
  TW_HEAD;
  uint64_t queue_events; /* callers wait while more events than these are in the queue; 0: no limit but that of their bytes */
  double flush_seconds;  /* the longest time that an event waits in the queue; at least 0 */
  TW_TEXT(suffix);       /* of the file's name; no '/' */
} tw_event_writer_options;

typedef struct tw_summary_api {
  TW_HEAD;
  TW_R tw_status* (*scalar)(const char* tag, uint64_t len, const tw_view* value, tw_sink* to); /* value: one real number of any type */
  /* values: real numbers of any type and shape, all of them finite. */
  TW_R tw_status* (*histogram)(const char* tag, uint64_t len, const tw_view* values, tw_sink* to);
  /* images: uint8, float, half, bfloat16 or double [n, height, width, channels], with 1, 3 or 4
   * channels; the first `most` are written. Numbers that are no bytes are scaled, image by image, to
   * [0, 255] if none is negative, else so that 0 becomes 128. bad_color: n_bad bytes, for pixels
   * that are not finite. */
  TW_R tw_status* (*images)(const char* tag, uint64_t len, const tw_view* images, uint32_t most, const void* bad_color, uint64_t n_bad,
                            tw_sink* to);
  /* sounds: float [n, frames, channels] or [n, frames]. rate: in Hz. */
  TW_R tw_status* (*audio)(const char* tag, uint64_t len, const tw_view* sounds, double rate, uint32_t most, tw_sink* to);
  /* value: of any type but resource and variant. metadata: a SummaryMetadata message, or empty. */
  TW_R tw_status* (*tensor)(const char* tag, uint64_t len, const tw_view* value, const void* metadata, uint64_t metadata_len, tw_sink* to);
  /* Joins n messages; INVALID_ARGUMENT if two have a value of the same tag. */
  TW_R tw_status* (*merge)(const tw_string* summaries, uint64_t n, tw_sink* to);

  /* Begins an event file in `folder`, which is created, with those above it, if it is missing. h: in
   * a kernel always the host of its frame (see checkpoint.h). options: NULL: flush_seconds 1.
   * Errors: those of the file system; PERMISSION_DENIED for files that the node may not touch. */
  TW_R tw_status* (*open)(const tw_host* h, const char* folder, uint64_t len, const tw_event_writer_options* options,
                          tw_event_writer** out_writer);
  /* Queues an event that holds `bytes` in the field of that number (TW_EVENT_...). Returns the first
   * failure of the thread that writes. */
  TW_R tw_status* (*write)(tw_event_writer* w, uint32_t field, int64_t step, const void* bytes, uint64_t n);
  TW_R tw_status* (*event)(tw_event_writer* w, const void* bytes, uint64_t n); /* queues a whole Event message */
  TW_R tw_status* (*flush)(tw_event_writer* w);                                /* waits until all events are in the file, and syncs it */
  TW_R tw_status* (*close)(tw_event_writer* w); /* flushes and closes; frees w on success and failure; NULL is fine */
} tw_summary_api;

#ifdef __cplusplus
}
#endif
#endif
