/* Sharded tables: a matrix of many rows, split into shards on different tasks; each shard is a
 * variable. Operations on rows, and their gradients, run beside their shard. Only the rows that are
 * looked up, and their gradients, are sent from task to task.
 *
 *     tw_output shards[4];
 *     for (uint32_t k = 0; k < 4; ++k) {
 *       tw_scope_set_device(s, tw_spread_next(spread, bytes));
 *       ... shards[k] = tw_variable_create(...) with tw_sharded_rows(rows, 4, k) rows
 *     }
 *     tw_sharded table = {sizeof table, 0, shards, 4, TW_SHARDED_MOD};
 *     tw_output vectors = tw_sharded_lookup(s, &table, ids);
 *
 * All functions work through a scope (scope.h), which keeps the failures; results are then 0.
 * Operations that are not beside a shard run on the scope's device. Threads: as the scope.
 * Everything here: since 0.1. */
#ifndef THALWEG_SHARDED_H
#define THALWEG_SHARDED_H
#include "thalweg/export.h"
#include "thalweg/sampled.h"
#include "thalweg/scope.h"
#ifdef __cplusplus
extern "C" {
#endif

enum {
  TW_SHARDED_MOD = 0, /* row i of the table is row i / n of shard i % n: balances ids that are numbered by falling frequency */
  TW_SHARDED_DIV = 1  /* the first rows are in shard 0, the next in shard 1, ...: contiguous parts of the matrix */
};

/* A table. Shards are variables (handles) of known shapes [rows, ...] that are equal except for the
 * rows; shard k has tw_sharded_rows(all rows, n, k) rows. A vector, such as biases, is sharded the
 * same way. */
typedef struct tw_sharded {
  uint32_t size, flags;
  const tw_output* shards; /* n handles */
  uint32_t n;              /* above 0, at most as many as the table has rows */
  uint32_t partition;      /* TW_SHARDED_... */
} tw_sharded;

/* Returns the number of rows of shard k of n: rows / n, plus one for each of the first rows % n
 * shards. 0 for k past the end. */
TW_EXPORT int64_t tw_sharded_rows(int64_t rows, uint32_t n, uint32_t k);

/* Looks up the rows with these numbers: [ids..., the table's sizes but the first]. ids: int32 or
 * int64 of any shape; a number may repeat. Gradients are sparse, with rows of the shards. Errors:
 * INVALID_ARGUMENT for shards that do not form a table; in a step, for a number that is not a row.
 * Source: as TensorFlow's embedding_lookup. */
TW_EXPORT tw_output tw_sharded_lookup(tw_scope* scope, const tw_sharded* table, tw_output ids);

/* Returns for each example the cross-entropy of the softmax over all classes: [batch]. The task of
 * each shard computes the logits of its classes and their gradients. It sends only the largest
 * logit, the sum and the true logit of each example, and the gradient of inputs. weights: [classes,
 * n]; biases: [classes], sharded alike, or NULL; inputs: [batch, n]; labels: int32 or int64
 * [batch]. A label that is not a class counts as a class whose logit is 0. Source: Chilimbi et al.,
 * "Project Adam", OSDI 2014. */
TW_EXPORT tw_output tw_sharded_softmax(tw_scope* scope, const tw_sharded* weights, const tw_sharded* biases, tw_output labels,
                                       tw_output inputs);
/* As tw_sampled_softmax, with the same options, over sharded weights [classes, n] and biases
 * [classes]. labels: [batch, true classes]. */
TW_EXPORT tw_output tw_sharded_sampled_softmax(tw_scope* scope, const tw_sharded* weights, const tw_sharded* biases, tw_output labels,
                                               tw_output inputs, const tw_sampled_loss* options);

#ifdef __cplusplus
}
#endif
#endif
