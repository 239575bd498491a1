package org.thalweg;

/** A value of a graph. */
public record Output(long id) {}
