package org.thalweg;

import static org.thalweg.ThalwegException.check;
import static org.thalweg.ThalwegException.invalid;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongFunction;
import java.util.function.LongUnaryOperator;
import java.util.stream.IntStream;

/** Adds operations to a graph. A failure is thrown where the wrong operation is added, and the scope goes on. One thread at a time. */
public final class Scope {
    /** The C scope, of which the cleaner ends the last. It keeps the graph, which must outlive it. */
    private static final class State implements Runnable {
        final Graph graph;
        long address;

        State(Graph graph) {
            this.graph = graph;
        }

        @Override
        public void run() {
            if (address != 0) Low.tw_status_release(Low.tw_scope_finish(address));
            address = 0;
            graph.leave();
        }
    }

    private final Graph graph;
    private final State state; // null: of a function of elements
    private long inner;

    Scope(Graph graph, String prefix) {
        this.graph = graph;
        byte[] text = Memory.utf8(prefix == null ? "" : prefix);
        long g = graph.use(); // left by the state
        state = new State(graph);
        state.address = Low.tw_scope_create(g, text.length == 0 ? null : text);
        Handle.CLEANER.register(this, state);
    }

    private Scope(Graph graph, long inner) {
        this.graph = graph;
        this.state = null;
        this.inner = inner;
    }

    public Graph graph() {
        return graph;
    }

    private static final StackWalker WALKER = StackWalker.getInstance();

    /** The line of the program that called into this package. */
    private static String place() {
        return WALKER.walk(frames -> frames.filter(f -> !f.getClassName().startsWith("org.thalweg.") || f.getClassName().lastIndexOf('.') > 11)
                .findFirst().map(f -> f.getFileName() + ":" + f.getLineNumber()).orElse(""));
    }

    /** Calls C with the line of the program on record, and throws the failure that the scope then has. */
    private <T> T add(LongFunction<T> call) {
        return graph.with(g -> {
            long s = state == null ? inner : state.address;
            if (s == 0) throw new ThalwegException.FailedPrecondition("the scope of a function of elements has ended", null, null);
            Low.tw_scope_set_place(s, Memory.utf8(place()));
            T result = call.apply(s);
            if (Low.tw_scope_code(s) != 0) fail(g, s);
            return result;
        });
    }

    /** A scope of C keeps its first failure and adds nothing more, so that this one goes on with a new one. */
    private void fail(long g, long failed) {
        if (state == null)
            throw new ThalwegException(ThalwegException.Code.values()[Low.tw_scope_code(failed)], "the function of elements has failed", null, null, null);
        String prefix = Memory.string(Low.tw_scope_prefix(failed)), device = Memory.string(Low.tw_scope_device(failed));
        boolean none = prefix == null || prefix.isEmpty();
        state.address = Low.tw_scope_create(g, none ? null : Memory.utf8(prefix.substring(0, prefix.length() - 1)));
        if (device != null && !device.isEmpty()) Low.tw_scope_set_device(state.address, Memory.utf8(device));
        check(Low.tw_scope_finish(failed));
    }

    static long id(Output value) {
        if (value == null) throw invalid("a value is null");
        return value.id();
    }

    private Output value(LongUnaryOperator call) {
        return new Output(add(s -> call.applyAsLong(s)));
    }

    private Operation operation(LongUnaryOperator call) {
        return new Operation(graph, add(s -> call.applyAsLong(s)));
    }

    private static byte[] name(String text) {
        if (text == null) throw invalid("a name is null");
        return Memory.utf8(text);
    }

    /** Sets the device of the operations that follow, such as "CPU:0"; "" for any. */
    public void setDevice(String device) {
        add(s -> {
            Low.tw_scope_set_device(s, name(device));
            return null;
        });
    }

    /** Describes one operation; class Ops uses one for each op. */
    final class Builder {
        private final String op;
        private final Map<String, String> kinds = new HashMap<>();
        private final List<Object> inputs = new ArrayList<>();
        private final Map<String, Object> attributes = new HashMap<>();
        private String name;

