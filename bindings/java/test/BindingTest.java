import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CyclicBarrier;
import java.util.function.LongSupplier;
import org.thalweg.*;

/** The tests of the jar. The environment has THALWEG_TEST_MODEL, an ONNX file that adds two values. With the argument "cost" it measures calls. */
public class BindingTest {
    interface Body {
        void run() throws Exception;
    }

    static int failures;

    static void test(String what, Body body) {
        try {
            body.run();
            System.out.println("passed  " + what);
        } catch (Throwable t) {
            ++failures;
            System.out.println("FAILED  " + what);
            t.printStackTrace(System.out);
        }
    }

    static void check(boolean condition, Object what) {
        if (!condition) throw new AssertionError(String.valueOf(what));
    }

    static void equal(Object a, Object b) {
        check(a.equals(b), a + " is not " + b);
    }

    static <T extends Throwable> T thrown(Class<T> kind, Body body) {
        try {
            body.run();
        } catch (Throwable t) {
            if (kind.isInstance(t)) return kind.cast(t);
            throw new AssertionError("another exception", t);
        }
        throw new AssertionError("no " + kind);
    }

    /** A graph with y = x + x, and a session of one thread. */
    static final class Doubling {
        final Graph graph = new Graph();
        final Scope scope = graph.scope("");
        final Output x = scope.placeholder("x", DType.FLOAT);
        final Output y = scope.name("y", scope.add(x, x));
        final Session session = new Session(graph, "threads=1");
        final Callable step = session.callable(List.of(x), List.of(y));
    }

    /** A session with an operation that waits at an empty queue. */
    static final class Waiting {
        final Graph graph = new Graph();
        final Scope scope = graph.scope("");
        final Output queue = Ops.fifoQueueV2(scope, new DType[] {DType.FLOAT});
        final Output get = Ops.queueDequeueV2(scope, queue, new DType[] {DType.FLOAT}).get(0);
        final Session session = new Session(graph);
    }

    static void everyFunction() {
        long n = Arrays.stream(Low.class.getMethods()).filter(m -> m.getDeclaringClass() == Low.class && Modifier.isNative(m.getModifiers())).count();
        equal(n, (long) Low.COUNT);
        // Each native method is called through null handles where the headers allow it; that all are linked the JVM shows at the first call.
        equal(Low.tw_tensor_rank(0), 0);
        equal(Low.tw_graph_count(0), 0);
    }

    static void tensors() {
        Tensor a = Tensor.of(new float[] {1, 2, 3, 4, 5, 6}, 2, -1);
        equal(Arrays.toString(a.shape()) + a.dtype() + a.count() + a, "[2, 3]FLOAT6[[1, 2, 3], [4, 5, 6]]");
        Tensor z = Tensor.zeros(DType.INT64, 3);
        z.writable().asLongBuffer().put(1, 7);
        equal(z.toString(), "[0, 7, 0]");
        equal(Arrays.toString(Tensor.of(new String[] {"", "any\0bytes"}).strings()), "[, any\0bytes]");
        Tensor view = z.reshape(3, 1);
        thrown(ThalwegException.FailedPrecondition.class, z::writable);
        view.close();
        FloatBuffer kept = Tensor.of(new float[] {5, 6}).buffer().asFloatBuffer(); // keeps the elements of a tensor that nobody has
        System.gc();
        equal(kept.get(1), 6f);
        thrown(java.nio.ReadOnlyBufferException.class, () -> a.buffer().putFloat(0, 1));
        ByteBuffer own = ByteBuffer.allocateDirect(64).order(ByteOrder.nativeOrder());
        own.asFloatBuffer().put(3, 9);
        Tensor wrapped = Tensor.wrap(own, DType.FLOAT, 16);
        own = null;
        System.gc();
        equal(wrapped.floats()[3], 9f);
    }

