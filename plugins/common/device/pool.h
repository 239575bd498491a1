/* Pooling: the largest element or the mean under each window, and their gradients. Requires
 * window.h before it. A task handles COLUMNS neighbouring channels. */

/* y[window][c] = the largest element, or, if wanted, at[window][c] = its place in the image. NaN is
 * larger than all numbers. */
KERNEL(max_pool)(IN(T, x), OUT(T, y), OUT(int64, at), struct Window w, Size wanted) {
  BEGIN(x), BEGIN(y), BEGIN(at);
  const Size blocks = (w.channels + COLUMNS - 1) / COLUMNS;
  FOR_EACH(i, w.n * w.out_height * w.out_width * blocks) {
    const Size row = i / blocks, c0 = (i - row * blocks) * COLUMNS, line = row / w.out_width, ow = row - line * w.out_width,
               n = line / w.out_height, oh = line - n * w.out_height, count = w.channels - c0 < COLUMNS ? w.channels - c0 : COLUMNS;
    COMPUTED(T) best[COLUMNS];
    Size best_at[COLUMNS];
    for (Size c = 0; c < COLUMNS; ++c) best[c] = 0, best_at[c] = -1;
    for (Size fh = 0; fh < w.filter_height; ++fh) {
      const Size h = oh * w.stride_height + fh - w.before_height;
      if (h < 0 || h >= w.height) continue;
      for (Size fw = 0; fw < w.filter_width; ++fw) {
        const Size v = ow * w.stride_width + fw - w.before_width, here = h * w.width + v;
        if (v < 0 || v >= w.width) continue;
        GLOBAL const STORED(T)* from = x + ((n * w.height + h) * w.width + v) * w.channels + c0;
        for (Size c = 0; c < count; ++c) {
          const COMPUTED(T) e = GET(T, from, c);
          const int wins = best_at[c] < 0 || e > best[c] || (e != e && best[c] == best[c]);
          best[c] = wins ? e : best[c];
          best_at[c] = wins ? here : best_at[c];
        }
      }
    }
    const Size to = row * w.channels + c0;
    if (wanted) {
      for (Size c = 0; c < count; ++c) at[to + c] = best_at[c];
    } else {
      for (Size c = 0; c < count; ++c) PUT(T, y, to + c, best[c]);
    }
  }
}

/* dx: every element gets the gradients of the windows whose largest element it is. */
KERNEL(max_pool_grad)(IN(int64, at), IN(T, dy), OUT(T, dx), struct Window w) {
  BEGIN(at), BEGIN(dy), BEGIN(dx);
  const Size blocks = (w.channels + COLUMNS - 1) / COLUMNS;
  FOR_EACH(i, w.n * w.height * w.width * blocks) {
    const Size row = i / blocks, c0 = (i - row * blocks) * COLUMNS, line = row / w.width, v = row - line * w.width, n = line / w.height,
               h = line - n * w.height, here = h * w.width + v, count = w.channels - c0 < COLUMNS ? w.channels - c0 : COLUMNS;
    COMPUTED(T) sum[COLUMNS];
    for (Size c = 0; c < COLUMNS; ++c) sum[c] = 0;
    for (Size fh = w.filter_height - 1; fh >= 0; --fh) {
      const Size oh = window_of(h, fh, 1, w.before_height, w.stride_height, w.out_height);
      for (Size fw = w.filter_width - 1; oh >= 0 && fw >= 0; --fw) {
        const Size ow = window_of(v, fw, 1, w.before_width, w.stride_width, w.out_width);
        if (ow < 0) continue;
        const Size from = ((n * w.out_height + oh) * w.out_width + ow) * w.channels + c0;
        for (Size c = 0; c < count; ++c) {
          const COMPUTED(T) slope = GET(T, dy, from + c);
          sum[c] += at[from + c] == here ? slope : 0;
        }
      }
    }
    for (Size c = 0; c < count; ++c) PUT(T, dx, row * w.channels + c0 + c, sum[c]);
  }
}

