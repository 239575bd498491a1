/* Sorts rows of x: `places` lists, for each row of n, the places of its elements in sorted order;
 * of equal elements the one with the lower place comes first. T: the element type; AHEAD(a, b): a
 * comes before b; RUN: the number of elements that one task sorts by itself. Runs of RUN are merged
 * in pairs, and each element finds its place by a search in the other run: no task waits for
 * another, and each writes one place. */
KERNEL(sort_runs)(IN(T, x), OUT(int64, places), Size rows, Size n) {
  BEGIN(x), BEGIN(places);
  const Size runs = (n + RUN - 1) / RUN;
  FOR_EACH(task, rows * runs) {
    const Size row = task / runs, begin = (task - row * runs) * RUN, count = n - begin < RUN ? n - begin : RUN;
    GLOBAL const STORED(T)* from = x + row * n;
    Size order[RUN];
    for (Size k = 0; k < count; ++k) {
      const COMPUTED(T) v = GET(T, from, begin + k);
      Size at = k;
      for (; at > 0; --at) {
        const COMPUTED(T) other = GET(T, from, order[at - 1]);
        if (!AHEAD(v, other)) break;
        order[at] = order[at - 1];
      }
      order[at] = begin + k;
    }
    for (Size k = 0; k < count; ++k) places[row * n + begin + k] = order[k];
  }
}

/* Merges runs of `width` in `from` to runs of twice that in `to`. */
KERNEL(merge_runs)(IN(T, x), IN(int64, from), OUT(int64, to), Size rows, Size n, Size width) {
  BEGIN(x), BEGIN(from), BEGIN(to);
  FOR_EACH(i, rows * n) {
    const Size row = i / n, at = i - row * n, run = at / width, odd = run % 2, first = (run - odd) * width;
    const Size other = first + (odd ? 0 : width), begin = other < n ? other : n, end = other + width < n ? other + width : n;
    GLOBAL const STORED(T)* values = x + row * n;
    GLOBAL const STORED(int64)* places = from + row * n;
    const COMPUTED(T) mine = GET(T, values, places[at]);
    Size low = begin, high = end; /* elements of the other run before `low` come before this one */
    while (low < high) {
      const Size middle = low + (high - low) / 2;
      const COMPUTED(T) v = GET(T, values, places[middle]);
      if (odd ? !AHEAD(mine, v) : AHEAD(v, mine))
        low = middle + 1;
      else
        high = middle;
    }
    to[row * n + first + (at - run * width) + (low - begin)] = places[at];
  }
}

/* Takes the first k elements of each sorted row, and their places; I: the type of the places. */
KERNEL(take_first)(IN(T, x), IN(int64, order), OUT(T, y), OUT(I, at), Size rows, Size n, Size k) {
  BEGIN(x), BEGIN(order), BEGIN(y), BEGIN(at);
  FOR_EACH(i, rows * k) {
    const Size row = i / k, place = order[row * n + i - row * k];
    PUT(T, y, i, GET(T, x, row * n + place));
    PUT(I, at, i, place);
  }
}

/* The same, but in their original order: the elements that do not come after the last of the k. */
KERNEL(take_standing)(IN(T, x), IN(int64, order), OUT(T, y), OUT(I, at), Size rows, Size n, Size k) {
  BEGIN(x), BEGIN(order), BEGIN(y), BEGIN(at);
  FOR_EACH(row, rows) {
    GLOBAL const STORED(T)* from = x + row * n;
    const Size last = order[row * n + k - 1];
    const COMPUTED(T) least = GET(T, from, last);
    Size to = row * k;
    for (Size place = 0; place < n; ++place) {
      const COMPUTED(T) v = GET(T, from, place);
      if (AHEAD(least, v) || (!AHEAD(v, least) && place > last)) continue;
      PUT(T, y, to, v);
      PUT(I, at, to, place);
      ++to;
    }
  }
}

/* Takes one element of each row: the one at position `place` of the sorted order. */
KERNEL(take_nth)(IN(T, x), IN(int64, order), OUT(T, y), Size rows, Size n, Size place) {
  BEGIN(x), BEGIN(order), BEGIN(y);
  FOR_EACH(row, rows) PUT(T, y, row, GET(T, x, row * n + order[row * n + place]));
}