    static void errorsNameTheLine() {
        Scope s = new Graph().scope("head");
        Output a = s.placeholder("a", DType.FLOAT, 2, 3), b = s.placeholder("b", DType.FLOAT, 4, 5);
        int line = new Throwable().getStackTrace()[0].getLineNumber() + 1;
        ThalwegException.InvalidArgument e = thrown(ThalwegException.InvalidArgument.class, () -> s.matMul(a, b));
        equal(e.place(), "BindingTest.java:" + line);
        check(e.getMessage().contains(e.place()) && e.operation().equals("head/MatMul") && e.code() == ThalwegException.Code.INVALID_ARGUMENT, e);
        check(s.op("Shape", a).id() != 0, "the scope goes on");
        thrown(ThalwegException.InvalidArgument.class, () -> Ops.matMul(s, a, b, Attr.of("transpose_b", true)));
    }

    static void ops() {
        Graph graph = new Graph();
        Scope s = graph.scope("");
        Output a = s.constant(Tensor.of(new float[] {1, 2}, 1, 2)), b = s.constant(Tensor.of(new float[] {3, 4}, 1, 2));
        Output x = Ops.matMul(s, a, b, Attr.of("transpose_b", true), Attr.named("x"));
        List<Output> parts = Ops.split(s, s.scalar(DType.INT32, 1), a, 2);
        List<Tensor> found = new Session(graph).run(Map.of(), x, parts.get(0), parts.get(1));
        equal(found.toString(), "[[[11]], [[1]], [[2]]]");
        equal(graph.operation("x").type(), "MatMul");
    }

    static void training() throws Exception {
        Graph graph = new Graph();
        Scope s = graph.scope("");
        Output x = s.placeholder("x", DType.FLOAT, -1, 2), y = s.placeholder("y", DType.FLOAT, -1, 1);
        Output z = s.dense("layer", x, 1, Scope.Activation.LINEAR, 3), d = s.sub(z, y), square = s.mul(d, d);
        Trainer.Model model = new Trainer.Model();
        model.feeds = List.of(x, y);
        model.inputs = 1;
        model.loss = s.mean(square);
        model.step = s.minimize(model.loss, Optimizer.momentum(0.05, 0.9));
        model.metrics = List.of(s.meanMetric("square", square));
        model.predictions = List.of(z);
        Operation init = s.initializer("init");
        Session session = new Session(graph, "threads=1");
        session.run(init);
        Trainer trainer = new Trainer(session, model);
        float[] xs = new float[200], ys = new float[100];
        for (int i = 0; i < 100; ++i) {
            xs[2 * i] = i % 7 / 7f;
            xs[2 * i + 1] = i % 5 / 5f;
            ys[i] = 2 * xs[2 * i] - xs[2 * i + 1];
        }
        Batches data = Batches.of(10, true, 0, Tensor.of(xs, -1, 2), Tensor.of(ys, -1, 1));
        Trainer.Options options = new Trainer.Options();
        int[] epochs = {0};
        options.epochs = 40;
        options.epochEnd = p -> ++epochs[0] == 30 && p.values().get("square") < 1;
        Trainer.Report report = trainer.fit(data, options);
        Map<String, Double> values = trainer.evaluate(data);
        check(report.stopped() && report.steps() == 300 && values.get("loss") < 1e-3 && Math.abs(values.get("loss") - values.get("square")) < 1e-6, report + " " + values);
        equal(Arrays.toString(trainer.predict(data).get(0).shape()), "[100, 1]");
        Path folder = Files.createTempDirectory("thalweg-test");
        String prefix = folder.resolve("model").toString();
        Saver saver = new Saver(graph);
        saver.save(session, prefix);
        Checkpoint checkpoint = new Checkpoint(prefix);
        check(checkpoint.names().size() >= 2 && Math.abs(checkpoint.read("layer/kernel").floats()[0] - 2) < 0.2, checkpoint.names());
        session.run(init);
        saver.restore(session, prefix);
        equal(trainer.evaluate(data), values);
        equal(Graph.of(graph.export()).count(), graph.count());
        for (Path file : Files.list(folder).toList()) Files.delete(file);
        Files.delete(folder);
    }

    static void datasets() {
        Graph graph = new Graph();
        Scope s = graph.scope("");
        Dataset d = s.range(0, 10, 1).filter((t, e) -> List.of(t.op("Greater", e.get(0), t.scalar(DType.INT64, 3))))
                .map((t, e) -> List.of(t.mul(e.get(0), e.get(0)))).batch(4);
        List<String> all = new ArrayList<>();
        for (List<Tensor> batch : d.batches()) all.add(batch.get(0).toString());
        equal(all, List.of("[16, 25, 36, 49]", "[64, 81]"));
    }

