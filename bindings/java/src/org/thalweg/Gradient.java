package org.thalweg;

/** The gradient for one value: {@code values} has its shape, or, if {@code rows} is not 0, the gradients of those rows. */
public record Gradient(Output values, Output rows) {}
