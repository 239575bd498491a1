/* Sampled losses for training with many classes. They compute the true classes of each example and
 * a few other classes drawn for the whole batch. For evaluation, use all classes.
 * Weights and biases are variables (handles), whose gradients are then sparse, or values.
 * All functions work through a scope (scope.h), which keeps the failures; results are then 0.
 * Threads: as the scope. Everything here: since 0.1.
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
  tw_output candidates; /* the first output of a candidate sampler op (UniformCandidateSampler, ...) over the same labels; 0: distinct
                           classes from LogUniformCandidateSampler, for classes numbered by falling frequency */
  int64_t num_sampled;  /* classes that the default sampler draws; > 0, at most the number of classes */
  int64_t seed;         /* of the default sampler; 0: another in each session */
  uint32_t keep_hits;   /* 1: a drawn class that is also a true class of an example still counts as a wrong class of that example */
  uint32_t reserved;
} tw_sampled_loss;
/* Defaults: candidates 0, num_sampled 64, seed 0, keep_hits 0. NULL is fine. */
TW_EXPORT void tw_sampled_loss_init(tw_sampled_loss* options);

/* Returns for each example the cross-entropy of the softmax over its true classes and the drawn
 * ones: [batch]. Each logit is reduced by the logarithm of the expected count of its class in the
 * draw.
 * weights: [classes, n]; biases: [classes]; inputs: [batch, n]; half, bfloat16, float or double,
 * all of one type.
 * labels: int32 or int64 [batch, true classes], which share the probability. options: NULL means
 * the defaults.
 * Errors: INVALID_ARGUMENT if the number of classes or of true classes is not known while the graph
 * is built, or shapes do not fit.
 * Source: Jean, Cho, Memisevic and Bengio, arXiv:1412.2007, as TensorFlow's sampled_softmax_loss. */
TW_EXPORT tw_output tw_sampled_softmax(tw_scope* scope, tw_output weights, tw_output biases, tw_output labels, tw_output inputs,
                                       const tw_sampled_loss* options);
/* The same with a logistic loss for each class, summed: noise-contrastive estimation. TensorFlow
 * keeps hits by default.
 * Source: Gutmann and Hyvarinen, 2010, as TensorFlow's nce_loss. */
TW_EXPORT tw_output tw_nce(tw_scope* scope, tw_output weights, tw_output biases, tw_output labels, tw_output inputs,
                           const tw_sampled_loss* options);

#ifdef __cplusplus
}
#endif
#endif
