// Floods of connections and of streams against `thalweg worker` processes, with honest clients that
// connect meanwhile.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/resource.h>

#include "tests/distributed/denial.h"

namespace thalweg::distributed {
namespace {

using std::chrono::steady_clock;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

sockaddr_in At(const char* host, int port) {
  sockaddr_in in = {};
  in.sin_family = AF_INET;
  in.sin_port = htons(uint16_t(port));
  EXPECT_EQ(inet_pton(AF_INET, host, &in.sin_addr), 1);
  return in;
}

#ifdef THALWEG_SANITIZED
constexpr auto kReached = 20s;
#else
constexpr auto kReached = 2s;  // the time in which an honest client must be answered
#endif

// Connects from that address of this machine; returns -1 if no connection was made in time.
int Come(const std::string& from, const std::string& address) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in own = At(from.c_str(), 0), to = At("127.0.0.1", std::stoi(address.substr(address.rfind(':') + 1)));
  const timeval patience = {kReached.count(), 0};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0 &&
      connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) {
    return fd;
  }
  close(fd);
  return -1;
}

constexpr std::string_view kPreface("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);

// Returns true if the task answers a member at that address in time.
bool IsReached(const std::string& from, const std::string& address, const credentials::Pair& pair) {
  const int fd = Come(from, address);
  if (fd < 0) return false;
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  const std::unique_ptr<BIO, decltype(&BIO_free)> cert(BIO_new_mem_buf(pair.cert.data(), -1), BIO_free);
  const std::unique_ptr<BIO, decltype(&BIO_free)> key(BIO_new_mem_buf(pair.key.data(), -1), BIO_free);
  const std::unique_ptr<X509, decltype(&X509_free)> x(PEM_read_bio_X509(cert.get(), nullptr, nullptr, nullptr), X509_free);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> k(PEM_read_bio_PrivateKey(key.get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
  SSL_CTX_use_certificate(context.get(), x.get());
  SSL_CTX_use_PrivateKey(context.get(), k.get());
  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), SSL_free);
  SSL_set_alpn_protos(ssl.get(), reinterpret_cast<const unsigned char*>("\2h2"), 3);
  SSL_set_fd(ssl.get(), fd);
  char bytes[64];
  const bool reached = SSL_connect(ssl.get()) == 1 && SSL_write(ssl.get(), kPreface.data(), int(kPreface.size())) > 0 &&
                       SSL_read(ssl.get(), bytes, sizeof bytes) >= 9;
  close(fd);
  return reached;
}

// Retries within that time, as members do: on a busy machine, connections that the task ended to
// make room may still hold their descriptors.
bool IsReachedSoon(const std::string& from, const std::string& address, const credentials::Pair& pair) {
  const auto began = steady_clock::now();
  bool reached = false;
  while (!reached && steady_clock::now() - began < kReached) reached = IsReached(from, address, pair);
  return reached;
}

class DoorTest : public DenialTest {
 protected:
  static constexpr int kFiles = 256;  // the task's limit of descriptors
  DoorTest() {
    few_address_ = "grpc:127.0.0.1:" + std::to_string(FreePort());
    few_ = std::make_unique<Process>(folder_, few_address_, std::vector<std::string>{"--credentials", folder_ + "/ps-0"},
                                     Process::Ends::kWhenTold, kFiles);
    rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  std::string few_address_;
  std::unique_ptr<Process> few_;
};

TEST_F(DoorTest, AFloodOfTwiceTheDescriptorsLeavesTheTaskReachable) {
  const credentials::Pair good = credentials::Make(Good(), &ca_);
  Client ann(folder_ + "/client-ann");
  ASSERT_TRUE(ann.Hello(few_address_).ok());
  const size_t descriptors = few_->descriptors();
  std::vector<int> flood;
  for (int i = 0; i < 2 * kFiles; ++i) {
    flood.push_back(Come("127.0.0.2", few_address_));
    EXPECT_GE(flood.back(), 0) << i;
  }
  // Meanwhile, clients at other addresses connect, and connected clients stay connected.
  int reached = 0;
  for (int i = 0; i < 10; ++i) reached += IsReached("127.0.0.3", few_address_, good);
  EXPECT_GE(reached, 9);
  EXPECT_TRUE(ann.Hello(few_address_).ok());
  EXPECT_TRUE(Client(folder_ + "/client-bob").Hello(few_address_).ok());
  for (int fd : flood) close(fd);
  // After the flood, clients at the flooding address connect, too.
  const auto over = steady_clock::now();
  EXPECT_TRUE(IsReachedSoon("127.0.0.2", few_address_, good));
  RecordProperty("reached_after_ms", int(std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() - over).count()));
  EXPECT_THAT(few_->log(), HasSubstr("was turned away: of its address"));
  for (int i = 0; i < 400 && few_->descriptors() > descriptors + 5; ++i) std::this_thread::sleep_for(25ms);
  EXPECT_LE(few_->descriptors(), descriptors + 5);
}

// Each connection comes from another address, so none has more connections than another.
TEST_F(DoorTest, AFloodFromManyAddressesDoesNotEither) {
  const credentials::Pair good = credentials::Make(Good(), &ca_);
  std::vector<int> flood;
  for (int i = 0; i < 2 * kFiles; ++i) {
    flood.push_back(Come("127.0." + std::to_string(1 + i / 250) + "." + std::to_string(1 + i % 250), few_address_));
    if (i % 50 == 0 && i > 0) {
      EXPECT_TRUE(IsReachedSoon("127.0.77.1", few_address_, good)) << i;
    }
  }
  EXPECT_TRUE(IsReachedSoon("127.0.77.1", few_address_, good));
  for (int fd : flood) close(fd);
}

// Returns the HTTP/2 frames of a stream that calls our method with metadata that is refused, and
// cancels it at once.
std::string TakenBack(uint32_t stream) {
  const auto text = [](std::string_view t) { return std::string(1, char(t.size())).append(t); };
  std::string headers("\x83\x86", 2);  // POST, http
  for (const auto& [key, value] :
       {std::pair(":path", "/thalweg.Transport/Stream"), {":authority", "a"}, {"te", "trailers"}, {"content-type", "application/grpc"}}) {
    headers += std::string(1, '\0') + text(key) + text(value);
  }
  const auto frame = [&](char kind, char flags, const std::string& payload) {
    const auto n = uint32_t(payload.size());
    std::string f = {char(n >> 16),      char(n >> 8),       char(n),           kind,        flags,
                     char(stream >> 24), char(stream >> 16), char(stream >> 8), char(stream)};
    return f + payload;
  };
  return frame(1, 4, headers) + frame(3, 0, std::string("\0\0\0\x8", 4));  // END_HEADERS; CANCEL
}

TEST_F(DoorTest, AConnectionThatOpensStreamAfterStreamIsCut) {
  const std::string plain = "grpc:127.0.0.1:" + std::to_string(FreePort());
  const Process open(folder_, plain, {"--insecure"});
  const int fd = Come("127.0.0.2", plain);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(send(fd, kPreface.data(), kPreface.size(), MSG_NOSIGNAL), ssize_t(kPreface.size()));
  uint32_t stream = 1;
  bool cut = false;
  constexpr uint32_t kMost = 2 * 20000;
  char bytes[4096];
  while (!cut && stream < kMost) {
    std::string frames;
    for (int i = 0; i < 4; ++i, stream += 2) frames += TakenBack(stream);
    cut = send(fd, frames.data(), frames.size(), MSG_NOSIGNAL) != ssize_t(frames.size());
    pollfd p = {fd, POLLIN, 0};
    while (!cut && poll(&p, 1, 1) > 0) cut = recv(fd, bytes, sizeof bytes, 0) <= 0;
  }
  EXPECT_TRUE(cut);
  EXPECT_LT(stream, kMost) << "streams";
  RecordProperty("streams", int(stream / 2));
  close(fd);
}

// A raw HTTP/2 client that follows the protocol and answers pings, but reads nothing of the stream:
// its window is 0.
class SlowReader {
 public:
  explicit SlowReader(const std::string& address) : fd_(Come("127.0.0.2", address)) {
    const auto text = [](std::string_view t) { return std::string(1, char(t.size())).append(t); };
    std::string headers("\x83\x86", 2);
    for (const auto& [key, value] : {std::pair(":path", "/thalweg.Transport/Stream"),
                                     {":authority", "a"},
                                     {"te", "trailers"},
                                     {"content-type", "application/grpc"},
                                     {"thalweg-protocol", "1"},
                                     {"thalweg-connection", "0123456789abcdef0123456789abcdef"}}) {
      headers += std::string(1, '\0') + text(key) + text(value);
    }
    Write(std::string(kPreface.substr(0, 24)) + Frame(4, 0, 0, std::string("\0\4\0\0\0\0", 6)) + Frame(1, 4, 1, headers));
  }
  ~SlowReader() { close(fd_); }
  // Sends n requests with that head, which are answered by errors. Returns false if the stream has
  // ended.
  bool Ask(int n, const std::string& head = "") {
    std::string message;
    for (int i = 0; i < n; ++i) {
      std::string frame(24, '\0');
      frame[0] = 1;
      const uint64_t id = ++id_;
      const auto bytes = uint16_t(head.size());
      std::memcpy(&frame[2], &bytes, sizeof bytes);
      std::memcpy(&frame[8], &id, sizeof id);
      message += frame + head;
    }
    const auto size = uint32_t(message.size());
    message.insert(0, {'\0', char(size >> 24), char(size >> 16), char(size >> 8), char(size)});
    for (size_t at = 0; at < message.size() && !ended_;) {
      const auto part = size_t(std::min<int64_t>({connection_, stream_, 16384, int64_t(message.size() - at)}));
      if (part == 0 || part > message.size()) {
        Hear(100);
        continue;
      }
      Write(Frame(0, 0, 1, message.substr(at, part)));
      connection_ -= int64_t(part);
      stream_ -= int64_t(part);
      at += part;
      Hear(0);
    }
    return !ended_;
  }
  bool EndsWithin(std::chrono::seconds most) {
    for (const auto until = steady_clock::now() + most; !ended_ && steady_clock::now() < until;) Hear(100);
    return ended_;
  }

 private:
  static std::string Frame(char kind, char flags, uint32_t stream, const std::string& payload) {
    const auto n = uint32_t(payload.size());
    return std::string{char(n >> 16),      char(n >> 8),       char(n),           kind,        flags,
                       char(stream >> 24), char(stream >> 16), char(stream >> 8), char(stream)} +
           payload;
  }
  static uint32_t Number(const std::string& s, size_t at, size_t bytes) {
    uint32_t n = 0;
    for (size_t i = 0; i < bytes; ++i) n = n << 8 | uint8_t(s[at + i]);
    return n;
  }
  void Write(const std::string& bytes) { ended_ = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) != ssize_t(bytes.size()) || ended_; }
  void Hear(int ms) {
    pollfd p = {fd_, POLLIN, 0};
    char bytes[16384];
    for (; !ended_ && poll(&p, 1, ms) > 0; ms = 0) {
      const ssize_t n = recv(fd_, bytes, sizeof bytes, 0);
      if (n <= 0) ended_ = true;
      heard_.append(bytes, size_t(std::max<ssize_t>(n, 0)));
      for (size_t size; heard_.size() >= 9 && heard_.size() >= (size = 9 + Number(heard_, 0, 3)); heard_.erase(0, size)) Take(size);
    }
  }
  void Take(size_t size) {
    const int kind = heard_[3], flags = heard_[4];
    const uint32_t stream = Number(heard_, 5, 4);
    if (kind == 4 && !(flags & 1)) {
      for (size_t at = 9; at + 6 <= size; at += 6) {
        if (Number(heard_, at, 2) != 4) continue;
        stream_ += int64_t(Number(heard_, at + 2, 4)) - initial_;
        initial_ = Number(heard_, at + 2, 4);
      }
      Write(Frame(4, 1, 0, ""));
    }
    if (kind == 6 && !(flags & 1)) Write(Frame(6, 1, 0, heard_.substr(9, 8)));
    if (kind == 8) (stream ? stream_ : connection_) += Number(heard_, 9, 4);
    if (kind == 7 || (stream == 1 && (kind == 3 || (kind == 1 && flags & 1)))) ended_ = true;
  }
  const int fd_;
  int64_t connection_ = 65535, stream_ = 65535, initial_ = 65535;
  uint64_t id_ = 0;
  bool ended_ = false;
  std::string heard_;
};

