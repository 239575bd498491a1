using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;
using Thalweg;

/// <summary>The tests of the package. The environment has THALWEG_TEST_MODEL, an ONNX file that adds two values. With the argument "cost" it
/// measures calls, with "layouts" it prints the records as the assembly has them.</summary>
static class BindingTest
{
    static int failures;

    static void Test(string what, Action body)
    {
        try
        {
            body();
            Console.WriteLine("passed  " + what);
        }
        catch (Exception e)
        {
            ++failures;
            Console.WriteLine("FAILED  " + what + "\n" + e);
        }
    }

    static void Check(bool condition, object what)
    {
        if (!condition) throw new Exception("check: " + what);
    }

    static void Equal<T>(T a, T b)
    {
        Check(EqualityComparer<T>.Default.Equals(a, b), a + " is not " + b);
    }

    static T Throws<T>(Action body) where T : Exception
    {
        try
        {
            body();
        }
        catch (T e)
        {
            return e;
        }
        catch (Exception e)
        {
            throw new Exception("another exception than " + typeof(T).Name, e);
        }
        throw new Exception("no " + typeof(T).Name);
    }

    static string Text(long[] sizes)
    {
        return "[" + string.Join(", ", sizes) + "]";
    }

    static readonly long[] scalar = {};

    /// <summary>A graph with y = x + x, and a session of one thread.</summary>
    sealed class Doubling
    {
        internal readonly Graph Graph = new Graph();
        internal readonly Scope Scope;
        internal readonly Output X, Y;
        internal readonly Session Session;
        internal readonly Callable Step;

        internal Doubling()
        {
            Scope = Graph.Scope();
            X = Scope.Placeholder("x", DType.Float, scalar);
            Y = Scope.Name("y", Scope.Add(X, X));
            Session = new Session(Graph, "threads=1");
            Step = Session.Prepare(new[] {X}, new[] {Y});
        }

        internal Dictionary<Output, Tensor> Feed(Tensor tensor)
        {
            return new Dictionary<Output, Tensor> {{X, tensor}};
        }
    }

    /// <summary>A session with an operation that waits at an empty queue.</summary>
    sealed class Waiting
    {
        internal readonly Output Get;
        internal readonly Session Session;

        internal Waiting()
        {
            Graph graph = new Graph();
            Scope s = graph.Scope();
            Get = s.QueueDequeueV2(s.FIFOQueueV2(new[] {DType.Float}), new[] {DType.Float})[0];
            Session = new Session(graph);
        }
    }

    static readonly Dictionary<Output, Tensor> none = new Dictionary<Output, Tensor>();

    static IEnumerable<MethodInfo> Functions()
    {
        return typeof(Low).GetMethods(BindingFlags.Public | BindingFlags.Static).Where(m => m.Attributes.HasFlag(MethodAttributes.PinvokeImpl));
    }

    /// <summary>Prelink finds each function in the library and makes its conversions; a missing one is an EntryPointNotFoundException.</summary>
    static void EveryFunction()
    {
        RuntimeHelpers.RunClassConstructor(typeof(Low).TypeHandle);
        foreach (MethodInfo function in Functions()) Marshal.Prelink(function);
        Equal(Functions().Count(), Low.Count);
        Equal(Low.tw_tensor_rank(IntPtr.Zero), 0u);
    }

    static void Layouts()
    {
        foreach (Type record in typeof(Low).GetNestedTypes().Where(t => t.IsValueType))
        {
            Console.WriteLine("{0} {1}", record.Name, Marshal.SizeOf(record));
            foreach (FieldInfo field in record.GetFields()) Console.WriteLine("{0} {1} {2}", record.Name, field.Name, Marshal.OffsetOf(record, field.Name));
        }
    }

