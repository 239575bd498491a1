package org.thalweg;

/** An attribute of an operation, by its name. The value is a number, boolean, String, DType, long[] (numbers or a shape), Tensor, or a list. */
public record Attr(String name, Object value) {
    public static Attr of(String name, Object value) {
        return new Attr(name, value);
    }

    /** The name of the operation. */
    public static Attr named(String name) {
        return new Attr("name", name);
    }
}
