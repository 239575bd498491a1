#define LANES 16

/* Windows over images [n, height, width, channels], and the functions that use them. T: the element
 * type. */
struct Window {
  Size n, height, width, channels;  /* of the images */
  Size pitch;                       /* distance of neighbouring places: the channels, or more if these are a part of them */
  Size out_height, out_width;       /* number of windows */
  Size filter_height, filter_width; /* of a window */
  Size stride_height, stride_width;
  Size dilation_height, dilation_width;
  Size before_height, before_width; /* padding */
};

/* The column matrix: y[n, oh, ow][fh, fw, c] is the value under place (fh, fw) of window (oh, ow),
 * and 0 in the padding. Rows from `first` on. */
KERNEL(unfold)(IN(T, x), OUT(T, y), struct Window w, Size first, Size rows) {
  BEGIN(x), BEGIN(y);
  const Size taps = w.filter_height * w.filter_width;
  FOR_RUNS(begin, end, rows * taps) {
    const Size row = first + begin / taps, tap = begin % taps, line = row / w.out_width;
    Size fh = tap / w.filter_width, fw = tap - fh * w.filter_width, ow = row - line * w.out_width, n = line / w.out_height,
         oh = line - n * w.out_height;
    for (Size i = begin; i < end; ++i) {
      const Size h = oh * w.stride_height + fh * w.dilation_height - w.before_height;
      const Size v = ow * w.stride_width + fw * w.dilation_width - w.before_width;
      GLOBAL STORED(T)* to = y + i * w.channels;
      if (h >= 0 && h < w.height && v >= 0 && v < w.width) {
        GLOBAL const STORED(T)* from = x + ((n * w.height + h) * w.width + v) * w.pitch;
        INDEPENDENT
        for (Size c = 0; c < w.channels; ++c) PUT(T, to, c, GET(T, from, c));
      } else {
        for (Size c = 0; c < w.channels; ++c) PUT(T, to, c, 0);
      }
      if (++fw < w.filter_width) continue;
      fw = 0;
      if (++fh < w.filter_height) continue;
      fh = 0;
      if (++ow < w.out_width) continue;
      ow = 0;
      if (++oh < w.out_height) continue;
      oh = 0;
      ++n;
    }
  }
}

/* Returns the window that has image place `p` under its place `tap` along one axis; -1 if there is
 * none. */
FUNCTION Size window_of(Size p, Size tap, Size dilation, Size before, Size stride, Size windows) {
  const Size from = p + before - tap * dilation, at = from / stride;
  return from >= 0 && at * stride == from && at < windows ? at : -1;
}

/* The reverse, for the images from `first` on: every element sums its values in the windows that
 * cover it. */
KERNEL(fold)(IN(T, y), OUT(T, x), struct Window w, Size first, Size images) {
  BEGIN(y), BEGIN(x);
  FOR_EACH(i, images * w.height * w.width) {
    const Size line = i / w.width, v = i - line * w.width, n = line / w.height, h = line - n * w.height;
    GLOBAL STORED(T)* to = x + (first * w.height * w.width + i) * w.pitch;
    for (Size c0 = 0; c0 < w.channels; c0 += LANES) {
      const Size count = w.channels - c0 < LANES ? w.channels - c0 : LANES;
      COMPUTED(T) sum[LANES];
      for (Size c = 0; c < LANES; ++c) sum[c] = 0;
      for (Size fh = 0; fh < w.filter_height; ++fh) {
        const Size oh = window_of(h, fh, w.dilation_height, w.before_height, w.stride_height, w.out_height);
        for (Size fw = 0; oh >= 0 && fw < w.filter_width; ++fw) {
          const Size ow = window_of(v, fw, w.dilation_width, w.before_width, w.stride_width, w.out_width);
          if (ow < 0) continue;
          const Size row = ((n * w.out_height + oh) * w.out_width + ow) * w.filter_height * w.filter_width + fh * w.filter_width + fw;
          for (Size c = 0; c < count; ++c) sum[c] += GET(T, y, row * w.channels + c0 + c);
        }
      }
      for (Size c = 0; c < count; ++c) PUT(T, to, c0 + c, sum[c]);
    }
  }
}
