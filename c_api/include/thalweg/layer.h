/* Layers of neural networks: their first weights, their variables and their formulas. A layer is a record of weights. `tw_<layer>_create`
 * makes the variables and fills the record; `tw_<layer>_apply` adds the formula for one input. A program may apply one record to several
 * inputs, which then share the weights, and may fill a record itself with variables or values that it already has. Variables are named
 * `name`/kernel and so on; where name is empty, kernel.
 *
 * Inputs have channels last. A layer that behaves differently in training takes `training`, a bool scalar of the graph: a program feeds it
 * or makes it a constant. 0 means inference. Planning removes the branch that a constant rules out.
 *
 * All functions work through a scope (scope.h), which keeps the first failure; results are 0 from then on. The code is INVALID_ARGUMENT,
 * and the message names the function, the prefix of the scope if it has one, and the value. Threads: as the scope. Everything here:
 * since 0.1.
 *
 *     tw_dense hidden, out;
 *     tw_dense_create(s, "hidden", NULL, 64, 128, &hidden);
 *     tw_dense_create(s, "out", NULL, 128, 10, &out);
 *     tw_output h = tw_activation(s, TW_ACTIVATION_RELU, tw_dense_apply(s, &hidden, x));
 *     tw_output logits = tw_dense_apply(s, &out, h); */
