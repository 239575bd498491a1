package org.thalweg;

/** A measure over many batches. */
public record Metric(String name, Output value, Operation update, Operation reset) {}
