#include "profile.h"

#include <fcntl.h>
#include <pwd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <sys/stat.h>

#include "fail.h"
#include "options.h"

namespace thalweg::s3 {
namespace {

constexpr off_t kMostBytes = 1 << 20;

std::string_view Trimmed(std::string_view s) {
  constexpr std::string_view kBlanks = " \t\r";
  const size_t first = s.find_first_not_of(kBlanks);
  return first == s.npos ? std::string_view() : s.substr(first, s.find_last_not_of(kBlanks) - first + 1);
}

std::string Home() {
  std::string home = Environment("HOME");
  if (!home.empty()) return home;
  passwd entry = {}, *found = nullptr;
  char buffer[4096];
  return getpwuid_r(geteuid(), &entry, buffer, sizeof buffer, &found) == 0 && found ? found->pw_dir : "";
}

std::string BesideHome(const char* variable, const char* file) {
  const std::string chosen = Environment(variable);
  return chosen.empty() ? Home() + "/.aws/" + file : chosen;
}

class Closes {
 public:
  explicit Closes(int fd) : fd_(fd) {}
  ~Closes() {
    if (fd_ >= 0) close(fd_);
  }
  Closes(const Closes&) = delete;

 private:
  const int fd_;
};

}  // namespace

Profile ParseProfile(const std::string& text, const std::string& section) {
  Profile p;
  bool inside = false;
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view raw = rest.substr(0, end), line = Trimmed(raw);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[') {
      std::string_view name = Trimmed(line.substr(1, std::min(line.find(']'), line.size()) - 1));
      inside = name == section;
      p.found |= inside;
      continue;
    }
    // Indented lines belong to a nested setting of another service.
    const size_t equals = line.find('=');
    if (!inside || equals == line.npos || raw.front() == ' ' || raw.front() == '\t') continue;
    const std::string_view name = Trimmed(line.substr(0, equals));
    const std::string value(Trimmed(line.substr(equals + 1)));
    if (name == "aws_access_key_id") p.key.id = value;
    if (name == "aws_secret_access_key") p.key.secret = value;
    if (name == "aws_session_token") p.key.token = value;
    if (name == "region") p.region = value;
    if (name == "endpoint_url") p.endpoint = value;
  }
  return p;
}

std::string ReadProfileFile(const std::string& path, bool* readable_by_others) {
  *readable_by_others = false;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // without O_NONBLOCK, a named pipe would wait for a writer
  if (fd < 0 && (errno == ENOENT || errno == ENOTDIR)) return "";
  const Closes closes(fd);
  const auto refuse = [&](const std::string& why) { Fail(TW_INVALID_ARGUMENT, "'" + path + "' " + why); };
  struct stat s = {};
  if (fd < 0 || fstat(fd, &s) != 0) refuse(std::string("cannot be read: ") + strerror(errno));
  if (!S_ISREG(s.st_mode)) refuse("is no file");
  if (s.st_uid != geteuid() && s.st_uid != 0) refuse("belongs to user " + std::to_string(s.st_uid) + ", who may change it; chown it");
  if (s.st_mode & (S_IWGRP | S_IWOTH)) refuse("can be changed by others; chmod 600");
  if (s.st_size > kMostBytes) refuse("has more than 1 MiB");
  *readable_by_others = (s.st_mode & (S_IRGRP | S_IROTH)) != 0;
  std::string text(size_t(s.st_size), '\0');
  size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t n = read(fd, text.data() + filled, text.size() - filled);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse(std::string("cannot be read: ") + strerror(errno));
    if (n == 0) break;
    filled += size_t(n);
  }
  text.resize(filled);
  return text;
}

std::string ProfileName(const std::string& name) {
  if (!name.empty()) return name;
  const std::string chosen = Environment("AWS_PROFILE");
  return chosen.empty() ? "default" : chosen;
}

std::string CredentialsPath(const std::string& path) {
  return path.empty() ? BesideHome("AWS_SHARED_CREDENTIALS_FILE", "credentials") : path;
}

Profile ReadConfig(const std::string& name) {
  bool readable = false;
  const std::string text = ReadProfileFile(BesideHome("AWS_CONFIG_FILE", "config"), &readable), profile = ProfileName(name);
  return ParseProfile(text, profile == "default" ? profile : "profile " + profile);
}

}  // namespace thalweg::s3
