#include "certificate.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

namespace thalweg::credentials {
namespace {

constexpr int64_t kDay = 24 * 3600;

[[noreturn]] void Fail(const std::string& what) {
  char text[200] = "";
  if (const unsigned long error = ERR_get_error()) ERR_error_string_n(error, text, sizeof text);
  throw std::runtime_error(what + (*text ? std::string(": ") + text : ""));
}
void Need(bool good, const char* what) {
  if (!good) Fail(what);
}

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

Key NewKey(int rsa_bits) {
  EVP_PKEY* key = rsa_bits ? EVP_RSA_gen(unsigned(rsa_bits)) : EVP_EC_gen("P-256");
  Need(key, "cannot make a key");
  return {key, EVP_PKEY_free};
}

Bio Reading(const std::string& text) { return {BIO_new_mem_buf(text.data(), int(text.size())), BIO_free}; }
template <typename F>
std::string Written(F write) {
  const Bio bio(BIO_new(BIO_s_mem()), BIO_free);
  Need(bio && write(bio.get()) == 1, "cannot write PEM");
  char* data = nullptr;
  const long n = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, size_t(n));
}

void Extend(X509* certificate, X509* issuer, int what, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)> extension(
      X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str()), X509_EXTENSION_free);
  Need(extension && X509_add_ext(certificate, extension.get(), -1) == 1, "cannot extend a certificate");
}

bool IsAddress(const std::string& host) {
  unsigned char bytes[16];
  return inet_pton(AF_INET, host.c_str(), bytes) == 1 || inet_pton(AF_INET6, host.c_str(), bytes) == 1;
}

void AddText(std::string* to, const std::string& text) { *to += (to->empty() ? "" : ",") + text; }

std::string OtherNames(const Recipe& r) {
  std::string all;
  if (!r.uri.empty()) AddText(&all, "URI:" + r.uri);
  for (const std::string& host : r.hosts) AddText(&all, (IsAddress(host) ? "IP:" : "DNS:") + host);
  return all;
}

void SetFacts(const Recipe& r, X509* certificate, X509* issuer) {
  uint64_t serial = 0;
  Need(RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) == 1, "no random numbers");
  Need(X509_set_version(certificate, 2) == 1 && ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1) == 1 &&
           X509_gmtime_adj(X509_getm_notBefore(certificate), long(r.begins)) &&
           X509_gmtime_adj(X509_getm_notAfter(certificate), long(r.ends)),
       "cannot number and date a certificate");
  X509_NAME* name = X509_get_subject_name(certificate);
  Need(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(r.name.c_str()), -1, -1, 0) == 1,
       "cannot name a certificate");
  Need(X509_set_issuer_name(certificate, X509_get_subject_name(issuer)) == 1, "cannot name the issuer of a certificate");
  std::string uses;
  if (r.server) AddText(&uses, "serverAuth");
  if (r.client) AddText(&uses, "clientAuth");
  Extend(certificate, issuer, NID_basic_constraints, r.authority ? "critical,CA:TRUE,pathlen:0" : "critical,CA:FALSE");
  Extend(certificate, issuer, NID_key_usage, r.authority ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature");
  Extend(certificate, issuer, NID_subject_key_identifier, "hash");
  if (!uses.empty()) Extend(certificate, issuer, NID_ext_key_usage, uses);
  if (const std::string names = OtherNames(r); !names.empty()) Extend(certificate, issuer, NID_subject_alt_name, names);
}

// Normalises a serial number: "0A:1B" and "A1B" become "a1b". Returns "" if `text` is not one.
std::string PlainSerial(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ':'), text.end());
  text.erase(0, std::min(text.find_first_not_of('0'), text.size()));
  for (char& c : text) c = c >= 'A' && c <= 'F' ? char(c - 'A' + 'a') : c;
  return text.size() > 40 || text.find_first_not_of("0123456789abcdef") != text.npos ? "" : text;
}

