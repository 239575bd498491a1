package org.thalweg;

import java.lang.ref.Cleaner;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongConsumer;
import java.util.function.LongFunction;

/**
 * An object of C. {@code close} ends it, and so does the garbage collector, later. A call that uses the object keeps it until the call has
 * returned, so that any thread may close it at any time; calls after that fail.
 */
public abstract class Handle implements AutoCloseable {
    static final Cleaner CLEANER = Cleaner.create();

    /** What is needed to end the object; it does not refer to the handle. */
    private static final class State implements Runnable {
        final long address;
        final LongConsumer free;
        final AtomicInteger users = new AtomicInteger(1); // running calls, and 1 until close
        volatile boolean closed;

        State(long address, LongConsumer free) {
            this.address = address;
            this.free = free;
        }

        @Override
        public void run() { // once, by the cleaner
            closed = true;
            leave();
        }

        void leave() {
            if (users.decrementAndGet() == 0) free.accept(address);
        }
    }

    private final State state;
    private final Cleaner.Cleanable cleanable;

    Handle(long address, LongConsumer free) {
        state = new State(address, free);
        cleanable = CLEANER.register(this, state);
    }

    /** The address for a call; {@code leave} must follow. */
    final long use() {
        for (;;) {
            int n = state.users.get();
            if (n <= 0 || state.closed) throw ThalwegException.closed(getClass().getSimpleName());
            if (state.users.compareAndSet(n, n + 1)) return state.address;
        }
    }

    final void leave() {
        state.leave();
    }

    /** Calls a function with the address. */
    final <T> T with(LongFunction<T> call) {
        long address = use();
        try {
            return call.apply(address);
        } finally {
            leave();
        }
    }

    /** The same of a handle that a program gave. */
    static <T> T with(Handle handle, String what, LongFunction<T> call) {
        if (handle == null) throw ThalwegException.invalid(what + " is null");
        return handle.with(call);
    }

    /** Ends the object. Closing twice is fine. */
    @Override
    public void close() {
        cleanable.clean();
    }
}
