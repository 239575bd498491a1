#include "credentials.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>
#include <string_view>
#include <utility>

#include <grpc/grpc_security.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include "thalweg/plugin/plugin.h"

namespace thalweg::grpc_transport {
namespace {

constexpr int kSecurityBits = 112;        // security bits of keys; RSA of 2048 bits has as many
constexpr size_t kLargestFile = 1 << 20;  // bytes

std::string ReadFile(const std::string& path, bool secret, std::string* out, std::string* stamp) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // without O_NONBLOCK, a named pipe would wait for a writer
  struct stat s = {};
  if (fd < 0 || fstat(fd, &s) != 0) {
    const std::string why = std::strerror(errno);
    if (fd >= 0) close(fd);
    return "'" + path + "': " + why;
  }
  std::string wrong;
  if (secret && (s.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    wrong = "'" + path + "' can be read by others; chmod 600";
  } else if ((s.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    wrong = "'" + path + "' can be written by others; chmod go-w";
  } else if (!S_ISREG(s.st_mode) || size_t(s.st_size) > kLargestFile) {
    wrong = "'" + path + "' is no file of at most 1 MB";
  } else {
    out->resize(size_t(s.st_size));
    if (read(fd, out->data(), out->size()) != ssize_t(out->size())) wrong = "'" + path + "' changes while it is read";
  }
  close(fd);
  *stamp += std::to_string(s.st_ino) + "." + std::to_string(s.st_size) + "." + std::to_string(s.st_mtim.tv_sec) + "." +
            std::to_string(s.st_mtim.tv_nsec) + " ";
  return wrong;
}

std::string Trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  return text;
}

bool IsToken(const std::string& text) {
  return text.size() >= 32 && text.size() <= 256 && text.find_first_not_of("0123456789abcdefABCDEF") == text.npos;
}

// Keeps errors that OpenSSL records here out of the thread's queue, where a handshake on the same
// thread would find them.
struct QuietErrors {
  QuietErrors() { ERR_set_mark(); }
  ~QuietErrors() { ERR_pop_to_mark(); }
};

using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
Certificate ReadCertificate(std::string_view pem) {
  const QuietErrors quiet;
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new_mem_buf(pem.data(), int(pem.size())), BIO_free);
  return {bio ? PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr) : nullptr, X509_free};
}

// Returns lower-case hexadecimal digits without leading zeros; empty if `pem` is no certificate.
std::string SerialOf(std::string_view pem) {
  const QuietErrors quiet;
  const Certificate certificate = ReadCertificate(pem);
  if (!certificate) return "";
  const std::unique_ptr<BIGNUM, decltype(&BN_free)> number(ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate.get()), nullptr), BN_free);
  char* digits = number ? BN_bn2hex(number.get()) : nullptr;
  std::string text = digits ? digits : "";
  OPENSSL_free(digits);
  text.erase(0, std::min(text.find_first_not_of('0'), text.size()));
  for (char& c : text) c = c >= 'A' && c <= 'F' ? char(c - 'A' + 'a') : c;
  return text;
}

// Parses a serial number per line, optionally followed by a remark. Returns false if the text is no
// such list.
bool ParseRevoked(std::string_view text, std::unordered_set<std::string>* out) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::string_view serial = line.substr(0, line.find_first_of(" \t\r#"));
    if (serial.empty() && line.find_first_not_of(" \t\r") != line.npos && line[line.find_first_not_of(" \t\r")] != '#') return false;
    if (serial.find_first_not_of("0123456789abcdef") != serial.npos || serial.size() > 40 || serial.starts_with('0')) return false;
    if (!serial.empty()) out->emplace(serial);
  }
  return true;
}

// Returns 0 if `pem` is no certificate.
int SecurityBits(std::string_view pem) {
  const Certificate certificate = ReadCertificate(pem);
  EVP_PKEY* key = certificate ? X509_get0_pubkey(certificate.get()) : nullptr;
  return key ? EVP_PKEY_get_security_bits(key) : 0;
}

