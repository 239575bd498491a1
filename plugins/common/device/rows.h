/* Rows of numbers, one after the other: softmax and the cross-entropies. T: the element type.
 * A row whose labels or features are the same for all rows has step 0. */

FUNCTION COMPUTED(T) largest(GLOBAL const STORED(T) * x, Size n) {
  COMPUTED(T) most = GET(T, x, 0);
  for (Size k = 1; k < n; ++k) {
    const COMPUTED(T) v = GET(T, x, k);
    most = v > most || v != v ? v : most;
  }
  return most;
}

FUNCTION COMPUTED(T) exponentials(GLOBAL const STORED(T) * x, Size n, COMPUTED(T) most) {
  COMPUTED(T) sum = 0;
  for (Size k = 0; k < n; ++k) sum += exp(GET(T, x, k) - most);
  return sum;
}

KERNEL(softmax)(IN(T, x), OUT(T, y), Size rows, Size n, Size logarithm) {
  BEGIN(x), BEGIN(y);
  FOR_EACH(row, rows) {
    GLOBAL const STORED(T)* from = x + row * n;
    GLOBAL STORED(T)* to = y + row * n;
    const COMPUTED(T) most = largest(from, n), sum = exponentials(from, n, most), log_sum = log(sum);
    for (Size k = 0; k < n; ++k) {
      const COMPUTED(T) v = GET(T, from, k) - most;
      PUT(T, to, k, logarithm ? v - log_sum : exp(v) / sum);
    }
  }
}

/* loss = -sum(labels * log(softmax(x))), slope = softmax(x) - labels */
KERNEL(cross_entropy)(IN(T, x), Size x_row, Size x_column, IN(T, labels), Size labels_row, Size labels_column, OUT(T, loss), OUT(T, slope),
                      Size rows, Size n) {
  BEGIN(x), BEGIN(labels), BEGIN(loss), BEGIN(slope);
  FOR_EACH(row, rows) {
    GLOBAL const STORED(T)* from = x + row * x_row;
    GLOBAL const STORED(T)* wanted = labels + row * labels_row;
    COMPUTED(T) most = GET(T, from, 0), sum = 0, total = 0;
    for (Size k = 1; k < n; ++k) {
      const COMPUTED(T) v = GET(T, from, k * x_column);
      most = v > most || v != v ? v : most;
    }
    for (Size k = 0; k < n; ++k) sum += exp(GET(T, from, k * x_column) - most);
    const COMPUTED(T) log_sum = log(sum);
    for (Size k = 0; k < n; ++k) {
      const COMPUTED(T) v = GET(T, from, k * x_column) - most, label = GET(T, wanted, k * labels_column);
      total += label == 0 ? 0 : label * (log_sum - v);
      PUT(T, slope, row * n + k, exp(v) / sum - label);
    }
    PUT(T, loss, row, total);
  }
}

KERNEL(sparse_cross_entropy)(IN(T, x), IN(int64, labels), OUT(T, loss), OUT(T, slope), Size rows, Size n) {
  BEGIN(x), BEGIN(labels), BEGIN(loss), BEGIN(slope);
  FOR_EACH(row, rows) {
    GLOBAL const STORED(T)* from = x + row * n;
    const Size label = labels[row];
    const COMPUTED(T) most = largest(from, n), sum = exponentials(from, n, most);
    for (Size k = 0; k < n; ++k) PUT(T, slope, row * n + k, exp(GET(T, from, k) - most) / sum - (k == label ? 1 : 0));
    PUT(T, loss, row, log(sum) - (GET(T, from, label) - most));
  }
}
