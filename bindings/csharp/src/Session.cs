using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using static Thalweg.Low;
using static Thalweg.ThalwegException;

namespace Thalweg
{
    /// <summary>The options of one run as C has them. A token of .NET cancels a token of C.</summary>
    internal sealed unsafe class RunOptions : IDisposable
    {
        private readonly CancellationToken cancel;
        private readonly CancellationTokenRegistration registration;
        private readonly IntPtr token;
        private readonly long timeout;

        internal RunOptions(TimeSpan? timeout, CancellationToken cancel)
        {
            this.timeout = timeout == null ? 0 : Math.Max(1, timeout.Value.Ticks * 100);
            this.cancel = cancel;
            if (!cancel.CanBeCanceled) return;
            IntPtr made;
            Check(tw_cancel_token_create(&made));
            token = made;
            registration = cancel.Register(Cancel);
        }

        private void Cancel()
        {
            tw_cancel_token_cancel(token);
        }

        internal IntPtr Token
        {
            get { return token; }
        }

        internal tw_run_options Record
        {
            get { return new tw_run_options {size = (uint)sizeof(tw_run_options), timeout_ns = timeout, cancel = token}; }
        }

        /// <summary>The exception for a failed run: that of .NET if the program's token ended it.</summary>
        internal Exception Of(IntPtr status)
        {
            ThalwegException failure = ThalwegException.Of(status);
            return failure is CancelledException && cancel.IsCancellationRequested ? new OperationCanceledException(failure.Message, failure, cancel) : (Exception)failure;
        }

        public void Dispose()
        {
            registration.Dispose(); // waits for a cancellation that runs
            tw_cancel_token_destroy(token);
        }
    }

    /// <summary>Runs on the threads of .NET. The library's own threads block all signals, and Mono could not stop them for its collector if they
    /// called back.</summary>
    internal static class Background
    {
        internal static async Task<Tensor[]> Run(IDisposable kept, Func<Tensor[]> run)
        {
            using (kept) return await Task.Run(run).ConfigureAwait(false);
        }
    }

    /// <summary>Runs a graph. Any number of threads may run it at once.</summary>
    public sealed unsafe class Session : Handle
    {
        /// <summary>options: "key=value", as tw_session_option lists them, such as "threads=2".</summary>
        public Session(Graph graph, params string[] options) : base(Create(graph, options), tw_session_destroy)
        {
            Graph = graph;
        }

        private static IntPtr Create(Graph graph, string[] options)
        {
            using (Used g = Use(graph, "the graph"))
            using (Memory memory = new Memory())
            {
                IntPtr session;
                Check(tw_session_create(g, memory.Texts(options), (uint)options.Length, &session));
                return session;
            }
        }

        public Graph Graph { get; }

        /// <summary>Empties a container of state: variables lose their values, queues, tables and the like are removed. The session can go on;
        /// its variables can be initialised again. container: null or "" means the session's default one, which is its graph's own unless the
        /// session has a target or the option "container". With a target, the container is emptied on every task. Returns the number of objects
        /// that it held.</summary>
        public ulong Reset(string container = null)
        {
            using (Used s = Use())
            {
                ulong count;
                Check(tw_session_reset(s, Memory.Utf8(container), &count));
                return count;
            }
        }

        internal static tw_signature Signature(Memory memory, IList<Output> feeds, IList<Output> fetches, IList<Operation> targets)
        {
            return new tw_signature {
                size = (uint)sizeof(tw_signature), feeds = memory.Outputs(feeds), n_feeds = (uint)feeds.Count, fetches = memory.Outputs(fetches),
                n_fetches = (uint)fetches.Count, targets = memory.Operations(targets), n_targets = (uint)targets.Count};
        }

        /// <summary>Runs one step: feeds values, runs targets and what they need, and returns the fetched values. A timeout throws a
        /// DeadlineExceededException, a cancelled token an OperationCanceledException.</summary>
        public Tensor[] Run(IDictionary<Output, Tensor> feeds, IList<Output> fetches, IList<Operation> targets = null, TimeSpan? timeout = null,
            CancellationToken cancel = default(CancellationToken))
        {
            if (feeds == null) throw Invalid("the feeds are null; give an empty dictionary");
            Output[] inputs = feeds.Keys.ToArray();
            using (Used s = Use())
            using (Graph.Use())
            using (UsedTensors tensors = new UsedTensors(inputs.Select(x => feeds[x]).ToArray()))
            using (Memory memory = new Memory())
            using (RunOptions options = new RunOptions(timeout, cancel))
            {
                tw_signature what = Signature(memory, inputs, fetches, targets ?? new Operation[0]);
                tw_run_options o = options.Record;
                IntPtr[] found = new IntPtr[fetches.Count];
                IntPtr status;
                fixed (IntPtr* t = tensors.Addresses, f = found) status = tw_session_run(s, &what, t, &o, f);
                if (status != IntPtr.Zero) throw options.Of(status);
                return Tensor.Own(found);
            }
        }

