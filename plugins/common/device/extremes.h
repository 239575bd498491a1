/* ArgMax and ArgMin: the position of the extreme along an axis; the first of equal elements, and
 * the first NaN before any number. T: the element type; R: the type of the positions; BEATS(a, b):
 * a is more extreme than b. */
KERNEL(arg_extreme)(IN(T, x), OUT(R, y), Size outer, Size n, Size inner) {
  BEGIN(x), BEGIN(y);
  FOR_EACH(i, outer * inner) {
    const Size row = i / inner;
    GLOBAL const STORED(T)* from = x + row * n * inner + (i - row * inner);
    COMPUTED(T) best = GET(T, from, 0);
    Size at = 0;
    for (Size k = 1; k < n; ++k) {
      const COMPUTED(T) v = GET(T, from, k * inner);
      if (!(BEATS(v, best) || (v != v && best == best))) continue;
      best = v;
      at = k;
    }
    PUT(R, y, i, (COMPUTED(R))at);
  }
}