// "2026-11-23 06:40:00 UTC".
std::string TimeText(const ASN1_TIME* time) {
  tm t = {};
  char text[40] = "?";
  if (ASN1_TIME_to_tm(time, &t) == 1) std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &t);
  return text;
}

// Returns empty, or the error. Peers reject a certificate outside its dates without a reason. Of
// several certificates one has to be valid.
std::string WrongDate(const std::string& path, std::string_view pem, bool several) {
  const QuietErrors quiet;
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new_mem_buf(pem.data(), int(pem.size())), BIO_free);
  std::string wrong;
  do {
    const Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr), X509_free);
    if (!certificate) break;
    const ASN1_TIME *begins = X509_get0_notBefore(certificate.get()), *ends = X509_get0_notAfter(certificate.get());
    std::time_t now = std::time(nullptr);
    const bool early = X509_cmp_time(begins, &now) > 0;
    if (!early && X509_cmp_time(ends, &now) > 0) return "";
    const std::unique_ptr<ASN1_TIME, decltype(&ASN1_TIME_free)> today(ASN1_TIME_set(nullptr, now), ASN1_TIME_free);
    wrong = "'" + path + "' is good " + (early ? "from " + TimeText(begins) : "until " + TimeText(ends)) +
            ", and this machine's clock says " + TimeText(today.get()) + (early ? "; set the clock" : "; make new ones, or set the clock");
  } while (several);
  return wrong;
}

bool BelongTogether(std::string_view cert, std::string_view key) {
  const QuietErrors quiet;
  const Certificate certificate = ReadCertificate(cert);
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new_mem_buf(key.data(), int(key.size())), BIO_free);
  const auto no_password = [](char*, int, int, void*) { return 0; };
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> mine(
      bio ? PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr) : nullptr, EVP_PKEY_free);
  return certificate && mine && X509_check_private_key(certificate.get(), mine.get()) == 1;
}

grpc_ssl_certificate_config_reload_status Fetch(void* arg, grpc_ssl_server_certificate_config** out) {
  auto* credentials = static_cast<Credentials*>(arg);
  if (!credentials->Changed()) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
  const Secrets s = credentials->secrets();
  const grpc_ssl_pem_key_cert_pair pair = {s.key.c_str(), s.cert.c_str()};
  *out = grpc_ssl_server_certificate_config_create(s.ca.c_str(), &pair, 1);
  return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

}  // namespace

std::string Credentials::ReadAll(Secrets* out, std::string* stamp) const {
  std::string wrong = ReadFile(folder_ + "/ca.pem", false, &out->ca, stamp);
  if (wrong.empty()) wrong = ReadFile(folder_ + "/cert.pem", false, &out->cert, stamp);
  if (wrong.empty()) wrong = ReadFile(folder_ + "/key.pem", true, &out->key, stamp);
  if (wrong.empty()) wrong = ReadFile(folder_ + "/token", true, &out->token, stamp);
  if (!wrong.empty()) return wrong;
  out->token = Trimmed(out->token);
  if (!IsToken(out->token)) return "'" + folder_ + "/token' is no secret of 32 to 256 hexadecimal digits";
  if (SecurityBits(out->ca) < kSecurityBits) return "'" + folder_ + "/ca.pem' is no certificate with a key that is strong enough";
  if (SecurityBits(out->cert) < kSecurityBits) return "'" + folder_ + "/cert.pem' is no certificate with a key that is strong enough";
  wrong = WrongDate(folder_ + "/ca.pem", out->ca, true);
  if (wrong.empty()) wrong = WrongDate(folder_ + "/cert.pem", out->cert, false);
  if (!wrong.empty()) return wrong;
  if (!BelongTogether(out->cert, out->key)) return "'" + folder_ + "': cert.pem and key.pem do not belong together";
  return "";
}