        Builder(String op, String kinds, Attr... given) {
            this.op = op;
            for (String one : kinds.split(" ")) if (!one.isEmpty()) this.kinds.put(one.substring(0, one.indexOf(':')), one.substring(one.indexOf(':') + 1));
            if (given == null) throw invalid("the attributes are null");
            for (Attr a : given) {
                if (a == null || a.name() == null) throw invalid("an attribute of " + op + " is null");
                if (a.name().equals("name") && !this.kinds.containsKey("name")) name = String.valueOf(a.value());
                else set(a.name(), a.value());
            }
        }

        void input(Output value) {
            inputs.add(id(value));
        }

        void inputs(List<Output> values) {
            if (values == null) throw invalid("a list of values is null");
            inputs.add(values.stream().mapToLong(Scope::id).toArray());
        }

        void set(String attr, Object value) {
            if (!kinds.containsKey(attr)) throw invalid(op + " has no attribute '" + attr + "'; it has: " + String.join(", ", kinds.keySet()));
            attributes.put(attr, value);
        }

        Operation end() {
            return operation(s -> {
                long b = Low.tw_scope_begin(s, name(op), name == null ? null : name(name));
                try (Memory.Frame frame = Memory.Frame.push()) {
                    for (Object one : inputs) {
                        if (one instanceof Long) Low.tw_op_add_input(b, (Long) one);
                        else Low.tw_op_add_inputs(b, frame.longs((long[]) one).address, ((long[]) one).length);
                    }
                    attributes.forEach((attr, value) -> put(frame, b, attr, kinds.get(attr), value));
                } catch (RuntimeException e) {
                    Low.tw_op_destroy(b);
                    throw e;
                }
                return Low.tw_scope_end_operation(s, b);
            });
        }

        private void put(Memory.Frame frame, long b, String attr, String kind, Object value) {
            byte[] key = name(attr);
            try {
                switch (kind) {
                    case "int": Low.tw_op_set_int(b, key, ((Number) value).longValue()); break;
                    case "float": Low.tw_op_set_float(b, key, ((Number) value).doubleValue()); break;
                    case "bool": Low.tw_op_set_bool(b, key, (byte) ((Boolean) value ? 1 : 0)); break;
                    case "string": {
                        byte[] bytes = ((String) value).getBytes(java.nio.charset.StandardCharsets.UTF_8);
                        Low.tw_op_set_string(b, key, bytes, bytes.length);
                        break;
                    }
                    case "func": Low.tw_op_set_func(b, key, name((String) value)); break;
                    case "type": Low.tw_op_set_type(b, key, ((DType) value).number); break;
                    case "shape": {
                        long[] dims = (long[]) value;
                        Low.tw_op_set_shape(b, key, dims == null ? 0 : frame.longs(dims).address, dims == null ? -1 : dims.length);
                        break;
                    }
                    case "tensor": Handle.with((Tensor) value, attr, t -> {
                        Low.tw_op_set_tensor(b, key, t);
                        return null;
                    }); break;
                    case "ints": Low.tw_op_set_ints(b, key, frame.longs((long[]) value).address, ((long[]) value).length); break;
                    case "floats": Low.tw_op_set_floats(b, key, frame.doubles((double[]) value), ((double[]) value).length); break;
                    case "bools": {
                        boolean[] all = (boolean[]) value;
                        byte[] bytes = new byte[all.length];
                        for (int i = 0; i < all.length; ++i) bytes[i] = (byte) (all[i] ? 1 : 0);
                        Low.tw_op_set_bools(b, key, frame.bytes(bytes), all.length);
                        break;
                    }
                    case "types": {
                        int[] all = Arrays.stream((DType[]) value).mapToInt(d -> d.number).toArray();
                        Low.tw_op_set_types(b, key, frame.ints(all), all.length);
                        break;
                    }
                    case "strings": Low.tw_op_set_strings(b, key, strings(frame, (String[]) value), ((String[]) value).length); break;
                    case "funcs": Low.tw_op_set_funcs(b, key, strings(frame, (String[]) value), ((String[]) value).length); break;
                    case "shapes": {
                        long[][] all = (long[][]) value;
                        Memory.Room list = frame.room(Low.tw_shape * all.length);
                        for (int i = 0; i < all.length; ++i) {
                            list.setLong(Low.tw_shape * i + Low.tw_shape__dims, all[i] == null ? 0 : frame.longs(all[i]).address);
                            list.setInt(Low.tw_shape * i + Low.tw_shape__rank, all[i] == null ? -1 : all[i].length);
                        }
                        Low.tw_op_set_shapes(b, key, list.address, all.length);
                        break;
                    }
                    default: tensors(Arrays.asList((Tensor[]) value), addresses -> {
                        Low.tw_op_set_tensors(b, key, addresses, ((Tensor[]) value).length);
                        return null;
                    });
                }
            } catch (ClassCastException | NullPointerException e) {
                throw invalid(op + ": attribute '" + attr + "' of kind " + kind + " cannot be " + (value == null ? "null" : value.getClass().getSimpleName()));
            }
        }

