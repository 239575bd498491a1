#include "credentials.h"

#include <nlohmann/json.hpp>

#include "fail.h"
#include "profile.h"

namespace thalweg::s3 {
namespace {

constexpr time_t kEarly = 300;  // a key is renewed so many seconds before it expires
// Attempts to renew a key that still holds are so far apart: each of them holds up all requests.
constexpr std::chrono::seconds kBetweenLooks{10};

// A key with line ends would change the headers of the request.
Credential Checked(Credential c) {
  for (const std::string* part : {&c.key.id, &c.key.secret, &c.key.token}) {
    for (char ch : *part) {
      if (ch <= ' ' || ch > '~') Fail(TW_UNAUTHENTICATED, "the key from " + c.origin + " has characters that no key has");
    }
  }
  return c;
}

std::optional<Credential> FromEnvironment() {
  Credential c;
  c.key = {Environment("AWS_ACCESS_KEY_ID"), Environment("AWS_SECRET_ACCESS_KEY"), Environment("AWS_SESSION_TOKEN")};
  c.origin = "the environment (AWS_ACCESS_KEY_ID)";
  if (c.key.id.empty() && c.key.secret.empty()) return std::nullopt;
  if (c.key.id.empty() || c.key.secret.empty()) {
    Fail(TW_UNAUTHENTICATED, "only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set; set both or none");
  }
  return Checked(c);
}

std::optional<Credential> FromProfile(const std::string& text, const std::string& section, const std::string& origin) {
  const Profile p = ParseProfile(text, section);
  if (p.key.id.empty() || p.key.secret.empty()) return std::nullopt;
  Credential c;
  c.key = p.key;
  c.origin = origin;
  return Checked(c);
}

// Plain HTTP may go to this machine and to the addresses at which ECS and EKS serve credentials.
bool MayServeKeys(const Endpoint& e) {
  return e.tls || e.loopback() || e.host == "169.254.170.2" || e.host == "169.254.170.23" || e.host == "[fd00:ec2::23]";
}

}  // namespace

Credential ParseContainerAnswer(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  const auto field = [&](const char* name) {
    const auto it = json.is_object() ? json.find(name) : json.end();
    return it != json.end() && it->is_string() ? it->get<std::string>() : std::string();
  };
  Credential c;
  c.origin = "the container's endpoint for credentials";
  c.key = {field("AccessKeyId"), field("SecretAccessKey"), field("Token")};
  if (c.key.id.empty() || c.key.secret.empty()) Fail(TW_UNAUTHENTICATED, c.origin + " sends no AccessKeyId and SecretAccessKey");
  if (const std::string expires = field("Expiration"); !expires.empty()) {
    tm at = {};
    if (!strptime(expires.c_str(), "%Y-%m-%dT%H:%M:%S", &at)) Fail(TW_UNAUTHENTICATED, c.origin + " sends an Expiration that is no time");
    c.expires = timegm(&at);
  }
  return Checked(c);
}

std::optional<Credential> Credentials::FromFile() {
  const std::string path = CredentialsPath(settings_.credentials), name = ProfileName(settings_.profile);
  bool readable = false;
  const std::string text = ReadProfileFile(path, &readable);
  auto found = FromProfile(text, name, "profile '" + name + "' of '" + path + "'");
  if (found && readable && !std::exchange(warned_, true)) {
    warn_("'" + path + "' holds a secret key, and other users of this machine can read it; chmod 600");
  }
  if (!found && !settings_.credentials.empty()) {
    Fail(TW_UNAUTHENTICATED,
         "'" + path + "' (setting 'credentials') has no section [" + name + "] with aws_access_key_id and aws_secret_access_key");
  }
  return found;
}

std::optional<Credential> Credentials::FromContainer() {
  std::string url = Environment("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  const std::string relative = Environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  if (!relative.empty()) url = "http://169.254.170.2" + relative;
  if (url.empty()) return std::nullopt;
  const size_t query = std::min(url.find('?'), url.size());
  const Endpoint e = ParseEndpoint(url.substr(0, query), "AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (!MayServeKeys(e)) {
    Fail(TW_UNAUTHENTICATED, "AWS_CONTAINER_CREDENTIALS_FULL_URI names '" + e.host +
                                 "', from which keys would travel without encryption; use https:// or an address of this machine");
  }
  Request r;
  r.method = "GET";
  r.url = e.text() + url.substr(query);
  r.headers = {{"host", e.host}, {"accept", "application/json"}};
  std::string token = Environment("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  if (const std::string file = Environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); !file.empty()) {
    bool readable;
    token = ReadProfileFile(file, &readable);
    while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  }
  if (token.find_first_of("\r\n") != token.npos) Fail(TW_UNAUTHENTICATED, "the token for the container's endpoint has several lines");
  if (!token.empty()) r.headers.emplace_back("authorization", token);
  r.most_bytes = 64 << 10;
  r.direct = !e.tls;
  r.deadline = Clock::now() + std::chrono::seconds(5);
  const Answer a = http_.Send(r);
  if (!a.ok()) {
    Fail(TW_UNAUTHENTICATED, "the container's endpoint for credentials '" + e.text() +
                                 "' answers: " + (a.failure == Answer::Failure::kNone ? "status " + std::to_string(a.status) : a.why));
  }
  return ParseContainerAnswer(a.body);
}

Credential Credentials::Find() {
  if (settings_.anonymous) {
    Credential c;
    c.anonymous = true;
    c.origin = "setting 'anonymous'";
    return c;
  }
  if (!settings_.credentials.empty()) return *FromFile();
  if (auto c = FromEnvironment()) return *c;
  if (auto c = FromFile()) return *c;
  if (auto c = FromContainer()) return *c;
  Fail(TW_UNAUTHENTICATED,
       "there is no key for the store; looked at AWS_ACCESS_KEY_ID, at profile '" + ProfileName(settings_.profile) + "' of '" +
           CredentialsPath({}) +
           "', and at AWS_CONTAINER_CREDENTIALS_FULL_URI; set one of them, or plugin.org.thalweg.s3.anonymous=1 for public buckets");
}

Credential Credentials::Get() {
  std::lock_guard lock(mu_);
  const auto holds = [&](time_t more) { return found_ && (found_->expires == 0 || found_->expires > time(nullptr) + more); };
  if (holds(kEarly) || (holds(0) && Clock::now() < next_look_)) return *found_;
  next_look_ = Clock::now() + kBetweenLooks;
  try {
    found_ = Find();
  } catch (const tw::Error&) {
    if (!holds(0)) throw;  // else the old one is still good for a while
  }
  return *found_;
}

bool Credentials::Renew(const Credential& used) {
  const auto differs = [&](const Credential& c) {
    return c.key.id != used.key.id || c.key.secret != used.key.secret || c.key.token != used.key.token;
  };
  std::lock_guard lock(mu_);
  if (found_ && differs(*found_)) return true;  // another thread has renewed it
  Credential fresh = Find();
  if (!differs(fresh)) return false;
  found_ = std::move(fresh);
  return true;
}

}  // namespace thalweg::s3
