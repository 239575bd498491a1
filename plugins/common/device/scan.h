/* Running sums and products along an axis: x is [outer, n, inner]. T: the element type; FIRST and
 * JOIN_TWO(a, b) as in reduce.h. */
KERNEL(scan)(IN(T, x), OUT(T, y), Size outer, Size n, Size inner, Size exclusive, Size reverse) {
  BEGIN(x), BEGIN(y);
  FOR_EACH(i, outer * inner) {
    const Size row = i / inner, base = row * n * inner + (i - row * inner);
    COMPUTED(T) so_far = FIRST;
    for (Size k = 0; k < n; ++k) {
      const Size at = base + (reverse ? n - 1 - k : k) * inner;
      const COMPUTED(T) v = GET(T, x, at);
      if (exclusive) PUT(T, y, at, so_far);
      so_far = JOIN_TWO(so_far, v);
      if (!exclusive) PUT(T, y, at, so_far);
    }
  }
}
