// Addresses: `s3://bucket/key` paths, the endpoint of a store, and the URL of an object there.
// Threads: values.
#ifndef THALWEG_PLUGINS_S3_ADDRESS_H_
#define THALWEG_PLUGINS_S3_ADDRESS_H_

#include <string>
#include <string_view>

namespace thalweg::s3 {

// An object, or with an empty key a bucket.
struct Address {
  std::string bucket, key;
  std::string text() const { return "s3://" + bucket + "/" + key; }
};

// Parses `s3://bucket/key`. Repeated slashes count as one, as in paths of the machine. Throws
// INVALID_ARGUMENT for a bucket's name that S3 does not allow, for a key of more than 1024 bytes, and
// for `.` and `..` in a key, which proxies would resolve.
Address ParseAddress(std::string_view path);
// The same for a file: INVALID_ARGUMENT without a key.
Address ParseFile(std::string_view path);
// The same for a folder; the key is empty or ends in '/'.
Address ParseFolder(std::string_view path);

// The root URL of a store.
struct Endpoint {
  bool tls = true;
  std::string host;  // with its port, if any; an IPv6 address in brackets
  std::string path;  // empty, or begins with '/' and has no slash at its end
  // Returns true if the host is this machine's loopback interface, by its address or as "localhost".
  bool loopback() const;
  // Returns true if the host is an IP address, which has no subdomains.
  bool numeric() const;
  std::string text() const { return (tls ? "https://" : "http://") + host + path; }
};

// Parses "https://host[:port][/path]". Throws INVALID_ARGUMENT, naming `setting`; the message does not
// repeat a user name or password in the text.
Endpoint ParseEndpoint(std::string_view text, std::string_view setting);

// Where a request goes.
struct Target {
  std::string host;  // for the Host header, with its port
  std::string path;  // encoded
};
// virtual_hosted: the bucket is a subdomain of the host, else the first part of the path.
Target TargetOf(const Endpoint& endpoint, const Address& address, bool virtual_hosted);

}  // namespace thalweg::s3

#endif  // THALWEG_PLUGINS_S3_ADDRESS_H_
