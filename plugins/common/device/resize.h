/* Resizing of images [n, height, width, channels]. Lists give the sources of each output place
 * along an axis: (1 - weight) of low and weight of high. T: the element type of the images; R: that
 * of the results. */
KERNEL(bilinear)(IN(T, x), IN(int64, low_row), IN(int64, high_row), IN(float, weight_row), IN(int64, low_column), IN(int64, high_column),
                 IN(float, weight_column), OUT(float, y), Size n, Size height, Size width, Size channels, Size out_height, Size out_width) {
  BEGIN(x), BEGIN(low_row), BEGIN(high_row), BEGIN(weight_row), BEGIN(low_column), BEGIN(high_column), BEGIN(weight_column), BEGIN(y);
  FOR_EACH(i, n * out_height * out_width) {
    const Size line = i / out_width, ow = i - line * out_width, image = line / out_height, oh = line - image * out_height;
    GLOBAL const STORED(T)* above = x + (image * height + low_row[oh]) * width * channels;
    GLOBAL const STORED(T)* below = x + (image * height + high_row[oh]) * width * channels;
    const Size left = low_column[ow] * channels, right = high_column[ow] * channels;
    const float down = weight_row[oh], across = weight_column[ow];
    for (Size c = 0; c < channels; ++c) {
      const float a = (float)GET(T, above, left + c), b = (float)GET(T, above, right + c);
      const float d = (float)GET(T, below, left + c), e = (float)GET(T, below, right + c);
      const float top = a + (b - a) * across, bottom = d + (e - d) * across;
      y[i * channels + c] = top + (bottom - top) * down;
    }
  }
}

/* Returns the share of place p in a result. */
FUNCTION COMPUTED(T) share_of(Size p, Size low, Size high, float weight) {
  return (low == p ? 1 - (COMPUTED(T))weight : 0) + (high == p ? (COMPUTED(T))weight : 0);
}

/* dx of bilinear: each place gathers from the results [begin, end) of both axes in which it has a
 * share. */
KERNEL(bilinear_grad)(IN(float, dy), IN(int64, low_row), IN(int64, high_row), IN(float, weight_row), IN(int64, low_column),
                      IN(int64, high_column), IN(float, weight_column), IN(int64, begin_row), IN(int64, end_row), IN(int64, begin_column),
                      IN(int64, end_column), OUT(T, dx), Size n, Size height, Size width, Size channels, Size out_height, Size out_width) {
  BEGIN(dy), BEGIN(low_row), BEGIN(high_row), BEGIN(weight_row), BEGIN(low_column), BEGIN(high_column), BEGIN(weight_column);
  BEGIN(begin_row), BEGIN(end_row), BEGIN(begin_column), BEGIN(end_column), BEGIN(dx);
  FOR_EACH(i, n * height * width * channels) {
    const Size at = i / channels, c = i - at * channels, line = at / width, w = at - line * width, image = line / height,
               h = line - image * height;
    COMPUTED(T) sum = 0;
    for (Size oh = begin_row[h]; oh < end_row[h]; ++oh) {
      for (Size ow = begin_column[w]; ow < end_column[w]; ++ow) {
        const COMPUTED(T) share_here =
            share_of(h, low_row[oh], high_row[oh], weight_row[oh]) * share_of(w, low_column[ow], high_column[ow], weight_column[ow]);
        sum += (COMPUTED(T))dy[((image * out_height + oh) * out_width + ow) * channels + c] * share_here;
      }
    }
    PUT(T, dx, i, sum);
  }
}

/* dx of nearest-pixel selection: each place sums the results [begin, end) of both axes that show
 * it. */
KERNEL(nearest_grad)(IN(T, dy), IN(int64, begin_row), IN(int64, end_row), IN(int64, begin_column), IN(int64, end_column), OUT(T, dx),
                     Size n, Size height, Size width, Size channels, Size out_height, Size out_width) {
  BEGIN(dy), BEGIN(begin_row), BEGIN(end_row), BEGIN(begin_column), BEGIN(end_column), BEGIN(dx);
  FOR_EACH(i, n * height * width * channels) {
    const Size at = i / channels, c = i - at * channels, line = at / width, w = at - line * width, image = line / height,
               h = line - image * height;
    COMPUTED(T) sum = 0;
    for (Size oh = begin_row[h]; oh < end_row[h]; ++oh) {
      for (Size ow = begin_column[w]; ow < end_column[w]; ++ow)
        sum += GET(T, dy, ((image * out_height + oh) * out_width + ow) * channels + c);
    }
    PUT(T, dx, i, sum);
  }
}
