/* Attention over rows of scores. T: the element type of tensors; W: the type of the scores, in
 * which everything is computed; U: the type of the returned logarithms. Row r of a piece is row
 * first + r of all rows, and holds the scores of query (first + r) % queries. */

KERNEL(widen)(IN(T, x), OUT(W, y), Size n) {
  BEGIN(x), BEGIN(y);
  FOR_EACH(i, n) { PUT(W, y, i, GET(T, x, i)); }
}

KERNEL(narrow)(IN(W, x), OUT(T, y), Size n) {
  BEGIN(x), BEGIN(y);
  FOR_EACH(i, n) { PUT(T, y, i, GET(W, x, i)); }
}

/* Returns the number of keys that the query sees. */
FUNCTION Size seen_by(Size row, Size queries, Size keys, Size causal) {
  const Size query = row % queries;
  return causal && query + 1 < keys ? query + 1 : keys;
}

/* Adds the scores s scale + bias of the keys begin, begin + step, ... before end to *most, the
 * largest score so far, and *sum, the sum of exp(score - *most). */
FUNCTION void take_in(GLOBAL const STORED(W) * s, GLOBAL const STORED(T) * bias, Size begin, Size end, Size step, COMPUTED(W) scale,
                      Size biased, Size column, COMPUTED(W) * most, COMPUTED(W) * sum) {
  for (Size k = begin; k < end; k += step) {
    COMPUTED(W) v = GET(W, s, k) * scale;
    if (biased) v += GET(T, bias, k * column);
    if (v > *most) {
      *sum = *sum * exp(*most - v) + exp(v - v);
      *most = v;
    } else if (v != -INFINITY) {
      *sum += exp(v - *most);
    }
  }
}

/* Computes for each row of scores, s scale + bias (the steps locate a row's bias, whose neighbours
 * are `column` apart): sums = log(sum(exp(score))), and parts, from which shares are computed
 * without losing the sum's digits beside large scores: the largest score of all rows, then 1 /
 * sum(exp(score - largest)) of all rows. A row that sees no key has -infinity and 0. */
KERNEL(logarithms)(IN(W, s), IN(T, bias), OUT(U, sums), OUT(W, parts), Size first, Size rows, Size queries, Size keys, COMPUTED(W) scale,
                   Size causal, Size biased, Size column, struct Axes axes, struct Steps steps) {
  BEGIN(s), BEGIN(bias), BEGIN(sums), BEGIN(parts);
  FOR_EACH(row, rows) {
    GLOBAL const STORED(T)* more = bias + (biased ? place(&axes, &steps, first + row) : 0);
    COMPUTED(W) most = -INFINITY, sum = 0;
    take_in(s + row * keys, more, 0, seen_by(first + row, queries, keys, causal), 1, scale, biased, column, &most, &sum);
    PUT(U, sums, row, sum == 0 ? -INFINITY : most + log(sum));
    PUT(W, parts, row, sum == sum ? most : sum);
    PUT(W, parts, rows + row, sum == 0 ? 0 : 1 / sum);
  }
}

/* The same for long rows: first the largest score and the sum of each of the `pieces` of a row, one
 * after the other, then their combination. A piece has `length` keys, `step` apart; the keys of the
 * next piece begin after it, or in between. */
KERNEL(piece_sums)(IN(W, s), IN(T, bias), OUT(W, found), Size pieces, Size length, Size step, Size first, Size rows, Size queries,
                   Size keys, COMPUTED(W) scale, Size causal, Size biased, Size column, struct Axes axes, struct Steps steps) {
  BEGIN(s), BEGIN(bias), BEGIN(found);
  FOR_EACH(task, rows * pieces) {
    const Size row = task / pieces, piece = task - row * pieces, seen = seen_by(first + row, queries, keys, causal);
    const Size begin = step == 1 ? piece * length : piece, behind = begin + length * step, end = behind < seen ? behind : seen;
    GLOBAL const STORED(T)* more = bias + (biased ? place(&axes, &steps, first + row) : 0);
    COMPUTED(W) most = -INFINITY, sum = 0;
    take_in(s + row * keys, more, begin, end, step, scale, biased, column, &most, &sum);
    PUT(W, found, 2 * task, most);
    PUT(W, found, 2 * task + 1, sum);
  }
}

KERNEL(join_pieces)(IN(W, found), OUT(U, sums), OUT(W, parts), Size pieces, Size rows) {
  BEGIN(found), BEGIN(sums), BEGIN(parts);
  FOR_EACH(row, rows) {
    COMPUTED(W) most = -INFINITY, sum = 0;
    for (Size piece = row * pieces; piece < (row + 1) * pieces; ++piece) {
      const COMPUTED(W) v = GET(W, found, 2 * piece), more = GET(W, found, 2 * piece + 1);
      if (v > most) {
        sum = sum * exp(most - v) + more;
        most = v;
      } else if (more != 0) {
        sum += more * exp(v - most);
      }
    }
    PUT(U, sums, row, sum == 0 ? -INFINITY : most + log(sum));
    PUT(W, parts, row, sum == sum ? most : sum);
    PUT(W, parts, rows + row, sum == 0 ? 0 : 1 / sum);
  }
}

/* s = exp(s scale + bias - shift), times the row's factor, if there are factors (stored after the
 * shifts of all rows); 0 for keys that are not seen. */
KERNEL(shares)(OUT(W, s), IN(T, bias), IN(W, shifts), Size factors, Size first, Size rows, Size queries, Size keys, COMPUTED(W) scale,
               Size causal, Size biased, Size column, struct Axes axes, struct Steps steps) {
  BEGIN(s), BEGIN(bias), BEGIN(shifts);
  FOR_EACH(i, rows * keys) {
    const Size row = i / keys, k = i - row * keys;
    const COMPUTED(W) shift = GET(W, shifts, row);
    COMPUTED(W) v = GET(W, s, i) * scale;
    if (biased) v += GET(T, bias + place(&axes, &steps, first + row), k * column);
    v = k < seen_by(first + row, queries, keys, causal) && shift != -INFINITY ? exp(v - shift) : 0;
    if (factors) v *= GET(W, shifts, rows + row);
    PUT(W, s, i, v);
  }
}

/* y = 0 in rows that see no key (those with factor 0), whatever the values are. */
KERNEL(clear_unseen)(IN(W, factors), OUT(W, y), Size rows, Size n) {
  BEGIN(factors), BEGIN(y);
  FOR_EACH(row, rows) {
    if (GET(W, factors, row) == 0)
      for (Size k = row * n; k < (row + 1) * n; ++k) PUT(W, y, k, 0);
  }
}

/* dots = sum(x y) of each row */
KERNEL(row_dots)(IN(T, x), IN(T, y), OUT(W, dots), Size rows, Size n) {
  BEGIN(x), BEGIN(y), BEGIN(dots);
  FOR_EACH(row, rows) {
    COMPUTED(W) sum = 0;
    for (Size k = row * n; k < (row + 1) * n; ++k) sum += GET(T, x, k) * GET(T, y, k);
    PUT(W, dots, row, sum);
  }
}

/* to = scale p (to - dots) */
KERNEL(slopes)(IN(W, p), IN(W, dots), OUT(W, to), Size rows, Size keys, COMPUTED(W) scale) {
  BEGIN(p), BEGIN(dots), BEGIN(to);
  FOR_EACH(i, rows * keys) { PUT(W, to, i, scale * GET(W, p, i) * (GET(W, to, i) - GET(W, dots, i / keys))); }
}
