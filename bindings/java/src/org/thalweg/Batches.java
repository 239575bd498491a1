package org.thalweg;

import static org.thalweg.ThalwegException.check;
import static org.thalweg.ThalwegException.invalid;

import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.function.LongConsumer;

/** The batches of a training loop; iterating gives those of the rest of the epoch. One thread at a time. */
public final class Batches extends Handle implements Iterable<List<Tensor>> {
    /** Gives batches: null at the end of an epoch. */
    public interface Source {
        List<Tensor> next() throws Exception;

        /** Begins an epoch. */
        default void reset(long epoch) throws Exception {
            if (epoch > 0) throw new ThalwegException.Unimplemented("the source has one epoch only", null, null);
        }
    }

    private final int width;
    private final Callback callback; // of a source of the program

    Batches(long address) {
        this(address, Low::tw_iterator_destroy, null);
    }

    private Batches(long address, LongConsumer free, Callback callback) {
        super(address, free);
        this.width = Memory.at(address, Low.tw_iterator).getInt(Low.tw_iterator__n_tensors);
        this.callback = callback;
    }

    /** Gives rows of tensors with equal first sizes. */
    public static Batches of(int size, boolean shuffle, long seed, Tensor... tensors) {
        return Scope.tensors(Memory.list(tensors), addresses -> {
            try (Memory.Frame frame = Memory.Frame.push()) {
                Memory.Room o = frame.room(Low.tw_batch_options), out = frame.room(8);
                Low.tw_batch_options_init(o.address);
                o.setLong(Low.tw_batch_options__batch, size).setLong(Low.tw_batch_options__seed, seed).setInt(Low.tw_batch_options__shuffle, shuffle ? 1 : 0);
                check(Low.tw_iterator_create_batches(addresses, tensors.length, o.address, out.address));
                return new Batches(out.getLong(0));
            }
        });
    }

    /** Gives what a source of the program returns: lists of n tensors. What it throws ends the loop that called it. */
    public static Batches of(int n, Source source) {
        if (n < 1 || source == null) throw invalid("an iterator needs a source, and batches of at least one tensor");
        Callback callback = new Callback() {
            @Override
            long run(int what, long a, long b) throws Exception {
                if (what == Memory.RESET) {
                    source.reset(b);
                    return 0;
                }
                List<Tensor> batch = source.next();
                if (batch == null) {
                    Memory.at(b, 4).putInt(0, 1);
                    return 0;
                }
                if (batch.size() != n) throw invalid("the source returned " + batch.size() + " tensors, not " + n);
                return Scope.tensors(batch, addresses -> {
                    for (int i = 0; i < n; ++i) {
                        long tensor = Memory.at(addresses, 8L * n).getLong(8 * i);
                        Low.tw_tensor_retain(tensor);
                        Memory.at(a, 8L * n).putLong(8 * i, tensor);
                    }
                    return 0L;
                });
            }
        };
        long record = Memory.allocate(Low.tw_iterator), user = Memory.keep(callback);
        Memory.at(record, Low.tw_iterator).putInt(0, Low.tw_iterator).putInt(Low.tw_iterator__n_tensors, n)
                .putLong(Low.tw_iterator__n_batches, -1).putLong(Low.tw_iterator__user, user)
                .putLong(Low.tw_iterator__next, Memory.function(Memory.NEXT)).putLong(Low.tw_iterator__reset, Memory.function(Memory.RESET));
        return new Batches(record, address -> {
            Memory.forget(user);
            Memory.free(address);
        }, callback);
    }

    /** Throws what the source threw, if it did. */
    void rethrow() {
        if (callback != null) callback.rethrow();
    }

    /** Throws the failure of a status, or what the source threw. */
    void rethrowing(long status) {
        if (status == 0) return;
        ThalwegException failure = ThalwegException.of(status);
        rethrow();
        throw failure;
    }

    /** The next batch; null at the end of the epoch. */
    public List<Tensor> next() {
        return with(i -> {
            try (Memory.Frame frame = Memory.Frame.push()) {
                Memory.Room out = frame.room(8 * width), end = frame.room(4);
                rethrowing(Low.tw_iterator_next(i, out.address, end.address));
                return end.getInt(0) != 0 ? null : Tensor.own(out, width);
            }
        });
    }

    /** Begins an epoch. */
    public void reset(long epoch) {
        with(i -> {
            rethrowing(Low.tw_iterator_reset(i, epoch));
            return null;
        });
    }

    @Override
    public Iterator<List<Tensor>> iterator() {
        return new Iterator<>() {
            private List<Tensor> ahead = Batches.this.next();

            @Override
            public boolean hasNext() {
                return ahead != null;
            }

            @Override
            public List<Tensor> next() {
                if (ahead == null) throw new NoSuchElementException();
                List<Tensor> found = ahead;
                ahead = Batches.this.next();
                return found;
            }
        };
    }
}
