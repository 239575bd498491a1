package org.thalweg;

import static org.thalweg.ThalwegException.check;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Reads the tensors of a checkpoint. */
public final class Checkpoint extends Handle {
    /** Opens the files prefix.*. */
    public Checkpoint(String prefix) {
        super(open(prefix), Low::tw_checkpoint_close);
    }

    private static long open(String prefix) {
        try (Memory.Frame frame = Memory.Frame.push()) {
            Memory.Room out = frame.room(8);
            check(Low.tw_checkpoint_open(Memory.utf8(prefix), out.address));
            return out.getLong(0);
        }
    }

    public List<String> names() {
        return with(c -> {
            List<String> all = new ArrayList<>();
            for (int i = 0; i < Low.tw_checkpoint_count(c); ++i) all.add(Memory.string(Low.tw_checkpoint_name(c, i)));
            return all;
        });
    }

    public Tensor read(String name) {
        return with(c -> {
            try (Memory.Frame frame = Memory.Frame.push()) {
                Memory.Room out = frame.room(8);
                check(Low.tw_checkpoint_read(c, Memory.utf8(name), out.address));
                return new Tensor(out.getLong(0));
            }
        });
    }

    /** Writes tensors to the files prefix.*. */
    public static void write(String prefix, Map<String, Tensor> tensors) {
        List<String> names = new ArrayList<>(tensors.keySet());
        Scope.tensors(names.stream().map(tensors::get).toList(), addresses -> {
            try (Memory.Frame frame = Memory.Frame.push()) {
                check(Low.tw_checkpoint_write(Memory.utf8(prefix), frame.texts(names), addresses, names.size()));
            }
            return null;
        });
    }
}
