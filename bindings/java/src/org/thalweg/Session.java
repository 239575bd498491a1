package org.thalweg;

import static org.thalweg.ThalwegException.check;
import static org.thalweg.ThalwegException.invalid;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Runs a graph. Any number of threads may run it at once. */
public final class Session extends Handle {
    private final Graph graph;

    /** options: "key=value", as tw_session_option lists them, such as "threads=2". */
    public Session(Graph graph, String... options) {
        super(create(graph, options), Low::tw_session_destroy);
        this.graph = graph;
    }

    private static long create(Graph graph, String... options) {
        return Handle.with(graph, "the graph", g -> {
            try (Memory.Frame frame = Memory.Frame.push()) {
                Memory.Room out = frame.room(8);
                check(Low.tw_session_create(g, frame.texts(Memory.list(options)), options.length, out.address));
                return out.getLong(0);
            }
        });
    }

    public Graph graph() {
        return graph;
    }

    /**
     * Empties a container of state: variables lose their values, queues, tables and the like are removed. The session can go on; its
     * variables can be initialised again. container: null or "" means the session's default one, which is its graph's own unless the
     * session has a target or the option "container". With a target, the container is emptied on every task. Returns the number of objects
     * that it held.
     */
    public long reset(String container) {
        return with(session -> {
            try (Memory.Frame frame = Memory.Frame.push()) {
                Memory.Room count = frame.room(8);
                check(Low.tw_session_reset(session, Memory.utf8(container), count.address));
                return count.getLong(0);
            }
        });
    }

    static long signature(Memory.Frame frame, List<Output> feeds, List<Output> fetches, List<Operation> targets) {
        if (feeds == null || fetches == null || targets == null) throw invalid("a list is null; give an empty one");
        return frame.room(Low.tw_signature).setInt(0, Low.tw_signature).setLong(Low.tw_signature__feeds, frame.outputs(feeds))
                .setLong(Low.tw_signature__fetches, frame.outputs(fetches)).setLong(Low.tw_signature__targets, Scope.addresses(frame, targets))
                .setInt(Low.tw_signature__n_feeds, feeds.size()).setInt(Low.tw_signature__n_fetches, fetches.size())
                .setInt(Low.tw_signature__n_targets, targets.size()).address;
    }

    /** Runs one step: feeds values, runs targets and what they need, and returns the fetched values. */
    public List<Tensor> run(Map<Output, Tensor> feeds, List<Output> fetches, List<Operation> targets, RunOptions options) {
        if (feeds == null) throw invalid("the feeds are null; give an empty map");
        List<Output> inputs = new ArrayList<>(feeds.keySet());
        List<Tensor> tensors = inputs.stream().map(feeds::get).toList();
        return with(session -> graph.with(g -> Scope.tensors(tensors, addresses -> (options == null ? RunOptions.NONE : options).with(o -> {
            try (Memory.Frame frame = Memory.Frame.push()) {
                long what = signature(frame, inputs, fetches, targets);
                Memory.Room out = frame.room(8 * fetches.size());
                check(Low.tw_session_run(session, what, addresses, o, out.address));
                return Tensor.own(out, fetches.size());
            }
        }))));
    }

    public List<Tensor> run(Map<Output, Tensor> feeds, Output... fetches) {
        return run(feeds, Memory.list(fetches), List.of(), null);
    }

    /** Runs operations. */
    public void run(Operation... targets) {
        run(Map.of(), List.of(), Memory.list(targets), null);
    }

    /** Prepares a run, whose feeds and fetches have an order. */
    public Callable callable(List<Output> feeds, List<Output> fetches, Operation... targets) {
        return new Callable(this, feeds, fetches, Memory.list(targets));
    }
}