    static void Tensors()
    {
        Tensor a = Tensor.Of(new float[] {1, 2, 3, 4, 5, 6}, 2, -1);
        Equal(Text(a.Shape) + a.DType + a.Count + a, "[2, 3]Float6[[1, 2, 3], [4, 5, 6]]");
        Equal(Tensor.Of(new[,] {{1, 2}, {3, 4}, {5, 6}}).ToString(), "[[1, 2], [3, 4], [5, 6]]");
        Equal(((float[,])a.ToShaped<float>())[1, 2], 6f);
        Tensor z = Tensor.Zeros(DType.Int64, 3);
        z.Fill(new long[] {0, 7, long.MinValue});
        Check(z.ToArray<long>().SequenceEqual(new[] {0, 7, long.MinValue}), z);
        Check(Tensor.Of(new[] {"", "any\0bytes", "\u00e9"}).ToStrings().SequenceEqual(new[] {"", "any\0bytes", "\u00e9"}), "strings");
        Tensor view = z.Reshape(3, 1);
        Throws<FailedPreconditionException>(() => z.Fill(new long[3]));
        view.Dispose();
        Check(Tensor.Of(new[] {true, false}).ToArray<bool>().SequenceEqual(new[] {true, false}), "bools");
        Equal(Tensor.Of(new byte[] {1, 255}).ToString(), "[1, 255]");
        Equal(Tensor.Of(new double[0]).Count, 0L);
        Equal(Text(Tensor.Of(new float[0], 0, 3).Shape), "[0, 3]");
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static WeakReference WrapAndForget(out Tensor tensor)
    {
        float[] own = {1, 2, 3};
        tensor = Tensor.Wrap(own);
        return new WeakReference(own);
    }

    static void WrappedArrays()
    {
        Tensor tensor;
        WeakReference own = WrapAndForget(out tensor);
        for (int i = 0; i < 5; ++i) GC.Collect();
        Equal(((float[])own.Target)[2], 3f); // the tensor keeps the array where it is
        Check(tensor.ToArray<float>().SequenceEqual(new float[] {1, 2, 3}), tensor);
        Throws<FailedPreconditionException>(() => tensor.Fill(new float[3]));
        List<WeakReference> many = new List<WeakReference>();
        Thread other = new Thread(() => { // its stack, which the collector reads, ends with it
            for (int i = 0; i < 100; ++i)
            {
                Tensor one;
                many.Add(WrapAndForget(out one));
                one.Dispose();
            }
        });
        other.Start();
        other.Join();
        GC.Collect();
        Check(many.Count(w => w.IsAlive) < 50, many.Count(w => w.IsAlive) + " of 100 arrays are still pinned");
    }

    static int Here([CallerLineNumber] int line = 0)
    {
        return line;
    }

    static void ErrorsNameTheLine()
    {
        Scope s = new Graph().Scope("head");
        Output a = s.Placeholder("a", DType.Float, new long[] {2, 3}), b = s.Placeholder("b", DType.Float, new long[] {4, 5});
        int line = Here() + 1;
        InvalidArgumentException e = Throws<InvalidArgumentException>(() => s.MatMul(a, b));
        Equal(e.Place, "BindingTest.cs:" + line);
        Check(e.Message.Contains(e.Place) && e.Operation == "head/MatMul" && e.Code == Code.InvalidArgument, e);
        Check(!s.Op("Shape", new[] {a}).Equals(default(Output)), "the scope goes on");
        Throws<InvalidArgumentException>(() => s.MatMul(a, b, transposeB: true));
        line = Here() + 1;
        Equal(Throws<InvalidArgumentException>(() => s.Dense("d", s.MatMul(b, a), 2)).Place, "BindingTest.cs:" + line);
    }

    static void OpsTakeAttributes()
    {
        Graph graph = new Graph();
        Scope s = graph.Scope();
        Output a = s.Constant(Tensor.Of(new[,] {{1f, 2f}})), b = s.Constant(Tensor.Of(new[,] {{3f, 4f}}));
        Output x = s.MatMul(a, b, transposeB: true, name: "x");
        Output[] parts = s.Split(s.Scalar(DType.Int32, 1), a, 2);
        Tensor[] found = new Session(graph).Run(x, parts[0], parts[1]);
        Equal(string.Join(" ", found.Select(t => t.ToString())), "[[11]] [[1]] [[2]]");
        Equal(graph.Operation("x").Type, "MatMul");
        Equal(graph.Operation("x").Name, "x");
        Check(graph.Output("x:0").Equals(x), "the same value");
    }

    static void TrainingSavesAndGoesOn()
    {
        Graph graph = new Graph();
        Scope s = graph.Scope();
        Output x = s.Placeholder("x", DType.Float, new long[] {-1, 2}), y = s.Placeholder("y", DType.Float, new long[] {-1, 1});
        Output z = s.Dense("layer", x, 1, seed: 3), d = s.Sub(z, y), square = s.Mul(d, d), loss = s.Mean(square);
        Training training = new Training {
            Feeds = new[] {x, y}, Inputs = 1, Loss = loss, Step = s.Minimize(loss, Optimizer.Momentum(0.05, 0.9)),
            Metrics = new[] {s.MeanMetric("square", square)}, Predictions = new[] {z}};
        Operation init = s.Initializer();
        Session session = new Session(graph, "threads=1");
        session.Run(init);
        Trainer trainer = new Trainer(session, training);
        float[,] xs = new float[100, 2], ys = new float[100, 1];
        for (int i = 0; i < 100; ++i)
        {
            xs[i, 0] = i % 7 / 7f;
            xs[i, 1] = i % 5 / 5f;
            ys[i, 0] = 2 * xs[i, 0] - xs[i, 1];
        }
        Batches data = Batches.Of(10, true, 0, Tensor.Of(xs), Tensor.Of(ys));
        int epochs = 0;
        Report report = trainer.Fit(data, epochs: 40, epochEnd: p => ++epochs == 30 && p.Values["square"] < 1);
        IDictionary<string, double> values = trainer.Evaluate(data);
        Check(report.Stopped && report.Steps == 300 && values["loss"] < 1e-3 && Math.Abs(values["loss"] - values["square"]) < 1e-6, report.Steps + " " + values["loss"]);
        Equal(Text(trainer.Predict(data)[0].Shape), "[100, 1]");
        string folder = Path.Combine(Path.GetTempPath(), "thalweg-" + Guid.NewGuid()), prefix = Path.Combine(folder, "model");
        Directory.CreateDirectory(folder);
        Saver saver = new Saver(graph);
        saver.Save(session, prefix);
        Checkpoint checkpoint = new Checkpoint(prefix);
        Check(checkpoint.Names.Length >= 2 && Math.Abs(checkpoint.Read("layer/kernel").ToArray<float>()[0] - 2) < 0.2, string.Join(" ", checkpoint.Names));
        session.Run(init);
        saver.Restore(session, prefix);
        Equal(trainer.Evaluate(data)["loss"], values["loss"]);
        Checkpoint.Write(prefix + "2", new Dictionary<string, Tensor> {{"a", Tensor.Scalar(5)}});
        Equal(new Checkpoint(prefix + "2").Read("a").ToArray<int>()[0], 5);
        Equal(Graph.Import(graph.Export()).Count, graph.Count);
        Directory.Delete(folder, true);
    }

    static void GradientsAreGraphs()
    {
        Graph graph = new Graph();
        Scope s = graph.Scope();
        Output x = s.Placeholder("x", DType.Float, new long[] {2}), loss = s.Sum(s.Mul(x, s.Mul(x, x)));
        Gradient g = s.Gradients(loss, new[] {x})[0], clipped = s.ClipByGlobalNorm(new[] {g}, 1)[0];
        Output second = s.Gradients(s.Sum(g.Values), new[] {x})[0].Values;
        Tensor[] found = new Session(graph).Run(new Dictionary<Output, Tensor> {{x, Tensor.Of(new float[] {1, 2})}}, new[] {g.Values, clipped.Values, second});
        Check(found[0].ToArray<float>().SequenceEqual(new float[] {3, 12}), found[0]);
        Check(Math.Abs(found[1].ToArray<float>().Sum(v => v * v) - 1) < 1e-5, found[1]);
        Check(found[2].ToArray<float>().SequenceEqual(new float[] {6, 12}), found[2]);
    }

    static void Datasets()
    {
        Graph graph = new Graph();
        Scope s = graph.Scope();
        Dataset d = s.Numbers(0, 10).Filter((t, e) => new[] {t.Greater(e[0], t.Scalar(DType.Int64, 3))}).Map((t, e) => new[] {t.Mul(e[0], e[0])}).Batch(4);
        Equal(string.Join(" ", d.Batches().Select(batch => batch[0].ToString())), "[16, 25, 36, 49] [64, 81]");
    }

    static void ModelFile()
    {
        string path = Environment.GetEnvironmentVariable("THALWEG_TEST_MODEL");
        if (path == null || !File.Exists(path))
        {
            Console.WriteLine("skipped  there is no model file");
            return;
        }
        Model model = Model.Load(path, "threads=1");
        Tensor x = Tensor.Of(Enumerable.Range(0, 60).Select(i => (float)i).ToArray(), 3, 4, 5);
        Equal(model.Signatures[0].Inputs[0].Name, "x");
        Equal(model.Run(new Dictionary<string, Tensor> {{"x", x}, {"y", x}})["sum"].ToArray<float>()[59], 118f);
        var e = Throws<InvalidArgumentException>(() => model.Run(new Dictionary<string, Tensor> {{"x", x}, {"z", x}}));
        Check(e.Message.Contains("'z'"), "names the input");
    }

    /// <summary>A graph with a variable of 3, its initialisation and its read.</summary>
    sealed class Counting
    {
        internal readonly Graph Graph = new Graph();
        internal readonly Operation Init;
        internal readonly Output Read;

        internal Counting()
        {
            Scope s = Graph.Scope();
            Read = s.Read(s.Variable("v", s.Scalar(DType.Float, 3)));
            Init = s.Initializer();
        }

        /// <summary>Initialises the variable, empties the container with the function, and looks at what is left.</summary>
        internal void Resets(Session session, Func<ulong> reset)
        {
            for (int i = 0; i < 2; ++i)
            {
                session.Run(Init);
                Equal(session.Run(Read)[0].ToArray<float>()[0], 3f);
                Equal(reset(), 1ul);
                Throws<FailedPreconditionException>(() => session.Run(Read));
            }
        }
    }

    static void Containers()
    {
        Counting c = new Counting();
        using (Session session = new Session(c.Graph))
        using (Session named = new Session(c.Graph, "container=reset"))
        {
            c.Resets(session, () => session.Reset());
            c.Resets(named, () => session.Reset("reset"));
            c.Resets(named, () => Library.ResetContainer("reset"));
            Equal(Library.ResetContainer("nothing"), 0ul);
            Throws<InvalidArgumentException>(() => Library.ResetContainer("<graph"));
            Throws<InvalidArgumentException>(() => Library.ResetCluster(null));
        }
    }

    static void ServerRunsASession()
    {
        using (Server server = new Server("{\"worker\": [\"grpc:127.0.0.1:0\"]}", "worker", 0, "insecure=true"))
        {
            server.Start();
            Doubling d = new Doubling();
            using (Session session = new Session(d.Graph, "target=" + server.Address, "insecure=true"))
                Equal(session.Run(d.Feed(Tensor.Scalar(4f)), new[] {d.Y})[0].ToArray<float>()[0], 8f);
            Counting c = new Counting();
            using (Session session = new Session(c.Graph, "target=" + server.Address, "insecure=true", "container=reset"))
                c.Resets(session, () => Library.ResetCluster(server.Address, "reset", TimeSpan.FromMinutes(1), "insecure=true"));
            server.Stop();
        }
    }

    static void TokensAndTimeouts()
    {
        Waiting w = new Waiting();
        CancellationTokenSource source = new CancellationTokenSource();
        Task<Tensor[]> running = w.Session.RunAsync(none, new[] {w.Get}, cancel: source.Token);
        Thread other = new Thread(source.Cancel);
        other.Start();
        Check(Throws<OperationCanceledException>(() => w.Session.Run(none, new[] {w.Get}, cancel: source.Token)).InnerException is CancelledException, "the failure of the library");
        other.Join();
        Throws<OperationCanceledException>(() => running.GetAwaiter().GetResult());
        Check(running.IsCanceled, running.Status);
        Throws<DeadlineExceededException>(() => w.Session.Run(none, new[] {w.Get}, timeout: TimeSpan.FromMilliseconds(1)));
        Throws<DeadlineExceededException>(() => w.Session.RunAsync(none, new[] {w.Get}, timeout: TimeSpan.FromMilliseconds(1)).GetAwaiter().GetResult());
    }

    static void TasksRun()
    {
        Doubling d = new Doubling();
        Task<Tensor[]>[] all = Enumerable.Range(0, 100).Select(i => d.Step.RunAsync(new[] {Tensor.Scalar((float)i)})).ToArray();
        Task.WaitAll(all);
        Check(all.Select((t, i) => t.Result[0].ToArray<float>()[0] == 2 * i).All(yes => yes), "each has its own value");
        Throws<InvalidArgumentException>(() => d.Step.RunAsync(new[] {Tensor.Of(new[] {"a"})}).GetAwaiter().GetResult());
    }

    sealed class Mine : Exception {}

    static void Callbacks()
    {
        Doubling d = new Doubling();
        Scope s = d.Graph.Scope("more");
        Output loss = s.Mul(d.Y, s.Read(s.Variable("v", s.Scalar(DType.Float, 1))));
        Training training = new Training {Feeds = new[] {d.X}, Loss = loss, Step = s.Minimize(loss, Optimizer.Sgd(0.01))};
        d.Session.Run(s.Initializer());
        Trainer trainer = new Trainer(d.Session, training);
        Tensor one = Tensor.Scalar(1f);
        Batches endless = Batches.From(1, () => {
            GC.Collect();
            return new[] {one};
        }, epoch => {});
        Mine own = new Mine();
        Check(Throws<Mine>(() => trainer.Fit(endless, afterStep: p => { throw own; })) == own, "the same exception");
        Check(trainer.Fit(endless, afterStep: p => p.Step >= 3).Stopped, "stopped");
        CancellationTokenSource source = new CancellationTokenSource();
        Throws<OperationCanceledException>(() => trainer.Fit(endless, cancel: source.Token, afterStep: p => {
            source.Cancel();
            return false;
        }));
        Batches.Source[] bad = {() => { throw own; }, () => new[] {one, one}, () => new Tensor[] {null}, () => new Tensor[0]};
        for (int i = 0; i < bad.Length; ++i)
        {
            Batches.Source given = bad[i];
            if (i == 0) Throws<Mine>(() => Batches.From(1, given).Next());
            else Throws<InvalidArgumentException>(() => Batches.From(1, given).Next());
            if (i == 0) Throws<Mine>(() => new Trainer(d.Session, training).Fit(Batches.From(1, given)));
            else Throws<InvalidArgumentException>(() => new Trainer(d.Session, training).Evaluate(Batches.From(1, given)));
        }
        Check(Batches.From(1, () => null).Next() == null, "the end");
        Check(Throws<Mine>(() => s.Numbers(0, 3).Map((t, e) => { throw own; })) == own, "the same exception");
        Throws<FailedPreconditionException>(() => {
            Scope kept = null;
            s.Numbers(0, 3).Map((t, e) => {
                kept = t;
                return e;
            });
            kept.Scalar(DType.Float, 1);
        });
    }

    static void Misuse()
    {
        Doubling d = new Doubling();
        Output foreign = new Graph().Scope().Scalar(DType.Float, 1), nothing = default(Output);
        Tensor one = Tensor.Scalar(1f), ints = Tensor.Of(new[] {1, 2}), words = Tensor.Of(new[] {"a"}), closed = Tensor.Scalar(1f);
        Graph closedGraph = new Graph();
        Scope shut = closedGraph.Scope(), s = d.Graph.Scope("wrong");
        Session closedSession = new Session(d.Graph);
        Output[] x = {d.X}, y = {d.Y}, empty = {};
        Callable closedStep = d.Session.Prepare(x, y), orphan = closedSession.Prepare(x, y);
        Batches closedData = Batches.Of(1, false, 0, ints), data = Batches.Of(1, false, 0, ints);
        Operation operation = d.Graph.Operation("y");
        for (int i = 0; i < 2; ++i) foreach (Handle h in new Handle[] {closed, closedGraph, closedSession, closedStep, closedData}) h.Dispose(); // twice is fine
        Action[] calls = {
            () => Tensor.Of(new float[] {1, 2, 3}, 2, 2), () => Tensor.Of(new float[] {1}, -1, -1), () => Tensor.Of(new float[] {1}, -2),
            () => Tensor.Of(new float[] {1}, 1L << 62, 1L << 62), () => Tensor.Of((float[])null), () => Tensor.Of((Array)null), () => Tensor.Of((string[])null),
            () => Tensor.Of(new string[] {null}), () => Tensor.Of(new[] {"a"}, 2), () => Tensor.Of(new[] {1f}, null), () => Tensor.Of(new[] {DateTime.Now}),
            () => Tensor.Of((Array)new object[] {1}), () => Tensor.Scalar('a'), () => Tensor.Zeros(DType.Double, 1L << 40, 1L << 40), () => Tensor.Zeros(DType.None, 1),
            () => Tensor.Zeros((DType)77, 1), () => Tensor.Zeros(DType.Float, -1), () => Tensor.Zeros(DType.Float, null), () => Tensor.Wrap((float[])null),
            () => Tensor.Wrap(new float[3], 2), () => one.ToArray<double>(), () => one.ToArray<DateTime>(), () => words.ToArray<byte>(), () => words.Fill(new byte[1]),
            () => one.Fill(new float[2]), () => one.Fill((float[])null), () => one.CopyTo(new float[0]), () => ints.ToStrings(), () => ints.Reshape(3),
            () => closed.ToArray<float>(), () => closed.Shape.ToString(), () => closed.Reshape(1), () => closed.ToString(),
            () => d.Session.Run(d.Feed(closed), y), () => d.Session.Run(d.Feed(words), y), () => d.Session.Run(d.Feed(ints), y), () => d.Session.Run(d.Feed(null), y),
            () => d.Session.Run(none, y), () => d.Session.Run(nothing), () => d.Session.Run(foreign), () => d.Session.Run(null, y), () => d.Session.Run(none, null),
            () => d.Session.Run(new Operation[] {null}), () => d.Session.Run((Operation[])null), () => closedSession.Run(none, empty), () => d.Step.Run(),
            () => d.Step.Run(one, one), () => d.Step.Run((Tensor)null), () => d.Step.Run((Tensor[])null), () => d.Step.Run(words), () => closedStep.Run(one),
            () => orphan.Run(one), () => orphan.RunAsync(new[] {one}).GetAwaiter().GetResult(), () => d.Step.RunAsync(null), () => d.Session.Prepare(new[] {d.X, d.X}, y),
            () => d.Session.Prepare(null, y), () => new Session(d.Graph, "no_such_option=1"), () => new Session(d.Graph, "threads=many"),
            () => new Session(d.Graph, "threads=1\0"), () => new Session(null), () => new Session(d.Graph, null), () => new Session(d.Graph, new string[] {null}),
            () => new Session(closedGraph), () => closedGraph.Export(), () => closedGraph.Scope("x"), () => shut.Scalar(DType.Float, 1),
            () => d.Graph.Operation("nothing"), () => d.Graph.Operation(null), () => d.Graph.Output("y:7"), () => d.Graph.Output("y\0"), () => d.Graph.Shape(nothing),
            () => Graph.Import(new byte[] {1, 2, 3}), () => Graph.Import(null), () => s.Op("NoSuchOp", empty), () => s.Op("Add", x), () => s.Op(null, empty),
            () => s.Op("Add", null), () => s.Add(nothing, nothing), () => s.Add(foreign, foreign), () => s.Constant(closed), () => s.Constant(null),
            () => s.Scalar(DType.None, 1), () => s.Scalar((DType)99, 1), () => s.Ints(null), () => s.Dense("d", d.X, 3), () => s.Activate((Activation)99, d.X),
            () => s.Flatten(nothing), () => s.Minimize(d.Y, Optimizer.Sgd(1)), () => s.Apply(null, empty, new Gradient[0]),
            () => s.Apply(Optimizer.Sgd(1), x, new Gradient[0]), () => s.Gradients(d.Y, null), () => s.ClipByGlobalNorm(null, 1), () => s.Group("g", new Operation[] {null}),
            () => s.Group("g", null), () => s.Placeholder("p", DType.Float, null), () => s.Placeholder(null, DType.Float, scalar), () => s.SetDevice(null),
            () => s.Numbers(0, 3).Map(null), () => s.Numbers(0, 3).Map((t, e) => empty), () => s.Numbers(0, 3).Map((t, e) => null),
            () => s.Numbers(0, 3).Batches("no_such_option=1"), () => s.MatMul(d.X, nothing), () => s.Pack(null), () => s.Split(d.X, d.X, -1),
            () => s.FIFOQueueV2(null), () => Ops.MatMul(null, d.X, d.X), () => Batches.Of(1, false, 0, one), () => Batches.Of(1, false, 0),
            () => Batches.Of(1, false, 0, (Tensor)null), () => Batches.Of(1, false, 0, null), () => Batches.Of(-1, false, 0, ints), () => Batches.From(0, () => null),
            () => Batches.From(1, null), () => closedData.Next(), () => closedData.Reset(0), () => data.Reset(-1), () => new Trainer(d.Session, new Training()),
            () => new Trainer(d.Session, null), () => new Trainer(null, new Training()), () => new Trainer(closedSession, new Training()),
            () => new Saver(d.Graph, foreign), () => new Saver(null), () => new Saver(closedGraph), () => new Saver(d.Graph, null), () => new Checkpoint("/no/such/place"),
            () => new Checkpoint(null), () => Checkpoint.Write("/no/such/place", new Dictionary<string, Tensor> {{"a", closed}}), () => Checkpoint.Write("/no/such/place", null),
            () => Model.Load("/no/such/file.onnx"), () => Model.Load(null), () => new Server("no json", null, 0), () => new Server(null, null, 0),
            () => Library.LoadPlugin("/no/such/plugin.so"), () => Library.LoadPlugin(null)};
        for (int i = 0; i < calls.Length; ++i)
        {
            try
            {
                Check(!string.IsNullOrEmpty(Throws<ThalwegException>(calls[i]).Message), "a message");
            }
            catch (Exception e)
            {
                throw new Exception("call " + i, e);
            }
            if (i % 20 == 0) GC.Collect();
        }
        Check(calls.Length >= 50, calls.Length);
        d.Graph.Dispose();
        Throws<FailedPreconditionException>(() => operation.Name.ToString());
        Equal(d.Step.Run(one)[0].ToArray<float>()[0], 2f); // sessions go on
    }

    static void Threads()
    {
        Doubling d = new Doubling();
        List<Exception> failed = new List<Exception>();
        Barrier start = new Barrier(8);
        Thread[] all = Enumerable.Range(0, 8).Select(number => new Thread(() => {
            try
            {
                start.SignalAndWait();
                for (int k = 0; k < 300; ++k)
                {
                    float value = number * 1000 + k;
                    Equal(d.Step.Run(Tensor.Scalar(value))[0].ToArray<float>()[0], 2 * value);
                    if (number == 7 && k == 200) d.Session.Dispose(); // while the others run
                }
            }
            catch (FailedPreconditionException)
            {
                // closed by another thread
            }
            catch (Exception e)
            {
                lock (failed) failed.Add(e);
            }
        })).ToArray();
        foreach (Thread thread in all) thread.Start();
        foreach (Thread thread in all) thread.Join();
        Check(failed.Count == 0, string.Join("\n", failed));
    }

    static long Resident()
    {
        return 4096 * long.Parse(File.ReadAllText("/proc/self/statm").Split(' ')[1]);
    }

    static void Leaks()
    {
        Doubling d = new Doubling();
        float[] big = new float[1 << 16];
        Action round = () => {
            for (int i = 0; i < 50; ++i) // nobody closes anything
            {
                Equal(Tensor.Of(big).Reshape(2, -1).Count, (long)big.Length);
                Equal(Tensor.Wrap((float[])big.Clone()).Count, (long)big.Length);
                d.Session.Run(d.Feed(Tensor.Scalar(1f)), new[] {d.Y});
                new Graph().Scope().Scalar(DType.Float, 1);
                Throws<NotFoundException>(() => new Graph().Operation("nothing"));
                Batches.From(1, () => null).Next();
            }
            GC.Collect();
            GC.WaitForPendingFinalizers();
        };
        for (int i = 0; i < 5; ++i) round();
        long before = Resident();
        for (int i = 0; i < 20; ++i) round(); // 2,000 tensors of 256 KiB
        long grown = Resident() - before;
        Check(grown < 96 << 20, (grown >> 20) + " MiB more");
    }

    static void Cost()
    {
        Doubling d = new Doubling();
        Tensor one = Tensor.Scalar(1f);
        long sink = 0;
        double rank = double.MaxValue, run = double.MaxValue, each = 1e9 / Stopwatch.Frequency / 5000;
        for (int r = 0; r < 60; ++r)
        {
            Stopwatch watch = Stopwatch.StartNew();
            for (int i = 0; i < 5000; ++i) sink += one.Count;
            rank = Math.Min(rank, watch.ElapsedTicks * each);
            watch.Restart();
            for (int i = 0; i < 5000; ++i) d.Step.Run(one)[0].Dispose();
            run = Math.Min(run, watch.ElapsedTicks * each);
        }
        Check(sink > 0, "counted");
        Console.WriteLine("cost rank {0:F0} run {1:F0}", rank, run);
    }

    static int Main(string[] arguments)
    {
        if (arguments.Length > 0)
        {
            if (arguments[0] == "cost") Cost();
            else Layouts();
            return 0;
        }
        Test("every function is in the library", EveryFunction);
        Test("tensors are arrays", Tensors);
        Test("a wrapped array stays where it is, until its tensor ends", WrappedArrays);
        Test("errors name the line", ErrorsNameTheLine);
        Test("ops take attributes", OpsTakeAttributes);
        Test("gradients are graphs again", GradientsAreGraphs);
        Test("training saves and goes on", TrainingSavesAndGoesOn);
        Test("datasets are enumerable", Datasets);
        Test("a model file runs by its names", ModelFile);
        Test("containers are reset", Containers);
        Test("a server runs a session", ServerRunsASession);
        Test("tokens and timeouts end runs", TokensAndTimeouts);
        Test("tasks run", TasksRun);
        Test("functions that throw end the loop with what they threw", Callbacks);
        Test("misuse is a ThalwegException", Misuse);
        Test("threads share a session", Threads);
        Test("nothing leaks", Leaks);
        return failures == 0 ? 0 : 1;
    }
}
