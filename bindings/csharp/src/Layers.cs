using System;
using System.Linq;
using static Thalweg.Low;
using static Thalweg.ThalwegException;
using File = System.Runtime.CompilerServices.CallerFilePathAttribute;
using Line = System.Runtime.CompilerServices.CallerLineNumberAttribute;

namespace Thalweg
{
    /// <summary>Functions that layers apply to their results.</summary>
    public enum Activation : uint
    {
        Linear = Low.TW_ACTIVATION_NONE, Relu = Low.TW_ACTIVATION_RELU, Gelu = Low.TW_ACTIVATION_GELU, Sigmoid = Low.TW_ACTIVATION_SIGMOID,
        Tanh = Low.TW_ACTIVATION_TANH, Softmax = Low.TW_ACTIVATION_SOFTMAX
    }

    public sealed unsafe partial class Scope
    {
        public Output Activate(Activation kind, Output x, [File] string file = "", [Line] int line = 0)
        {
            return kind == Activation.Linear ? x : Value(file, line, s => tw_activation(s, (uint)kind, x.Id));
        }

        private static tw_layer_options LayerOptions(long seed)
        {
            tw_layer_options options;
            tw_layer_options_init(&options);
            options.seed = seed;
            return options;
        }

        private long Last(string what, Output x)
        {
            long[] sizes = Sizes(x);
            if (sizes.Length == 0 || sizes[sizes.Length - 1] < 0) throw Invalid(what + ": the last size of [" + string.Join(", ", sizes) + "] must be known");
            return sizes[sizes.Length - 1];
        }

        /// <summary>activation(x kernel + bias). x: [.., inputs]; the result: [.., units]. seed 0: other first weights in each session.</summary>
        public Output Dense(string name, Output x, long units, Activation activation = Activation.Linear, long seed = 0, [File] string file = "",
            [Line] int line = 0)
        {
            long inputs = Last("dense '" + name + "'", x);
            return Activate(activation, Value(file, line, s => {
                tw_layer_options options = LayerOptions(seed);
                tw_dense layer = new tw_dense {size = (uint)sizeof(tw_dense)};
                tw_dense_create(s, Memory.Name(name), &options, inputs, units, &layer);
                return tw_dense_apply(s, &layer, x.Id);
            }), file, line);
        }

        /// <summary>A convolution with a square window over [batch, height, width, channels] that keeps height and width.</summary>
        public Output Convolution2D(string name, Output x, long filters, long window, Activation activation = Activation.Linear, long seed = 0,
            [File] string file = "", [Line] int line = 0)
        {
            long channels = Last("convolution '" + name + "'", x);
            return Activate(activation, Value(file, line, s => {
                tw_layer_options options = LayerOptions(seed);
                tw_convolution like, layer;
                tw_convolution_sizes sizes;
                tw_convolution_init(&like);
                tw_convolution_init(&layer);
                tw_convolution_sizes_init(&sizes);
                sizes.window_1 = sizes.window_2 = window;
                sizes.channels = channels;
                sizes.filters = filters;
                tw_convolution_create(s, Memory.Name(name), &options, &like, &sizes, &layer);
                return tw_convolution_apply(s, &layer, x.Id);
            }), file, line);
        }

        /// <summary>Keeps the largest of each window of window x window elements.</summary>
        public Output MaxPool2D(Output x, long window, [File] string file = "", [Line] int line = 0)
        {
            return Value(file, line, s => {
                tw_pool pool;
                tw_pool_init(&pool);
                pool.kind = TW_POOL_MAX;
                pool.rank = 2;
                pool.padding = TW_PADDING_VALID;
                pool.window_1 = pool.window_2 = pool.stride_1 = pool.stride_2 = window;
                return tw_pool_apply(s, &pool, x.Id);
            });
        }

        /// <summary>Makes a row of each example.</summary>
        public Output Flatten(Output x, [File] string file = "", [Line] int line = 0)
        {
            long[] sizes = Sizes(x);
            if (sizes.Skip(1).Any(n => n < 0)) throw Invalid("flatten: the sizes of [" + string.Join(", ", sizes) + "] behind the first must be known");
            return Reshape(x, new[] {-1, (int)sizes.Skip(1).Aggregate(1L, (a, b) => a * b)}, file, line);
        }

        public Output Dropout(Output x, double rate, Output training, long seed = 0, [File] string file = "", [Line] int line = 0)
        {
            return Value(file, line, s => tw_dropout(s, x.Id, rate, training.Id, seed));
        }

        /// <summary>The mean cross-entropy of logits [batch, classes] for labels [batch].</summary>
        public Output SparseSoftmaxCrossEntropy(Output logits, Output labels, [File] string file = "", [Line] int line = 0)
        {
            Output each = Op("SparseSoftmaxCrossEntropyWithLogits", new[] {logits, labels}, file, line);
            return Op("Mean", new[] {each, Ints(new[] {0}, file, line)}, file, line);
        }
    }
}