    static void modelFile() {
        String path = System.getenv("THALWEG_TEST_MODEL");
        if (path == null || !Files.exists(Path.of(path))) {
            System.out.println("skipped  there is no model file");
            return;
        }
        Model model = Model.load(path, "threads=1");
        float[] values = new float[60];
        for (int i = 0; i < 60; ++i) values[i] = i;
        Tensor x = Tensor.of(values, 3, 4, 5);
        equal(model.signatures().get(0).inputs().get(0).name(), "x");
        equal(model.run(Map.of("x", x, "y", x)).get("sum").floats()[59], 118f);
        check(thrown(ThalwegException.InvalidArgument.class, () -> model.run(Map.of("x", x, "z", x))).getMessage().contains("'z'"), "names the input");
    }

    /** A graph with a variable of 3, its initialisation and its read. */
    static final class Counting {
        final Graph graph = new Graph();
        final Operation init;
        final Output read;

        Counting() {
            Scope s = graph.scope("");
            read = s.read(s.variable("v", s.scalar(DType.FLOAT, 3)));
            init = s.initializer("init");
        }

        /** Initialises the variable, empties the container with the function, and looks at what is left. */
        void resets(Session session, LongSupplier reset) {
            for (int i = 0; i < 2; ++i) {
                session.run(init);
                equal(session.run(Map.of(), read).get(0).floats()[0], 3f);
                equal(reset.getAsLong(), 1L);
                thrown(ThalwegException.FailedPrecondition.class, () -> session.run(Map.of(), read));
            }
        }
    }

    static void containers() {
        Counting c = new Counting();
        try (Session session = new Session(c.graph); Session named = new Session(c.graph, "container=reset")) {
            c.resets(session, () -> session.reset(null));
            c.resets(named, () -> session.reset("reset"));
            c.resets(named, () -> Thalweg.resetContainer("reset"));
            equal(Thalweg.resetContainer("nothing"), 0L);
            thrown(ThalwegException.InvalidArgument.class, () -> Thalweg.resetContainer("<graph"));
            thrown(ThalwegException.InvalidArgument.class, () -> Thalweg.resetCluster(null, null, null));
        }
    }

    static void server() {
        Server server = new Server("{\"worker\": [\"grpc:127.0.0.1:0\"]}", "worker", 0, "insecure=true");
        server.start();
        Doubling d = new Doubling();
        try (Session session = new Session(d.graph, "target=" + server.address(), "insecure=true")) {
            equal(session.run(Map.of(d.x, Tensor.scalar(4f)), d.y).get(0).floats()[0], 8f);
        }
        Counting c = new Counting();
        try (Session session = new Session(c.graph, "target=" + server.address(), "insecure=true", "container=reset")) {
            c.resets(session, () -> Thalweg.resetCluster(server.address(), "reset", Duration.ofMinutes(1), "insecure=true"));
        }
        server.stop();
    }

    static void tokens() throws Exception {
        Waiting w = new Waiting();
        CancelToken token = new CancelToken();
        Thread other = new Thread(token::cancel);
        other.start();
        thrown(ThalwegException.Cancelled.class, () -> w.session.run(Map.of(), List.of(w.get), List.of(), RunOptions.cancel(token)));
        other.join();
        check(token.isCancelled(), "cancelled");
        thrown(ThalwegException.DeadlineExceeded.class, () -> w.session.run(Map.of(), List.of(w.get), List.of(), RunOptions.timeout(Duration.ofMillis(1))));
    }

