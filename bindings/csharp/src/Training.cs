using System;
using System.Collections.Generic;
using System.Linq;
using static Thalweg.Low;
using static Thalweg.ThalwegException;
using File = System.Runtime.CompilerServices.CallerFilePathAttribute;
using Line = System.Runtime.CompilerServices.CallerLineNumberAttribute;

namespace Thalweg
{
    /// <summary>The gradient for one value: <c>Values</c> has its shape, or, if <c>Rows</c> is given, the gradients of those rows.</summary>
    public struct Gradient
    {
        internal Gradient(tw_gradient g)
        {
            Values = new Output(g.values);
            Rows = new Output(g.rows);
        }

        public Output Values { get; }
        public Output Rows { get; }

        internal tw_gradient Record
        {
            get { return new tw_gradient {values = Values.Id, rows = Rows.Id}; }
        }
    }

    /// <summary>A measure over many batches.</summary>
    public sealed class Metric
    {
        internal Metric(string name, Output value, Operation update, Operation reset)
        {
            Name = name;
            Value = value;
            Update = update;
            Reset = reset;
        }

        public string Name { get; }
        public Output Value { get; }
        public Operation Update { get; }
        public Operation Reset { get; }
    }

    /// <summary>An optimizer, its learning rate, and options that are not left at the defaults of train.h.</summary>
    public sealed unsafe class Optimizer
    {
        internal delegate IntPtr Call(IntPtr scope, ulong* variables, tw_gradient* gradients, uint n, ulong rate);

        private readonly Call call;
        private readonly double rate;

        private Optimizer(double rate, Call call)
        {
            this.rate = rate;
            this.call = call;
        }

        /// <summary>Computes the learning rate in the graph instead; null: it is constant.</summary>
        public Output? Schedule { get; set; }

        internal Output Rate(Scope scope, string file, int line)
        {
            return Schedule ?? scope.Scalar(DType.Float, rate, file, line);
        }

        internal IntPtr Apply(IntPtr scope, ulong[] variables, tw_gradient[] gradients, Output learningRate)
        {
            fixed (ulong* v = variables)
            fixed (tw_gradient* g = gradients) return call(scope, v, g, (uint)variables.Length, learningRate.Id);
        }

        /// <summary>Gradient descent.</summary>
        public static Optimizer Sgd(double rate)
        {
            return new Optimizer(rate, (s, v, g, n, learningRate) => {
                tw_sgd o;
                tw_sgd_init(&o);
                o.learning_rate = learningRate;
                return tw_train_sgd(s, v, g, n, &o);
            });
        }

        /// <summary>Gradient descent with momentum.</summary>
        public static Optimizer Momentum(double rate, double momentum)
        {
            return new Optimizer(rate, (s, v, g, n, learningRate) => {
                tw_momentum o;
                tw_momentum_init(&o);
                o.learning_rate = learningRate;
                o.momentum = momentum;
                return tw_train_momentum(s, v, g, n, &o);
            });
        }

        /// <summary>By Kingma and Ba, arXiv:1412.6980.</summary>
        public static Optimizer Adam(double rate, double? beta1 = null, double? beta2 = null, double? epsilon = null)
        {
            return new Optimizer(rate, (s, v, g, n, learningRate) => {
                tw_adam o;
                tw_adam_init(&o);
                o.learning_rate = learningRate;
                o.beta1 = beta1 ?? o.beta1;
                o.beta2 = beta2 ?? o.beta2;
                o.epsilon = epsilon ?? o.epsilon;
                return tw_train_adam(s, v, g, n, &o);
            });
        }

        /// <summary>By Duchi, Hazan and Singer, 2011.</summary>
        public static Optimizer Adagrad(double rate)
        {
            return new Optimizer(rate, (s, v, g, n, learningRate) => {
                tw_adagrad o;
                tw_adagrad_init(&o);
                o.learning_rate = learningRate;
                return tw_train_adagrad(s, v, g, n, &o);
            });
        }

