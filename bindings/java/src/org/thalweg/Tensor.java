package org.thalweg;

import static org.thalweg.ThalwegException.check;
import static org.thalweg.ThalwegException.invalid;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;

/** An array of one element type in the library's memory. Any thread may read it. */
public final class Tensor extends Handle {
    Tensor(long address) {
        super(address, Low::tw_tensor_release);
    }

    static List<Tensor> own(Memory.Room room, int n) {
        List<Tensor> all = new ArrayList<>(n);
        for (int i = 0; i < n; ++i) all.add(new Tensor(room.getLong(8 * i)));
        return all;
    }

    /** Sizes, of which one may be -1 if {@code n} elements decide it; none: a vector. */
    private static long[] sizes(long n, long... dims) {
        if (dims == null) throw invalid("the sizes are null");
        if (dims.length == 0) return new long[] {n};
        long known = 1;
        int at = -1;
        for (int i = 0; i < dims.length; ++i) {
            if (dims[i] == -1 && at < 0) at = i;
            else if (dims[i] < 0) throw invalid("sizes " + Arrays.toString(dims) + ": one of them may be -1, the others are at least 0");
            else if (dims[i] > 0 && known > (1L << 62) / dims[i]) throw invalid("sizes " + Arrays.toString(dims) + " are too large");
            else known *= dims[i];
        }
        if (at >= 0) {
            if (known == 0 || n % known != 0) throw invalid(n + " elements do not fill sizes " + Arrays.toString(dims));
            dims = dims.clone();
            dims[at] = n / known;
        } else if (known != n) throw invalid(n + " elements do not fill sizes " + Arrays.toString(dims));
        return dims;
    }

    private static Tensor make(DType dtype, long[] dims, Consumer<ByteBuffer> fill) {
        try (Memory.Frame frame = Memory.Frame.push()) {
            Memory.Room out = frame.room(8);
            check(Low.tw_tensor_create(dtype.number, frame.longs(dims).address, dims.length, out.address));
            long address = out.getLong(0), bytes = Low.tw_tensor_bytes(address);
            if (bytes > 0 && fill != null) fill.accept(Memory.at(Low.tw_tensor_mutable_data(address), bytes));
            return new Tensor(address);
        }
    }

    private static <T> T given(T data) {
        if (data == null) throw invalid("a tensor cannot be made of null");
        return data;
    }

    /** Copies an array. dims: the size of each axis, of which one may be -1; none: a vector. */
    public static Tensor of(float[] data, long... dims) {
        return make(DType.FLOAT, sizes(given(data).length, dims), b -> b.asFloatBuffer().put(data));
    }

    public static Tensor of(double[] data, long... dims) {
        return make(DType.DOUBLE, sizes(given(data).length, dims), b -> b.asDoubleBuffer().put(data));
    }

    public static Tensor of(int[] data, long... dims) {
        return make(DType.INT32, sizes(given(data).length, dims), b -> b.asIntBuffer().put(data));
    }

    public static Tensor of(long[] data, long... dims) {
        return make(DType.INT64, sizes(given(data).length, dims), b -> b.asLongBuffer().put(data));
    }

    public static Tensor of(byte[] data, long... dims) {
        return make(DType.UINT8, sizes(given(data).length, dims), b -> b.put(data));
    }

    public static Tensor of(boolean[] data, long... dims) {
        given(data);
        return make(DType.BOOL, sizes(data.length, dims), b -> {
            for (boolean yes : data) b.put((byte) (yes ? 1 : 0));
        });
    }

    public static Tensor of(String[] data, long... dims) {
        Tensor tensor = make(DType.STRING, sizes(given(data).length, dims), null);
        for (int i = 0; i < data.length; ++i) {
            byte[] bytes = given(data[i]).getBytes(StandardCharsets.UTF_8);
            int at = i;
            tensor.with(t -> {
                check(Low.tw_tensor_set_string(t, at, bytes, bytes.length));
                return null;
            });
        }
        return tensor;
    }

    /** A tensor without axes. */
    public static Tensor scalar(float value) {
        return make(DType.FLOAT, new long[0], b -> b.putFloat(value));
    }

    public static Tensor scalar(int value) {
        return make(DType.INT32, new long[0], b -> b.putInt(value));
    }

    public static Tensor scalar(boolean value) {
        return make(DType.BOOL, new long[0], b -> b.put((byte) (value ? 1 : 0)));
    }

    /** A tensor of zeros, which {@code writable} fills. */
    public static Tensor zeros(DType dtype, long... dims) {
        if (dtype == null || dims == null) throw invalid("the type or the sizes are null");
        return make(dtype, dims, null);
    }

