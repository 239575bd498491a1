package org.thalweg;

import static org.thalweg.ThalwegException.check;

/** Cancels runs, from any thread. */
public final class CancelToken extends Handle {
    public CancelToken() {
        super(create(), Low::tw_cancel_token_destroy);
    }

    private static long create() {
        try (Memory.Frame frame = Memory.Frame.push()) {
            Memory.Room out = frame.room(8);
            check(Low.tw_cancel_token_create(out.address));
            return out.getLong(0);
        }
    }

    public void cancel() {
        with(t -> {
            Low.tw_cancel_token_cancel(t);
            return null;
        });
    }

    public boolean isCancelled() {
        return with(t -> Low.tw_cancel_token_cancelled(t) != 0);
    }
}
