// SHA-256, HMAC-SHA-256 and the two ways in which HTTP headers spell their results. Threads: any.
#ifndef THALWEG_PLUGINS_S3_DIGEST_H_
#define THALWEG_PLUGINS_S3_DIGEST_H_

#include <string>
#include <string_view>

namespace thalweg::s3 {

// Returns the 32 bytes of the digest.
std::string Sha256(std::string_view bytes);
// Returns the 32 bytes of HMAC-SHA-256 (RFC 2104). key: of any length.
std::string HmacSha256(std::string_view key, std::string_view bytes);
// Returns lower-case hexadecimal digits.
std::string Hex(std::string_view bytes);
// Returns base64 with padding (RFC 4648).
std::string Base64(std::string_view bytes);

}  // namespace thalweg::s3

#endif  // THALWEG_PLUGINS_S3_DIGEST_H_
