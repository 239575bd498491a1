package org.thalweg;

import static org.thalweg.ThalwegException.check;

import java.util.List;

/** Where elements come from and what happens to them: a value of a graph. An element is one or more tensors. */
public record Dataset(Scope scope, Output value) {
    /** The results of a function for an element, which adds operations through its scope. */
    public interface Function {
        List<Output> apply(Scope scope, List<Output> element);
    }

    private Dataset then(Scope.Stage stage) {
        return new Dataset(scope, scope.stage(value, stage));
    }

    public Dataset take(long n) {
        return then((s, d) -> Low.tw_dataset_take(s, d, n));
    }

    public Dataset skip(long n) {
        return then((s, d) -> Low.tw_dataset_skip(s, d, n));
    }

    public Dataset shard(long shards, long index) {
        return then((s, d) -> Low.tw_dataset_shard(s, d, shards, index));
    }

    /** All elements again; -1: without end. */
    public Dataset repeat(long n) {
        return then((s, d) -> Low.tw_dataset_repeat(s, d, n));
    }

    /** Draws each element from a buffer, in another order in each epoch. */
    public Dataset shuffle(long buffer, long seed) {
        return then((s, d) -> Low.tw_dataset_shuffle(s, d, buffer, seed, 1));
    }

    public Dataset batch(long n) {
        return then((s, d) -> Low.tw_dataset_batch(s, d, n, 0));
    }

    public Dataset prefetch(long n) {
        return then((s, d) -> Low.tw_dataset_prefetch(s, d, n));
    }

    public Dataset map(Function function) {
        return new Dataset(scope, scope.function(value, function, (s, d, block) -> Low.tw_dataset_map(s, d, block, Low.TW_DATASET_AUTO)));
    }

    /** Keeps the elements for which a function gives true. */
    public Dataset filter(Function function) {
        return new Dataset(scope, scope.function(value, function, Low::tw_dataset_filter));
    }

    /** Runs the dataset in a session of its own. options: "key=value". */
    public Batches batches(String... options) {
        return scope.graph().with(g -> {
            try (Memory.Frame frame = Memory.Frame.push()) {
                Memory.Room o = frame.room(Low.tw_dataset_iterator_options), out = frame.room(8);
                Low.tw_dataset_iterator_options_init(o.address);
                o.setLong(Low.tw_dataset_iterator_options__session, frame.texts(Memory.list(options)));
                o.setInt(Low.tw_dataset_iterator_options__n_session, options.length);
                check(Low.tw_dataset_iterator_create(g, value.id(), o.address, out.address));
                return new Batches(out.getLong(0));
            }
        });
    }
}
