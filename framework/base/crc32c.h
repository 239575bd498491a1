// CRC32C (Castagnoli, RFC 3720) of checkpoints and event files, in the masked form of LevelDB: an
// unmasked checksum of bytes that contain checksums would be weak. Uses the SSE4.2 instruction if
// the CPU has it.
// Threads: any.
#pragma once
#include <cstdint>
#include <string_view>

namespace thalweg {

// Returns the checksum of a followed by data; crc is the checksum of a, 0 for an empty a.
uint32_t ExtendCrc32c(uint32_t crc, const void* data, uint64_t n);
// The same by tables, on every CPU; tests compare the fast version with it.
uint32_t ExtendCrc32cPortable(uint32_t crc, const void* data, uint64_t n);
// The method of ExtendCrc32c on this CPU: "sse4.2" or "tables".
std::string_view Crc32cMethod();

inline uint32_t MaskCrc(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

}  // namespace thalweg
