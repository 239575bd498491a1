/* Iterators give the batches of a training loop, of an evaluation or of a prediction. A batch is a fixed number of tensors, such as
 * images and labels. `tw_iterator` is a record of functions: this header makes iterators over tensors in memory and over values of a
 * session, such as the outputs of a dequeue; other libraries and programs fill a record of their own.
 *
 * An epoch is one pass over the data. A new iterator stands before the first batch of epoch 0. `next` gives the batches of the epoch one
 * after the other and then reports its end; `reset` starts an epoch. Batches depend only on the iterator, the epoch and the number of
 * the batch in it, so that an interrupted training goes on with the same batches: a loop restores a saved position, or, if the iterator
 * saves none, resets it to the epoch and passes over the batches that were used. An iterator that cannot repeat batches, such as one
 * over a queue, says so in its manual.
 *
 * Threads: one at a time uses an iterator. `next` may block. Everything here: since 0.1.
 *
 *     tw_tensor* data[] = {images, labels};
 *     tw_batch_options options;
 *     tw_batch_options_init(&options);
 *     options.batch = 50;
 *     options.shuffle = 1;
 *     tw_iterator* batches = NULL;
 *     status = tw_iterator_create_batches(data, 2, &options, &batches);
 *     for (uint32_t end = 0; !status && !(status = tw_iterator_next(batches, got, &end)) && !end;) ...   release got[0], got[1] */
#ifndef THALWEG_ITERATOR_H
#define THALWEG_ITERATOR_H
#include "thalweg/buffer.h"
#include "thalweg/export.h"
#include "thalweg/graph.h"
#include "thalweg/session.h"
#include "thalweg/tensor.h"
#include "thalweg/types.h"
#ifdef __cplusplus
extern "C" {
#endif

/* The functions of an iterator. Set `size` to sizeof(tw_iterator) and unused fields to 0. `next` is required; any other function may be
 * NULL. Each function gets `user`. Programs call the functions of the record through tw_iterator_next and its neighbours below, which
 * check what the function returns. */
typedef struct tw_iterator {
  uint32_t size, flags;
  uint32_t n_tensors; /* tensors of a batch; above 0 */
  uint32_t reserved;
  int64_t n_batches; /* batches of an epoch; -1: unknown or without end */
  void* user;
  /* Gives the next batch of the epoch, or its end. out_tensors: room for n_tensors tensors, all NULL; with a batch each becomes a
   * reference that the caller owns; at the end and after a failure all stay NULL. *out_end: 0 before the call; 1 for the end of the
   * epoch, and again in each further call before a reset. A failure ends the loop that called. */
  tw_status* (*next)(void* user, tw_tensor** out_tensors, uint32_t* out_end);
  /* Starts epoch `epoch`, counted from 0, from any position; epochs may be repeated or left out. NULL: the iterator has one epoch, and
   * cannot start it again. */
  tw_status* (*reset)(void* user, int64_t epoch);
  /* Returns the position, the epoch included, as bytes that only this kind of iterator reads. The caller owns *out_position. NULL: a
   * loop counts the batches instead. */
  tw_status* (*save)(void* user, tw_buffer** out_position);
  /* Continues at a saved position. bytes: those of the buffer; borrowed. Errors: INVALID_ARGUMENT for a position of other data or of
   * other options, which leaves the iterator unchanged. NULL only together with save. */
  tw_status* (*restore)(void* user, const void* position, uint64_t bytes);
  /* Frees all that belongs to the iterator; the record too, if it is a part of *user. */
  void (*destroy)(void* user);
} tw_iterator;

/* Calls iterator->next. out_tensors: room for n_tensors tensors; with a batch the caller owns them, otherwise all are NULL. out_end: 1 at
 * the end of the epoch, 0 with a batch and after a failure. Errors: INVALID_ARGUMENT for a record that is not filled; those of the
 * function; INTERNAL if it left a tensor of a batch NULL. */
TW_EXPORT tw_status* tw_iterator_next(tw_iterator* iterator, tw_tensor** out_tensors, uint32_t* out_end);
/* Calls iterator->reset. epoch: at least 0. Errors: INVALID_ARGUMENT; UNIMPLEMENTED if the iterator has no reset; those of the function. */
TW_EXPORT tw_status* tw_iterator_reset(tw_iterator* iterator, int64_t epoch);
/* Calls iterator->save. The caller owns *out_position. Errors: UNIMPLEMENTED if the iterator has no save; those of the function. */
TW_EXPORT tw_status* tw_iterator_save(tw_iterator* iterator, tw_buffer** out_position);
/* Calls iterator->restore. Errors: UNIMPLEMENTED if the iterator has no restore; those of the function. */
TW_EXPORT tw_status* tw_iterator_restore(tw_iterator* iterator, const void* position, uint64_t bytes);
/* Calls iterator->destroy. NULL, and a record without destroy, are fine. */
TW_EXPORT void tw_iterator_destroy(tw_iterator* iterator);

/* ---- Tensors in memory ---- */

/* Set `size` to sizeof(tw_batch_options) and unused fields to 0, or use tw_batch_options_init. */
typedef struct tw_batch_options {
  uint32_t size, flags;
  int64_t batch;           /* rows of a batch; above 0 */
  int64_t seed;            /* of the order; equal seeds, numbers of rows and epochs give equal orders, in any process and version */
  uint32_t shuffle;        /* 1: each epoch has an order of its own; 0: the order of the tensors */
  uint32_t drop_remainder; /* 1: a last batch of fewer rows is left out, so that all batches have one shape; 0: it is given */
} tw_batch_options;
/* Defaults: batch 32, seed 0, no shuffling, the remainder is given. NULL is fine. */
TW_EXPORT void tw_batch_options_init(tw_batch_options* options);
/* Makes an iterator whose batches are rows of n tensors: row i of a batch is row k of each tensor. tensors: in host memory, of any type
 * except resource and variant, with at least one axis and equal sizes of the first; retained, so do not write to them. A batch in order
 * shares their memory; a shuffled one is a copy. The iterator saves and restores positions. The caller owns *out_iterator.
 * Errors: INVALID_ARGUMENT naming the tensor or the option. */
TW_EXPORT tw_status* tw_iterator_create_batches(tw_tensor* const* tensors, uint32_t n, const tw_batch_options* options,
                                                tw_iterator** out_iterator);

/* ---- Values of a session ---- */

/* Makes an iterator each of whose batches is one run of `session` that fetches n values, such as the outputs of a dequeue. session:
 * borrowed; must outlive the iterator. epoch_batches: an epoch ends after that many batches, and a reset then goes on with the next run
 * whatever the epoch; 0: an epoch ends when a run fails with OUT_OF_RANGE, as a dequeue from a closed queue does, and there is one epoch
 * only. Runs cannot be repeated: the iterator saves no position, and a loop that resumes passes over as many batches as were used.
 * The caller owns *out_iterator. Errors: INVALID_ARGUMENT; those of tw_callable_create. */
TW_EXPORT tw_status* tw_iterator_create_fetches(tw_session* session, const tw_output* fetches, uint32_t n, int64_t epoch_batches,
                                                tw_iterator** out_iterator);

#ifdef __cplusplus
}
#endif
#endif