/* y[window][c] = the element of x at the place of the window's largest one. */
KERNEL(max_pool_pick)(IN(int64, at), IN(T, x), OUT(T, y), struct Window w) {
  BEGIN(at), BEGIN(x), BEGIN(y);
  const Size windows = w.out_height * w.out_width * w.channels;
  FOR_EACH(i, w.n * windows) {
    const Size n = i / windows, c = i % w.channels;
    PUT(T, y, i, at[i] < 0 ? 0 : GET(T, x, (n * w.height * w.width + at[i]) * w.channels + c));
  }
}

/* Returns the number of places of window `o` that lie inside the image along one axis. */
FUNCTION Size inside(Size o, Size filter, Size stride, Size before, Size size) {
  const Size begin = o * stride - before, end = begin + filter;
  return (end < size ? end : size) - (begin > 0 ? begin : 0);
}

KERNEL(avg_pool)(IN(T, x), OUT(T, y), struct Window w) {
  BEGIN(x), BEGIN(y);
  const Size blocks = (w.channels + COLUMNS - 1) / COLUMNS;
  FOR_EACH(i, w.n * w.out_height * w.out_width * blocks) {
    const Size row = i / blocks, c0 = (i - row * blocks) * COLUMNS, line = row / w.out_width, ow = row - line * w.out_width,
               n = line / w.out_height, oh = line - n * w.out_height, count = w.channels - c0 < COLUMNS ? w.channels - c0 : COLUMNS;
    COMPUTED(T) sum[COLUMNS];
    for (Size c = 0; c < COLUMNS; ++c) sum[c] = 0;
    for (Size fh = 0; fh < w.filter_height; ++fh) {
      const Size h = oh * w.stride_height + fh - w.before_height;
      if (h < 0 || h >= w.height) continue;
      for (Size fw = 0; fw < w.filter_width; ++fw) {
        const Size v = ow * w.stride_width + fw - w.before_width;
        if (v < 0 || v >= w.width) continue;
        GLOBAL const STORED(T)* from = x + ((n * w.height + h) * w.width + v) * w.channels + c0;
        for (Size c = 0; c < count; ++c) sum[c] += GET(T, from, c);
      }
    }
    const Size places = inside(oh, w.filter_height, w.stride_height, w.before_height, w.height) *
                        inside(ow, w.filter_width, w.stride_width, w.before_width, w.width);
    for (Size c = 0; c < count; ++c) PUT(T, y, row * w.channels + c0 + c, sum[c] / (COMPUTED(T))places);
  }
}

KERNEL(avg_pool_grad)(IN(T, dy), OUT(T, dx), struct Window w) {
  BEGIN(dy), BEGIN(dx);
  const Size blocks = (w.channels + COLUMNS - 1) / COLUMNS;
  FOR_EACH(i, w.n * w.height * w.width * blocks) {
    const Size row = i / blocks, c0 = (i - row * blocks) * COLUMNS, line = row / w.width, v = row - line * w.width, n = line / w.height,
               h = line - n * w.height, count = w.channels - c0 < COLUMNS ? w.channels - c0 : COLUMNS;
    COMPUTED(T) sum[COLUMNS];
    for (Size c = 0; c < COLUMNS; ++c) sum[c] = 0;
    for (Size fh = w.filter_height - 1; fh >= 0; --fh) {
      const Size oh = window_of(h, fh, 1, w.before_height, w.stride_height, w.out_height);
      for (Size fw = w.filter_width - 1; oh >= 0 && fw >= 0; --fw) {
        const Size ow = window_of(v, fw, 1, w.before_width, w.stride_width, w.out_width);
        if (ow < 0) continue;
        const Size places = inside(oh, w.filter_height, w.stride_height, w.before_height, w.height) *
                            inside(ow, w.filter_width, w.stride_width, w.before_width, w.width);
        GLOBAL const STORED(T)* from = dy + ((n * w.out_height + oh) * w.out_width + ow) * w.channels + c0;
        for (Size c = 0; c < count; ++c) sum[c] += GET(T, from, c) / (COMPUTED(T))places;
      }
    }
    for (Size c = 0; c < count; ++c) PUT(T, dx, row * w.channels + c0 + c, sum[c]);
  }
}
