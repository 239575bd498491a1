/* The gradient of mirrored padding: each place of y sums the places of x that show it. `before` is
 * the padding in front along each axis; skip is 1 if the outermost element is not repeated. T: the
 * element type; the first axis is the innermost. */
KERNEL(mirror_grad)(IN(T, x), OUT(T, y), Size n, struct Axes axes, struct Steps x_sizes, struct Steps before, Size skip) {
  BEGIN(x), BEGIN(y);
  Size ways = 1; /* along an axis: the place itself, its image in front and its image behind */
  for (Size k = 0; k < axes.count; ++k) ways *= 3;
  FOR_EACH(i, n) {
    COMPUTED(T) sum = 0;
    for (Size way = 0; way < ways; ++way) {
      Size rest = i, which = way, at = 0, step = 1, shown = 1;
      for (Size k = 0; k < axes.count; ++k) {
        const Size size = axes.size[k], p = rest % size, image = which % 3;
        const Size place_of_x = before.by[k] + (image == 0 ? p : image == 1 ? skip - 1 - p : 2 * size - 1 - skip - p);
        shown = shown && place_of_x >= 0 && place_of_x < x_sizes.by[k] && !(skip && image == 1 && p == 0) &&
                !(skip && image == 2 && p == size - 1);
        at += place_of_x * step;
        step *= x_sizes.by[k];
        rest /= size;
        which /= 3;
      }
      if (shown) sum += GET(T, x, at);
    }
    PUT(T, y, i, sum);
  }
}