    static void callbacks() {
        Doubling d = new Doubling();
        Scope s = d.graph.scope("more");
        Trainer.Model model = new Trainer.Model();
        model.feeds = List.of(d.x);
        model.loss = s.mul(d.y, s.read(s.variable("v", s.scalar(DType.FLOAT, 1))));
        model.step = s.minimize(model.loss, Optimizer.sgd(0.01));
        d.session.run(s.initializer("init"));
        Trainer trainer = new Trainer(d.session, model);
        Tensor one = Tensor.scalar(1f);
        Batches endless = Batches.of(1, () -> {
            System.gc();
            return List.of(one);
        });
        RuntimeException own = new IllegalStateException("mine");
        Trainer.Options options = new Trainer.Options();
        options.afterStep = p -> {
            throw own;
        };
        check(thrown(IllegalStateException.class, () -> trainer.fit(endless, options)) == own, "the same exception");
        options.afterStep = p -> {
            throw new java.io.IOException("checked");
        };
        check(thrown(ThalwegException.class, () -> trainer.fit(endless, options)).getCause() instanceof java.io.IOException, "its cause");
        options.afterStep = p -> {
            throw new StackOverflowError("mine");
        };
        thrown(StackOverflowError.class, () -> trainer.fit(endless, options));
        options.afterStep = p -> p.step() >= 3;
        check(trainer.fit(endless, options).stopped(), "stopped");
        List<Batches.Source> bad = List.of(() -> {
            throw own;
        }, () -> List.of(one, one), () -> Arrays.asList((Tensor) null), List::of);
        for (Batches.Source source : bad) {
            thrown(RuntimeException.class, () -> Batches.of(1, source).next());
            thrown(RuntimeException.class, () -> new Trainer(d.session, model).fit(Batches.of(1, source), null));
        }
        check(Batches.of(1, () -> null).next() == null, "the end");
        check(thrown(IllegalStateException.class, () -> s.range(0, 3, 1).map((t, e) -> {
            throw own;
        })) == own, "the same exception");
    }

