/* y [m, n] = a [m, depth] times b [depth, n] for each matrix of a batch, whose places axes and steps tell. A step of a and b says how far
 * apart neighbours of a row or a column are, so that a transposed matrix is the same matrix with its steps exchanged. With `more`, the
 * product is added to y. T: the element type.
 *
 * A block of GROUP * GROUP threads computes a tile of y of GROUP * ROWS by GROUP * WIDTH elements; a thread has ROWS by WIDTH of them, GROUP
 * apart, so that neighbouring threads read and write neighbouring columns. Along `depth` the block goes in slices of TILE_K: it copies a
 * slice of a and of b to shared memory, waits, and multiplies. Each element of y is summed by one thread in one order. */
#define TILE_M (GROUP * ROWS)
#define TILE_N (GROUP * WIDTH)
#define ITEMS (GROUP * GROUP)
#define PITCH_A (TILE_M + 1) /* one more than a slice: what is written at once falls into different banks */

KERNEL(matmul)(IN(T, a), IN(T, b), OUT(T, y), Size m, Size n, Size depth, Size a_row_step, Size a_col_step, Size b_row_step, Size b_col_step,
               Size y_row_step, Size more, struct Axes batch, struct Steps a_steps, struct Steps b_steps, struct Steps y_steps) {
  SHARED(COMPUTED(T), a_tile, TILE_K * PITCH_A); /* [k][row] */
  SHARED(COMPUTED(T), b_tile, TILE_K * TILE_N);  /* [k][column] */
  PRIVATE(COMPUTED(T), sum, ROWS * WIDTH, ITEMS);
  Size matrices = 1;
  for (Size k = 0; k < batch.count; ++k) matrices *= batch.size[k];
  const Size col0 = BLOCK_X * TILE_N;
  for (Size matrix = BLOCK_Z; matrix < matrices; matrix += BLOCKS_Z) {
    const STORED(T)* a_from = a + a_at + place(&batch, &a_steps, matrix);
    const STORED(T)* b_from = b + b_at + place(&batch, &b_steps, matrix);
    STORED(T)* to = y + y_at + place(&batch, &y_steps, matrix);
    for (Size row0 = BLOCK_Y * TILE_M; row0 < m; row0 += BLOCKS_Y * TILE_M) {
      EACH_ITEM(item, ITEMS) {
        for (int e = 0; e < ROWS * WIDTH; ++e) OWN(sum, item, e) = 0;
      }
      for (Size k0 = 0; k0 < depth; k0 += TILE_K) {
        EACH_ITEM(item, ITEMS) {
          const bool by_row = a_col_step == 1; /* neighbouring threads read neighbouring elements */
          for (int e = item; e < TILE_M * TILE_K; e += ITEMS) {
            const int r = by_row ? e / TILE_K : e % TILE_M, k = by_row ? e % TILE_K : e / TILE_M;
            const bool inside = row0 + r < m && k0 + k < depth;
            a_tile[k * PITCH_A + r] = inside ? GET(T, a_from, (row0 + r) * a_row_step + (k0 + k) * a_col_step) : COMPUTED(T)(0);
          }
          for (int e = item; e < TILE_K * TILE_N; e += ITEMS) {
            const int k = b_col_step == 1 ? e / TILE_N : e % TILE_K, c = b_col_step == 1 ? e % TILE_N : e / TILE_K;
            const bool inside = k0 + k < depth && col0 + c < n;
            b_tile[k * TILE_N + c] = inside ? GET(T, b_from, (k0 + k) * b_row_step + (col0 + c) * b_col_step) : COMPUTED(T)(0);
          }
        }
        BARRIER;
        EACH_ITEM(item, ITEMS) {
          const int down = item / GROUP, across = item % GROUP;
          const int slice = depth - k0 < TILE_K ? int(depth - k0) : TILE_K; /* what lies beyond may be 0 times infinity */
          for (int k = 0; k < slice; ++k) {
            COMPUTED(T) left[ROWS], right[WIDTH];
            for (int r = 0; r < ROWS; ++r) left[r] = a_tile[k * PITCH_A + down + r * GROUP];
            for (int c = 0; c < WIDTH; ++c) right[c] = b_tile[k * TILE_N + across + c * GROUP];
            for (int r = 0; r < ROWS; ++r) {
              for (int c = 0; c < WIDTH; ++c) OWN(sum, item, r * WIDTH + c) += left[r] * right[c];
            }
          }
        }
        BARRIER;
      }
      EACH_ITEM(item, ITEMS) {
        for (int r = 0; r < ROWS; ++r) {
          for (int c = 0; c < WIDTH; ++c) {
            const Size i = row0 + item / GROUP + r * GROUP, j = col0 + item % GROUP + c * GROUP;
            if (i >= m || j >= n) continue;
            const COMPUTED(T) v = OWN(sum, item, r * WIDTH + c);
            PUT(T, to, i * y_row_step + j, more ? GET(T, to, i * y_row_step + j) + v : v);
          }
        }
      }
    }
  }
}
