package org.thalweg;

import static org.thalweg.ThalwegException.check;
import static org.thalweg.ThalwegException.invalid;

import java.nio.charset.StandardCharsets;

/** One task of a cluster in this process. */
public final class Server extends Handle {
    /** cluster: JSON such as {"worker": ["grpc:host:2222"]}. job: null means the JSON's task. options: "key=value". */
    public Server(String cluster, String job, int task, String... options) {
        super(create(cluster, job, task, options), Low::tw_server_destroy);
    }

    private static long create(String cluster, String job, int task, String... options) {
        if (cluster == null) throw invalid("the cluster is null");
        try (Memory.Frame frame = Memory.Frame.push()) {
            Memory.Room out = frame.room(8);
            check(Low.tw_server_create(0, Memory.utf8(cluster), Memory.utf8(job), task, frame.texts(Memory.list(options)), options.length, out.address));
            return out.getLong(0);
        }
    }

    /** Listens and serves until {@code stop}. */
    public void start() {
        with(s -> {
            check(Low.tw_server_start(s));
            return null;
        });
    }

    /** Ends the steps that run here and stops listening. */
    public void stop() {
        with(s -> {
            check(Low.tw_server_stop(s));
            return null;
        });
    }

    /** The address at which the server listens. */
    public String address() {
        return with(s -> {
            try (Memory.Frame frame = Memory.Frame.push()) {
                Memory.Room out = frame.room(8);
                check(Low.tw_server_address(s, out.address));
                return new String(Memory.take(out.getLong(0)), StandardCharsets.UTF_8);
            }
        });
    }
}
