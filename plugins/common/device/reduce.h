/* Reductions. T: the element type of x; R: that of y; FIRST, JOIN_TWO(a, b), TAKE(v), LAST(v)
 * define the reduction in type COMPUTED(T): the result for no elements, the combination of two
 * values, the conversion of an element before it is combined, the final result for all `count`
 * elements. REDUCE_ROWS and REDUCE_COLUMNS select the function. The reduced axes are cut into
 * `parts`; each part has a result of its own at y[part * outputs + output]. */

#define LANES 16

/* NaN is both larger and smaller than all numbers. */
FUNCTION COMPUTED(T) larger(COMPUTED(T) a, COMPUTED(T) b) { return a > b || a != a ? a : b; }
FUNCTION COMPUTED(T) smaller_of(COMPUTED(T) a, COMPUTED(T) b) { return a < b || a != a ? a : b; }

/* Reduces neighbouring elements: `outer` rows of `inner` elements each, located by axes and steps. */
#ifdef REDUCE_ROWS
KERNEL(reduce_rows)(IN(T, x), OUT(R, y), Size outputs, Size parts, Size outer, Size inner, struct Axes kept, struct Steps kept_steps,
                    struct Axes reduced, struct Steps reduced_steps, Size count) {
  BEGIN(x), BEGIN(y);
  const Size all = outer * inner;
  FOR_EACH(task, outputs * parts) {
    const Size part = task / outputs, output = task - part * outputs;
    GLOBAL const STORED(T)* from = x + place(&kept, &kept_steps, output);
    COMPUTED(T) lane[LANES];
    for (Size l = 0; l < LANES; ++l) lane[l] = FIRST;
    const Size end = all / parts * (part + 1) + (part + 1 == parts ? all % parts : 0);
    for (Size i = all / parts * part; i < end;) {
      const Size row = i / inner, first = i - row * inner, left = inner - first, n = left < end - i ? left : end - i;
      GLOBAL const STORED(T)* p = from + place(&reduced, &reduced_steps, row) + first;
      Size k = 0;
      for (; k + LANES <= n; k += LANES) {
        for (Size l = 0; l < LANES; ++l) lane[l] = JOIN_TWO(lane[l], TAKE(GET(T, p, k + l)));
      }
      for (Size l = 0; k + l < n; ++l) lane[l] = JOIN_TWO(lane[l], TAKE(GET(T, p, k + l)));
      i += n;
    }
    for (Size width = LANES / 2; width > 0; width /= 2) {
      for (Size l = 0; l < width; ++l) lane[l] = JOIN_TWO(lane[l], lane[l + width]);
    }
    PUT(R, y, task, LAST(lane[0]));
  }
}
#endif

/* Keeps neighbouring elements apart: a task handles COLUMNS of `inner` neighbouring outputs. */
#ifdef REDUCE_COLUMNS
KERNEL(reduce_columns)(IN(T, x), OUT(R, y), Size outputs, Size parts, Size inner, Size rows, struct Axes kept, struct Steps kept_steps,
                       struct Axes reduced, struct Steps reduced_steps, Size count) {
  BEGIN(x), BEGIN(y);
  const Size blocks = (inner + COLUMNS - 1) / COLUMNS, tasks = outputs / inner * blocks;
  FOR_EACH(task, tasks * parts) {
    const Size part = task / tasks, of = task - part * tasks, outer = of / blocks, column = (of - outer * blocks) * COLUMNS;
    const Size n = inner - column < COLUMNS ? inner - column : COLUMNS;
    GLOBAL const STORED(T)* from = x + place(&kept, &kept_steps, outer) + column;
    COMPUTED(T) lane[COLUMNS];
    for (Size l = 0; l < n; ++l) lane[l] = FIRST;
    const Size end = rows / parts * (part + 1) + (part + 1 == parts ? rows % parts : 0);
    for (Size row = rows / parts * part; row < end; ++row) {
      GLOBAL const STORED(T)* p = from + place(&reduced, &reduced_steps, row);
      for (Size l = 0; l < n; ++l) lane[l] = JOIN_TWO(lane[l], TAKE(GET(T, p, l)));
    }
    for (Size l = 0; l < n; ++l) PUT(R, y, part * outputs + outer * inner + column + l, LAST(lane[l]));
  }
}
#endif