        private long strings(Memory.Frame frame, String[] all) {
            Memory.Room list = frame.room(Low.tw_string * all.length);
            for (int i = 0; i < all.length; ++i) {
                byte[] bytes = all[i].getBytes(java.nio.charset.StandardCharsets.UTF_8);
                list.setLong(Low.tw_string * i + Low.tw_string__data, frame.bytes(bytes));
                list.setLong(Low.tw_string * i + Low.tw_string__size, bytes.length);
            }
            return list.address;
        }
    }

    /** Calls a function with a list of tensors, which are kept for it. */
    static <T> T tensors(List<Tensor> all, LongFunction<T> call) {
        if (all == null) throw invalid("a list of tensors is null");
        try (Memory.Frame frame = Memory.Frame.push()) {
            Memory.Room room = frame.room(8 * all.size());
            int used = 0;
            try {
                for (Tensor t : all) {
                    if (t == null) throw invalid("tensor " + used + " is null");
                    room.setLong(8 * used, t.use());
                    ++used;
                }
                return call.apply(room.address);
            } finally {
                for (int i = 0; i < used; ++i) all.get(i).leave();
            }
        }
    }

    Builder begin(String op, String kinds, Attr... attributes) {
        return new Builder(op, kinds, attributes);
    }

    /** Adds an operation with default attributes and returns its first value. */
    public Output op(String type, Output... inputs) {
        return value(s -> {
            try (Memory.Frame frame = Memory.Frame.push()) {
                long[] ids = Memory.list(inputs).stream().mapToLong(Scope::id).toArray();
                return Low.tw_scope_op(s, name(type), frame.longs(ids).address, ids.length);
            }
        });
    }

    /** Adds a value that each run feeds. -1 is an unknown size. */
    public Output placeholder(String name, DType dtype, long... dims) {
        return value(s -> {
            if (dtype == null || dims == null) throw invalid("the type or the sizes are null");
            try (Memory.Frame frame = Memory.Frame.push()) {
                return Low.tw_scope_placeholder(s, name(name), dtype.number, frame.longs(dims).address, dims.length);
            }
        });
    }

    public Output constant(Tensor tensor) {
        return value(s -> Handle.with(tensor, "a constant", t -> Low.tw_scope_constant(s, t)));
    }

    /** Adds a constant number of a type. */
    public Output scalar(DType dtype, double number) {
        return value(s -> {
            if (dtype == null) throw invalid("the type is null");
            return Low.tw_scope_scalar(s, dtype.number, number);
        });
    }

    /** Adds a constant vector of int32: sizes, axes. */
    public Output ints(int... values) {
        return value(s -> {
            try (Memory.Frame frame = Memory.Frame.push()) {
                return Low.tw_scope_ints(s, frame.ints(values), values.length);
            }
        });
    }

    /** Gives a value a name, by which it can be fed, fetched and found. */
    public Output name(String name, Output x) {
        return value(s -> Low.tw_scope_name(s, name(name), id(x)));
    }

    /** Adds an operation that runs others. */
    public Operation group(String name, Operation... operations) {
        return operation(s -> {
            try (Memory.Frame frame = Memory.Frame.push()) {
                return Low.tw_scope_group(s, name == null ? null : name(name), addresses(frame, Memory.list(operations)), operations.length);
            }
        });
    }

    static long addresses(Memory.Frame frame, List<Operation> operations) {
        if (operations == null) throw invalid("a list of operations is null; give an empty one");
        return frame.longs(operations.stream().mapToLong(o -> {
            if (o == null) throw invalid("an operation is null");
            return o.address;
        }).toArray()).address;
    }

