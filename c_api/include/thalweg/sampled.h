/* Losses over many classes that look at the true classes of each example and at a few others drawn for the whole batch. To train with; to
 * evaluate, take all classes.
 * Weights and biases may be variables (handles), whose gradients are then sparse, or values.
 * All work through a scope (scope.h), so failures are kept there and answers are then 0. Threads: as the scope. Everything here: since 0.1.
 *
 *     tw_sampled_loss options;
 *     tw_sampled_loss_init(&options);
 *     options.num_sampled = 64;
 *     tw_output loss = tw_sampled_softmax(s, weights, biases, labels, hidden, &options); */
#ifndef THALWEG_SAMPLED_H
#define THALWEG_SAMPLED_H
#include "thalweg/export.h"
#include "thalweg/scope.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct tw_sampled_loss {
  uint32_t size, flags;
  tw_output candidates; /* the first output of a candidate sampler op (UniformCandidateSampler, ...) over the same labels; 0: different
                           classes by LogUniformCandidateSampler, for classes numbered by falling frequency */
  int64_t num_sampled;  /* how many that one draws; > 0, at most the number of classes */
  int64_t seed;         /* of that one; 0: another in each session */
  uint32_t keep_hits;   /* 1: a class that was drawn and is a true one of an example counts as a wrong one of it, too */
  uint32_t reserved;
} tw_sampled_loss;
/* Defaults: candidates 0, num_sampled 64, seed 0, keep_hits 0. NULL is fine. */
TW_EXPORT void tw_sampled_loss_init(tw_sampled_loss* options);

/* For each example the cross-entropy of the softmax over its true classes and the drawn ones, each logit less the logarithm of how often
 * its class is to be expected among those drawn: [batch].
 * weights: [classes, n]; biases: [classes]; inputs: [batch, n]; half, bfloat16, float or double, all of one type.
 * labels: int32 or int64 [batch, true classes], which share the probability. options: NULL: the defaults.
 * Errors: INVALID_ARGUMENT where the number of classes or of true ones is not known while the graph is built, or shapes do not fit.
 * Source: Jean, Cho, Memisevic and Bengio, arXiv:1412.2007, as TensorFlow's sampled_softmax_loss. */
TW_EXPORT tw_output tw_sampled_softmax(tw_scope* scope, tw_output weights, tw_output biases, tw_output labels, tw_output inputs,
                                       const tw_sampled_loss* options);
/* The same with a logistic loss for each class, added up: noise-contrastive estimation. TensorFlow keeps hits by default.
 * Source: Gutmann and Hyvarinen, 2010, as TensorFlow's nce_loss. */
TW_EXPORT tw_output tw_nce(tw_scope* scope, tw_output weights, tw_output biases, tw_output labels, tw_output inputs,
                           const tw_sampled_loss* options);

#ifdef __cplusplus
}
#endif
#endif
