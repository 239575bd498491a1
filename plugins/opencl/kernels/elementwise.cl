// Arithmetic on two float tensors. NAME_same: equal shapes. NAME_broadcast: along the innermost axis there are `inner` elements, a_step and
// b_step apart in a and b: 1, or 0, which repeats one. A row is a place along `axes` further axes, innermost first. An item does WIDTH
// elements of a row. y may be a or b where that one has y's shape.
#define BROADCAST(name, F)                                                                         \
  kernel void name(global const float* a, ulong a_at, global const float* b, ulong b_at,           \
                   global float* y, ulong y_at, ulong inner, ulong outer, ulong a_step,            \
                   ulong b_step, uint axes, ulong8 sizes, ulong8 a_steps, ulong8 b_steps) {        \
    ulong i = get_global_id(0) * WIDTH;                                                            \
    const ulong row = get_global_id(1);                                                            \
    if (i >= inner || row >= outer) return;                                                        \
    if (axes == 1) {                                                                               \
      a_at += row * a_steps.s0;                                                                    \
      b_at += row * b_steps.s0;                                                                    \
    } else if (axes > 1) {                                                                         \
      ulong size[8], a_by[8], b_by[8], rest = row;                                                 \
      vstore8(sizes, 0, size);                                                                     \
      vstore8(a_steps, 0, a_by);                                                                   \
      vstore8(b_steps, 0, b_by);                                                                   \
      for (uint k = 0; k < axes; ++k) {                                                            \
        a_at += rest % size[k] * a_by[k];                                                          \
        b_at += rest % size[k] * b_by[k];                                                          \
        rest /= size[k];                                                                           \
      }                                                                                            \
    }                                                                                              \
    a += a_at;                                                                                     \
    b += b_at;                                                                                     \
    y += y_at + row * inner;                                                                       \
    if (i + WIDTH <= inner) {                                                                      \
      const FLOATS u = a_step ? LOAD_FLOATS(0, a + i) : (FLOATS)(a[0]);                            \
      const FLOATS v = b_step ? LOAD_FLOATS(0, b + i) : (FLOATS)(b[0]);                            \
      STORE_FLOATS(F(FLOATS, u, v), 0, y + i);                                                     \
    } else {                                                                                       \
      for (; i < inner; ++i) y[i] = F(float, a[i * a_step], b[i * b_step]);                        \
    }                                                                                              \
  }

#define ADD(T, a, b) ((a) + (b))
#define SUB(T, a, b) ((a) - (b))
#define MUL(T, a, b) ((a) * (b))
MAP_PAIRS(add_same, ADD)
MAP_PAIRS(sub_same, SUB)
MAP_PAIRS(mul_same, MUL)
BROADCAST(add_broadcast, ADD)
BROADCAST(sub_broadcast, SUB)
BROADCAST(mul_broadcast, MUL)
