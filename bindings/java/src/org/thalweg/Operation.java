package org.thalweg;

import java.util.ArrayList;
import java.util.List;

/** One operation of a graph. */
public final class Operation {
    final Graph graph;
    final long address;

    Operation(Graph graph, long address) {
        this.graph = graph;
        this.address = address;
    }

    public String name() {
        return graph.with(g -> Memory.string(Low.tw_operation_name(address)));
    }

    /** The name of the op. */
    public String type() {
        return graph.with(g -> Memory.string(Low.tw_operation_type(address)));
    }

    public Output output(int i) {
        return graph.with(g -> new Output(Low.tw_operation_output(address, i)));
    }

    public List<Output> outputs() {
        return graph.with(g -> {
            List<Output> all = new ArrayList<>();
            for (int i = 0; i < Low.tw_operation_output_count(address); ++i) all.add(new Output(Low.tw_operation_output(address, i)));
            return all;
        });
    }
}
