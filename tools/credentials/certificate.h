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
  std::string uri;                 // who it proves to be: "thalweg://task/ps/0", "thalweg://client/ann"; empty: nobody
  std::vector<std::string> hosts;  // names and numeric addresses where others reach it
  bool authority = false, server = false, client = false;  // what it may be used for
  int64_t begins = -300, ends = 0;                         // seconds from now
  int rsa_bits = 0;                                        // 0: an elliptic-curve key (P-256)
};

// issuer: NULL: signs itself. Throws std::runtime_error.
Pair Make(const Recipe& recipe, const Pair* issuer);

// 64 hexadecimal digits that nobody can guess.
std::string NewToken();

// A task ("task/ps/0") or client ("client/ann") of a cluster, and where it is reached.
struct Member {
  std::string name;
  std::vector<std::string> hosts;
};
// A folder for each member ("ps-0", "client-ann") beneath `folder`, with ca.pem, cert.pem, key.pem and token. The authority and the token
// are in folder/authority, and used again where they are there; `issued` there tells whom which serial number was given to. Throws
// std::runtime_error naming the file.
void MakeCluster(const std::string& folder, const std::vector<Member>& members, int days);

// Takes the certificates of a member ("client/ann") back, all that were made for that name, or the one with this serial number (hexadecimal
// digits): adds them to folder/authority/revoked, and writes the list to `revoked` of each member's folder beneath `folder`. Answers the
// serial numbers that it has added. Throws std::runtime_error.
std::vector<std::string> Revoke(const std::string& folder, const std::string& name, const std::string& serial);

// Of a certificate in PEM: hexadecimal digits, lower case.
std::string SerialOf(const std::string& pem);

// Makes the file for its owner alone, whole or not at all.
void WriteSecret(const std::string& path, const std::string& text);

}  // namespace thalweg::credentials
