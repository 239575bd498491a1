// CRC-32C (Castagnoli), and the masked form that record files store. Threads: any.
#ifndef THALWEG_PLUGINS_DATA_CRC32C_H_
#define THALWEG_PLUGINS_DATA_CRC32C_H_

#include <cstdint>

namespace thalweg::data {

uint32_t Crc32c(const void* bytes, uint64_t n);
// The same without instructions of the processor, for comparison.
uint32_t Crc32cPortable(const void* bytes, uint64_t n);

inline uint32_t Masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

}  // namespace thalweg::data

#endif  // THALWEG_PLUGINS_DATA_CRC32C_H_
