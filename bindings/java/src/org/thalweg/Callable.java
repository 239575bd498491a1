package org.thalweg;

import static org.thalweg.ThalwegException.check;
import static org.thalweg.ThalwegException.invalid;

import java.util.List;

/** A prepared run. Any number of threads may run it at once. */
public final class Callable extends Handle {
    private final Session session;
    private final int feeds;
    private final int fetches;

    Callable(Session session, List<Output> feeds, List<Output> fetches, List<Operation> targets) {
        super(create(session, feeds, fetches, targets), Low::tw_callable_destroy);
        this.session = session;
        this.feeds = feeds.size();
        this.fetches = fetches.size();
    }

    private static long create(Session session, List<Output> feeds, List<Output> fetches, List<Operation> targets) {
        return session.with(s -> session.graph().with(g -> {
            try (Memory.Frame frame = Memory.Frame.push()) {
                Memory.Room out = frame.room(8);
                check(Low.tw_callable_create(s, Session.signature(frame, feeds, fetches, targets), out.address));
                return out.getLong(0);
            }
        }));
    }

    /** Runs the step with a tensor for each feed, and returns the fetches. */
    public List<Tensor> run(Tensor... tensors) {
        return run(null, tensors);
    }

    public List<Tensor> run(RunOptions options, Tensor... tensors) {
        if (tensors == null || tensors.length != feeds) throw invalid("the callable takes " + feeds + " tensors");
        session.use();
        try {
            long address = use();
            int used = 0;
            try (Memory.Frame frame = Memory.Frame.push()) {
                Memory.Room in = frame.room(8 * feeds), out = frame.room(8 * fetches);
                try {
                    for (; used < feeds; ++used) {
                        if (tensors[used] == null) throw invalid("tensor " + used + " is null");
                        in.setLong(8 * used, tensors[used].use());
                    }
                    if (options == null) check(Low.tw_callable_run(address, in.address, 0, out.address));
                    else check(options.with(o -> Low.tw_callable_run(address, in.address, o, out.address)));
                    return Tensor.own(out, fetches);
                } finally {
                    for (int i = 0; i < used; ++i) tensors[i].leave();
                }
            } finally {
                leave();
            }
        } finally {
            session.leave();
        }
    }
}