TEST_F(DoorTest, WhoReadsNothingOfWhatWaitsIsLost) {
  const std::string plain = "grpc:127.0.0.1:" + std::to_string(FreePort());
  const Process open(folder_, plain, {"--insecure", "--option", "plugin.org.thalweg.grpc.slow_reader_s=2"});
  SlowReader slow(plain);
  EXPECT_TRUE(slow.Ask(50));
  EXPECT_FALSE(slow.EndsWithin(1s));
  EXPECT_TRUE(slow.Ask(50));  // queued behind the earlier answers
  EXPECT_TRUE(slow.EndsWithin(20s));
}

// A refusal that repeats the request's option has a long head, which is charged to no account.
TEST_F(DoorTest, HeadsOfAnswersThatNobodyTakesAreBounded) {
  const std::string plain = "grpc:127.0.0.1:" + std::to_string(FreePort());
  const Process open(folder_, plain, {"--insecure"});
  WireWriter fields;
  OpenRequest{77, {"optimize=" + std::string(3000, 'x')}}.Put(&fields);
  const std::string head = PutRequest(Method::kOpen, 0, fields);
  SlowReader slow(plain);
  constexpr int kMost = 20000;
  int asked = 0;
  while (asked < kMost && slow.Ask(100, head)) asked += 100;
  EXPECT_GE(asked, 1000);
  EXPECT_LT(asked, kMost);
  RecordProperty("requests", asked);
}

TEST_F(DoorTest, RequestsInFlightAreBounded) {
  const std::string plain = "grpc:127.0.0.1:" + std::to_string(FreePort());
  const Process open(folder_, plain, {"--insecure"});
  SlowReader slow(plain);
  int asked = 0;
  while (asked < 32000 && slow.Ask(1000)) asked += 1000;
  EXPECT_EQ(asked, 32000);
  EXPECT_FALSE(slow.EndsWithin(1s));
  slow.Ask(1000);
  EXPECT_TRUE(slow.EndsWithin(20s));
}

}  // namespace
}  // namespace thalweg::distributed
