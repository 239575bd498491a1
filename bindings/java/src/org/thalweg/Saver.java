package org.thalweg;

import static org.thalweg.ThalwegException.check;

import java.util.List;

/** Writes variables to checkpoints in TensorFlow's format and reads them back. */
public final class Saver extends Handle {
    /** A saver for some variables; none: all that the graph has now. */
    public Saver(Graph graph, Output... variables) {
        super(create(graph, Memory.list(variables)), address -> {
            Low.tw_saver_destroy(address);
            graph.leave(); // the graph outlives the saver
        });
    }

    private static long create(Graph graph, List<Output> variables) {
        if (graph == null) throw ThalwegException.invalid("the graph is null");
        long g = graph.use();
        try (Memory.Frame frame = Memory.Frame.push()) {
            Memory.Room out = frame.room(8);
            check(Low.tw_saver_create(g, variables.isEmpty() ? 0 : frame.outputs(variables), variables.size(), out.address));
            return out.getLong(0);
        } catch (RuntimeException e) {
            graph.leave();
            throw e;
        }
    }

    /** Writes the variables to the files prefix.*. */
    public void save(Session session, String prefix) {
        with(v -> Handle.with(session, "the session", s -> {
            check(Low.tw_saver_save(v, s, Memory.utf8(prefix)));
            return null;
        }));
    }

    /** Reads the variables. */
    public void restore(Session session, String prefix) {
        with(v -> Handle.with(session, "the session", s -> {
            check(Low.tw_saver_restore(v, s, Memory.utf8(prefix)));
            return null;
        }));
    }
}
