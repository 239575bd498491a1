/* y [rows, n] = a sparse matrix times b. The elements of the sparse matrix are listed by row: row r
 * has the elements k from starts[r] up to starts[r + 1]; element k is values[order[k]], in column
 * at[k]. Elements of b are `row` and `column` apart. T: the element type. Each row is summed in the
 * order of its elements. */
KERNEL(sparse_product)(IN(T, values), IN(int64, order), IN(int64, at), IN(int64, starts), IN(T, b), OUT(T, y), Size rows, Size n, Size row,
                       Size column) {
  BEGIN(values), BEGIN(order), BEGIN(at), BEGIN(starts), BEGIN(b), BEGIN(y);
  const Size blocks = (n + COLUMNS - 1) / COLUMNS;
  FOR_EACH(task, rows * blocks) {
    const Size r = task / blocks, first = (task - r * blocks) * COLUMNS, count = n - first < COLUMNS ? n - first : COLUMNS;
    WRAPPING(T) lane[COLUMNS];
    for (Size l = 0; l < count; ++l) lane[l] = 0;
    for (Size k = starts[r]; k < starts[r + 1]; ++k) {
      const WRAPPING(T) value = GET(T, values, order[k]);
      GLOBAL const STORED(T)* from = b + at[k] * row + first * column;
      for (Size l = 0; l < count; ++l) lane[l] += value * GET(T, from, l * column);
    }
    for (Size l = 0; l < count; ++l) PUT(T, y, r * n + first + l, lane[l]);
  }
}
