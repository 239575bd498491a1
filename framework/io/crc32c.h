// CRC32C (Castagnoli, RFC 3720), which checkpoints and event files carry, in the masked form of LevelDB: a checksum of bytes that
// hold checksums would otherwise be weak. Uses the SSE4.2 instruction where the CPU has it.
// Threads: any.
#pragma once
#include <cstdint>
#include <string_view>

namespace thalweg {

// The checksum of a followed by data, where crc is that of a; 0 to begin with.
uint32_t ExtendCrc32c(uint32_t crc, const void* data, uint64_t n);
// The same by tables, on every CPU: what the fast one is tested against.
uint32_t ExtendCrc32cPortable(uint32_t crc, const void* data, uint64_t n);
// What ExtendCrc32c uses here: "sse4.2" or "tables".
std::string_view Crc32cMethod();

inline uint32_t MaskCrc(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

}  // namespace thalweg
