/* Finds each of n elements once, in the order of first occurrence. `order` lists the places sorted
 * by AHEAD(a, b), equal elements by place; NaN equals nothing. Results: `first`, per place, the
 * place of the first equal element; `marks`, 1 if that is the place itself, else 0. T: the element
 * type. */
KERNEL(find_first)(IN(T, x), IN(int64, order), OUT(int64, first), OUT(int64, marks), Size n) {
  BEGIN(x), BEGIN(order), BEGIN(first), BEGIN(marks);
  FOR_EACH(i, n) {
    const Size place = order[i];
    const COMPUTED(T) v = GET(T, x, place);
    Size low = v == v ? 0 : i, high = i; /* the elements before `low` come before v */
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

/* One round of a running sum. After the rounds for reach 1, 2, 4, ... below n, `to` is the sum of
 * all elements up to each. */
KERNEL(add_earlier)(IN(int64, from), OUT(int64, to), Size n, Size reach) {
  BEGIN(from), BEGIN(to);
  FOR_EACH(i, n) to[i] = from[i] + (i < reach ? 0 : from[i - reach]);
}

/* ranks: the running sum of `marks`. I: the type of idx. For slices only idx is made here. */
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