// Without a list no certificate is revoked.
std::string Credentials::RefreshRevoked() {
  const std::string path = folder_ + "/revoked";
  std::string text, stamp;
  if (access(path.c_str(), F_OK) != 0 && errno == ENOENT) {
    std::lock_guard lock(mu_);
    revoked_.clear();
    revoked_stamp_.clear();
    return "";
  }
  std::string wrong = ReadFile(path, false, &text, &stamp);
  std::unordered_set<std::string> found;
  if (wrong.empty() && !ParseRevoked(text, &found))
    wrong = "'" + path + "' is no list of serial numbers, as thalweg cluster revoke makes it";
  if (!wrong.empty()) return wrong;
  std::lock_guard lock(mu_);
  if (stamp == revoked_stamp_) return "";
  revoked_ = std::move(found);
  revoked_stamp_ = std::move(stamp);
  return "";
}

bool Credentials::Revoked(const std::string& serial) const {
  std::lock_guard lock(mu_);
  return revoked_.count(serial) > 0;
}

std::string Credentials::Refresh() {
  Secrets found;
  std::string stamp;
  std::string wrong = RefreshRevoked();
  if (const std::string others = ReadAll(&found, &stamp); !others.empty()) wrong = others;
  std::lock_guard lock(mu_);
  if (!wrong.empty()) return wrong;
  if (stamp == stamp_) return "";
  secrets_ = std::move(found);
  stamp_ = std::move(stamp);
  ++version_;
  return "";
}

Secrets Credentials::secrets() const {
  std::lock_guard lock(mu_);
  return secrets_;
}

bool Credentials::Changed() {
  (void)Refresh();  // if the files are invalid, the last good ones stay in use
  std::lock_guard lock(mu_);
  return std::exchange(asked_, version_) != version_;
}

grpc_channel_credentials* NewChannelCredentials(std::shared_ptr<const Credentials> credentials) {
  using Held = std::shared_ptr<const Credentials>;
  const Secrets secrets = credentials->secrets();
  grpc_ssl_pem_key_cert_pair pair = {secrets.key.c_str(), secrets.cert.c_str()};
  const grpc_ssl_verify_peer_options more = {[](const char*, const char* pem, void* held) -> int {
                                               const std::string serial = SerialOf(pem);
                                               return serial.empty() || (*static_cast<Held*>(held))->Revoked(serial);
                                             },
                                             new Held(std::move(credentials)), [](void* held) { delete static_cast<Held*>(held); }};
  return grpc_ssl_credentials_create_ex(secrets.ca.c_str(), &pair, &more, nullptr);
}

grpc_server_credentials* NewServerCredentials(Credentials* credentials) {
  return grpc_ssl_server_credentials_create_with_options(grpc_ssl_server_credentials_create_options_using_config_fetcher(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY, Fetch, credentials));
}

Identity IdentityOf(grpc_call* call) {
  Identity who;
  grpc_auth_context* context = grpc_call_auth_context(call);
  std::string_view uri, pem;
  int uris = 0;
  for (auto [name, value] : {std::pair(GRPC_PEER_URI_PROPERTY_NAME, &uri), {GRPC_X509_PEM_CERT_PROPERTY_NAME, &pem}}) {
    grpc_auth_property_iterator all = grpc_auth_context_find_properties_by_name(context, name);
    while (const grpc_auth_property* p = grpc_auth_property_iterator_next(&all)) {
      *value = std::string_view(p->value, p->value_length);
      uris += value == &uri;
    }
  }
  constexpr std::string_view kTask = "thalweg://task/", kClient = "thalweg://client/", kScheme = "thalweg://";
  if (uris == 1 && uri.substr(0, kTask.size()) == kTask) who.role = TW_PEER_TASK;
  if (uris == 1 && uri.substr(0, kClient.size()) == kClient) who.role = TW_PEER_CLIENT;
  if (!who.role) {
    who.wrong = "its certificate names no task and no client of a cluster";
  } else if (SecurityBits(pem) < kSecurityBits) {
    who.wrong = "the key of its certificate is too weak";
  } else {
    who.name = uri.substr(kScheme.size());
    who.serial = SerialOf(pem);
  }
  grpc_auth_context_release(context);
  return who;
}

bool SameSecret(const std::string& a, const std::string& b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace thalweg::grpc_transport
