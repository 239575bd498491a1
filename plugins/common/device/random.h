/* Random numbers: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011) and the distributions that
 * TensorFlow derives from it, in groups that each begin at a fixed place of the stream. T: the
 * element type; INTEGERS, UNIFORM, NORMAL or TRUNCATED selects the distribution; GROUP_SIZE:
 * numbers of a group, 2 if they have 64 bits, else 4. Computations use uint32 and uint64. */
#define U32 COMPUTED(uint32)
#define U64 COMPUTED(uint64)

struct Stream {
  U64 key, low, high;
};
struct Block {
  U32 x[4];
};

FUNCTION struct Block next_block(struct Stream* s) {
  U32 key0 = (U32)s->key, key1 = (U32)(s->key >> 32);
  U32 c0 = (U32)s->low, c1 = (U32)(s->low >> 32), c2 = (U32)s->high, c3 = (U32)(s->high >> 32);
  for (int round = 0; round < 10; ++round) {
    const U64 x = (U64)0xD2511F53u * c0, y = (U64)0xCD9E8D57u * c2;
    c0 = (U32)(y >> 32) ^ c1 ^ key0;
    c1 = (U32)y;
    c2 = (U32)(x >> 32) ^ c3 ^ key1;
    c3 = (U32)x;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  s->low += 1;
  if (s->low == 0) s->high += 1;
  struct Block b;
  b.x[0] = c0, b.x[1] = c1, b.x[2] = c2, b.x[3] = c3;
  return b;
}

#ifdef INTEGERS
/* Whole numbers from `low` up to, but not including, low + range; both are given as 64 bits that
 * wrap around. */
KERNEL(random_integers)(OUT(T, y), Size n, struct Stream start, U64 low, U64 range) {
  BEGIN(y);
  FOR_EACH(group, (n + GROUP_SIZE - 1) / GROUP_SIZE) {
    struct Stream s = start;
    s.low += (U64)group;
    if (s.low < start.low) s.high += 1;
    const struct Block b = next_block(&s);
    for (int k = 0; k < GROUP_SIZE && group * GROUP_SIZE + k < n; ++k) {
      const U64 bits = GROUP_SIZE == 2 ? (U64)b.x[2 * k] | (U64)b.x[2 * k + 1] << 32 : (U64)b.x[k];
      PUT(T, y, group * GROUP_SIZE + k, (COMPUTED(T))(low + bits % range));
    }
  }
}
#else
/* Random mantissa bits under the exponent of [1, 2), less 1. */
FUNCTION float unit_float(U32 x) { return BITS_TO_float((x & 0x7fffffu) | 0x3f800000u) - 1.0f; }
#ifdef WIDE
FUNCTION double unit_double(U32 high, U32 low) { return BITS_TO_double(((U64)(high & 0xfffffu) << 32) | low | ((U64)1023 << 52)) - 1.0; }
#endif

/* A group of uniform numbers. Two normal numbers are made from two uniform ones (Box and Muller);
 * very small ones are kept away from the logarithm. */
FUNCTION void uniform_group(struct Block b, COMPUTED(T) * y) {
#ifdef WIDE
  y[0] = unit_double(b.x[0], b.x[1]);
  y[1] = unit_double(b.x[2], b.x[3]);
#else
  for (int k = 0; k < 4; ++k)
    y[k] = UNIT_BITS < 23 ? (COMPUTED(T))(b.x[k] & ((1u << UNIT_BITS) - 1)) / (COMPUTED(T))(1u << UNIT_BITS) : unit_float(b.x[k]);
#endif
}

FUNCTION void normal_group(struct Block b, COMPUTED(T) * y) {
#ifdef WIDE
  const double u = unit_double(b.x[0], b.x[1]), angle = 6.283185307179586476925286766559 * unit_double(b.x[2], b.x[3]);
  const double radius = sqrt(-2.0 * log(u > 1.0e-7 ? u : 1.0e-7));
  y[0] = sin(angle) * radius;
  y[1] = cos(angle) * radius;
#else
  for (int k = 0; k < 4; k += 2) {
    const float u = unit_float(b.x[k]), angle = TURN(unit_float(b.x[k + 1]));
    const float radius = sqrt(-2.0f * log(u > 1.0e-7f ? u : 1.0e-7f));
    y[k] = sin(angle) * radius;
    y[k + 1] = cos(angle) * radius;
  }
#endif
}

KERNEL(random)(OUT(T, y), Size n, struct Stream start, Size blocks) {
  BEGIN(y);
  FOR_EACH(group, (n + GROUP_SIZE - 1) / GROUP_SIZE) {
    struct Stream s = start;
    s.low += (U64)group * (U64)blocks;
    if (s.low < start.low) s.high += 1;
    COMPUTED(T) made[4];
#if defined UNIFORM
    uniform_group(next_block(&s), made);
#elif defined NORMAL
    normal_group(next_block(&s), made);
#else
    COMPUTED(T) drawn[4];
    for (int count = 0; count < GROUP_SIZE;) {
      normal_group(next_block(&s), drawn);
      for (int k = 0; k < GROUP_SIZE; ++k) {
        if (fabs(drawn[k]) < 2 && count < GROUP_SIZE) made[count++] = drawn[k];
      }
    }
#endif
    for (int k = 0; k < GROUP_SIZE && group * GROUP_SIZE + k < n; ++k) PUT(T, y, group * GROUP_SIZE + k, made[k]);
  }
}
#endif
