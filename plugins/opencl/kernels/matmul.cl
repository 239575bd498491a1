// y [m, n] = a [m, depth] times b [depth, n]. A step of a and b says how far apart neighbours of a row or a column are, so that a
// transposed matrix is the same matrix with its steps exchanged.
//
// A work-group computes a tile of y of GROUP * ROWS by GROUP * WIDTH elements, an item ROWS by WIDTH of them. Along `depth` the group goes
// in slices of TILE_K: it copies a slice of a and of b to local memory, waits, and multiplies. Each element of y is summed by one item in
// one order, whatever the device. The numbers come from the build options, see device.cc.
#define TILE_M (GROUP * ROWS)
#define TILE_N (GROUP * WIDTH)
#define ITEMS (GROUP * GROUP)
#define PITCH_A (TILE_K + 1) /* one more than a slice: the rows that a group reads at once fall into different banks */

#ifdef FP_FAST_FMAF
#define MULTIPLY_ADD(x, y, z) fma(x, y, z)
#else
#define MULTIPLY_ADD(x, y, z) ((x) * (y) + (z))
#endif

// tile[r * pitch + c] = x[r * row_step + c * col_step] for r < rows, c < cols; zero from rows_left and cols_left on, where x ends.
// Neighbouring items read neighbouring elements where x has them.
void fill(local float* tile, uint pitch, uint rows, uint cols, global const float* x, ulong row_step, ulong col_step, ulong rows_left,
          ulong cols_left, uint item) {
  if (col_step == 1 && rows_left >= rows && cols_left >= cols) {
    for (uint e = item * WIDTH; e < rows * cols; e += ITEMS * WIDTH) {
      const uint r = e / cols, c = e % cols;
      STORE_FLOATS(LOAD_FLOATS(0, x + r * row_step + c), 0, tile + r * pitch + c);
    }
  } else if (row_step == 1) {
    for (uint e = item; e < rows * cols; e += ITEMS) {
      const uint r = e % rows, c = e / rows;
      tile[r * pitch + c] = r < rows_left && c < cols_left ? x[r + c * col_step] : 0.0f;
    }
  } else {
    for (uint e = item; e < rows * cols; e += ITEMS) {
      const uint r = e / cols, c = e % cols;
      tile[r * pitch + c] = r < rows_left && c < cols_left ? x[r * row_step + c * col_step] : 0.0f;
    }
  }
}

kernel __attribute__((reqd_work_group_size(GROUP, GROUP, 1)))
void matmul(global const float* a, ulong a_at, global const float* b, ulong b_at, global float* y, ulong y_at, ulong m, ulong n,
            ulong depth, ulong a_row_step, ulong a_col_step, ulong b_row_step, ulong b_col_step) {
  local float a_tile[TILE_M * PITCH_A];
  local float b_tile[TILE_K * TILE_N];
  const uint x_item = get_local_id(0), y_item = get_local_id(1), item = y_item * GROUP + x_item;
  const ulong row0 = get_group_id(1) * TILE_M, col0 = get_group_id(0) * TILE_N;
  a += a_at + row0 * a_row_step;
  b += b_at + col0 * b_col_step;

  FLOATS sum[ROWS];
  for (uint r = 0; r < ROWS; ++r) sum[r] = 0.0f;
  for (ulong k0 = 0; k0 < depth; k0 += TILE_K) {
    fill(a_tile, PITCH_A, TILE_M, TILE_K, a + k0 * a_col_step, a_row_step, a_col_step, m - row0, depth - k0, item);
    fill(b_tile, TILE_N, TILE_K, TILE_N, b + k0 * b_row_step, b_row_step, b_col_step, depth - k0, n - col0, item);
    barrier(CLK_LOCAL_MEM_FENCE);
    FLOATS part[ROWS]; /* does not live across a barrier, so it stays in registers where a group is a loop on one core */
    for (uint r = 0; r < ROWS; ++r) part[r] = sum[r];
    for (uint k = 0; k < TILE_K; ++k) {
      const FLOATS right = LOAD_FLOATS(x_item, b_tile + k * TILE_N);
#pragma unroll
      for (uint r = 0; r < ROWS; ++r)
        part[r] = MULTIPLY_ADD((FLOATS)(a_tile[(y_item * ROWS + r) * PITCH_A + k]), right, part[r]);
    }
    for (uint r = 0; r < ROWS; ++r) sum[r] = part[r];
    barrier(CLK_LOCAL_MEM_FENCE);
  }

  const ulong j = col0 + x_item * WIDTH;
  for (uint r = 0; r < ROWS; ++r) {
    const ulong i = row0 + y_item * ROWS + r;
    if (i >= m || j >= n) break;
    global float* to = y + y_at + i * n + j;
    if (j + WIDTH <= n) {
      STORE_FLOATS(sum[r], 0, to);
    } else {
      float last[WIDTH];
      STORE_FLOATS(sum[r], 0, last);
      for (uint c = 0; j + c < n; ++c) to[c] = last[c];
    }
  }
}
