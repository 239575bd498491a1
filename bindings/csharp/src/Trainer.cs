using System;
using System.Collections.Generic;
using System.Linq;
using System.Runtime.InteropServices;
using System.Threading;
using static Thalweg.Low;
using static Thalweg.ThalwegException;

namespace Thalweg
{
    /// <summary>What a trainer trains. Properties that are not set mean none.</summary>
    public sealed class Training
    {
        /// <summary>Tensor i of a batch is fed to Feeds[i].</summary>
        public IList<Output> Feeds { get; set; } = new Output[0];

        /// <summary>Predictions need only the first so many of them; 0: all.</summary>
        public int Inputs { get; set; }
        public Output Loss { get; set; }
        public Operation Step { get; set; }

        /// <summary>A bool that is true while the loop trains, as dropout needs it.</summary>
        public Output Flag { get; set; }
        public IList<Metric> Metrics { get; set; } = new Metric[0];
        public IList<Output> Predictions { get; set; } = new Output[0];
    }

    /// <summary>The place of a loop.</summary>
    public sealed unsafe class Progress
    {
        internal Progress(tw_fit_progress* p)
        {
            Epoch = p->epoch;
            Epochs = p->epochs;
            Step = p->step;
            Batch = p->batch;
            Values = Named(p->names, p->values, p->n_values);
            Validation = Named(p->names, p->validation, p->n_values);
            Improved = p->improved != 0;
            Seconds = p->seconds;
        }

        private static IDictionary<string, double> Named(byte** names, double* values, uint n)
        {
            Dictionary<string, double> all = new Dictionary<string, double>();
            for (uint i = 0; values != null && i < n; ++i) all[Memory.String(names[i])] = values[i];
            return all;
        }

        public long Epoch { get; }
        public long Epochs { get; }
        public long Step { get; }
        public long Batch { get; }
        public IDictionary<string, double> Values { get; }
        public IDictionary<string, double> Validation { get; }
        public bool Improved { get; }
        public double Seconds { get; }
    }

    /// <summary>The result of <see cref="Trainer.Fit"/>.</summary>
    public sealed class Report
    {
        internal Report(tw_fit_report r)
        {
            Epochs = r.epochs;
            Steps = r.steps;
            ResumedAt = r.resumed_at;
            BestEpoch = r.best_epoch;
            Best = r.best;
            Stopped = r.why != TW_FIT_COMPLETE;
        }

        public long Epochs { get; }
        public long Steps { get; }
        public long ResumedAt { get; }
        public long BestEpoch { get; }
        public double Best { get; }
        public bool Stopped { get; }
    }

    /// <summary>Runs the training loop. One thread at a time.</summary>
    public sealed unsafe class Trainer : Handle
    {
        private readonly string[] names;
        private readonly int predictions;

        public Trainer(Session session, Training training) : this(Use(session, "the session"), session, training) {}

        private Trainer(Used session, Session given, Training training) : this(session, UseGraph(session, given), training) {}

        private Trainer(Used session, Used graph, Training training) : base(Create(session, graph, training), address => {
            tw_trainer_destroy(address);
            graph.Dispose(); // both outlive the trainer
            session.Dispose();
        })
        {
            predictions = training.Predictions.Count;
            using (Used t = Use())
            {
                names = new string[tw_trainer_value_count(t)];
                for (uint i = 0; i < names.Length; ++i) names[i] = Memory.String(tw_trainer_value_name(t, i));
            }
        }

        private static Used UseGraph(Used session, Session given)
        {
            try
            {
                return given.Graph.Use();
            }
            catch
            {
                session.Dispose();
                throw;
            }
        }

        private static IntPtr Create(Used session, Used graph, Training training)
        {
            try
            {
                return Create((IntPtr)session, (IntPtr)graph, training);
            }
            catch
            {
                graph.Dispose();
                session.Dispose();
                throw;
            }
        }

        private static IntPtr Create(IntPtr session, IntPtr graph, Training training)
        {
            if (training == null || training.Metrics == null) throw Invalid("the training, or its list of metrics, is null");
            using (Memory memory = new Memory())
            {
                int n = training.Metrics.Count;
                tw_metric* metrics = (tw_metric*)memory.Room(n * (long)sizeof(tw_metric));
                for (int i = 0; i < n; ++i)
                {
                    Metric one = training.Metrics[i];
                    if (one == null) throw Invalid("metric " + i + " is null");
                    metrics[i] = new tw_metric {size = (uint)sizeof(tw_metric), value = one.Value.Id, update = one.Update.Address, reset = one.Reset.Address};
                }
                tw_trainer_model m;
                tw_trainer_model_init(&m);
                m.graph = graph;
                m.session = session;
                m.feeds = memory.Outputs(training.Feeds);
                m.n_feeds = (uint)training.Feeds.Count;
                m.n_inputs = (uint)training.Inputs;
                m.loss = training.Loss.Id;
                m.training = training.Flag.Id;
                m.step = training.Step == null ? IntPtr.Zero : training.Step.Address;
                m.metrics = metrics;
                m.n_metrics = (uint)n;
                m.metric_names = memory.Texts(training.Metrics.Select(one => one.Name).ToArray());
                m.predictions = memory.Outputs(training.Predictions);
                m.n_predictions = (uint)training.Predictions.Count;
                IntPtr trainer;
                Check(tw_trainer_create(&m, &trainer));
                return trainer;
            }
        }