        /// <summary>By Tieleman and Hinton, 2012.</summary>
        public static Optimizer RmsProp(double rate)
        {
            return new Optimizer(rate, (s, v, g, n, learningRate) => {
                tw_rmsprop o;
                tw_rmsprop_init(&o);
                o.learning_rate = learningRate;
                return tw_train_rmsprop(s, v, g, n, &o);
            });
        }
    }

    public sealed unsafe partial class Scope
    {
        /// <summary>The gradients of a scalar loss for values or variables.</summary>
        public Gradient[] Gradients(Output loss, IList<Output> xs, [File] string file = "", [Line] int line = 0)
        {
            return Add(file, line, s => {
                ulong[] ids = Ids(xs);
                tw_gradient[] found = new tw_gradient[ids.Length];
                fixed (ulong* x = ids)
                fixed (tw_gradient* to = found) tw_scope_gradients(s, loss.Id, x, (uint)ids.Length, to);
                return found.Select(g => new Gradient(g)).ToArray();
            });
        }

        /// <summary>Scales gradients so that the norm of all together is at most max.</summary>
        public Gradient[] ClipByGlobalNorm(IList<Gradient> gradients, double max, [File] string file = "", [Line] int line = 0)
        {
            return Add(file, line, s => {
                if (gradients == null) throw Invalid("the gradients are null");
                tw_gradient[] all = gradients.Select(g => g.Record).ToArray();
                fixed (tw_gradient* g = all) tw_clip_by_global_norm(s, g, (uint)all.Length, max);
                return all.Select(g => new Gradient(g)).ToArray();
            });
        }

        /// <summary>Adds one update of variables by gradients.</summary>
        public Operation Apply(Optimizer optimizer, IList<Output> variables, IList<Gradient> gradients, [File] string file = "", [Line] int line = 0)
        {
            if (optimizer == null || variables == null || gradients == null || variables.Count != gradients.Count)
                throw Invalid("apply needs an optimizer, and a gradient for each variable");
            Output rate = optimizer.Rate(this, file, line);
            return Done(file, line, s => optimizer.Apply(s, Ids(variables), gradients.Select(g => g.Record).ToArray(), rate));
        }

        /// <summary>Adds one update of all variables of the graph that hold real numbers and that the loss depends on.</summary>
        public Operation Minimize(Output loss, Optimizer optimizer, [File] string file = "", [Line] int line = 0)
        {
            DType[] real = {DType.Float, DType.Double, DType.Half, DType.BFloat16};
            Output[] variables = graph.Variables().Where(v => real.Contains(v.DType)).Select(v => v.Handle).ToArray();
            if (variables.Length == 0) throw Invalid("minimize: the graph has no variables of real numbers");
            return Apply(optimizer, variables, Gradients(loss, variables, file, line), file, line);
        }

        private delegate void AddMetric(IntPtr scope, byte[] name, tw_metric* metric);

        private Metric NewMetric(string name, string file, int line, AddMetric call)
        {
            return Add(file, line, s => {
                tw_metric m = new tw_metric {size = (uint)sizeof(tw_metric)};
                call(s, Memory.Name(name), &m);
                return new Metric(name, new Output(m.value), new Operation(graph, m.update), new Operation(graph, m.reset));
            });
        }

        /// <summary>The share of examples whose class is the label. predictions: scores [batch, classes], or classes.</summary>
        public Metric Accuracy(string name, Output predictions, Output labels, [File] string file = "", [Line] int line = 0)
        {
            return NewMetric(name, file, line, (s, n, m) => tw_metric_accuracy(s, n, predictions.Id, labels.Id, 0, m));
        }

        /// <summary>The mean of values.</summary>
        public Metric MeanMetric(string name, Output values, [File] string file = "", [Line] int line = 0)
        {
            return NewMetric(name, file, line, (s, n, m) => tw_metric_mean(s, n, values.Id, 0, m));
        }
    }
}
