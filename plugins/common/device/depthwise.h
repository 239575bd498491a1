/* Convolution of each channel with `per` filters of its own: filter [fh, fw, channels, per], y [n,
 * oh, ow, channels * per]. Requires window.h before it. */

KERNEL(depthwise)(IN(T, x), IN(T, filter), OUT(T, y), struct Window w, Size per) {
  BEGIN(x), BEGIN(filter), BEGIN(y);
  const Size out = w.channels * per;
  FOR_EACH(i, w.n * w.out_height * w.out_width * out) {
    const Size row = i / out, o = i - row * out, c = o / per, line = row / w.out_width, ow = row - line * w.out_width,
               n = line / w.out_height, oh = line - n * w.out_height;
    COMPUTED(T) sum = 0;
    for (Size fh = 0; fh < w.filter_height; ++fh) {
      const Size h = oh * w.stride_height + fh * w.dilation_height - w.before_height;
      if (h < 0 || h >= w.height) continue;
      for (Size fw = 0; fw < w.filter_width; ++fw) {
        const Size v = ow * w.stride_width + fw * w.dilation_width - w.before_width;
        if (v < 0 || v >= w.width) continue;
        sum += GET(T, x, ((n * w.height + h) * w.width + v) * w.channels + c) * GET(T, filter, (fh * w.filter_width + fw) * out + o);
      }
    }
    PUT(T, y, i, sum);
  }
}

KERNEL(depthwise_input)(IN(T, dy), IN(T, filter), OUT(T, dx), struct Window w, Size per) {
  BEGIN(dy), BEGIN(filter), BEGIN(dx);
  const Size out = w.channels * per;
  FOR_EACH(i, w.n * w.height * w.width * w.channels) {
    const Size row = i / w.channels, c = i - row * w.channels, line = row / w.width, v = row - line * w.width, n = line / w.height,
               h = line - n * w.height;
    COMPUTED(T) sum = 0;
    for (Size fh = 0; fh < w.filter_height; ++fh) {
      const Size oh = window_of(h, fh, w.dilation_height, w.before_height, w.stride_height, w.out_height);
      for (Size fw = 0; oh >= 0 && fw < w.filter_width; ++fw) {
        const Size ow = window_of(v, fw, w.dilation_width, w.before_width, w.stride_width, w.out_width);
        for (Size m = c * per; ow >= 0 && m < c * per + per; ++m)
          sum += GET(T, dy, ((n * w.out_height + oh) * w.out_width + ow) * out + m) * GET(T, filter, (fh * w.filter_width + fw) * out + m);
      }
    }
    PUT(T, dx, i, sum);
  }
}

KERNEL(depthwise_filter)(IN(T, x), IN(T, dy), OUT(T, df), struct Window w, Size per) {
  BEGIN(x), BEGIN(dy), BEGIN(df);
  const Size out = w.channels * per;
  FOR_EACH(i, w.filter_height * w.filter_width * out) {
    const Size tap = i / out, o = i - tap * out, c = o / per, fh = tap / w.filter_width, fw = tap - fh * w.filter_width;
    COMPUTED(T) sum = 0;
    for (Size n = 0; n < w.n; ++n) {
      for (Size oh = 0; oh < w.out_height; ++oh) {
        const Size h = oh * w.stride_height + fh * w.dilation_height - w.before_height;
        for (Size ow = 0; h >= 0 && h < w.height && ow < w.out_width; ++ow) {
          const Size v = ow * w.stride_width + fw * w.dilation_width - w.before_width;
          if (v < 0 || v >= w.width) continue;
          sum += GET(T, x, ((n * w.height + h) * w.width + v) * w.channels + c) *
                 GET(T, dy, ((n * w.out_height + oh) * w.out_width + ow) * out + o);
        }
      }
    }
    PUT(T, df, i, sum);
  }
}