        /// <summary>Trains over the batches.</summary>
        /// <param name="data">gives a tensor for each feed; it is reset to each epoch, if it can be</param>
        /// <param name="epochs">how often all of it</param>
        /// <param name="validation">evaluated after each epoch</param>
        /// <param name="watch">the watched value; null: the loss</param>
        /// <param name="patience">epochs without a better value after which training stops; 0: never</param>
        /// <param name="keepBest">the variables have the best epoch's values in the end</param>
        /// <param name="largerIsBetter">of the watched value</param>
        /// <param name="progress">a line for each epoch on standard error</param>
        /// <param name="folder">for checkpoints, from which a training goes on; null: none</param>
        /// <param name="everySteps">a checkpoint after so many steps; 0: none within an epoch</param>
        /// <param name="afterStep">called after each step; true ends the training as if all were done. What it throws comes back as it is</param>
        /// <param name="epochEnd">the same after each epoch</param>
        /// <param name="cancel">ends the training with an OperationCanceledException</param>
        public Report Fit(Batches data, long epochs = 1, Batches validation = null, string watch = null, long patience = 0, bool keepBest = false,
            bool largerIsBetter = false, bool progress = false, string folder = null, long everySteps = 0, Func<Progress, bool> afterStep = null,
            Func<Progress, bool> epochEnd = null, CancellationToken cancel = default(CancellationToken))
        {
            Thrown thrown = new Thrown();
            Low.tw_fit_callback__after_step after = (user, at, stop) => thrown.Call(() => *stop = afterStep(new Progress(at)) ? 1u : 0u);
            Low.tw_fit_callback__epoch_end end = (user, at, stop) => thrown.Call(() => *stop = epochEnd(new Progress(at)) ? 1u : 0u);
            using (Used t = Use())
            using (Used batches = Use(data, "the data"))
            using (Memory memory = new Memory())
            using (RunOptions options = new RunOptions(null, cancel))
            {
                tw_fit_options o;
                tw_fit_report r = new tw_fit_report {size = (uint)sizeof(tw_fit_report)};
                tw_fit_callback c = new tw_fit_callback {
                    size = (uint)sizeof(tw_fit_callback), after_step = afterStep == null ? IntPtr.Zero : Marshal.GetFunctionPointerForDelegate(after),
                    epoch_end = epochEnd == null ? IntPtr.Zero : Marshal.GetFunctionPointerForDelegate(end)};
                tw_fit_options_init(&o);
                o.flags = (keepBest ? TW_FIT_KEEP_BEST : 0) | (largerIsBetter ? TW_FIT_LARGER_IS_BETTER : 0) | (progress ? TW_FIT_PROGRESS : 0);
                o.epochs = epochs;
                o.watch = memory.Text(watch);
                o.patience = patience;
                o.folder = memory.Text(folder);
                o.every_steps = everySteps;
                o.callbacks = &c;
                o.n_callbacks = 1;
                o.cancel = options.Token;
                IntPtr status;
                if (validation == null) status = tw_trainer_fit(t, (tw_iterator*)(IntPtr)batches, &o, &r);
                else
                    using (Used v = validation.Use())
                    {
                        o.validation = (tw_iterator*)(IntPtr)v;
                        status = tw_trainer_fit(t, (tw_iterator*)(IntPtr)batches, &o, &r);
                    }
                GC.KeepAlive(after);
                GC.KeepAlive(end);
                if (status == IntPtr.Zero) return new Report(r);
                Exception failure = options.Of(status);
                thrown.Rethrow();
                data.Rethrow();
                if (validation != null) validation.Rethrow();
                throw failure;
            }
        }

        /// <summary>The loss and the metrics over one epoch, by their names.</summary>
        public IDictionary<string, double> Evaluate(Batches data)
        {
            using (Used t = Use())
            using (Used batches = Use(data, "the data"))
            {
                double[] values = new double[names.Length];
                IntPtr status;
                fixed (double* v = values) status = tw_trainer_evaluate(t, (tw_iterator*)(IntPtr)batches, IntPtr.Zero, v);
                data.CheckCall(status);
                return Enumerable.Range(0, names.Length).ToDictionary(i => names[i], i => values[i]);
            }
        }

        /// <summary>The predictions for one epoch, with the rows of all batches.</summary>
        public Tensor[] Predict(Batches data)
        {
            using (Used t = Use())
            using (Used batches = Use(data, "the data"))
            {
                IntPtr[] found = new IntPtr[predictions];
                IntPtr status;
                fixed (IntPtr* f = found) status = tw_trainer_predict(t, (tw_iterator*)(IntPtr)batches, IntPtr.Zero, f);
                data.CheckCall(status);
                return Tensor.Own(found);
            }
        }
    }
}
