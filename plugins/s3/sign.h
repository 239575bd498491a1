// AWS Signature Version 4 for S3, in the Authorization header. Source: "Authenticating Requests
// (AWS Signature Version 4)" of the Amazon S3 API Reference. Threads: any.
#ifndef THALWEG_PLUGINS_S3_SIGN_H_
#define THALWEG_PLUGINS_S3_SIGN_H_

#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace thalweg::s3 {

using Pairs = std::vector<std::pair<std::string, std::string>>;

// The key of a user of the store. `secret` and `token` are never logged and are in no error.
struct Key {
  std::string id, secret;
  std::string token;  // of temporary credentials; else empty
};

// Percent-encodes every byte but letters, digits, '-', '.', '_' and '~'. keep_slash: nor '/'.
std::string UriEncode(std::string_view text, bool keep_slash);

// Returns "a=1&b=" with encoded names and values, sorted as the signature wants them. The URL of a
// signed request must have exactly this query.
std::string CanonicalQuery(const Pairs& query);

struct Unsigned {
  std::string method;   // GET
  std::string host;     // with its port if the Host header has one
  std::string path;     // encoded, begins with '/'
  std::string query;    // from CanonicalQuery
  Pairs headers;        // names in lower case, values without blanks at their ends; without host, x-amz-date and x-amz-security-token
  std::string payload;  // the SHA-256 of the body in hexadecimal digits
};

// Returns the headers that the request sends: those of `request`, and host, x-amz-content-sha256,
// x-amz-date, x-amz-security-token if the key has a token, and authorization. All but the last are
// signed. now: seconds since 1970.
Pairs Sign(const Unsigned& request, const Key& key, std::string_view region, time_t now);

}  // namespace thalweg::s3

#endif  // THALWEG_PLUGINS_S3_SIGN_H_
