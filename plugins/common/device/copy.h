/* Moves elements unchanged. T: a type of their size. */

/* y[...] = x[...]: rows of `inner` elements, located by the steps in both tensors; neighbours are
 * x_by and y_by apart. */
KERNEL(copy)(IN(T, x), OUT(T, y), Size n, Size inner, Size x_by, Size y_by, struct Axes axes, struct Steps x_steps, struct Steps y_steps) {
  BEGIN(x), BEGIN(y);
  FOR_RUNS(begin, end, n) {
    for (Size i = begin; i < end;) {
      const Size row = i / inner, first = i - row * inner, left = inner - first, count = left < end - i ? left : end - i;
      GLOBAL const STORED(T)* from = x + place(&axes, &x_steps, row) + first * x_by;
      GLOBAL STORED(T)* to = y + place(&axes, &y_steps, row) + first * y_by;
      if (x_by == 1 && y_by == 1) {
        INDEPENDENT
        for (Size k = 0; k < count; ++k) to[k] = from[k];
      } else {
        for (Size k = 0; k < count; ++k) to[k * y_by] = from[k * x_by];
      }
      i += count;
    }
  }
}

/* y[outer][k][inner] = x[outer][rows[k]][inner]; x has `n` rows. If the rows differ between
 * batches, there are `batches` lists. */
KERNEL(gather)(IN(T, x), IN(int64, rows), OUT(T, y), Size batches, Size outer, Size n, Size picked, Size inner) {
  BEGIN(x), BEGIN(rows), BEGIN(y);
  FOR_EACH(i, batches * outer * picked) {
    const Size block = i / picked, k = i - block * picked, batch = block / outer;
    GLOBAL const STORED(T)* from = x + (block * n + rows[batch * picked + k]) * inner;
    GLOBAL STORED(T)* to = y + i * inner;
    INDEPENDENT
    for (Size c = 0; c < inner; ++c) to[c] = from[c];
  }
}

/* y[outer][d][inner] = d == x[outer][inner] ? on : off */
KERNEL(one_hot)(IN(int64, x), IN(T, on), IN(T, off), OUT(T, y), Size outer, Size depth, Size inner) {
  BEGIN(x), BEGIN(on), BEGIN(off), BEGIN(y);
  FOR_EACH(i, outer * depth * inner) {
    const Size row = i / inner, block = row / depth;
    y[i] = x[block * inner + (i - row * inner)] == row - block * depth ? on[0] : off[0];
  }
}

/* y[i...] = x[i...] mirrored at its borders: along an axis, place p of y shows place p - before of
 * x, mirrored if that lies outside; `border` is 1 if the outermost element is repeated. */
KERNEL(mirror)(IN(T, x), OUT(T, y), Size n, struct Axes axes, struct Steps x_sizes, struct Steps before, Size border) {
  BEGIN(x), BEGIN(y);
  FOR_EACH(i, n) {
    Size rest = i, at = 0, step = 1;
    for (Size k = 0; k < axes.count; ++k) {
      const Size up = rest / axes.size[k], size = x_sizes.by[k];
      Size p = rest - up * axes.size[k] - before.by[k];
      p = p < 0 ? -p - border : p >= size ? 2 * size - 2 + border - p : p;
      at += p * step;
      step *= size;
      rest = up;
    }
    y[i] = x[at];
  }
}
