// Certificates and keys of a cluster, made with OpenSSL. Used by thalweg-credentials and by tests, which also make bad ones.
// Threads: values, no sharing.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace thalweg::credentials {

struct Pair {
  std::string cert, key;  // PEM
};

struct Recipe {
  std::string name;                // the subject's common name
  std::string uri;                 // the identity it proves: "thalweg://task/ps/0", "thalweg://client/ann"; empty: none
  std::vector<std::string> hosts;  // names and numeric addresses at which others reach the member
  bool authority = false, server = false, client = false;  // allowed uses
  int64_t begins = -3600, ends = 0;                        // seconds from now; clocks of members may be that far apart
  int rsa_bits = 0;                                        // 0: an elliptic-curve key (P-256)
};

// Makes a certificate and its key. issuer: NULL makes a self-signed certificate. Throws
// std::runtime_error.
Pair Make(const Recipe& recipe, const Pair* issuer);

// Returns 64 random hexadecimal digits.
std::string NewToken();

// A task ("task/ps/0") or client ("client/ann") of a cluster, and the hosts at which it is reached.
struct Member {
  std::string name;
  std::vector<std::string> hosts;
};
// Makes a folder for each member ("ps-0", "client-ann") beneath `folder`, with ca.pem, cert.pem,
// key.pem and token. The authority and the token are in folder/authority; if they exist, they are
// reused. The file `issued` there maps serial numbers to members. Throws std::runtime_error naming
// the file.
void MakeCluster(const std::string& folder, const std::vector<Member>& members, int days);

// Revokes the certificates of a member ("client/ann"): all that were issued for this name, or the
// one with this serial number (hexadecimal digits). Adds them to folder/authority/revoked, and
// writes the list to `revoked` in each member's folder beneath `folder`. Returns the added serial
// numbers. Throws std::runtime_error.
std::vector<std::string> Revoke(const std::string& folder, const std::string& name, const std::string& serial);

// Returns the serial number of a PEM certificate as lower-case hexadecimal digits.
std::string SerialOf(const std::string& pem);

// Writes a file that only its owner can access, atomically.
void WriteSecret(const std::string& path, const std::string& text);

}  // namespace thalweg::credentials
