// Unpacks gzip, zlib and bare deflate data piece by piece. Threads: one.
#ifndef THALWEG_PLUGINS_DATA_INFLATE_H_
#define THALWEG_PLUGINS_DATA_INFLATE_H_

#include <cstdint>
#include <memory>
#include <string_view>

struct z_stream_s;

namespace thalweg::data {

enum class Compression { kNone, kGzip, kZlib, kDeflate };  // kDeflate: in archives, without a head

// Returns the compression of a name: "", "GZIP" or "ZLIB". Throws for others.
Compression CompressionOf(std::string_view name);

// Returns the CRC-32 of archives and gzip, continued from `crc`, that of the bytes before; 0 at the
// start.
uint32_t Crc32(uint32_t crc, const void* bytes, uint64_t n);

class Inflate {
 public:
  // compression: not kNone.
  explicit Inflate(Compression compression);
  ~Inflate();
  Inflate(const Inflate&) = delete;
  Inflate& operator=(const Inflate&) = delete;

  // What a call has done. failed: why the data are damaged; NULL: they are not.
  struct Step {
    uint64_t read, written;
    const char* failed;
  };
  // Unpacks from `in` to `out` until one of them is used up or the data end. Gzip data may be
  // several archives, one behind the other.
  Step Run(std::string_view in, char* out, uint64_t room);
  // True if the data may end here: all archives that have begun are whole.
  bool whole() const { return whole_; }

 private:
  const Compression compression_;
  std::unique_ptr<z_stream_s> stream_;
  bool whole_ = false;
};

}  // namespace thalweg::data

#endif  // THALWEG_PLUGINS_DATA_INFLATE_H_
