// What the other files share; first in the program. WIDTH, the vector length that the device likes, is a build option, see device.cc.
// A tensor comes as two arguments: the buffer and its first element in it.
#define JOIN_AGAIN(a, b) a##b
#define JOIN(a, b) JOIN_AGAIN(a, b)
#define FLOATS JOIN(float, WIDTH)
#define LOAD_FLOATS JOIN(vload, WIDTH)
#define STORE_FLOATS JOIN(vstore, WIDTH)

// Kernel `name` computes y[i] = F(T, x[i]) for i < n, T being float or a vector of it. y may be x. An item does WIDTH elements.
#define MAP(name, F)                                                                               \
  kernel void name(global const float* x, ulong x_at, global float* y, ulong y_at, ulong n) {      \
    x += x_at;                                                                                     \
    y += y_at;                                                                                     \
    ulong i = get_global_id(0) * WIDTH;                                                            \
    if (i + WIDTH <= n) {                                                                          \
      const FLOATS v = LOAD_FLOATS(0, x + i);                                                      \
      STORE_FLOATS(F(FLOATS, v), 0, y + i);                                                        \
    } else {                                                                                       \
      for (; i < n; ++i) y[i] = F(float, x[i]);                                                    \
    }                                                                                              \
  }

// The same of pairs: y[i] = F(T, a[i], b[i]). y may be a or b.
#define MAP_PAIRS(name, F)                                                                         \
  kernel void name(global const float* a, ulong a_at, global const float* b, ulong b_at,           \
                   global float* y, ulong y_at, ulong n) {                                         \
    a += a_at;                                                                                     \
    b += b_at;                                                                                     \
    y += y_at;                                                                                     \
    ulong i = get_global_id(0) * WIDTH;                                                            \
    if (i + WIDTH <= n) {                                                                          \
      const FLOATS u = LOAD_FLOATS(0, a + i), v = LOAD_FLOATS(0, b + i);                           \
      STORE_FLOATS(F(FLOATS, u, v), 0, y + i);                                                     \
    } else {                                                                                       \
      for (; i < n; ++i) y[i] = F(float, a[i], b[i]);                                              \
    }                                                                                              \
  }
