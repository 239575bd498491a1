package org.thalweg;

import static org.thalweg.ThalwegException.check;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

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