        /// <summary>Fetches values without feeds.</summary>
        public Tensor[] Run(params Output[] fetches)
        {
            return Run(new Dictionary<Output, Tensor>(), fetches);
        }

        /// <summary>Runs operations.</summary>
        public void Run(params Operation[] targets)
        {
            if (targets == null) throw Invalid("a list of operations is null; give an empty one");
            Run(new Dictionary<Output, Tensor>(), new Output[0], targets);
        }

        /// <summary>The same on another thread.</summary>
        public Task<Tensor[]> RunAsync(IDictionary<Output, Tensor> feeds, IList<Output> fetches, IList<Operation> targets = null, TimeSpan? timeout = null,
            CancellationToken cancel = default(CancellationToken))
        {
            if (feeds == null) throw Invalid("the feeds are null; give an empty dictionary");
            Dictionary<Output, Tensor> mine = new Dictionary<Output, Tensor>(feeds);
            return Background.Run(new UsedTensors(mine.Values.ToArray()), () => Run(mine, fetches, targets, timeout, cancel));
        }

        /// <summary>Prepares a run, whose feeds and fetches have an order.</summary>
        public Callable Prepare(IList<Output> feeds, IList<Output> fetches, IList<Operation> targets = null)
        {
            return new Callable(this, feeds, fetches, targets ?? new Operation[0]);
        }
    }

    /// <summary>A prepared run. Any number of threads may run it at once.</summary>
    public sealed unsafe class Callable : Handle
    {
        private readonly Session session;
        private readonly int feeds, fetches;

        internal Callable(Session session, IList<Output> feeds, IList<Output> fetches, IList<Operation> targets)
            : base(Create(session, feeds, fetches, targets), tw_callable_destroy)
        {
            this.session = session;
            this.feeds = feeds.Count;
            this.fetches = fetches.Count;
        }

        private static IntPtr Create(Session session, IList<Output> feeds, IList<Output> fetches, IList<Operation> targets)
        {
            using (Used s = session.Use())
            using (session.Graph.Use())
            using (Memory memory = new Memory())
            {
                IntPtr callable;
                tw_signature what = Session.Signature(memory, feeds, fetches, targets);
                Check(tw_callable_create(s, &what, &callable));
                return callable;
            }
        }

        private UsedTensors Feeds(IList<Tensor> tensors)
        {
            if (tensors == null || tensors.Count != feeds) throw Invalid("the callable takes " + feeds + " tensors");
            return new UsedTensors(tensors);
        }

        /// <summary>Runs the step with a tensor for each feed, and returns the fetches.</summary>
        public Tensor[] Run(params Tensor[] tensors)
        {
            if (tensors == null || tensors.Length != feeds || feeds > 64) return Run(tensors, null);
            IntPtr* addresses = stackalloc IntPtr[64];
            IntPtr[] found = new IntPtr[fetches];
            int used = 0;
            session.Use();
            try
            {
                using (Used c = Use())
                {
                    for (; used < feeds; ++used) addresses[used] = Use(tensors[used], "a tensor");
                    fixed (IntPtr* f = found) Check(tw_callable_run(c, addresses, null, f));
                }
            }
            finally
            {
                for (int i = 0; i < used; ++i) tensors[i].Leave();
                session.Leave();
            }
            return Tensor.Own(found);
        }

        /// <summary>The same with an end. A timeout throws a DeadlineExceededException, a cancelled token an OperationCanceledException.</summary>
        public Tensor[] Run(IList<Tensor> tensors, TimeSpan? timeout, CancellationToken cancel = default(CancellationToken))
        {
            using (UsedTensors used = Feeds(tensors)) return Run(used, timeout, cancel);
        }

        private Tensor[] Run(UsedTensors used, TimeSpan? timeout, CancellationToken cancel)
        {
            using (session.Use())
            using (Used c = Use())
            using (RunOptions options = new RunOptions(timeout, cancel))
            {
                tw_run_options o = options.Record;
                IntPtr[] found = new IntPtr[fetches];
                IntPtr status;
                fixed (IntPtr* t = used.Addresses, f = found) status = tw_callable_run(c, t, &o, f);
                if (status != IntPtr.Zero) throw options.Of(status);
                return Tensor.Own(found);
            }
        }

        /// <summary>The same on another thread.</summary>
        public Task<Tensor[]> RunAsync(IList<Tensor> tensors, TimeSpan? timeout = null, CancellationToken cancel = default(CancellationToken))
        {
            UsedTensors used = Feeds(tensors);
            return Background.Run(used, () => Run(used, timeout, cancel));
        }
    }
}
