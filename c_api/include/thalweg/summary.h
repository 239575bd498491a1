/* Summary writers record a run for TensorBoard: numbers over the steps, distributions, pictures,
 * sound, texts, the graph, hyper-parameters. A run is a folder with event files; TensorBoard is
 * started with that folder or one above it, and `thalweg plot` draws the numbers.
 *
 *     tw_summary_writer* writer = NULL;
 *     tw_status* s = tw_summary_writer_create("runs/1", NULL, &writer);
 *     for (int64_t step = 0; !s && step < 1000; ++step) {
 *       ... run a training step ...
 *       s = tw_summary_writer_scalar(writer, "loss", step, loss);
 *     }
 *     if (!s) s = tw_summary_writer_close(writer);
 *     tw_summary_writer_destroy(writer);
 *
 * Calls queue an event and return; a thread of the writer encodes events and appends them to the
 * file as whole records, at latest `flush_seconds` later. A process that is killed loses the events
 * that still wait, and leaves a file that reads to its end. If the queue is full, calls wait.
 *
 * tag: the name of a series, UTF-8 without '\0', not empty. TensorBoard groups series by the text
 * before the first '/'. step: the place on the x-axis. tensor: in host memory; the writer keeps a
 * reference until it has written it, so the program must not change it afterwards.
 * Errors: INVALID_ARGUMENT, naming tag and value, as soon as the call is made. A failure of the
 * thread (a full disk) is returned by each later call, and the writer writes nothing more.
 * FAILED_PRECONDITION after close, and in a process that was forked after create.
 * Threads: any number use a writer at once, except for destroy. Everything here: since 0.1. */
#ifndef THALWEG_SUMMARY_H
#define THALWEG_SUMMARY_H
#include "thalweg/export.h"
#include "thalweg/graph.h"
#include "thalweg/runtime.h"
#include "thalweg/step_stats.h"
#include "thalweg/tensor.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_summary_writer tw_summary_writer;

/* Set `size` to sizeof(tw_summary_writer_options) and unused fields to 0, or use
 * tw_summary_writer_options_init. */
typedef struct tw_summary_writer_options {
  uint32_t size, flags;
  tw_runtime* runtime;  /* knows the file systems of paths with a scheme; NULL: the default one */
  double flush_seconds; /* the longest time that an event waits in the queue; at least 0 */
  uint64_t queue_bytes; /* calls wait while the queue holds more than this; 0: the default */
  uint64_t file_bytes;  /* a file that is larger is closed, and another one begun beside it; 0: never */
  const char* suffix;   /* of the files' names; NULL: none */
} tw_summary_writer_options;
TW_EXPORT void tw_summary_writer_options_init(tw_summary_writer_options* options); /* flush_seconds 1, queue_bytes 64 MiB. NULL is fine */

/* Makes a writer with an event file in `folder`. The folder, and those above it, are created if they
 * are missing. Files of earlier writers stay: a run that goes on in its folder is one run. options:
 * NULL: the defaults. The caller owns *out_writer. Errors: INVALID_ARGUMENT; those of the file
 * system, naming the path. */
TW_EXPORT tw_status* tw_summary_writer_create(const char* folder, const tw_summary_writer_options* options, tw_summary_writer** out_writer);
TW_EXPORT void tw_summary_writer_destroy(tw_summary_writer* writer); /* closes it and drops the error; NULL is fine */

/* A number, which is stored as a float. */
TW_EXPORT tw_status* tw_summary_writer_scalar(tw_summary_writer* writer, const char* tag, int64_t step, double value);
/* The distribution of the elements of a tensor of real numbers, which must be finite. */
TW_EXPORT tw_status* tw_summary_writer_histogram(tw_summary_writer* writer, const char* tag, int64_t step, tw_tensor* values);
/* Pictures. images: [height, width, channels] or [n, height, width, channels], of which the first
 * `most` are written; with 1, 3 or 4 channels; uint8, or float, half, bfloat16 or double, whose
 * numbers are scaled, for each image, to [0, 255] if none is negative, else so that 0 becomes 128.
 * Pixels that are not finite become red, or white if there is 1 channel. The tags are `tag`/image
 * if most is 1, else `tag`/image/0 and so on. */
