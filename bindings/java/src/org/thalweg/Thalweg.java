package org.thalweg;

import static org.thalweg.ThalwegException.check;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** What belongs to no object. */
public final class Thalweg {
    private Thalweg() {}

    /** The version of the library. */
    public static String version() {
        return Memory.string(Low.tw_version_string());
    }

    /** The names of the devices. */
    public static List<String> devices() {
        try (Memory.Frame frame = Memory.Frame.push()) {
            Memory.Room out = frame.room(8);
            check(Low.tw_devices_create(0, out.address));
            long list = out.getLong(0);
            List<String> names = new ArrayList<>();
            for (int i = 0; i < Low.tw_devices_count(list); ++i) names.add(Memory.string(Low.tw_devices_name(list, i)));
            Low.tw_devices_destroy(list);
            return names;
        }
    }

    /** Loads a plugin that the runtime does not find by itself. */
    public static void loadPlugin(String path) {
        check(Low.tw_plugin_load(0, Memory.utf8(path)));
    }

    /** Empties a container of this process without a session, as {@link Session#reset} does. container: null or "" means localhost. */
    public static long resetContainer(String container) {
        try (Memory.Frame frame = Memory.Frame.push()) {
            Memory.Room count = frame.room(8);
            check(Low.tw_runtime_reset(0, Memory.utf8(container), count.address));
            return count.getLong(0);
        }
    }

    /**
     * Empties a container of state on every task of a cluster, as {@link Session#reset} does, and returns the number of objects that it held.
     * target: the address of any task. container: null or "" means localhost, that of sessions which name none. timeout: within which tasks
     * must answer; null means five seconds. options: as of a session, such as "insecure=true". If a task does not answer, the exception names
     * it, all others have emptied theirs, and the call may be repeated.
     */
    public static long resetCluster(String target, String container, Duration timeout, String... options) {
        if (target == null || options == null) throw ThalwegException.invalid("the target, or the array of options, is null");
        String[] all = Stream.concat(Stream.of("target=" + target), Stream.of(options)).toArray(String[]::new);
        try (Memory.Frame frame = Memory.Frame.push()) {
            Memory.Room count = frame.room(8);
            check(Low.tw_cluster_reset(0, frame.texts(Memory.list(all)), all.length, Memory.utf8(container), timeout == null ? 0 : timeout.toNanos(), count.address));
            return count.getLong(0);
        }
    }

    /** Reads the numbers of a file with commas between them: an array for each line. */
    public static List<float[]> readCsv(String path) {
        try {
            List<float[]> rows = new ArrayList<>();
            for (String line : Files.readAllLines(Path.of(path))) {
                String[] cells = line.split(",");
                float[] row = new float[cells.length];
                for (int i = 0; i < row.length; ++i) row[i] = Float.parseFloat(cells[i].trim());
                rows.add(row);
            }
            return rows;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (NumberFormatException e) {
            throw ThalwegException.invalid(path + ": " + e.getMessage());
        }
    }
}
