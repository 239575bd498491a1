/* Windows over volumes [n, depth, height, width, channels], like those over images in window.h,
 * which it requires before it. T: the element type. */
struct Volume {
  Size n, size[3], channels; /* size: depth, height and width */
  Size out[3];               /* number of windows */
  Size filter[3];            /* of a window */
  Size stride[3], dilation[3];
  Size before[3]; /* padding */
};

/* The column matrix: row (n, od, oh, ow) holds for each place of the filter the channels under it,
 * and 0 in the padding. Rows from `first` on. */
KERNEL(unfold_volume)(IN(T, x), OUT(T, y), struct Volume w, Size first, Size rows) {
  BEGIN(x), BEGIN(y);
  const Size taps = w.filter[0] * w.filter[1] * w.filter[2];
  FOR_EACH(i, rows * taps) {
    Size row = first + i / taps, tap = i % taps, at = 0, step = 1, inside = 1;
    for (Size k = 2; k >= 0; --k) {
      const Size p = row % w.out[k] * w.stride[k] + tap % w.filter[k] * w.dilation[k] - w.before[k];
      inside = inside && p >= 0 && p < w.size[k];
      at += p * step;
      step *= w.size[k];
      row /= w.out[k];
      tap /= w.filter[k];
    }
    GLOBAL STORED(T)* to = y + i * w.channels;
    if (inside) {
      GLOBAL const STORED(T)* from = x + (row * step + at) * w.channels;
      INDEPENDENT
      for (Size c = 0; c < w.channels; ++c) PUT(T, to, c, GET(T, from, c));
    } else {
      for (Size c = 0; c < w.channels; ++c) PUT(T, to, c, 0);
    }
  }
}

/* Returns the window along axis k that has place p under its place `tap`; -1 if there is none. */
FUNCTION Size volume_window(const struct Volume* w, Size k, Size p, Size tap) {
  return window_of(p, tap, w->dilation[k], w->before[k], w->stride[k], w->out[k]);
}

/* The reverse, for the volumes from `first` on: every element sums its values in the windows that
 * cover it. */
KERNEL(fold_volume)(IN(T, y), OUT(T, x), struct Volume w, Size first, Size volumes) {
  BEGIN(y), BEGIN(x);
  const Size points = w.size[0] * w.size[1] * w.size[2];
  FOR_EACH(i, volumes * points) {
    const Size plane = i / w.size[2], v = i - plane * w.size[2], h = plane % w.size[1], d = plane / w.size[1] % w.size[0], n = i / points;
    GLOBAL STORED(T)* to = x + (first * points + i) * w.channels;
    for (Size c0 = 0; c0 < w.channels; c0 += LANES) {
      const Size count = w.channels - c0 < LANES ? w.channels - c0 : LANES;
      COMPUTED(T) sum[LANES];
      for (Size c = 0; c < LANES; ++c) sum[c] = 0;
      for (Size tap = 0; tap < w.filter[0] * w.filter[1] * w.filter[2]; ++tap) {
        const Size line = tap / w.filter[2];
        const Size od = volume_window(&w, 0, d, line / w.filter[1]), oh = volume_window(&w, 1, h, line % w.filter[1]),
                   ow = volume_window(&w, 2, v, tap % w.filter[2]);
        if (od < 0 || oh < 0 || ow < 0) continue;
        const Size row = ((n * w.out[0] + od) * w.out[1] + oh) * w.out[2] + ow;
        GLOBAL const STORED(T)* from = y + (row * w.filter[0] * w.filter[1] * w.filter[2] + tap) * w.channels + c0;
        for (Size c = 0; c < count; ++c) sum[c] += GET(T, from, c);
      }
      for (Size c = 0; c < count; ++c) PUT(T, to, c0 + c, sum[c]);
    }
  }
}
