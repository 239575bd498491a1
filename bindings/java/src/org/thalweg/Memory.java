package org.thalweg;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Memory of C. */
final class Memory {
    private Memory() {}

    static final int NEXT = 0, RESET = 1, AFTER_STEP = 2, EPOCH_END = 3, RELEASE = 4;

    static {
        Natives.load();
    }

    static native long allocate(long bytes);

    static native void free(long address);

    static native ByteBuffer buffer(long address, long bytes);

    static native long address(ByteBuffer direct);

    private static native byte[] text(long address);

    static native long keep(Object object);

    static native void forget(long user);

    static native long function(int what);

    /** A text of C; null for NULL. */
    static String string(long address) {
        byte[] bytes = text(address);
        return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
    }

    /** A text for C. One with a zero character would end early, and is refused. */
    static byte[] utf8(String text) {
        if (text == null) return null;
        if (text.indexOf('\0') >= 0) throw ThalwegException.invalid("'" + text.replace("\0", "\\0") + "' has a zero character");
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** An array as a list that may hold null, of which who uses it tells. */
    static <T> List<T> list(T[] values) {
        if (values == null) throw ThalwegException.invalid("a list is null; give an empty one");
        return Arrays.asList(values);
    }

    static ByteBuffer at(long address, long bytes) {
        return buffer(address, bytes).order(ByteOrder.nativeOrder());
    }

    /** The contents of a buffer of C, which is released. */
    static byte[] take(long buffer) {
        byte[] bytes = new byte[(int) Low.tw_buffer_bytes(buffer)];
        if (bytes.length > 0) at(Low.tw_buffer_data(buffer), bytes.length).get(bytes);
        Low.tw_buffer_release(buffer);
        return bytes;
    }

    /** Memory for the lists and records of one call, from a stack of the thread. */
    static final class Frame implements AutoCloseable {
        private static final int SIZE = 1 << 16;
        private static final ThreadLocal<Frame> STACK = ThreadLocal.withInitial(Frame::new);
        private final ByteBuffer room = ByteBuffer.allocateDirect(SIZE).order(ByteOrder.nativeOrder());
        private final long base = address(room);
        private final List<Integer> marks = new ArrayList<>();
        private final List<long[]> large = new ArrayList<>(); // {depth, address}
        private int top;

        static Frame push() {
            Frame frame = STACK.get();
            frame.marks.add(frame.top);
            return frame;
        }

        @Override
        public void close() {
            while (!large.isEmpty() && large.get(large.size() - 1)[0] == marks.size()) free(large.remove(large.size() - 1)[1]);
            top = marks.remove(marks.size() - 1);
        }

        /** Zeroed memory, aligned to 8 bytes. */
        Room room(int bytes) {
            int size = (Math.max(bytes, 1) + 7) & ~7;
            if (top + size > SIZE) {
                long address = allocate(size);
                large.add(new long[] {marks.size(), address});
                return new Room(at(address, size), 0, address);
            }
            for (int i = 0; i < size; i += 8) room.putLong(top + i, 0);
            Room found = new Room(room, top, base + top);
            top += size;
            return found;
        }

        Room longs(long... values) {
            Room room = room(8 * values.length);
            for (int i = 0; i < values.length; ++i) room.setLong(8 * i, values[i]);
            return room;
        }

        long ints(int... values) {
            Room room = room(4 * values.length);
            for (int i = 0; i < values.length; ++i) room.setInt(4 * i, values[i]);
            return room.address;
        }

        long doubles(double... values) {
            Room room = room(8 * values.length);
            for (int i = 0; i < values.length; ++i) room.setDouble(8 * i, values[i]);
            return room.address;
        }

        long bytes(byte[] bytes) {
            Room room = room(bytes.length + 1);
            for (int i = 0; i < bytes.length; ++i) room.buffer.put(room.at + i, bytes[i]);
            return room.address;
        }

        /** A text; 0 for null. */
        long text(String text) {
            return text == null ? 0 : bytes(utf8(text));
        }

        long texts(List<String> all) {
            return longs(all.stream().mapToLong(one -> {
                if (one == null) throw ThalwegException.invalid("a text is null");
                return text(one);
            }).toArray()).address;
        }

        long outputs(List<Output> all) {
            if (all == null) throw ThalwegException.invalid("a list of values is null; give an empty one");
            return longs(all.stream().mapToLong(Scope::id).toArray()).address;
        }
    }

    /** A piece of memory. */
    static final class Room {
        private final ByteBuffer buffer;
        private final int at;
        final long address;

        Room(ByteBuffer buffer, int at, long address) {
            this.buffer = buffer;
            this.at = at;
            this.address = address;
        }

        Room setInt(int offset, int value) {
            buffer.putInt(at + offset, value);
            return this;
        }

        Room setLong(int offset, long value) {
            buffer.putLong(at + offset, value);
            return this;
        }

        Room setDouble(int offset, double value) {
            buffer.putDouble(at + offset, value);
            return this;
        }

        int getInt(int offset) {
            return buffer.getInt(at + offset);
        }

        long getLong(int offset) {
            return buffer.getLong(at + offset);
        }

        double getDouble(int offset) {
            return buffer.getDouble(at + offset);
        }
    }
}