    /** Adds a variable that {@code initializer} sets to a value. */
    public Output variable(String name, Output initial) {
        return value(s -> Low.tw_variable_create(s, name(name), id(initial)));
    }

    public Output read(Output variable) {
        return value(s -> Low.tw_variable_read(s, id(variable)));
    }

    public Operation assign(Output variable, Output x) {
        return operation(s -> Low.tw_variable_assign(s, id(variable), id(x)));
    }

    /** Adds the operation that sets all variables that the graph has now to their first values. */
    public Operation initializer(String name) {
        return operation(s -> Low.tw_variable_initializer(s, name(name)));
    }

    public Output add(Output a, Output b) {
        return op("Add", a, b);
    }

    public Output sub(Output a, Output b) {
        return op("Sub", a, b);
    }

    public Output mul(Output a, Output b) {
        return op("Mul", a, b);
    }

    public Output matMul(Output a, Output b) {
        return op("MatMul", a, b);
    }

    /** Gives a value other sizes, of which one may be -1. */
    public Output reshape(Output x, int... dims) {
        return op("Reshape", x, ints(dims));
    }

    /** The mean of all elements. */
    public Output mean(Output x) {
        return op("Mean", x, axes(x));
    }

    /** The sum of all elements. */
    public Output sum(Output x) {
        return op("Sum", x, axes(x));
    }

    private long[] shape(Output x) {
        long[] shape = add(s -> Graph.shape(Low.tw_scope_graph(s), x));
        if (shape == null) throw invalid("the number of axes must be known");
        return shape;
    }

    private Output axes(Output x) {
        return ints(IntStream.range(0, shape(x).length).toArray());
    }

    private long last(String what, Output x) {
        long[] shape = shape(x);
        if (shape.length == 0 || shape[shape.length - 1] < 0) throw invalid(what + ": the last size of " + Arrays.toString(shape) + " must be known");
        return shape[shape.length - 1];
    }

    /** Functions that layers apply to their results. */
    public enum Activation {
        LINEAR(Low.TW_ACTIVATION_NONE), RELU(Low.TW_ACTIVATION_RELU), GELU(Low.TW_ACTIVATION_GELU), SIGMOID(Low.TW_ACTIVATION_SIGMOID),
        TANH(Low.TW_ACTIVATION_TANH), SOFTMAX(Low.TW_ACTIVATION_SOFTMAX);

        final int number;

        Activation(int number) {
            this.number = number;
        }
    }

    public Output activation(Activation kind, Output x) {
        if (kind == null) throw invalid("the activation is null");
        return kind == Activation.LINEAR ? x : value(s -> Low.tw_activation(s, kind.number, id(x)));
    }

    private static Memory.Room layerOptions(Memory.Frame frame, long seed) {
        Memory.Room options = frame.room(Low.tw_layer_options);
        Low.tw_layer_options_init(options.address);
        return options.setLong(Low.tw_layer_options__seed, seed);
    }

    /** activation(x kernel + bias). x: [.., inputs]; the result: [.., units]. seed 0: other first weights in each session. */
    public Output dense(String name, Output x, long units, Activation activation, long seed) {
        long inputs = last("dense '" + name + "'", x);
        return activation(activation, value(s -> {
            try (Memory.Frame frame = Memory.Frame.push()) {
                Memory.Room layer = frame.room(Low.tw_dense).setInt(0, Low.tw_dense);
                Low.tw_dense_create(s, name(name), layerOptions(frame, seed).address, inputs, units, layer.address);
                return Low.tw_dense_apply(s, layer.address, id(x));
            }
        }));
    }

    /** A convolution with a square window over [batch, height, width, channels] that keeps height and width. */
    public Output conv2d(String name, Output x, long filters, long window, Activation activation, long seed) {
        long channels = last("conv2d '" + name + "'", x);
        return activation(activation, value(s -> {
            try (Memory.Frame frame = Memory.Frame.push()) {
                Memory.Room like = frame.room(Low.tw_convolution), layer = frame.room(Low.tw_convolution), sizes = frame.room(Low.tw_convolution_sizes);
                Low.tw_convolution_init(like.address);
                Low.tw_convolution_init(layer.address);
                Low.tw_convolution_sizes_init(sizes.address);
                sizes.setLong(Low.tw_convolution_sizes__window_1, window).setLong(Low.tw_convolution_sizes__window_2, window)
                        .setLong(Low.tw_convolution_sizes__channels, channels).setLong(Low.tw_convolution_sizes__filters, filters);
                Low.tw_convolution_create(s, name(name), layerOptions(frame, seed).address, like.address, sizes.address, layer.address);
                return Low.tw_convolution_apply(s, layer.address, id(x));
            }
        }));
    }

