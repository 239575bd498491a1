package org.thalweg;

/** An object that C calls. What it throws is kept, because nothing may be thrown through C, and the call of C fails. */
abstract class Callback {
    private Throwable thrown;

    /** Returns a status, or 0. */
    abstract long run(int what, long a, long b) throws Exception;

    final long call(int what, long a, long b) {
        try {
            return run(what, a, b);
        } catch (Throwable t) {
            if (thrown == null) thrown = t;
            return Low.tw_status_create(Low.TW_UNKNOWN, ("a callback threw " + t).replace('\0', ' ').getBytes(java.nio.charset.StandardCharsets.UTF_8));
        }
    }

    /** Throws what was thrown, if something was. */
    final void rethrow() {
        Throwable t = thrown;
        thrown = null;
        if (t instanceof RuntimeException) throw (RuntimeException) t;
        if (t instanceof Error) throw (Error) t;
        if (t != null) throw new ThalwegException(ThalwegException.Code.UNKNOWN, "a callback threw " + t, null, null, t);
    }
}
