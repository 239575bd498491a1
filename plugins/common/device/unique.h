/* Each of n elements once, in the order in which they come first. `order` lists their places so that equal ones follow each other, the one
 * that stands first ahead, by AHEAD(a, b); NaN equals nothing. `first` becomes, for each place, where its element stands first, and `marks`
 * 1 where that is the place itself, else 0. T: the element type. */
KERNEL(find_first)(IN(T, x), IN(int64, order), OUT(int64, first), OUT(int64, marks), Size n) {
  BEGIN(x), BEGIN(order), BEGIN(first), BEGIN(marks);
  FOR_EACH(i, n) {
    const Size place = order[i];
    const COMPUTED(T) v = GET(T, x, place);
    Size low = v == v ? 0 : i, high = i; /* the elements before `low` go ahead of v */
    while (low < high) {
      const Size middle = low + (high - low) / 2;
      const COMPUTED(T) other = GET(T, x, order[middle]);
      if (AHEAD(other, v))
        low = middle + 1;
      else
        high = middle;
    }
    first[place] = order[low];
    marks[place] = low == i;
  }
}

/* One round of a running sum: done for reach 1, 2, 4, ... while it is less than n, `to` is the sum of all up to each. */
KERNEL(add_earlier)(IN(int64, from), OUT(int64, to), Size n, Size reach) {
  BEGIN(from), BEGIN(to);
  FOR_EACH(i, n) to[i] = from[i] + (i < reach ? 0 : from[i - reach]);
}

/* ranks: the running sum of `marks`. I: the type of idx. Of slices only idx is made here. */
KERNEL(number_slices)(IN(int64, first), IN(int64, ranks), OUT(I, idx), Size n) {
  BEGIN(first), BEGIN(ranks), BEGIN(idx);
  FOR_EACH(i, n) { PUT(I, idx, i, ranks[first[i]] - 1); }
}
KERNEL(take_unique)(IN(T, x), IN(int64, first), IN(int64, ranks), OUT(T, y), OUT(I, idx), Size n) {
  BEGIN(x), BEGIN(first), BEGIN(ranks), BEGIN(y), BEGIN(idx);
  FOR_EACH(i, n) {
    const Size stands_first = first[i], rank = ranks[stands_first] - 1;
    PUT(I, idx, i, rank);
    if (stands_first == i) PUT(T, y, rank, GET(T, x, i));
  }
}