    /** Keeps the largest of each window of window x window elements. */
    public Output maxPool2d(Output x, long window) {
        return value(s -> {
            try (Memory.Frame frame = Memory.Frame.push()) {
                Memory.Room pool = frame.room(Low.tw_pool);
                Low.tw_pool_init(pool.address);
                pool.setInt(Low.tw_pool__kind, Low.TW_POOL_MAX).setInt(Low.tw_pool__rank, 2).setInt(Low.tw_pool__padding, Low.TW_PADDING_VALID);
                for (int field : new int[] {Low.tw_pool__window_1, Low.tw_pool__window_2, Low.tw_pool__stride_1, Low.tw_pool__stride_2})
                    pool.setLong(field, window);
                return Low.tw_pool_apply(s, pool.address, id(x));
            }
        });
    }

    /** Makes a row of each example. */
    public Output flatten(Output x) {
        long n = 1;
        long[] shape = shape(x);
        for (int i = 1; i < shape.length; ++i) {
            if (shape[i] < 0) throw invalid("flatten: the sizes of " + Arrays.toString(shape) + " behind the first must be known");
            n *= shape[i];
        }
        return reshape(x, -1, (int) n);
    }

    public Output dropout(Output x, double rate, Output training, long seed) {
        return value(s -> Low.tw_dropout(s, id(x), rate, id(training), seed));
    }

    /** The mean cross-entropy of logits [batch, classes] for labels [batch]. */
    public Output sparseSoftmaxCrossEntropy(Output logits, Output labels) {
        return op("Mean", op("SparseSoftmaxCrossEntropyWithLogits", logits, labels), ints(0));
    }

    /** The gradients of a scalar loss for values or variables. */
    public List<Gradient> gradients(Output loss, List<Output> xs) {
        return add(s -> {
            try (Memory.Frame frame = Memory.Frame.push()) {
                Memory.Room out = frame.room(16 * xs.size());
                Low.tw_scope_gradients(s, id(loss), frame.outputs(xs), xs.size(), out.address);
                return gradientsIn(out, xs.size());
            }
        });
    }

    private static List<Gradient> gradientsIn(Memory.Room room, int n) {
        List<Gradient> all = new ArrayList<>();
        for (int i = 0; i < n; ++i) all.add(new Gradient(new Output(room.getLong(16 * i)), new Output(room.getLong(16 * i + 8))));
        return all;
    }

    private static Memory.Room room(Memory.Frame frame, List<Gradient> gradients) {
        return frame.longs(gradients.stream().flatMapToLong(g -> {
            if (g == null) throw invalid("a gradient is null");
            return java.util.stream.LongStream.of(id(g.values()), id(g.rows()));
        }).toArray());
    }

    /** Scales gradients so that the norm of all together is at most max. */
    public List<Gradient> clipByGlobalNorm(List<Gradient> gradients, double max) {
        return add(s -> {
            try (Memory.Frame frame = Memory.Frame.push()) {
                Memory.Room all = room(frame, gradients);
                Low.tw_clip_by_global_norm(s, all.address, gradients.size(), max);
                return gradientsIn(all, gradients.size());
            }
        });
    }

    /** Adds one update of variables by gradients. */
    public Operation apply(Optimizer optimizer, List<Output> variables, List<Gradient> gradients) {
        if (optimizer == null || variables == null || gradients == null || variables.size() != gradients.size())
            throw invalid("apply needs an optimizer, and a gradient for each variable");
        Output rate = optimizer.schedule != null ? optimizer.schedule : scalar(DType.FLOAT, optimizer.rate);
        return operation(s -> {
            try (Memory.Frame frame = Memory.Frame.push()) {
                Memory.Room options = frame.room(optimizer.size);
                optimizer.init.init(options.address);
                options.setLong(optimizer.rateOffset, rate.id());
                optimizer.fields.forEach(options::setDouble);
                return optimizer.call.apply(s, frame.outputs(variables), room(frame, gradients).address, variables.size(), options.address);
            }
        });
    }

