/* The data of the checkpoint row: parts of floats, each with different values. */
#ifndef THALWEG_BENCHMARKS_CHECKPOINT_DATA_H
#define THALWEG_BENCHMARKS_CHECKPOINT_DATA_H
#include <stdint.h>

enum { kCheckpointParts = 16, kCheckpointPartBytes = 64 << 20 };

static inline float checkpoint_value(int64_t i, int part) { return (float)((i * 31 + part * 7) % 1000003) * 0.001f; }

static inline void checkpoint_fill(float* data, int part) {
  for (int64_t i = 0; i < kCheckpointPartBytes / 4; ++i) data[i] = checkpoint_value(i, part);
}

/* Checks one value in a thousand. */
static inline int checkpoint_right(const float* data, int part) {
  for (int64_t i = 0; i < kCheckpointPartBytes / 4; i += 1009) {
    if (data[i] != checkpoint_value(i, part)) return 0;
  }
  return 1;
}

#endif