    static void misuse() {
        Doubling d = new Doubling();
        Scope os = new Graph().scope("");
        Output foreign = os.scalar(DType.FLOAT, 1), none = new Output(0);
        Tensor one = Tensor.scalar(1f), ints = Tensor.of(new int[] {1, 2}), words = Tensor.of(new String[] {"a"}), closed = Tensor.scalar(1f);
        Graph closedGraph = new Graph();
        Scope shut = closedGraph.scope("");
        Session closedSession = new Session(d.graph);
        Callable closedStep = d.session.callable(List.of(d.x), List.of(d.y)), orphan = closedSession.callable(List.of(d.x), List.of(d.y));
        Batches closedData = Batches.of(1, false, 0, ints), data = Batches.of(1, false, 0, ints);
        Operation operation = d.graph.operation("y");
        for (int i = 0; i < 2; ++i) for (Handle h : List.of(closed, closedGraph, closedSession, closedStep, closedData)) h.close(); // twice is fine
        Scope s = d.graph.scope("wrong");
        Trainer.Model empty = new Trainer.Model();
        List<Body> calls = List.of(
                () -> Tensor.of(new float[] {1, 2, 3}, 2, 2), () -> Tensor.of(new float[] {1}, -1, -1), () -> Tensor.of(new float[] {1}, -2),
                () -> Tensor.of(new float[] {1}, 1L << 62, 1L << 62), () -> Tensor.of((float[]) null), () -> Tensor.of((String[]) null),
                () -> Tensor.of(new String[] {null}), () -> Tensor.of(new String[] {"a"}, 2), () -> Tensor.zeros(DType.DOUBLE, 1L << 40, 1L << 40),
                () -> Tensor.zeros(null, 1), () -> Tensor.zeros(DType.FLOAT, -1), () -> Tensor.zeros(DType.RESOURCE, 1), () -> Tensor.wrap(null, DType.FLOAT, 1),
                () -> Tensor.wrap(ByteBuffer.allocate(4), DType.FLOAT, 1), () -> Tensor.wrap(ByteBuffer.allocateDirect(4), DType.FLOAT, 2),
                () -> one.doubles(), () -> words.buffer(), () -> words.writable(), () -> ints.strings(), () -> ints.reshape(3), () -> closed.buffer(),
                () -> closed.shape(), () -> closed.reshape(1), () -> closed.toString(),
                () -> d.session.run(Map.of(d.x, closed), d.y), () -> d.session.run(Map.of(d.x, words), d.y), () -> d.session.run(Map.of(d.x, ints), d.y),
                () -> d.session.run(Map.of(), d.y), () -> d.session.run(Map.of(), none), () -> d.session.run(Map.of(), foreign), () -> d.session.run((Map<Output, Tensor>) null, d.y),
                () -> d.session.run(Map.of(), null, List.of(), null), () -> d.session.run(Map.of(), List.of(), null, null), () -> d.session.run((Operation) null),
                () -> d.session.run(java.util.Collections.singletonMap(d.x, null), d.y), () -> closedSession.run(Map.of()), () -> d.step.run(),
                () -> d.step.run(one, one), () -> d.step.run((Tensor) null), () -> d.step.run((Tensor[]) null), () -> d.step.run(words), () -> closedStep.run(one),
                () -> orphan.run(one), () -> d.session.callable(List.of(d.x, d.x), List.of(d.y)), () -> d.session.callable(null, List.of(d.y)),
                () -> new Session(d.graph, "no_such_option=1"), () -> new Session(d.graph, "threads=many"), () -> new Session(d.graph, "threads=1\0"),
                () -> new Session(null), () -> new Session(d.graph, (String[]) null), () -> new Session(d.graph, (String) null), () -> s.op("Add", (Output[]) null), () -> new Session(closedGraph), () -> closedGraph.export(), () -> closedGraph.scope("x"), () -> shut.scalar(DType.FLOAT, 1),
                () -> d.graph.operation("nothing"), () -> d.graph.operation(null), () -> d.graph.output("y:7"), () -> d.graph.output("y\0"), () -> d.graph.shape(none),
                () -> d.graph.shape(null), () -> Graph.of("no graph".getBytes()), () -> Graph.of(null), () -> s.op("NoSuchOp"), () -> s.op("Add", d.x),
                () -> s.op(null), () -> s.add(null, d.x), () -> s.add(none, none), () -> s.add(foreign, foreign), () -> s.constant(closed), () -> s.constant(null),
                () -> s.scalar(null, 1), () -> s.scalar(DType.OTHER, 1), () -> s.dense("d", d.x, 3, Scope.Activation.RELU, 0), () -> s.activation(null, d.x),
                () -> s.flatten(none), () -> s.minimize(d.y, Optimizer.sgd(1)), () -> s.apply(null, List.of(), List.of()),
                () -> s.apply(Optimizer.sgd(1), List.of(d.x), List.of()), () -> s.group("g", (Operation) null), () -> s.placeholder("p", null),
                () -> s.range(0, 3, 1).map(null), () -> s.range(0, 3, 1).map((t, e) -> List.of()), () -> s.range(0, 3, 1).map((t, e) -> Arrays.asList((Output) null)),
                () -> Ops.matMul(s, d.x, null), () -> Ops.matMul(s, d.x, d.x, Attr.of("transpose", true)), () -> Ops.matMul(s, d.x, d.x, Attr.of("transpose_a", 1)),
                () -> Ops.matMul(s, d.x, d.x, Attr.of("transpose_a", null)), () -> Ops.matMul(s, d.x, d.x, (Attr) null), () -> Ops.pack(s, null),
                () -> Batches.of(1, false, 0, one), () -> Batches.of(1, false, 0), () -> Batches.of(1, false, 0, (Tensor) null), () -> Batches.of(-1, false, 0, ints),
                () -> Batches.of(0, () -> null), () -> Batches.of(1, null), () -> closedData.next(), () -> closedData.reset(0), () -> data.reset(-1),
                () -> new Trainer(d.session, empty), () -> new Trainer(d.session, null), () -> new Trainer(null, empty), () -> new Trainer(closedSession, empty),
                () -> new Saver(d.graph, foreign), () -> new Saver(null), () -> new Saver(closedGraph), () -> new Checkpoint("/no/such/place"), () -> new Checkpoint(null),
                () -> Checkpoint.write("/no/such/place", Map.of("a", closed)), () -> Model.load("/no/such/file.onnx"), () -> Model.load(null),
                () -> new Server("no json", null, 0), () -> new Server(null, null, 0), () -> Thalweg.loadPlugin("/no/such/plugin.so"), () -> Thalweg.loadPlugin(null));
        for (int i = 0; i < calls.size(); ++i) {
            try {
                ThalwegException e = thrown(ThalwegException.class, calls.get(i));
                check(e.getMessage() != null && !e.getMessage().isEmpty(), "a message");
            } catch (AssertionError e) {
                throw new AssertionError("call " + i + ": " + e.getMessage(), e.getCause());
            }
            if (i % 20 == 0) System.gc();
        }
        check(calls.size() >= 50, calls.size());
        d.graph.close();
        thrown(ThalwegException.FailedPrecondition.class, operation::name);
        equal(d.step.run(one).get(0).floats()[0], 2f); // sessions go on
    }

