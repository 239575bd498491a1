/* Locations of elements in tensors that are walked along common axes. An axis has a size and, for
 * each tensor, a step: the distance of neighbours along it, in elements; step 0 repeats an element.
 * A row is a place along all axes, counted with the first axis innermost. */
#ifndef THALWEG_DEVICE_WALK_H
#define THALWEG_DEVICE_WALK_H

#define MOST_AXES 8

struct Axes {
  Size count;
  Size size[MOST_AXES];
};
struct Steps {
  Size by[MOST_AXES];
};

FUNCTION Size place(const struct Axes* axes, const struct Steps* steps, Size row) {
  Size at = 0;
  for (Size k = 0; k < axes->count; ++k) {
    const Size rest = row / axes->size[k];
    at += (row - rest * axes->size[k]) * steps->by[k];
    row = rest;
  }
  return at;
}

#endif
