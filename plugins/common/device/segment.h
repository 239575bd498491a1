/* Combines the rows of x that belong to one segment into one row of y. `order` lists the rows by
 * segment, in their own order within one; segment s of y has those from starts[s] up to starts[s +
 * 1], and is ALONE if there are none. T: the element type; FIRST, JOIN_TWO(a, b), LAST(v): as in
 * reduce.h, with `count` rows in the segment. */
KERNEL(segment)(IN(T, x), IN(int64, order), IN(int64, starts), OUT(T, y), Size segments, Size inner) {
  BEGIN(x), BEGIN(order), BEGIN(starts), BEGIN(y);
  const Size blocks = (inner + COLUMNS - 1) / COLUMNS;
  FOR_EACH(task, segments * blocks) {
    const Size s = task / blocks, column = (task - s * blocks) * COLUMNS, n = inner - column < COLUMNS ? inner - column : COLUMNS;
    const Size begin = starts[s], end = starts[s + 1], count = end - begin;
    GLOBAL STORED(T)* to = y + s * inner + column;
    if (count == 0) {
      for (Size l = 0; l < n; ++l) PUT(T, to, l, ALONE);
      continue;
    }
    COMPUTED(T) lane[COLUMNS];
    for (Size l = 0; l < n; ++l) lane[l] = FIRST;
    for (Size k = begin; k < end; ++k) {
      GLOBAL const STORED(T)* from = x + order[k] * inner + column;
      for (Size l = 0; l < n; ++l) lane[l] = JOIN_TWO(lane[l], GET(T, from, l));
    }
    for (Size l = 0; l < n; ++l) PUT(T, to, l, LAST(lane[l]));
  }
}
