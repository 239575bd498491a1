/* Rows of `updates` into rows of y. `order` lists the updates by the row that they go to, in their own order within a row; segment s goes
 * to row rows[s] and has the updates from starts[s] up to starts[s + 1]. So a row belongs to one task, and equal rows have one order. T:
 * the element type; JOIN_TWO(a, b): what becomes of element a for update b. */
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
