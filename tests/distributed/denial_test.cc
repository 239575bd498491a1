// Access control: tries every way to reach `thalweg worker` processes without the right to, over
// real sockets.
#include "tests/distributed/denial.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <memory>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace thalweg::distributed {
namespace {

using credentials::Pair;
using credentials::Recipe;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using Code = absl::StatusCode;
using std::chrono::steady_clock;
constexpr int64_t kMostBytes = 64 << 10;  // the memory that a task may use for each peer that it turns away

// Returns true as soon as the condition is true, false if it is not within the time.
template <typename F>
bool Soon(F f, std::chrono::seconds most = std::chrono::seconds(20)) {
  for (const auto until = steady_clock::now() + most; !f(); std::this_thread::sleep_for(std::chrono::milliseconds(5))) {
    if (steady_clock::now() >= until) return false;
  }
  return true;
}

// The certificate and TLS version with which a peer connects.
struct Visitor {
  Pair pair;  // empty: presents no certificate
  int newest = 0;
};
// Returns the first HTTP/2 bytes that the task sends; "" if it only ends the connection.
std::string Answered(const std::string& address, const Visitor& v) {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  SSL_CTX_set_security_level(context.get(), 0);
  if (v.newest) {
    SSL_CTX_set_min_proto_version(context.get(), TLS1_VERSION);
    SSL_CTX_set_max_proto_version(context.get(), v.newest);
    SSL_CTX_set_cipher_list(context.get(), "ALL:@SECLEVEL=0");
  }
  if (!v.pair.cert.empty()) {
    const std::unique_ptr<BIO, decltype(&BIO_free)> cert(BIO_new_mem_buf(v.pair.cert.data(), -1), BIO_free);
    const std::unique_ptr<BIO, decltype(&BIO_free)> key(BIO_new_mem_buf(v.pair.key.data(), -1), BIO_free);
    const std::unique_ptr<X509, decltype(&X509_free)> x(PEM_read_bio_X509(cert.get(), nullptr, nullptr, nullptr), X509_free);
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> k(PEM_read_bio_PrivateKey(key.get(), nullptr, nullptr, nullptr),
                                                                EVP_PKEY_free);
    EXPECT_EQ(SSL_CTX_use_certificate(context.get(), x.get()), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey(context.get(), k.get()), 1);
  }
  const int fd = ConnectByHand(address);
  EXPECT_GE(fd, 0);
  const timeval patience = {20, 0};  // seconds, long enough for a busy machine
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), SSL_free);
  SSL_set_alpn_protos(ssl.get(), reinterpret_cast<const unsigned char*>("\2h2"), 3);
  SSL_set_fd(ssl.get(), fd);
  std::string out;
  if (SSL_connect(ssl.get()) == 1) {
    constexpr std::string_view kHello("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);
    SSL_write(ssl.get(), kHello.data(), int(kHello.size()));
    char bytes[64];
    const int n = SSL_read(ssl.get(), bytes, sizeof bytes);
    if (n > 0) out.assign(bytes, size_t(n));
  }
  close(fd);
  return out;
}
// Sends `bytes` without TLS and returns the reply.
std::string AnsweredPlainly(const std::string& address, std::string_view bytes) {
  const int fd = ConnectByHand(address);
  EXPECT_GE(fd, 0);
  const timeval patience = {20, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  EXPECT_EQ(write(fd, bytes.data(), bytes.size()), ssize_t(bytes.size()));
  char back[256];
  std::string out;
  for (ssize_t n; (n = read(fd, back, sizeof back)) > 0;) out.append(back, size_t(n));
  close(fd);
  return out;
}

TEST_F(DenialTest, HandshakesThatProveTooLittleEndBeforeAnythingIsSaid) {
  Recipe expired = Good(), early = Good(), server = Good(), weak = Good(), authority;
  expired.begins = -2 * kDay, expired.ends = -kDay;
  early.begins = kDay, early.ends = 2 * kDay;
  server.server = true, server.client = false;
  weak.rsa_bits = 1024;
  authority.name = "another authority", authority.authority = true, authority.ends = kDay;
  const Pair others = credentials::Make(authority, nullptr);
  const Pair good = credentials::Make(Good(), &ca_);
  const struct {
    const char* what;
    Visitor who;
  } cases[] = {{"no certificate", {{}, 0}},
               {"an unknown authority", {credentials::Make(Good(), &others), 0}},
               {"its own authority", {credentials::Make(Good(), nullptr), 0}},
               {"expired", {credentials::Make(expired, &ca_), 0}},
               {"not good yet", {credentials::Make(early, &ca_), 0}},
               {"a server's certificate", {credentials::Make(server, &ca_), 0}},
               {"a weak key", {credentials::Make(weak, &ca_), 0}},
               {"TLS 1.1", {good, TLS1_1_VERSION}}};
  // An accepted peer receives SETTINGS; without this check, the refusals below would prove nothing.
  ASSERT_GE(Answered(address_, {good, 0}).size(), 9u);
  for (const auto& c : cases) {
    for (int i = 0; i < 10; ++i) EXPECT_EQ(Answered(address_, c.who), "") << c.what;
    const int64_t before = task_->memory();
    for (int i = 0; i < 20; ++i) Answered(address_, c.who);
    EXPECT_LT(task_->memory() - before, 20 * kMostBytes) << c.what;
  }
  EXPECT_GE(Answered(address_, {good, 0}).size(), 9u);
}

// Only the refusing side knows why it refuses a certificate; the other side's error says where to
// look.
TEST_F(DenialTest, WhoseCertificateIsRefusedIsToldThatItMayBeSo) {
  Recipe another;
  another.name = "another authority", another.authority = true, another.ends = kDay;
  const Pair others = credentials::Make(another, nullptr);
  const std::string strange = Folder("strange", credentials::Make(Good(), &others), Token());
  const Status refused = Client(strange).Hello(address_);
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  EXPECT_THAT(refused.ToString(), HasSubstr("one side may not accept the other's certificate"));
  EXPECT_THAT(task_->log(), HasSubstr("was turned away"));
  credentials::WriteSecret(folder_ + "/client-bob/ca.pem", others.cert);
  EXPECT_THAT(Client(folder_ + "/client-bob").Hello(address_).ToString(), HasSubstr("certificate verify failed; one side may not"));
  const Status nobody = Client(folder_ + "/client-ann").Hello("grpc:127.0.0.1:" + std::to_string(FreePort()));
  EXPECT_EQ(nobody.code(), Code::kUnavailable);
  EXPECT_THAT(nobody.ToString(), Not(HasSubstr("certificates"))) << "nobody is there";
}

TEST_F(DenialTest, PlainTextAndTlsDoNotMeet) {
  // The reply is a TLS alert, or empty.
  const std::string back = AnsweredPlainly(address_, std::string_view("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33));
  EXPECT_TRUE(back.empty() || back[0] == 0x15) << back;
  const std::string plain = "grpc:127.0.0.1:" + std::to_string(FreePort());
  const Process open(folder_, plain, {"--insecure"});
  EXPECT_EQ(Answered(plain, {credentials::Make(Good(), &ca_), 0}), "");
  const Status s = Client(folder_ + "/client-ann").Hello(plain);
  EXPECT_FALSE(s.ok());
}

TEST_F(DenialTest, ATaskListensInTheOpenOnlyIfItIsAskedToByName) {
  RuntimeOptions options;
  options.threads = 1;
  auto runtime = *Runtime::Create(options);
  runtime->LoadPlugin(Transport()).IgnoreError();  // it may be loaded already
  SystemClock clock;
  const auto listen = [&](std::string_view address, const std::string& credentials, bool open) {
    return Messenger::Create(*FindTransport(runtime.get(), {"grpc", ""}, open), {address, credentials, 1 << 20, open, false}, &clock,
                             [](std::shared_ptr<Incoming>) {})
        .status();
  };
  const Status refused = listen("0.0.0.0:0", "", false);
  EXPECT_EQ(refused.code(), Code::kPermissionDenied);
  EXPECT_THAT(refused.ToString(), HasSubstr("can be reached from other machines; give `credentials`"));
  EXPECT_TRUE(listen("0.0.0.0:0", "", true).ok());
  EXPECT_TRUE(listen("0.0.0.0:0", folder_ + "/ps-0", false).ok());
  EXPECT_TRUE(listen("127.0.0.1:0", "", false).ok());
}

TEST_F(DenialTest, StreamsNeedTheTokenAndTheNameOfAMember) {
  Recipe stranger = Good();
  stranger.uri = "spiffe://elsewhere/ann";
  Client ann(folder_ + "/client-ann");
  EXPECT_TRUE(ann.Hello(address_).ok());
  const Pair good = credentials::Make(Good(), &ca_);
  for (const std::string& folder :
       {Folder("wrong-token", good, credentials::NewToken()), Folder("short-token", good, Token().substr(0, 40)),
        Folder("wrong-name", credentials::Make(stranger, &ca_), Token())}) {
    const Status s = Client(folder).Hello(address_);
    EXPECT_EQ(s.code(), Code::kPermissionDenied) << folder << ": " << s;
    EXPECT_THAT(s.ToString(), Not(HasSubstr(Token().substr(0, 10))));
  }
  EXPECT_THAT(task_->log(), HasSubstr("was turned away: its token is not the cluster's"));
}

TEST_F(DenialTest, AClientDoesNotTalkToATaskWithAnotherName) {
  credentials::MakeCluster(folder_, {{"task/ps/1", {"10.1.2.3", "elsewhere.example"}}}, 10);
  const std::string address = "grpc:127.0.0.1:" + std::to_string(FreePort());
  const Process impostor(folder_, address, {"--credentials", folder_ + "/ps-1"});
  const Status s = Client(folder_ + "/client-ann").Hello(address);
  EXPECT_FALSE(s.ok());
  EXPECT_THAT(s.ToString(), HasSubstr(address.substr(5)));
}

TEST_F(DenialTest, ATaskWithTheFolderOfAnotherMemberIsToldAtItsStart) {
  credentials::MakeCluster(folder_, {{"task/ps/1", {"127.0.0.1"}}, {"task/ps/2", {"10.1.2.3"}}}, 10);
  const auto said = [&](const std::string& member, Process::Ends ends) {
    return Process(folder_, "grpc:127.0.0.1:" + std::to_string(FreePort()), {"--credentials", folder_ + member}, ends).log();
  };
  EXPECT_THAT(task_->log(), Not(HasSubstr("credentials")));
  EXPECT_THAT(said("/ps-1", Process::Ends::kAtOnce),
              HasSubstr("server /job:ps/task:0: the credentials '" + folder_ + "/ps-1' are those of task/ps/1, and this is task/ps/0"));
  // Others may still reach the task by another host name, of which this machine does not know.
  for (const char* other : {"/ps-2", "/client-ann"}) {
    EXPECT_THAT(said(other, Process::Ends::kWhenTold),
                HasSubstr("server /job:ps/task:0: cannot be reached by its own credentials, and maybe not by others:"));
  }
}

TEST_F(DenialTest, MembersThatWouldShareAFolderGetNone) {
  EXPECT_ANY_THROW(credentials::MakeCluster(folder_, {{"task/client/0", {"127.0.0.1"}}, {"client/0", {}}}, 10));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/client-0"));
}

TEST_F(DenialTest, HandshakesThatStandStillAreEndedAndKeepNobodyOut) {
#ifdef THALWEG_SANITIZED
  GTEST_SKIP() << "goes by seconds and bytes with a thousand connections; a sanitizer takes many times both";
#endif
  rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  Client ann(folder_ + "/client-ann");
  ASSERT_TRUE(ann.Hello(address_).ok());
  const size_t descriptors = task_->descriptors();
  const int64_t memory = task_->memory();
  // Half of the connections send nothing; the other half begin a handshake and stop in the middle.
  std::vector<int> half_open;
  constexpr char kBegun[] = {0x16, 3, 1, 2, 0, 1, 0, 1};
  const int many = files.rlim_cur < 1100 ? int(files.rlim_cur) / 2 : 1000;
  for (int i = 0; i < many; ++i) {
    const int fd = ConnectByHand(address_);
    ASSERT_GE(fd, 0) << i;
    if (i % 2) {
      EXPECT_EQ(write(fd, kBegun, sizeof kBegun), ssize_t(sizeof kBegun));
    }
    half_open.push_back(fd);
  }
  const auto began = steady_clock::now();
  Client bob(folder_ + "/client-bob");
  Status in = bob.Hello(address_);
  // On a busy machine a handshake may take longer than the task's limit; a session's client would
  // retry, too.
  while (!in.ok() && steady_clock::now() - began < std::chrono::seconds(60)) in = bob.Hello(address_);
  EXPECT_TRUE(in.ok()) << in;
  EXPECT_TRUE(ann.Hello(address_).ok());
  EXPECT_LT(task_->memory() - memory, many * kMostBytes);
  // The task ends the stalled connections by itself.
  size_t ended = 0;
  while (ended < half_open.size() && steady_clock::now() - began < std::chrono::seconds(90)) {
    pollfd p = {half_open[ended], POLLIN, 0};
    char c;
    if (poll(&p, 1, 1000) == 1 && read(half_open[ended], &c, 1) <= 0) ++ended;
  }
  EXPECT_EQ(ended, half_open.size());
  for (int fd : half_open) close(fd);
  for (int i = 0; i < 600 && task_->descriptors() > descriptors + 5; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LE(task_->descriptors(), descriptors + 5);
  EXPECT_TRUE(ann.Hello(address_).ok());
}

TEST_F(DenialTest, TheLogHasFewLinesAndNoSecrets) {
  const auto began = steady_clock::now();
  const std::string wrong = Folder("wrong-token", credentials::Make(Good(), &ca_), credentials::NewToken());
  const std::string said = Whole(wrong + "/token");
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(Answered(address_, {{}, 0}), "");
    AnsweredPlainly(address_, "GET / HTTP/1.1\r\n\r\n");
  }
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(Client(wrong).Hello(address_).ok());
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(steady_clock::now() - began).count();
  const std::string log = task_->log();
  EXPECT_THAT(log, HasSubstr("was turned away")) << log;
  EXPECT_LE(std::count(log.begin(), log.end(), '\n'), 1 + 1 + seconds / 5 + 1) << log;  // the first line says where the task listens
  for (const std::string& secret : {Token().substr(0, 32), said.substr(0, 32), std::string("PRIVATE KEY")})
    EXPECT_THAT(log, Not(HasSubstr(secret)));
}

TEST_F(DenialTest, CertificatesMayBeExchangedWhileStepsRun) {
  Client ann(folder_ + "/client-ann");
  for (int round = 0; round < 100; ++round) {
    credentials::MakeCluster(folder_, {{"task/ps/0", {"127.0.0.1"}}, {"client/ann", {}}}, 10 + round);
    EXPECT_TRUE(ann.Hello(address_).ok()) << round;
    if (round % 5 == 0) {
      const Status fresh = Client(folder_ + "/client-ann").Hello(address_);
      EXPECT_TRUE(fresh.ok()) << round << ": " << fresh;
    }
  }
}

TEST_F(DenialTest, WhoseCertificateIsRevokedIsEndedAndStaysOutside) {
  Client ann(folder_ + "/client-ann"), bob(folder_ + "/client-bob");
  ASSERT_TRUE(ann.Hello(address_).ok());
  ASSERT_TRUE(bob.Hello(address_).ok());
  // Stands for a client that was admitted and only waits.
  auto waits = bob.Begin(address_, Method::kWatch, SessionRequest{77});
  const std::vector<std::string> added = credentials::Revoke(folder_, "client/bob", "");
  ASSERT_EQ(added.size(), 1u);
  EXPECT_EQ(added[0], credentials::SerialOf(Whole(folder_ + "/client-bob/cert.pem")));
  ASSERT_EQ(waits.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_FALSE(waits.get().status.ok());
  Status s;
  EXPECT_TRUE(Soon([&] { return (s = bob.Hello(address_)).code() == Code::kPermissionDenied; })) << s;
  EXPECT_THAT(s.ToString(), HasSubstr("the certificate of client/bob is revoked"));
  // A client that is not tried again yet still learns that it was refused, and why. The first pause is
  // 20 ms, so a call right after another one falls within it.
  for (const auto until = steady_clock::now() + std::chrono::seconds(20);
       s.message().find("is not tried again yet") == std::string_view::npos && steady_clock::now() < until;) {
    s = bob.Hello(address_);
    EXPECT_EQ(s.code(), Code::kPermissionDenied) << s;
  }
  EXPECT_THAT(s.ToString(), HasSubstr("refused this process a moment ago (the certificate of client/bob is revoked"));
  EXPECT_THAT(task_->log(), HasSubstr("the connection with 'client/bob' is ended: its certificate is revoked"));
  EXPECT_TRUE(ann.Hello(address_).ok());
  EXPECT_TRUE(Client(folder_ + "/client-ann").Hello(address_).ok());
  // A renewed certificate is a different one; the list stays, also for members added later.
  credentials::MakeCluster(folder_, {{"client/bob", {}}, {"client/carl", {}}}, 10);
  EXPECT_TRUE(Client(folder_ + "/client-bob").Hello(address_).ok());
  EXPECT_EQ(Whole(folder_ + "/client-carl/revoked"), Whole(folder_ + "/authority/revoked"));
  // Revoking by name revokes all certificates of that name; a second time there is nothing to do.
  EXPECT_EQ(credentials::Revoke(folder_, "client/bob", "").size(), 1u);
  EXPECT_EQ(credentials::Revoke(folder_, "client/bob", "").size(), 0u);
  EXPECT_ANY_THROW(credentials::Revoke(folder_, "client/nobody", ""));
  EXPECT_ANY_THROW(credentials::Revoke(folder_, "", "no number"));
}

TEST_F(DenialTest, ATaskWhoseCertificateIsRevokedIsHungUpOnInTheHandshake) {
  Client ann(folder_ + "/client-ann");
  ASSERT_TRUE(ann.Hello(address_).ok());
  const std::string serial = credentials::SerialOf(Whole(folder_ + "/ps-0/cert.pem"));
  // The serial number in the form that openssl prints; the task itself does not know it.
  std::string printed = serial;
  for (char& c : printed) c = char(std::toupper(c));
  std::filesystem::rename(folder_ + "/ps-0/cert.pem", folder_ + "/ps-0/cert.kept");
  ASSERT_EQ(credentials::Revoke(folder_, "", "0" + printed).size(), 1u);
  std::filesystem::rename(folder_ + "/ps-0/cert.kept", folder_ + "/ps-0/cert.pem");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/ps-0/revoked"));
  Status s;
  EXPECT_TRUE(Soon([&] { return !(s = ann.Hello(address_)).ok(); })) << "the connection that is open is ended";
  EXPECT_TRUE(Soon([&] { return !(s = Client(folder_ + "/client-ann").Hello(address_)).ok(); }));
  EXPECT_EQ(s.code(), Code::kUnavailable) << s;
  EXPECT_THAT(task_->log(), Not(HasSubstr("its token")));  // nobody told the task
}

TEST_F(DenialTest, AListThatMakesNoSenseIsToldAndTheLastOneStays) {
  ASSERT_EQ(credentials::Revoke(folder_, "client/bob", "").size(), 1u);
  Status s;
  ASSERT_TRUE(Soon([&] { return (s = Client(folder_ + "/client-bob").Hello(address_)).code() == Code::kPermissionDenied; })) << s;
  credentials::WriteSecret(folder_ + "/ps-0/revoked", "nobody\n");
  EXPECT_TRUE(Soon([&] { return task_->log().find("is no list of serial numbers") != std::string::npos; }));
  EXPECT_EQ(Client(folder_ + "/client-bob").Hello(address_).code(), Code::kPermissionDenied);
  // The list is in force whatever happens to the other files.
  const std::string token = Whole(folder_ + "/ps-0/token");
  credentials::WriteSecret(folder_ + "/ps-0/token", "none");
  std::filesystem::remove(folder_ + "/ps-0/revoked");
  EXPECT_TRUE(Soon([&] { return Client(folder_ + "/client-bob").Hello(address_).ok(); }));
  ASSERT_EQ(credentials::Revoke(folder_, "client/ann", "").size(), 1u);
  EXPECT_TRUE(Soon([&] { return Client(folder_ + "/client-ann").Hello(address_).code() == Code::kPermissionDenied; }));
}

TEST_F(DenialTest, FilesThatOthersMayReadOrThatMakeNoSenseAreRefusedByName) {
  const std::string folder = folder_ + "/client-bob";
  RuntimeOptions options;
  options.threads = 1;
  auto runtime = *Runtime::Create(options);
  runtime->LoadPlugin(Transport()).IgnoreError();  // it may be loaded already
  const auto open = [&] {
    SystemClock clock;
    auto transport = *FindTransport(runtime.get(), {"grpc", ""}, false);
    return Messenger::Create(transport, {"", folder, 1 << 20, false, true}, &clock, [](std::shared_ptr<Incoming>) {}).status();
  };
  EXPECT_TRUE(open().ok());
  chmod((folder + "/key.pem").c_str(), 0644);
  EXPECT_THAT(open().ToString(), HasSubstr("key.pem' can be read by others; chmod 600"));
  EXPECT_THAT(open().ToString(), Not(HasSubstr("listen")));  // a client does not
  chmod((folder + "/key.pem").c_str(), 0600);
  credentials::WriteSecret(folder + "/key.pem", Whole(folder_ + "/client-ann/key.pem"));
  EXPECT_THAT(open().ToString(), HasSubstr("cert.pem and key.pem do not belong together"));
  // Credentials that other peers would reject without a message, because of the certificate or of
  // this machine's clock.
  Recipe expired = Good(), early = Good(), old;
  expired.begins = -2 * kDay, expired.ends = -kDay;
  early.begins = kDay, early.ends = 2 * kDay;
  old.name = "an authority", old.authority = true, old.begins = -2 * kDay, old.ends = -kDay;
  const auto open_with = [&](const Recipe& recipe, const std::string& ca) {
    const Pair pair = credentials::Make(recipe, &ca_);
    credentials::WriteSecret(folder + "/ca.pem", ca);
    credentials::WriteSecret(folder + "/cert.pem", pair.cert);
    credentials::WriteSecret(folder + "/key.pem", pair.key);
    return open().ToString();
  };
  EXPECT_THAT(open_with(expired, ca_.cert), MatchesRegex(".*cert.pem' is good until [-0-9]+ [:0-9]+ UTC, and this machine's clock says "
                                                         "[-0-9]+ [:0-9]+ UTC; make new ones, or set the clock.*"));
  EXPECT_THAT(open_with(early, ca_.cert), MatchesRegex(".*cert.pem' is good from .*; set the clock.*"));
  const std::string gone = credentials::Make(old, nullptr).cert;
  EXPECT_THAT(open_with(Good(), gone), HasSubstr("ca.pem' is good until"));
  EXPECT_EQ(open_with(Good(), gone + ca_.cert), "OK");  // while an authority is replaced, both are valid
  credentials::WriteSecret(folder + "/token", "none");
  EXPECT_THAT(open().ToString(), HasSubstr("token' is no secret"));
  std::filesystem::remove(folder + "/ca.pem");
  EXPECT_THAT(open().ToString(), HasSubstr("ca.pem': No such file"));
  ASSERT_EQ(mkfifo((folder + "/ca.pem").c_str(), 0600), 0);  // a FIFO without a writer
  EXPECT_THAT(open().ToString(), HasSubstr("ca.pem' is no file of at most 1 MB"));
}

}  // namespace
}  // namespace thalweg::distributed
