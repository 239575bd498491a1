// The random numbers of shuffles: SplitMix64 (Steele, Lea, Flood 2014). The whole state is one
// number, so a position stores it, and any program can follow the draws.
#ifndef THALWEG_PLUGINS_DATA_RANDOM_H_
#define THALWEG_PLUGINS_DATA_RANDOM_H_

#include <cstdint>

namespace thalweg::data {

inline uint64_t Mixed(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

// Combines two numbers into a seed.
inline uint64_t Combined(uint64_t a, uint64_t b) { return Mixed(Mixed(a + 0x9e3779b97f4a7c15) ^ b); }

class Random {
 public:
  explicit Random(uint64_t seed = 0) : state_(seed) {}
  uint64_t Next() { return Mixed(state_ += 0x9e3779b97f4a7c15); }
  // Returns a number in [0, n): the upper half of the 128-bit product of n and a draw. n: above 0.
  uint64_t Below(uint64_t n) { return uint64_t((static_cast<unsigned __int128>(Next()) * n) >> 64); }
  uint64_t state() const { return state_; }

 private:
  uint64_t state_;
};

}  // namespace thalweg::data

#endif  // THALWEG_PLUGINS_DATA_RANDOM_H_
