package org.thalweg;

import java.time.Duration;
import java.util.function.LongFunction;

/** Options of a run; null means none. */
public record RunOptions(Duration timeout, CancelToken cancel) {
    static final RunOptions NONE = new RunOptions(null, null);

    public static RunOptions timeout(Duration timeout) {
        return new RunOptions(timeout, null);
    }

    public static RunOptions cancel(CancelToken cancel) {
        return new RunOptions(null, cancel);
    }

    /** Calls a function with the record of C, or with 0. */
    <T> T with(LongFunction<T> call) {
        if (timeout == null && cancel == null) return call.apply(0);
        if (cancel == null) return fill(0, call);
        return cancel.with(token -> fill(token, call));
    }

    private <T> T fill(long token, LongFunction<T> call) {
        try (Memory.Frame frame = Memory.Frame.push()) {
            Memory.Room o = frame.room(Low.tw_run_options).setInt(0, Low.tw_run_options).setLong(Low.tw_run_options__cancel, token);
            if (timeout != null) o.setLong(Low.tw_run_options__timeout_ns, Math.max(1, timeout.toNanos()));
            return call.apply(o.address);
        }
    }
}
