package org.thalweg;

import static org.thalweg.ThalwegException.check;
import static org.thalweg.ThalwegException.invalid;

import java.util.ArrayList;
import java.util.List;

/** Operations, and the values between them. Any thread may use it. */
public final class Graph extends Handle {
    public Graph() {
        super(create(), Low::tw_graph_destroy);
    }

    private static long create() {
        try (Memory.Frame frame = Memory.Frame.push()) {
            Memory.Room out = frame.room(8);
            check(Low.tw_graph_create(0, out.address));
            return out.getLong(0);
        }
    }

    /** Makes a graph of a serialised GraphDef. */
    public static Graph of(byte[] bytes) {
        if (bytes == null) throw invalid("the bytes are null");
        Graph graph = new Graph();
        graph.with(g -> {
            try (Memory.Frame frame = Memory.Frame.push()) {
                check(Low.tw_graph_import(g, frame.bytes(bytes), bytes.length, 0));
            }
            return null;
        });
        return graph;
    }

    /** The graph as a serialised GraphDef. */
    public byte[] export() {
        return with(g -> {
            try (Memory.Frame frame = Memory.Frame.push()) {
                Memory.Room out = frame.room(8);
                check(Low.tw_graph_export(g, out.address));
                return Memory.take(out.getLong(0));
            }
        });
    }

    /** The number of operations. */
    public int count() {
        return with(g -> Low.tw_graph_count(g));
    }

    /** Finds an operation by its name. */
    public Operation operation(String name) {
        return with(g -> {
            try (Memory.Frame frame = Memory.Frame.push()) {
                Memory.Room out = frame.room(8);
                check(Low.tw_graph_find(g, Memory.utf8(name), out.address));
                return new Operation(this, out.getLong(0));
            }
        });
    }

    /** Finds a value by its name: "x" or "x:1". */
    public Output output(String name) {
        return with(g -> {
            try (Memory.Frame frame = Memory.Frame.push()) {
                Memory.Room out = frame.room(8);
                check(Low.tw_graph_find_output(g, Memory.utf8(name), out.address));
                return new Output(out.getLong(0));
            }
        });
    }

    /** The sizes of a value, of which -1 is unknown; null: not even the number of axes is known. */
    public long[] shape(Output value) {
        return with(g -> shape(g, value));
    }

    static long[] shape(long graph, Output value) {
        if (value == null) throw invalid("a value is null");
        try (Memory.Frame frame = Memory.Frame.push()) {
            Memory.Room out = frame.room(8 + Low.tw_shape);
            check(Low.tw_graph_describe(graph, value.id(), out.address, out.address + 8));
            return shapeAt(out.address + 8);
        }
    }

    static long[] shapeAt(long address) {
        java.nio.ByteBuffer record = Memory.at(address, Low.tw_shape);
        int rank = record.getInt(Low.tw_shape__rank);
        if (rank < 0) return null;
        long[] dims = new long[rank];
        if (rank > 0) Memory.at(record.getLong(Low.tw_shape__dims), 8L * rank).asLongBuffer().get(dims);
        return dims;
    }

    /** The variables that the graph has now. */
    public List<Variable> variables() {
        return with(g -> {
            try (Memory.Frame frame = Memory.Frame.push()) {
                Memory.Room out = frame.room(8 + Low.tw_shape);
                check(Low.tw_variables_create(g, out.address));
                long list = out.getLong(0);
                List<Variable> all = new ArrayList<>();
                try {
                    for (int i = 0; i < Low.tw_variables_count(list); ++i) {
                        check(Low.tw_variables_describe(list, i, out.address, out.address + 8));
                        all.add(new Variable(new Output(Low.tw_variables_handle(list, i)), Memory.string(Low.tw_variables_name(list, i)),
                                DType.of(out.getInt(0)), shapeAt(out.address + 8)));
                    }
                } finally {
                    Low.tw_variables_destroy(list);
                }
                return all;
            }
        });
    }

    /** Begins to add operations, whose names have the prefix; "" for none. */
    public Scope scope(String prefix) {
        return new Scope(this, prefix);
    }
}