std::string ReadWhole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("'" + path + "': " + std::strerror(errno));
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::string ReadIfThere(const std::string& path) { return std::filesystem::exists(path) ? ReadWhole(path) : ""; }

void MakeFolder(const std::string& path) {
  std::filesystem::create_directories(path);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

}  // namespace

Pair Make(const Recipe& r, const Pair* issuer) {
  const Key key = NewKey(r.rsa_bits);
  const Certificate certificate(X509_new(), X509_free);
  Certificate parent(nullptr, X509_free);
  Key parent_key(nullptr, EVP_PKEY_free);
  Need(certificate && X509_set_pubkey(certificate.get(), key.get()) == 1, "cannot make a certificate");
  if (issuer) {
    parent.reset(PEM_read_bio_X509(Reading(issuer->cert).get(), nullptr, nullptr, nullptr));
    parent_key.reset(PEM_read_bio_PrivateKey(Reading(issuer->key).get(), nullptr, nullptr, nullptr));
    Need(parent && parent_key, "the authority's files make no sense");
  }
  SetFacts(r, certificate.get(), parent ? parent.get() : certificate.get());
  Need(X509_sign(certificate.get(), parent_key ? parent_key.get() : key.get(), EVP_sha256()) > 0, "cannot sign a certificate");
  return {Written([&](BIO* to) { return PEM_write_bio_X509(to, certificate.get()); }),
          Written([&](BIO* to) { return PEM_write_bio_PrivateKey(to, key.get(), nullptr, nullptr, 0, nullptr, nullptr); })};
}

std::string NewToken() {
  unsigned char bytes[32];
  Need(RAND_bytes(bytes, sizeof bytes) == 1, "no random numbers");
  std::string text;
  for (unsigned char b : bytes) {
    text += "0123456789abcdef"[b >> 4];
    text += "0123456789abcdef"[b & 15];
  }
  return text;
}

void WriteSecret(const std::string& path, const std::string& text) {
  const std::string fresh = path + ".new";
  const int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  const bool good = fd >= 0 && fchmod(fd, 0600) == 0 && write(fd, text.data(), text.size()) == ssize_t(text.size()) && fsync(fd) == 0;
  const int error = errno;
  if (fd >= 0) close(fd);
  if (!good) throw std::runtime_error("'" + fresh + "': " + std::strerror(error));
  if (std::rename(fresh.c_str(), path.c_str()) != 0) throw std::runtime_error("'" + path + "': " + std::strerror(errno));
}

std::string SerialOf(const std::string& pem) {
  const Certificate certificate(PEM_read_bio_X509(Reading(pem).get(), nullptr, nullptr, nullptr), X509_free);
  Need(certificate != nullptr, "a certificate makes no sense");
  const std::unique_ptr<BIGNUM, decltype(&BN_free)> number(ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate.get()), nullptr), BN_free);
  char* digits = number ? BN_bn2hex(number.get()) : nullptr;
  Need(digits != nullptr, "a certificate has no number");
  const std::string text = digits;
  OPENSSL_free(digits);
  return PlainSerial(text);
}

namespace {

// Returns the folder of a member: "task/ps/0" becomes "ps-0", "client/ann" becomes "client-ann".
std::string FolderOf(const std::string& name) {
  std::string folder = name.substr(0, 5) == "task/" ? name.substr(5) : name;
  for (char& c : folder) c = c == '/' ? '-' : c;
  return folder;
}

void CheckFolders(const std::vector<Member>& members) {
  std::map<std::string, std::string> taken = {{"authority", "the authority"}};
  for (const Member& m : members) {
    const auto [it, is_new] = taken.emplace(FolderOf(m.name), m.name);
    if (!is_new) throw std::runtime_error("'" + m.name + "' and '" + it->second + "' would share folder '" + it->first + "'; rename one");
  }
}

}  // namespace