    static void threads() throws Exception {
        Doubling d = new Doubling();
        List<Throwable> failed = new ArrayList<>();
        List<Thread> all = new ArrayList<>();
        CyclicBarrier start = new CyclicBarrier(8);
        for (int i = 0; i < 8; ++i) {
            int number = i;
            Thread thread = new Thread(() -> {
                try {
                    start.await();
                    for (int k = 0; k < 300; ++k) {
                        float value = number * 1000 + k;
                        equal(d.step.run(Tensor.scalar(value)).get(0).floats()[0], 2 * value);
                        if (number == 7 && k == 200) d.session.close(); // while the others run
                    }
                } catch (ThalwegException.FailedPrecondition e) {
                    // closed by another thread
                } catch (Throwable t) {
                    synchronized (failed) {
                        failed.add(t);
                    }
                }
            });
            all.add(thread);
            thread.start();
        }
        for (Thread thread : all) thread.join();
        check(failed.isEmpty(), failed);
    }

    static long resident() throws Exception {
        return 4096 * Long.parseLong(Files.readString(Path.of("/proc/self/statm")).split(" ")[1]);
    }

    static void leaks() throws Exception {
        Doubling d = new Doubling();
        float[] big = new float[1 << 16];
        Body round = () -> {
            for (int i = 0; i < 50; ++i) { // nobody closes anything
                equal(Tensor.of(big).reshape(2, -1).buffer().remaining(), 4 << 16);
                d.session.run(Map.of(d.x, Tensor.scalar(1f)), d.y);
                new Graph().scope("").scalar(DType.FLOAT, 1);
                thrown(ThalwegException.NotFound.class, () -> new Graph().operation("nothing"));
                Batches.of(1, () -> null).next();
            }
            for (int i = 0; i < 3; ++i) {
                System.gc();
                Thread.sleep(5); // lets the cleaner run, which nothing waits for
            }
        };
        for (int i = 0; i < 5; ++i) round.run();
        long before = resident();
        for (int i = 0; i < 20; ++i) round.run(); // 1,000 tensors of 256 KiB
        long grown = resident() - before;
        check(grown < 96 << 20, (grown >> 20) + " MiB more");
    }

    static void cost() {
        Doubling d = new Doubling();
        Tensor one = Tensor.scalar(1f);
        long rank = Long.MAX_VALUE, run = Long.MAX_VALUE;
        for (int r = 0; r < 60; ++r) {
            long began = System.nanoTime();
            for (int i = 0; i < 5000; ++i) one.count();
            rank = Math.min(rank, (System.nanoTime() - began) / 5000);
            began = System.nanoTime();
            for (int i = 0; i < 5000; ++i) d.step.run(one).get(0).close();
            run = Math.min(run, (System.nanoTime() - began) / 5000);
        }
        System.out.println("cost rank " + rank + " run " + run);
    }

    public static void main(String[] arguments) {
        if (arguments.length > 0) {
            cost();
            return;
        }
        test("every function is there", BindingTest::everyFunction);
        test("tensors are direct buffers", BindingTest::tensors);
        test("errors name the line", BindingTest::errorsNameTheLine);
        test("ops take attributes", BindingTest::ops);
        test("training saves and goes on", BindingTest::training);
        test("datasets are iterables", BindingTest::datasets);
        test("a model file runs by its names", BindingTest::modelFile);
        test("containers are reset", BindingTest::containers);
        test("a server runs a session", BindingTest::server);
        test("tokens and timeouts end runs", BindingTest::tokens);
        test("callbacks that throw end the loop with what they threw", BindingTest::callbacks);
        test("misuse is a ThalwegException", BindingTest::misuse);
        test("threads share a session", BindingTest::threads);
        test("nothing leaks", BindingTest::leaks);
        System.exit(failures == 0 ? 0 : 1);
    }
}