#ifndef THALWEG_LAYER_H
#define THALWEG_LAYER_H
#include "thalweg/export.h"
#include "thalweg/graph.h"
#include "thalweg/scope.h"
#ifdef __cplusplus
extern "C" {
#endif

/* ---- First values of weights ---- */

/* How an initializer draws. The fans are those of Keras: for [.., in, out] each is the product of the leading sizes times in or out; a
 * vector of n elements has both fans n. "Normal" distributions of variance v are cut at two standard deviations and rescaled to v. */
enum {
  TW_INITIALIZER_DEFAULT = 0,          /* in options of layers: what the layer says; elsewhere GLOROT_UNIFORM */
  TW_INITIALIZER_GLOROT_UNIFORM = 1,   /* variance scale^2 * 2 / (fan in + fan out). Glorot and Bengio, 2010 */
  TW_INITIALIZER_GLOROT_NORMAL = 2,    /* the same variance */
  TW_INITIALIZER_HE_UNIFORM = 3,       /* variance scale^2 * 2 / fan in. He et al., arXiv:1502.01852 */
  TW_INITIALIZER_HE_NORMAL = 4,        /* the same variance */
  TW_INITIALIZER_LECUN_UNIFORM = 5,    /* variance scale^2 / fan in. LeCun et al., 1998 */
  TW_INITIALIZER_LECUN_NORMAL = 6,     /* the same variance */
  TW_INITIALIZER_UNIFORM = 7,          /* evenly from [-scale, scale) */
  TW_INITIALIZER_NORMAL = 8,           /* standard deviation scale, not cut */
  TW_INITIALIZER_TRUNCATED_NORMAL = 9, /* a normal of standard deviation scale, cut at two of them and not rescaled */
  TW_INITIALIZER_CONSTANT = 10,        /* scale everywhere */
  /* scale times a matrix [product of the leading sizes, last size] whose rows, or columns if there are fewer of them, are orthonormal,
   * all such matrices equally likely. At least two axes. Saxe, McClelland and Ganguli, arXiv:1312.6120 */
  TW_INITIALIZER_ORTHOGONAL = 11
};

typedef struct tw_initializer {
  uint32_t size, flags;
  uint32_t kind; /* TW_INITIALIZER_* */
  uint32_t reserved;
  double scale; /* see the kinds; finite */
  int64_t seed; /* 0: other values in each session */
} tw_initializer;
/* Defaults: Glorot's uniform distribution, scale 1, seed 0. NULL is fine. */
TW_EXPORT void tw_initializer_init(tw_initializer* initializer);
/* A value of that type and shape, drawn each time the step runs; give it to tw_variable_create. dtype: half, bfloat16, float or double.
 * dims: rank sizes, all known. initializer: NULL: the defaults. */
TW_EXPORT tw_output tw_initializer_value(tw_scope* scope, const tw_initializer* initializer, uint32_t dtype, const int64_t* dims,
                                         int32_t rank);

/* Options of layers that make variables. */
typedef struct tw_layer_options {
  uint32_t size, flags;
  uint32_t dtype;   /* of the variables: half, bfloat16, float or double */
  uint32_t no_bias; /* 1: the layer has no bias or offset; the record's field is then 0 */
  int64_t seed;     /* 0: other first values in each session. Each weight of a layer draws by a seed of its own that follows from it */
  uint32_t kernel_initializer, bias_initializer; /* TW_INITIALIZER_*; DEFAULT: as the layer's create function says; a bias is zeros */
  double kernel_scale, bias_scale;               /* of these two, where they are not DEFAULT */
} tw_layer_options;
/* Defaults: float, with a bias, seed 0, the layer's initializers, scales 1. NULL is fine. */
TW_EXPORT void tw_layer_options_init(tw_layer_options* options);

/* ---- Activations ---- */

enum {
  TW_ACTIVATION_NONE = 0,
  TW_ACTIVATION_RELU = 1,
  TW_ACTIVATION_RELU6 = 2,
  TW_ACTIVATION_LEAKY_RELU = 3, /* 0.2 x below 0 */
  TW_ACTIVATION_ELU = 4,
  TW_ACTIVATION_SELU = 5,
  TW_ACTIVATION_GELU = 6,      /* x (1 + erf(x / sqrt 2)) / 2. Hendrycks and Gimpel, arXiv:1606.08415 */
  TW_ACTIVATION_GELU_TANH = 7, /* its approximation by tanh, as in GPT-2 */
  TW_ACTIVATION_SILU = 8,      /* x sigmoid(x), also called swish */
  TW_ACTIVATION_MISH = 9,      /* x tanh(softplus(x)). Misra, arXiv:1908.08681 */
  TW_ACTIVATION_SIGMOID = 10,
  TW_ACTIVATION_HARD_SIGMOID = 11, /* relu6(x + 3) / 6 */
  TW_ACTIVATION_HARD_SWISH = 12,   /* x relu6(x + 3) / 6. Howard et al., arXiv:1905.02244 */
  TW_ACTIVATION_TANH = 13,
  TW_ACTIVATION_SOFTPLUS = 14,
  TW_ACTIVATION_SOFTSIGN = 15,
  TW_ACTIVATION_SOFTMAX = 16,    /* over the last axis */
  TW_ACTIVATION_LOG_SOFTMAX = 17 /* over the last axis */
};
/* The activation of x, element by element unless said. x: half, bfloat16, float or double. */
TW_EXPORT tw_output tw_activation(tw_scope* scope, uint32_t kind, tw_output x);

/* ---- Dense ---- */

typedef struct tw_dense {
  uint32_t size, flags;
  tw_output kernel; /* [inputs, units] */
  tw_output bias;   /* [units]; 0: none */
} tw_dense;
/* Makes the variables `name`/kernel, by default Glorot's uniform distribution, and `name`/bias. inputs, units: above 0. */
TW_EXPORT void tw_dense_create(tw_scope* scope, const char* name, const tw_layer_options* options, int64_t inputs, int64_t units,
                               tw_dense* out_dense);
/* x kernel + bias. x: [.., inputs]; the result: [.., units]. The rank of x must be known and at least 1. */
TW_EXPORT tw_output tw_dense_apply(tw_scope* scope, const tw_dense* dense, tw_output x);

/* ---- Convolution ---- */

enum { TW_PADDING_VALID = 0, TW_PADDING_SAME = 1, TW_PADDING_CAUSAL = 2 /* one axis only: a result sees no later element */ };

typedef struct tw_convolution {
  uint32_t size, flags;
  tw_output kernel;                           /* [sizes of the window.., channels in / groups, filters] */
  tw_output bias;                             /* [filters]; 0: none */
  uint32_t rank;                              /* axes that the window moves along: 1, 2 or 3 */
  uint32_t padding;                           /* TW_PADDING_* */
  int64_t stride_1, stride_2, stride_3;       /* along each of those axes; above 0 */
  int64_t dilation_1, dilation_2, dilation_3; /* distance of neighbouring elements of the window; above 0 */
  int64_t groups; /* of tw_convolution_sizes: the input has groups times as many channels as the kernel takes; 0: as many groups as fit the
                     input */
} tw_convolution;
/* rank 2, "same" padding, strides and dilations 1, groups 0, no weights. NULL is fine. */
TW_EXPORT void tw_convolution_init(tw_convolution* convolution);

/* The sizes that the weights of a convolution follow from. */
typedef struct tw_convolution_sizes {
  uint32_t size, flags;
  int64_t window_1, window_2, window_3; /* along each of `rank` axes; above 0 */
  int64_t channels;                     /* of the input */
  int64_t filters;                      /* channels of the result */
  int64_t groups; /* divides both: group g of the results sees group g of the channels, so as many as channels make a depthwise convolution.
                     1 where rank is 3 */
} tw_convolution_sizes;
/* Windows 1, groups 1, channels and filters 0, which have to be set. NULL is fine. */
TW_EXPORT void tw_convolution_sizes_init(tw_convolution_sizes* sizes);
/* Makes the variables `name`/kernel, by default Glorot's uniform distribution, and `name`/bias. like: rank, padding, strides and dilations
 * of *out_convolution; its weights are not looked at; NULL: the defaults. */
TW_EXPORT void tw_convolution_create(tw_scope* scope, const char* name, const tw_layer_options* options, const tw_convolution* like,
                                     const tw_convolution_sizes* sizes, tw_convolution* out_convolution);
/* x: [batch, positions.., channels] with `rank` axes of positions. */
TW_EXPORT tw_output tw_convolution_apply(tw_scope* scope, const tw_convolution* convolution, tw_output x);

/* Makes the variables of a transposed convolution, which undoes the shapes of a convolution: `name`/kernel [sizes of the window.., filters,
 * channels], by default Glorot's uniform distribution, and `name`/bias [filters]. like: as tw_convolution_create's, without causal padding.
 * sizes: groups must be 1. */
TW_EXPORT void tw_transposed_convolution_create(tw_scope* scope, const char* name, const tw_layer_options* options,
                                                const tw_convolution* like, const tw_convolution_sizes* sizes,
                                                tw_convolution* out_convolution);
/* The gradient of a convolution with that kernel for its input, as a layer. x: [batch, positions.., channels] with n positions along an
 * axis gives n stride positions with "same" padding, and (n - 1) stride + (window - 1) dilation + 1 with "valid" padding.
 * Source: Zeiler et al., 2010, "Deconvolutional networks". */
TW_EXPORT tw_output tw_transposed_convolution_apply(tw_scope* scope, const tw_convolution* convolution, tw_output x);

/* ---- Pooling ---- */

enum { TW_POOL_MAX = 0, TW_POOL_MEAN = 1 /* over the elements inside the input */ };

typedef struct tw_pool {
  uint32_t size, flags;
  uint32_t kind;              /* TW_POOL_* */
  uint32_t rank;              /* axes that the window moves along: 1 or 2 */
  int64_t window_1, window_2; /* above 0 */
  int64_t stride_1, stride_2; /* above 0; 0: the window */
  uint32_t padding, reserved; /* TW_PADDING_VALID or TW_PADDING_SAME */
} tw_pool;
/* The largest of each 2 x 2, strides 0, "valid" padding. NULL is fine. */
TW_EXPORT void tw_pool_init(tw_pool* pool);
/* x: [batch, positions.., channels] with `rank` axes of positions. */
TW_EXPORT tw_output tw_pool_apply(tw_scope* scope, const tw_pool* pool, tw_output x);
/* The largest, or the mean, over all positions: [batch, positions.., channels] to [batch, channels]. x: at least one axis of positions.
 * kind: TW_POOL_*. */
TW_EXPORT tw_output tw_pool_global(tw_scope* scope, uint32_t kind, tw_output x);

/* ---- Normalisation ---- */

typedef struct tw_norm {
  uint32_t size, flags;
  tw_output scale;  /* [channels]; 0: none */
  tw_output offset; /* [channels]; 0: none */
  double epsilon;   /* added to the variance or mean square; above 0 */
  uint32_t groups;  /* 0: over the last axis (layer normalisation). n: the channels in n groups, each over its channels and all positions
                       (Wu and He, arXiv:1803.08494) */
  uint32_t rms;     /* 1: no mean is subtracted (Zhang and Sennrich, arXiv:1910.07467). Not together with groups */
} tw_norm;
/* epsilon 1e-5, groups 0, rms 0, no weights. NULL is fine. */
TW_EXPORT void tw_norm_init(tw_norm* norm);
/* Makes the variables `name`/scale (ones by default; the kernel of options) and, unless no_bias or rms, `name`/offset (zeros by default;
 * the bias of options). channels: above 0; groups divides it. like: epsilon, groups and rms of *out_norm; NULL: the defaults. */
TW_EXPORT void tw_norm_create(tw_scope* scope, const char* name, const tw_layer_options* options, const tw_norm* like, int64_t channels,
                              tw_norm* out_norm);
/* x: [.., channels], with groups [batch, .., channels]; of half and bfloat16 the statistics are float. Source: Ba, Kiros and Hinton,
 * arXiv:1607.06450. */
TW_EXPORT tw_output tw_norm_apply(tw_scope* scope, const tw_norm* norm, tw_output x);

typedef struct tw_batch_norm {
  uint32_t size, flags;
  tw_output scale, offset;  /* [channels] */
  tw_output mean, variance; /* [channels]: moving averages; variables, which optimizers leave alone */
  double momentum;          /* the share of the old average in the new one; in [0, 1) */
  double epsilon;           /* added to the variance; above 0 */
} tw_batch_norm;
/* momentum 0.99, epsilon 1e-3, as Keras; no weights. NULL is fine. */
TW_EXPORT void tw_batch_norm_init(tw_batch_norm* norm);
/* Makes the variables `name`/scale (ones), /offset (zeros), /mean (zeros) and /variance (ones), which are float. options: its kernel and
 * bias are scale and offset; dtype and no_bias must be the defaults. like: momentum and epsilon of *out_norm; NULL: the defaults. */
TW_EXPORT void tw_batch_norm_create(tw_scope* scope, const char* name, const tw_layer_options* options, const tw_batch_norm* like,
                                    int64_t channels, tw_batch_norm* out_norm);
/* In training x is normalised by its own mean and variance over all axes but the last, otherwise by the averages. x: [batch, channels] or
 * with one to three axes of positions between; half, bfloat16 or float. *out_update: an operation that sets the averages to what they
 * become by this batch; run it with the training step. It adds the differences, so that several applications in one step all count. Without
 * training, or with an empty batch, it changes nothing. NULL after a failure, and where training is 0 or a constant that is false.
 * Source: Ioffe and Szegedy, arXiv:1502.03167. */
TW_EXPORT tw_output tw_batch_norm_apply(tw_scope* scope, const tw_batch_norm* norm, tw_output x, tw_output training,
                                        const tw_operation** out_update);

/* ---- Embedding, dropout, attention ---- */

/* Makes the variable `name`/table [rows, width], by default drawn evenly from [-0.05, 0.05), and answers its handle. */
TW_EXPORT tw_output tw_embedding_create(tw_scope* scope, const char* name, const tw_layer_options* options, int64_t rows, int64_t width);
/* The rows of the table for ids, int32 or int64 of any shape: [ids.., width]. table: a variable, whose gradient is then sparse, or a value.
 */
TW_EXPORT tw_output tw_embedding_apply(tw_scope* scope, tw_output table, tw_output ids);

/* In training, each element of x is 0 with probability rate and else divided by 1 - rate; otherwise x. rate: in [0, 1). seed: 0: other
 * elements in each session. With another seed the elements depend on the seed and the number of the training step alone, which a variable
 * `dropout_draws` counts below the scope's prefix, so that a training that goes on from a checkpoint drops what it would have dropped. In
 * the body of a function no variable can be made: there the elements come from a stream that each session begins anew.
 * Source: Srivastava et al., 2014. */
TW_EXPORT tw_output tw_dropout(tw_scope* scope, tw_output x, double rate, tw_output training, int64_t seed);

typedef struct tw_attention {
  uint32_t size, flags;
  tw_output query_kernel, key_kernel, value_kernel; /* [width, heads * depth] */
  tw_output output_kernel;                          /* [heads * depth, width] */
  tw_output query_bias, key_bias, value_bias;       /* [heads * depth]; 0: none */
  tw_output output_bias;                            /* [width]; 0: none */
  int64_t heads;                                    /* above 0 */
} tw_attention;
/* Makes the variables of four dense layers, `name`/query, /key, /value and /output, as tw_dense_create does with width inputs and units.
 * heads: divides width. */
TW_EXPORT void tw_attention_create(tw_scope* scope, const char* name, const tw_layer_options* options, int64_t width, int64_t heads,
                                   tw_attention* out_attention);
/* Multi-head attention of x [batch, queries, width] to `to` [batch, keys, width]; 0: to x itself. bias: broadcasts to
 * [batch, heads, queries, keys] and is added to the scores: -infinity hides; 0: none. causal: 1: query i sees keys 0 to i only.
 * Source: Vaswani et al., arXiv:1706.03762. */
TW_EXPORT tw_output tw_attention_apply(tw_scope* scope, const tw_attention* attention, tw_output x, tw_output to, tw_output bias,
                                       uint32_t causal);

/* Rotates pairs of elements by angles that grow with the position, so that the product of a query and a key depends on the distance of
 * their positions. Pair k of depth / 2 has the angle position base^(-2k / depth). */
typedef struct tw_rotary {
  uint32_t size, flags;
  double base;     /* above 0 */
  tw_output first; /* the position of the first row, an int32 or int64 scalar; 0: position 0 */
  uint32_t
      interleaved; /* 1: a pair is elements 2k and 2k + 1, as in the source; 0: elements k and k + depth / 2, as in GPT-NeoX and Llama */
  uint32_t reserved;
} tw_rotary;
/* base 10,000, first 0, interleaved 0. NULL is fine. */
TW_EXPORT void tw_rotary_init(tw_rotary* rotary);
/* x: [.., positions, depth], with an even depth; half, bfloat16, float or double; the angles are computed in double. rotary: NULL: the
 * defaults. Source: Su et al., arXiv:2104.09864. */
TW_EXPORT tw_output tw_rotary_apply(tw_scope* scope, const tw_rotary* rotary, tw_output x);

/* How an attention is applied. */
typedef struct tw_attention_options {
  uint32_t size, flags;
  tw_output to, bias;      /* as in tw_attention_apply */
  const tw_rotary* rotary; /* applied to queries and keys; NULL: none. Not together with `to` */
  /* The keys and values of earlier positions, each [batch, heads, length, depth]: the rows of x are positions `position` and later ones,
   * replace what the caches have there, and attend to all rows up to their own, whatever `causal` says. All 0: no cache. position: an int32
   * scalar; a step whose rows would lie beyond the length fails. A rotation then starts at `position`. Not together with `to`. */
  tw_output key_cache, value_cache, position;
  uint32_t causal, reserved;
} tw_attention_options;
TW_EXPORT void tw_attention_options_init(tw_attention_options* options); /* all 0. NULL is fine */
/* As tw_attention_apply, with options. options: NULL: the defaults. out_key_cache, out_value_cache: the caches with the rows of x, for the
 * next application; 0 without a cache; may be NULL only without. */
TW_EXPORT tw_output tw_attention_apply_with(tw_scope* scope, const tw_attention* attention, tw_output x,
                                            const tw_attention_options* options, tw_output* out_key_cache, tw_output* out_value_cache);

#ifdef __cplusplus
}
#endif
#endif