TW_EXPORT tw_status* tw_summary_writer_images(tw_summary_writer* writer, const char* tag, int64_t step, tw_tensor* images, uint32_t most);
/* Sound. sounds: float [n, frames, channels] or [n, frames], in [-1, 1]; the first `most` are
 * written, as 16-bit WAV files. rate: frames per second. Tags as above, with "audio". */
TW_EXPORT tw_status* tw_summary_writer_audio(tw_summary_writer* writer, const char* tag, int64_t step, tw_tensor* sounds, double rate,
                                             uint32_t most);
/* A text, which TensorBoard shows as Markdown. */
TW_EXPORT tw_status* tw_summary_writer_text(tw_summary_writer* writer, const char* tag, int64_t step, const char* text);
/* A tensor of any type but resource and variant. plugin: the name of the plugin of TensorBoard that
 * shows it, with `content` of n bytes for that plugin; NULL and 0: none. */
TW_EXPORT tw_status* tw_summary_writer_tensor(tw_summary_writer* writer, const char* tag, int64_t step, tw_tensor* value,
                                              const char* plugin, const void* content, uint64_t n);

/* The graph, with its functions and constants. */
TW_EXPORT tw_status* tw_summary_writer_graph(tw_summary_writer* writer, const tw_graph* graph);
/* The times and bytes of a run, by which TensorBoard colours the graph. tag: names the record; one
 * for each. */
TW_EXPORT tw_status* tw_summary_writer_step_stats(tw_summary_writer* writer, const char* tag, int64_t step, const tw_step_stats* stats);

/* A hyper-parameter of a run. */
enum { TW_HPARAM_NUMBER = 1, TW_HPARAM_BOOL = 2, TW_HPARAM_TEXT = 3 };
typedef struct tw_hparam {
  const char* name;
  const char* text; /* of TW_HPARAM_TEXT */
  double number;    /* of TW_HPARAM_NUMBER; not 0 for a true TW_HPARAM_BOOL */
  uint32_t kind;    /* TW_HPARAM_... */
  uint32_t reserved;
} tw_hparam;
/* The hyper-parameters of this run, for TensorBoard's page that compares runs; once for each writer.
 * metrics: tags of scalars that tell how good the run is. The run counts as running until
 * tw_summary_writer_end. */
TW_EXPORT tw_status* tw_summary_writer_hparams(tw_summary_writer* writer, const tw_hparam* hparams, uint32_t n_hparams,
                                               const char* const* metrics, uint32_t n_metrics);
/* The run has ended; succeeded: 0 if it failed. tw_summary_writer_close does it for a run with
 * hyper-parameters that has not ended. */
TW_EXPORT tw_status* tw_summary_writer_end(tw_summary_writer* writer, uint32_t succeeded);

/* An event with a Summary message of n bytes, which a summary op made. */
TW_EXPORT tw_status* tw_summary_writer_summary(tw_summary_writer* writer, int64_t step, const void* summary, uint64_t n);
/* A whole Event message of n bytes. Errors: INVALID_ARGUMENT if the bytes are no message. */
TW_EXPORT tw_status* tw_summary_writer_event(tw_summary_writer* writer, const void* event, uint64_t n);

/* Waits until all events queued so far are in the file, and syncs it. Close then closes the file; a
 * further close returns the same. Errors: also those of the events queued so far, and of the file
 * system. */
TW_EXPORT tw_status* tw_summary_writer_flush(tw_summary_writer* writer);
TW_EXPORT tw_status* tw_summary_writer_close(tw_summary_writer* writer);
/* Returns the path of the file that is being written. The caller owns *out_path. */
TW_EXPORT tw_status* tw_summary_writer_path(const tw_summary_writer* writer, tw_buffer** out_path);

#ifdef __cplusplus
}
#endif
#endif
