#include "inflate.h"

#include <zlib.h>

#include <algorithm>
#include <new>
#include <string>

#include "dataset.h"

namespace thalweg::data {
namespace {

constexpr int kWindow = 15, kGzipHead = 16;    // zlib's windowBits
constexpr uint64_t kMost = uint64_t{1} << 30;  // bytes of one call of zlib, whose counts have 32 bits

}  // namespace

Compression CompressionOf(std::string_view name) {
  if (name.empty()) return Compression::kNone;
  if (name == "GZIP") return Compression::kGzip;
  if (name == "ZLIB") return Compression::kZlib;
  Invalid("'compression_type' is '" + std::string(name) + "'; it must be empty, GZIP or ZLIB");
}

uint32_t Crc32(uint32_t crc, const void* bytes, uint64_t n) { return uint32_t(crc32_z(crc, static_cast<const Bytef*>(bytes), n)); }

Inflate::Inflate(Compression compression) : compression_(compression), stream_(std::make_unique<z_stream>()) {
  const int window = compression == Compression::kGzip ? kWindow + kGzipHead : compression == Compression::kZlib ? kWindow : -kWindow;
  if (inflateInit2(stream_.get(), window) != Z_OK) throw std::bad_alloc();
}

Inflate::~Inflate() { inflateEnd(stream_.get()); }

Inflate::Step Inflate::Run(std::string_view in, char* out, uint64_t room) {
  if (in.empty()) return {0, 0, nullptr};
  if (whole_) {
    if (compression_ != Compression::kGzip) return {0, 0, "there are bytes behind the end of the data"};
    inflateReset(stream_.get());
    whole_ = false;
  }
  z_stream& z = *stream_;
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
  z.avail_in = uInt(std::min<uint64_t>(in.size(), kMost));
  z.next_out = reinterpret_cast<Bytef*>(out);
  z.avail_out = uInt(std::min(room, kMost));
  const uint64_t had_in = z.avail_in, had_out = z.avail_out;
  const int result = inflate(&z, Z_NO_FLUSH);
  whole_ = result == Z_STREAM_END;
  Step done = {had_in - z.avail_in, had_out - z.avail_out, nullptr};
  if (result == Z_MEM_ERROR) throw std::bad_alloc();
  if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) done.failed = z.msg ? z.msg : "it needs a dictionary";
  return done;
}

}  // namespace thalweg::data