void MakeCluster(const std::string& folder, const std::vector<Member>& members, int days) {
  CheckFolders(members);
  const std::string authority = folder + "/authority";
  Pair ca;
  std::string token;
  if (std::filesystem::exists(authority + "/token")) {
    ca = {ReadWhole(authority + "/ca.pem"), ReadWhole(authority + "/key.pem")};
    token = ReadWhole(authority + "/token");
  } else {
    Recipe r;
    r.name = "Thalweg cluster authority";
    r.authority = true;
    r.ends = 10 * 365 * kDay;
    ca = Make(r, nullptr);
    token = NewToken() + "\n";
    MakeFolder(authority);
    WriteSecret(authority + "/ca.pem", ca.cert);
    WriteSecret(authority + "/key.pem", ca.key);
    WriteSecret(authority + "/token", token);  // written last: it marks the authority as complete
  }
  std::string issued = ReadIfThere(authority + "/issued");
  const std::string revoked = ReadIfThere(authority + "/revoked");
  for (const Member& m : members) {
    Recipe r;
    r.name = m.name;
    r.uri = "thalweg://" + m.name;
    r.hosts = m.hosts;
    r.client = true;
    r.server = m.name.substr(0, 5) == "task/";
    r.ends = int64_t{days} * kDay;
    const std::string place = FolderOf(m.name);
    const Pair pair = Make(r, &ca);
    issued += SerialOf(pair.cert) + " " + m.name + "\n";
    WriteSecret(authority + "/issued", issued);  // before anybody has the certificate
    MakeFolder(folder + "/" + place);
    if (!revoked.empty()) WriteSecret(folder + "/" + place + "/revoked", revoked);
    WriteSecret(folder + "/" + place + "/ca.pem", ca.cert);
    WriteSecret(folder + "/" + place + "/cert.pem", pair.cert);
    WriteSecret(folder + "/" + place + "/key.pem", pair.key);
    WriteSecret(folder + "/" + place + "/token", token);
  }
}

std::vector<std::string> Revoke(const std::string& folder, const std::string& name, const std::string& serial) {
  const std::string authority = folder + "/authority";
  if (!std::filesystem::exists(authority + "/token"))
    throw std::runtime_error("'" + folder + "' has no authority; give the folder that thalweg cluster init has made");
  std::vector<std::string> wanted;
  if (!serial.empty()) {
    wanted.push_back(PlainSerial(serial));
    if (wanted[0].empty())
      throw std::runtime_error("'" + serial + "' is no serial number: give hexadecimal digits, as openssl x509 -serial does");
  } else {
    std::istringstream issued(ReadIfThere(authority + "/issued"));
    for (std::string number, whose; issued >> number >> whose;) {
      if (whose == name) wanted.push_back(number);
    }
    // The certificate may be older than the list `issued`.
    const std::string cert = folder + "/" + FolderOf(name) + "/cert.pem";
    if (name.find('/') != name.npos && std::filesystem::exists(cert)) wanted.push_back(SerialOf(ReadWhole(cert)));
    if (wanted.empty())
      throw std::runtime_error("no certificate was made for '" + name + "' in '" + folder + "'; give task/JOB/N, client/NAME or --serial");
  }
  std::string list = ReadIfThere(authority + "/revoked");
  std::vector<std::string> added;
  char today[32] = "";
  const std::time_t now = std::time(nullptr);
  std::strftime(today, sizeof today, "%Y-%m-%d", std::gmtime(&now));
  for (const std::string& number : wanted) {
    if (("\n" + list).find("\n" + number + " ") != std::string::npos) continue;
    list += number + " " + (name.empty() ? "-" : name) + " " + today + "\n";
    added.push_back(number);
  }
  WriteSecret(authority + "/revoked", list);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (std::filesystem::exists(entry.path() / "cert.pem")) WriteSecret((entry.path() / "revoked").string(), list);
  }
  return added;
}

}  // namespace thalweg::credentials
