package org.thalweg;

/** A variable of a graph: its handle, its name in checkpoints, its type, and its sizes, of which -1 is unknown. */
public record Variable(Output handle, String name, DType dtype, long[] shape) {}
