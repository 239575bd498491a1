// y [m, n] = a [m, depth] times b [depth, n] for each matrix of a batch, whose places axes and steps tell. A step of a and b says how far
// apart neighbours of a row or a column are, so that a transposed matrix is the same matrix with its steps exchanged. With `more`, the
// product is added to y. T: the element type; VECTOR: WIDTH of what it is computed in; DIRECT: both are the same type.
//
// A work-group computes a tile of y of GROUP * ROWS * PASSES by GROUP * WIDTH elements, an item ROWS by WIDTH of them in each pass. Along
// `depth` the group goes in slices of TILE_K: it copies a slice of a and of b to local memory, waits, and multiplies; the slice of b serves
// all passes. Each element of y is summed by one item in one order, whatever the device.
#define C COMPUTED(T)
#define TILE_M (GROUP * ROWS * PASSES)
#define TILE_N (GROUP * WIDTH)
#define ITEMS (GROUP * GROUP)
#define PITCH_A (TILE_K + 1) /* one more than a slice: the rows that a group reads at once fall into different banks */
#define LOAD_VECTOR JOIN(vload, WIDTH)
#define STORE_VECTOR JOIN(vstore, WIDTH)

#if defined REAL && defined FP_FAST_FMAF
#define MULTIPLY_ADD(x, y, z) fma(x, y, z)
#else
#define MULTIPLY_ADD(x, y, z) ((x) * (y) + (z))
#endif

// tile[r * pitch + c] = x[r * row_step + c * col_step] for r < rows, c < cols; zero from rows_left and cols_left on, where x ends.
// Neighbouring items read neighbouring elements where x has them.
FUNCTION void fill(local C* tile, uint pitch, uint rows, uint cols, GLOBAL const STORED(T) * x, Size row_step, Size col_step,
                   Size rows_left, Size cols_left, uint item) {
#ifdef DIRECT
  if (col_step == 1 && rows_left >= rows && cols_left >= cols && cols % WIDTH == 0) {
    for (uint e = item * WIDTH; e < rows * cols; e += ITEMS * WIDTH) {
      const uint r = e / cols, c = e % cols;
      STORE_VECTOR(LOAD_VECTOR(0, x + r * row_step + c), 0, tile + r * pitch + c);
    }
    return;
  }
#endif
  if (row_step == 1) {
    for (uint e = item; e < rows * cols; e += ITEMS) {
      const uint r = e % rows, c = e / rows;
      tile[r * pitch + c] = r < rows_left && c < cols_left ? GET(T, x, r + c * col_step) : 0;
    }
  } else {
    for (uint e = item; e < rows * cols; e += ITEMS) {
      const uint r = e / cols, c = e % cols;
      tile[r * pitch + c] = r < rows_left && c < cols_left ? GET(T, x, r * row_step + c * col_step) : 0;
    }
  }
}

kernel __attribute__((reqd_work_group_size(GROUP, GROUP, 1))) void matmul(IN(T, a), IN(T, b), OUT(T, y), Size m, Size n, Size depth,
                                                                          Size a_row_step, Size a_col_step, Size b_row_step,
                                                                          Size b_col_step, Size y_row_step, Size more, struct Axes batch,
                                                                          struct Steps a_steps, struct Steps b_steps,
                                                                          struct Steps y_steps) {
  local C a_tile[TILE_M * PITCH_A];
  local C b_tile[TILE_K * TILE_N];
  const uint x_item = get_local_id(0), y_item = get_local_id(1), item = y_item * GROUP + x_item;
  const Size row0 = get_group_id(1) * TILE_M, col0 = get_group_id(0) * TILE_N, matrix = get_global_id(2);
  a += a_at + place(&batch, &a_steps, matrix) + row0 * a_row_step;
  b += b_at + place(&batch, &b_steps, matrix) + col0 * b_col_step;
  y += y_at + place(&batch, &y_steps, matrix);

  VECTOR sum[ROWS * PASSES];
  for (uint r = 0; r < ROWS * PASSES; ++r) sum[r] = (VECTOR)(0);
  for (Size k0 = 0; k0 < depth; k0 += TILE_K) {
    const uint slice = depth - k0 < TILE_K ? (uint)(depth - k0) : TILE_K;
    if (slice == TILE_K) {
      fill(a_tile, PITCH_A, TILE_M, TILE_K, a + k0 * a_col_step, a_row_step, a_col_step, m - row0, depth - k0, item);
      fill(b_tile, TILE_N, TILE_K, TILE_N, b + k0 * b_row_step, b_row_step, b_col_step, depth - k0, n - col0, item);
    } else { /* no more than there is */
      fill(a_tile, PITCH_A, TILE_M, slice, a + k0 * a_col_step, a_row_step, a_col_step, m - row0, depth - k0, item);
      fill(b_tile, TILE_N, slice, TILE_N, b + k0 * b_row_step, b_row_step, b_col_step, depth - k0, n - col0, item);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint pass = 0; pass < PASSES && row0 + pass * GROUP * ROWS < m; ++pass) {
      VECTOR part[ROWS]; /* does not live across a barrier, so it stays in registers where a group is a loop on one core */
      for (uint r = 0; r < ROWS; ++r) part[r] = sum[pass * ROWS + r];
      const local C* left = a_tile + (pass * GROUP + y_item) * ROWS * PITCH_A;
      for (uint k = 0; k < slice; ++k) {
        const VECTOR right = LOAD_VECTOR(x_item, b_tile + k * TILE_N);
#pragma unroll
        for (uint r = 0; r < ROWS; ++r) part[r] = MULTIPLY_ADD((VECTOR)(left[r * PITCH_A + k]), right, part[r]);
      }
      for (uint r = 0; r < ROWS; ++r) sum[pass * ROWS + r] = part[r];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }

  const Size j = col0 + x_item * WIDTH;
  for (uint r = 0; r < ROWS * PASSES; ++r) {
    const Size i = row0 + (r / ROWS * GROUP + y_item) * ROWS + r % ROWS;
    if (i >= m || j >= n) break;
    GLOBAL STORED(T)* to = y + i * y_row_step + j;
#ifdef DIRECT
    if (j + WIDTH <= n) {
      STORE_VECTOR(more ? LOAD_VECTOR(0, to) + sum[r] : sum[r], 0, to);
      continue;
    }
#endif
    C last[WIDTH];
    STORE_VECTOR(sum[r], 0, last);
    for (uint c = 0; c < WIDTH && j + c < n; ++c) PUT(T, to, c, more ? GET(T, to, c) + last[c] : last[c]);
  }
}