    /** Adds one update of all variables of the graph that hold real numbers and that the loss depends on. */
    public Operation minimize(Output loss, Optimizer optimizer) {
        List<DType> real = List.of(DType.FLOAT, DType.DOUBLE, DType.HALF, DType.BFLOAT16);
        List<Output> variables = graph.variables().stream().filter(v -> real.contains(v.dtype())).map(Variable::handle).toList();
        if (variables.isEmpty()) throw invalid("minimize: the graph has no variables of real numbers");
        return apply(optimizer, variables, gradients(loss, variables));
    }

    private interface AddMetric {
        void add(long scope, byte[] name, long metric);
    }

    private Metric metric(String name, AddMetric call) {
        return add(s -> {
            try (Memory.Frame frame = Memory.Frame.push()) {
                Memory.Room m = frame.room(Low.tw_metric).setInt(0, Low.tw_metric);
                call.add(s, name(name), m.address);
                return new Metric(name, new Output(m.getLong(Low.tw_metric__value)), new Operation(graph, m.getLong(Low.tw_metric__update)),
                        new Operation(graph, m.getLong(Low.tw_metric__reset)));
            }
        });
    }

    /** The share of examples whose class is the label. predictions: scores [batch, classes], or classes. */
    public Metric accuracy(String name, Output predictions, Output labels) {
        return metric(name, (s, n, m) -> Low.tw_metric_accuracy(s, n, id(predictions), id(labels), 0, m));
    }

    /** The mean of values. */
    public Metric meanMetric(String name, Output values) {
        return metric(name, (s, n, m) -> Low.tw_metric_mean(s, n, id(values), 0, m));
    }

    /** Has an element for each row of values with equal first sizes. */
    public Dataset rows(Output... components) {
        return new Dataset(this, value(s -> {
            try (Memory.Frame frame = Memory.Frame.push()) {
                return Low.tw_dataset_rows(s, frame.longs(Memory.list(components).stream().mapToLong(Scope::id).toArray()).address, components.length);
            }
        }));
    }

    /** Has the numbers from start to stop, as int64. */
    public Dataset range(long start, long stop, long step) {
        return new Dataset(this, value(s -> Low.tw_dataset_range(s, start, stop, step)));
    }

    /** Has the lines of text files. files: a vector of strings. */
    public Dataset lines(Output files) {
        return new Dataset(this, value(s -> Low.tw_dataset_lines(s, id(files))));
    }

    /** Has the records of TFRecord files. */
    public Dataset records(Output files) {
        return new Dataset(this, value(s -> Low.tw_dataset_records(s, id(files))));
    }

    interface Stage {
        long add(long scope, long dataset);
    }

    interface EndBlock {
        long end(long scope, long dataset, long block);
    }

    Output stage(Output dataset, Stage stage) {
        return value(s -> stage.add(s, id(dataset)));
    }

    Output function(Output dataset, Dataset.Function function, EndBlock end) {
        if (function == null) throw invalid("the function is null");
        return value(s -> {
            try (Memory.Frame frame = Memory.Frame.push()) {
                int n = Low.tw_dataset_component_count(Low.tw_scope_graph(s), id(dataset));
                Memory.Room arguments = frame.room(8 * n);
                long block = Low.tw_dataset_block(s, id(dataset), arguments.address);
                Scope scope = new Scope(graph, Low.tw_block_scope(block));
                try {
                    List<Output> element = new ArrayList<>();
                    for (int i = 0; i < n; ++i) element.add(new Output(arguments.getLong(8 * i)));
                    long[] results = function.apply(scope, element).stream().mapToLong(Scope::id).toArray();
                    Low.tw_block_give(block, frame.longs(results).address, results.length);
                } catch (RuntimeException | Error e) {
                    Low.tw_block_destroy(block);
                    throw e;
                } finally {
                    scope.inner = 0;
                }
                return end.end(s, id(dataset), block);
            }
        });
    }
}
