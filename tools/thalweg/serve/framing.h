// Checks where a header and a body in chunks end, byte by byte, more strictly than cpp-httplib does. The library skips lines of a header
// that it cannot read, takes `0x5`, `+5` and `5zz` for the size of a chunk, and stores a line without an end in memory without a limit. A
// proxy before the server may read the same bytes in another way, and the rest of a body would then be a request that nobody sent
// (RFC 9112, sections 5.1, 6.3 and 7.1).
// Threads: one at a time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace thalweg::cli::serve {

class HeaderCheck {
 public:
  // Takes the next byte. Returns false for a header that is not certain, or has more than 64 KiB or 256 lines.
  bool Take(char c);
  bool whole() const { return whole_; }  // its empty line was taken

 private:
  bool EndLine();

  std::string line_;  // the present line, without its end
  size_t bytes_ = 0, lines_ = 0;
  bool return_ = false;  // the byte before was \r
  bool whole_ = false;
};

class ChunkCheck {
 public:
  // Takes the next n bytes. Returns false if they are no chunks.
  bool Take(const char* bytes, size_t n);

 private:
  enum class At { kSize, kExtension, kSizeEnd, kData, kDataReturn, kDataEnd, kLastReturn, kLastEnd, kEnd };
  bool Take(char c);
  bool TakeSize(char c);
  bool Expect(char c, char expected, At next);

  At at_ = At::kSize;
  uint64_t left_ = 0;       // bytes of the chunk
  unsigned digits_ = 0;     // of its size
  unsigned extension_ = 0;  // bytes behind its size
};

}  // namespace thalweg::cli::serve