    /** Uses a direct buffer's memory without copying it. The buffer lives as long as the tensor; do not write to it meanwhile. */
    public static Tensor wrap(ByteBuffer direct, DType dtype, long... dims) {
        if (direct == null || dtype == null || dims == null || !direct.isDirect()) throw invalid("a tensor wraps a direct buffer, with a type and sizes");
        try (Memory.Frame frame = Memory.Frame.push()) {
            Memory.Room out = frame.room(8);
            long user = Memory.keep(direct);
            check(Low.tw_tensor_create_from_const(dtype.number, frame.longs(dims).address, dims.length, Memory.address(direct) + direct.position(),
                    direct.remaining(), Memory.function(Memory.RELEASE), user, out.address));
            return new Tensor(out.getLong(0));
        }
    }

    public DType dtype() {
        return with(t -> DType.of(Low.tw_tensor_dtype(t)));
    }

    public long[] shape() {
        return with(t -> {
            long[] dims = new long[Low.tw_tensor_rank(t)];
            for (int i = 0; i < dims.length; ++i) dims[i] = Low.tw_tensor_dim(t, i);
            return dims;
        });
    }

    /** The number of elements. */
    public long count() {
        long n = Low.tw_tensor_count(use());
        leave();
        return n;
    }

    /** The elements without a copy, to be read. The buffer keeps them, also when the tensor is closed. */
    public ByteBuffer buffer() {
        return with(t -> view(t).asReadOnlyBuffer().order(ByteOrder.nativeOrder()));
    }

    /** The elements without a copy, to be written: only while nobody else has the tensor or its memory. */
    public ByteBuffer writable() {
        return with(t -> {
            if (Low.tw_tensor_count(t) > 0 && Low.tw_tensor_mutable_data(t) == 0)
                throw new ThalwegException.FailedPrecondition("the tensor is shared, its memory is read-only, or it holds strings", null, null);
            return view(t);
        });
    }

    private static ByteBuffer view(long t) {
        if (Low.tw_tensor_dtype(t) == Low.TW_STRING) throw invalid("strings have no buffer; use strings()");
        if (Low.tw_tensor_device(t) != 0) throw new ThalwegException.FailedPrecondition("the tensor is in a device's memory", null, null);
        long bytes = Low.tw_tensor_bytes(t);
        if (bytes == 0) return ByteBuffer.allocateDirect(0);
        if (bytes > Integer.MAX_VALUE) throw new ThalwegException.Unimplemented("a buffer of Java holds at most 2^31 - 1 bytes", null, null);
        ByteBuffer view = Memory.at(Low.tw_tensor_data(t), bytes);
        Low.tw_tensor_retain(t);
        CLEANER.register(view, () -> Low.tw_tensor_release(t)); // buffers made of this one refer to it
        return view;
    }

    private ByteBuffer expect(DType want) {
        DType is = dtype();
        if (is != want) throw invalid("the tensor holds " + is + ", not " + want);
        return buffer();
    }

    /** Copies the elements. */
    public float[] floats() {
        float[] all = new float[(int) count()];
        expect(DType.FLOAT).asFloatBuffer().get(all);
        return all;
    }

    public double[] doubles() {
        double[] all = new double[(int) count()];
        expect(DType.DOUBLE).asDoubleBuffer().get(all);
        return all;
    }

    public int[] ints() {
        int[] all = new int[(int) count()];
        expect(DType.INT32).asIntBuffer().get(all);
        return all;
    }

    public long[] longs() {
        long[] all = new long[(int) count()];
        expect(DType.INT64).asLongBuffer().get(all);
        return all;
    }

    public String[] strings() {
        return with(t -> {
            String[] all = new String[(int) Low.tw_tensor_count(t)];
            try (Memory.Frame frame = Memory.Frame.push()) {
                Memory.Room out = frame.room(16);
                for (int i = 0; i < all.length; ++i) {
                    check(Low.tw_tensor_get_string(t, i, out.address, out.address + 8));
                    byte[] bytes = new byte[(int) out.getLong(8)];
                    if (bytes.length > 0) Memory.at(out.getLong(0), bytes.length).get(bytes);
                    all[i] = new String(bytes, StandardCharsets.UTF_8);
                }
            }
            return all;
        });
    }

    /** The same elements under other sizes; the memory is shared. */
    public Tensor reshape(long... dims) {
        return with(t -> {
            try (Memory.Frame frame = Memory.Frame.push()) {
                long[] found = sizes(Low.tw_tensor_count(t), dims);
                Memory.Room out = frame.room(8);
                check(Low.tw_tensor_reshape(t, frame.longs(found).address, found.length, out.address));
                return new Tensor(out.getLong(0));
            }
        });
    }

    /** The elements as text, as many as fit a line or two. */
    @Override
    public String toString() {
        return with(t -> {
            try (Memory.Frame frame = Memory.Frame.push()) {
                Memory.Room out = frame.room(8);
                check(Low.tw_tensor_text(t, 20, out.address));
                return new String(Memory.take(out.getLong(0)), StandardCharsets.UTF_8);
            }
        });
    }
}
