/* Combines rows of `updates` into rows of y. `order` lists the updates by destination row, in their
 * own order within a row; segment s goes to row rows[s] and has the updates from starts[s] up to
 * starts[s + 1]. So one task owns each row, and updates of one row have a fixed order. T: the
 * element type; JOIN_TWO(a, b): element a after update b. */
KERNEL(scatter)(IN(T, updates), IN(int64, order), IN(int64, rows), IN(int64, starts), OUT(T, y), Size segments, Size inner) {
  BEGIN(updates), BEGIN(order), BEGIN(rows), BEGIN(starts), BEGIN(y);
  FOR_EACH(s, segments) {
    GLOBAL STORED(T)* to = y + rows[s] * inner;
    for (Size k = starts[s]; k < starts[s + 1]; ++k) {
      GLOBAL const STORED(T)* from = updates + order[k] * inner;
      INDEPENDENT
      for (Size c = 0; c < inner; ++c) {
        const COMPUTED(T) a = GET(T, to, c), b = GET(T, from, c);
        PUT(T, to, c, JOIN_TWO(a, b));
      }
    }
  }
}
