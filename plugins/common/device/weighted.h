/* Combines the rows of x that belong to one segment, each times a weight, into one row of y: like
 * segment.h, with a weight for each entry of `order`. T: the element type; W: the type of the
 * weights. */
KERNEL(add_weighted)(IN(T, x), IN(int64, order), IN(W, weights), IN(int64, starts), OUT(T, y), Size segments, Size inner) {
  BEGIN(x), BEGIN(order), BEGIN(weights), BEGIN(starts), BEGIN(y);
  FOR_EACH(i, segments * inner) {
    const Size s = i / inner, column = i - s * inner;
    COMPUTED(T) sum = 0;
    for (Size k = starts[s]; k < starts[s + 1]; ++k) sum += GET(T, x, order[k] * inner + column) * GET(W, weights, k);
    PUT(T, y, i, sum);
  }
}
