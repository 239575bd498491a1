/* Pooling: the largest element or the mean under each window, and their gradients. Comes after window.h. */

/* y[window][c] = the largest element; at[window][c], if wanted, its place in the image. NaN is larger than all numbers. */
KERNEL(max_pool)(IN(T, x), OUT(T, y), OUT(int64, at), struct Window w, Size wanted) {
  BEGIN(x), BEGIN(y), BEGIN(at);
  FOR_EACH(i, w.n * w.out_height * w.out_width * w.channels) {
    const Size row = i / w.channels, c = i - row * w.channels, line = row / w.out_width, ow = row - line * w.out_width,
               n = line / w.out_height, oh = line - n * w.out_height;
    COMPUTED(T) best = 0;
    Size best_at = -1;
    for (Size fh = 0; fh < w.filter_height; ++fh) {
      const Size h = oh * w.stride_height + fh - w.before_height;
      if (h < 0 || h >= w.height) continue;
      for (Size fw = 0; fw < w.filter_width; ++fw) {
        const Size v = ow * w.stride_width + fw - w.before_width;
        if (v < 0 || v >= w.width) continue;
        const COMPUTED(T) e = GET(T, x, ((n * w.height + h) * w.width + v) * w.channels + c);
        if (best_at >= 0 && !(e > best || (e != e && best == best))) continue;
        best = e;
        best_at = h * w.width + v;
      }
    }
    if (wanted)
      at[i] = best_at;
    else
      PUT(T, y, i, best);
  }
}

/* dx: every element gets what arrives at the windows whose largest element it is. */
KERNEL(max_pool_grad)(IN(int64, at), IN(T, dy), OUT(T, dx), struct Window w) {
  BEGIN(at), BEGIN(dy), BEGIN(dx);
  FOR_EACH(i, w.n * w.height * w.width * w.channels) {
    const Size row = i / w.channels, c = i - row * w.channels, line = row / w.width, v = row - line * w.width, n = line / w.height,
               h = line - n * w.height;
    COMPUTED(T) sum = 0;
    for (Size fh = w.filter_height - 1; fh >= 0; --fh) {
      const Size oh = window_of(h, fh, 1, w.before_height, w.stride_height, w.out_height);
      for (Size fw = w.filter_width - 1; oh >= 0 && fw >= 0; --fw) {
        const Size ow = window_of(v, fw, 1, w.before_width, w.stride_width, w.out_width);
        if (ow < 0) continue;
        const Size from = ((n * w.out_height + oh) * w.out_width + ow) * w.channels + c;
        if (at[from] == h * w.width + v) sum += GET(T, dy, from);
      }
    }
    PUT(T, dx, i, sum);
  }
}

/* How many places of window `o` lie inside the image along one axis. */
FUNCTION Size inside(Size o, Size filter, Size stride, Size before, Size size) {
  const Size begin = o * stride - before, end = begin + filter;
  return (end < size ? end : size) - (begin > 0 ? begin : 0);
}

KERNEL(avg_pool)(IN(T, x), OUT(T, y), struct Window w) {
  BEGIN(x), BEGIN(y);
  FOR_EACH(i, w.n * w.out_height * w.out_width * w.channels) {
    const Size row = i / w.channels, c = i - row * w.channels, line = row / w.out_width, ow = row - line * w.out_width,
               n = line / w.out_height, oh = line - n * w.out_height;
    COMPUTED(T) sum = 0;
    for (Size fh = 0; fh < w.filter_height; ++fh) {
      const Size h = oh * w.stride_height + fh - w.before_height;
      if (h < 0 || h >= w.height) continue;
      for (Size fw = 0; fw < w.filter_width; ++fw) {
        const Size v = ow * w.stride_width + fw - w.before_width;
        if (v >= 0 && v < w.width) sum += GET(T, x, ((n * w.height + h) * w.width + v) * w.channels + c);
      }
    }
    const Size count = inside(oh, w.filter_height, w.stride_height, w.before_height, w.height) *
                       inside(ow, w.filter_width, w.stride_width, w.before_width, w.width);
    PUT(T, y, i, sum / (COMPUTED(T))count);
  }
}

KERNEL(avg_pool_grad)(IN(T, dy), OUT(T, dx), struct Window w) {
  BEGIN(dy), BEGIN(dx);
  FOR_EACH(i, w.n * w.height * w.width * w.channels) {
    const Size row = i / w.channels, c = i - row * w.channels, line = row / w.width, v = row - line * w.width, n = line / w.height,
               h = line - n * w.height;
    COMPUTED(T) sum = 0;
    for (Size fh = w.filter_height - 1; fh >= 0; --fh) {
      const Size oh = window_of(h, fh, 1, w.before_height, w.stride_height, w.out_height);
      for (Size fw = w.filter_width - 1; oh >= 0 && fw >= 0; --fw) {
        const Size ow = window_of(v, fw, 1, w.before_width, w.stride_width, w.out_width);
        if (ow < 0) continue;
        const Size count = inside(oh, w.filter_height, w.stride_height, w.before_height, w.height) *
                           inside(ow, w.filter_width, w.stride_width, w.before_width, w.width);
        sum += GET(T, dy, ((n * w.out_height + oh) * w.out_width + ow) * w.channels + c) / (COMPUTED(T))count;
      }
    }
    PUT(T, dx, i, sum);
  }
}
