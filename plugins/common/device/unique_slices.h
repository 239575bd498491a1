/* Finds each slice of x [outer, n, inner] once, where slice i is x[.., i, ..]: like unique.h, with
 * slices in place of elements. Slices are ordered by their first elements that differ, by AHEAD(a,
 * b). T: the element type. */

FUNCTION int slice_ahead(GLOBAL const STORED(T) * x, Size a, Size b, Size outer, Size n, Size inner) {
  for (Size o = 0; o < outer; ++o) {
    GLOBAL const STORED(T)* from = x + (o * n + a) * inner;
    GLOBAL const STORED(T)* other = x + (o * n + b) * inner;
    for (Size k = 0; k < inner; ++k) {
      const COMPUTED(T) v = GET(T, from, k), w = GET(T, other, k);
      if (AHEAD(v, w)) return 1;
      if (AHEAD(w, v)) return 0;
    }
  }
  return 0;
}

/* Returns whether a slice contains NaN; such a slice equals nothing. */
FUNCTION int slice_has_nan(GLOBAL const STORED(T) * x, Size a, Size outer, Size n, Size inner) {
  for (Size o = 0; o < outer; ++o) {
    GLOBAL const STORED(T)* from = x + (o * n + a) * inner;
    for (Size k = 0; k < inner; ++k) {
      const COMPUTED(T) v = GET(T, from, k);
      if (v != v) return 1;
    }
  }
  return 0;
}

KERNEL(count_up)(OUT(int64, to), Size n) {
  BEGIN(to);
  FOR_EACH(i, n) { to[i] = i; }
}

/* Merges runs of `width` places in `from` to runs of twice that in `to`, as in sort.h. */
KERNEL(merge_slices)(IN(T, x), IN(int64, from), OUT(int64, to), Size outer, Size n, Size inner, Size width) {
  BEGIN(x), BEGIN(from), BEGIN(to);
  FOR_EACH(i, n) {
    const Size run = i / width, odd = run % 2, first = (run - odd) * width, mine = from[i];
    const Size other = first + (odd ? 0 : width), begin = other < n ? other : n, end = other + width < n ? other + width : n;
    Size low = begin, high = end; /* slices of the other run before `low` come before this one */
    while (low < high) {
      const Size middle = low + (high - low) / 2;
      if (odd ? !slice_ahead(x, mine, from[middle], outer, n, inner) : slice_ahead(x, from[middle], mine, outer, n, inner))
        low = middle + 1;
      else
        high = middle;
    }
    to[first + (i - run * width) + (low - begin)] = mine;
  }
}

KERNEL(find_first_slice)(IN(T, x), IN(int64, order), OUT(int64, first), OUT(int64, marks), Size outer, Size n, Size inner) {
  BEGIN(x), BEGIN(order), BEGIN(first), BEGIN(marks);
  FOR_EACH(i, n) {
    const Size place = order[i];
    Size low = slice_has_nan(x, place, outer, n, inner) ? i : 0, high = i;
    while (low < high) {
      const Size middle = low + (high - low) / 2;
      if (slice_ahead(x, order[middle], place, outer, n, inner))
        low = middle + 1;
      else
        high = middle;
    }
    first[place] = order[low];
    marks[place] = low == i;
  }
}

/* y: the `found` slices that occur first. */
KERNEL(take_slices)(IN(T, x), IN(int64, first), IN(int64, ranks), OUT(T, y), Size outer, Size n, Size inner, Size found) {
  BEGIN(x), BEGIN(first), BEGIN(ranks), BEGIN(y);
  FOR_EACH(i, outer * n * inner) {
    const Size row = i / inner, o = row / n, slice = row - o * n;
    if (first[slice] == slice) PUT(T, y, (o * found + ranks[slice] - 1) * inner + (i - row * inner), GET(T, x, i));
  }
}
