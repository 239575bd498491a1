// thalweg-sandbox: the confined worker of one client. A runtime (distributed/sandbox/process.h)
// starts it with its only connection at descriptor 3, whose memory is descriptor 5
// (distributed/sandbox/pipe_transport.h), and a control channel at descriptor 4. The process reads
// zero-terminated settings "key=value" there until end of file; then it writes a line "has WHAT"
// for each restriction in force, and "ready" or "failed WHY". It exits when the other end of
// descriptor 3 closes.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "confine.h"
#include "thalweg/cpp/thalweg.hpp"

namespace thalweg::sandbox {
namespace {

constexpr int kConnection = 3, kConversation = 4;  // kMemory: confine.h

void Say(const std::string& line) {
  const std::string text = line + "\n";
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t n = write(kConversation, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(1);  // the reader is gone
    rest.remove_prefix(size_t(n));
  }
}

[[noreturn]] void Fail(std::string why) {
  for (char& c : why) c = c == '\n' ? ' ' : c;
  Say("failed " + why);
  _exit(1);
}

std::string ReadAll() {
  std::string text;
  char block[4096];
  for (ssize_t n = 0; (n = read(kConversation, block, sizeof block)) != 0;) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) _exit(2);
    text.append(block, size_t(n));
  }
  return text;
}

Settings ReadSettings() {
  Settings s;
  const std::string text = ReadAll();
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = rest.find('\0'), equals = rest.find('=');
    if (end == rest.npos || equals > end) Fail("a setting is damaged");
    const std::string_view key = rest.substr(0, equals), value = rest.substr(equals + 1, end - equals - 1);
    const auto number = [&](uint64_t* to) {
      if (std::from_chars(value.data(), value.data() + value.size(), *to).ec != std::errc()) Fail("a setting is damaged");
    };
    if (key == "memory") number(&s.memory);
    if (key == "threads") number(&s.threads);
    if (key == "descriptors") number(&s.descriptors);
    if (key == "read") s.read.emplace_back(value);
    if (key == "option") s.options.emplace_back(value);
    if (key == "allow_files") s.allow_files = value;
    rest.remove_prefix(end + 1);
  }
  return s;
}

void Confine(const Settings& s) {
  const int proc = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
  const Separated apart = Separate(s.read, proc);
  bool own_users = apart.users;
  if (!DropRights(proc, &own_users)) Fail("it cannot give up its rights");
  close(proc);
  const Limited limited = Limit(s, own_users);
  const int landlock = LimitFiles(s.read);
  if (!FilterCalls()) Fail("there is no filter of system calls (seccomp) on this machine");
  Say("has filter");
  if (apart.network) Say("has network");
  if (apart.view) Say("has view");
  if (landlock > 0) Say("has landlock");
  if (limited.memory) Say("has memory");
  if (limited.threads) Say("has threads");
  if (limited.descriptors) Say("has descriptors");
}

int Serve(const Settings& s) {
  std::vector<const char*> options, server;
  for (const std::string& o : s.options) options.push_back(o.c_str());
  const std::string files = "allow_files=" + s.allow_files;
  if (!s.allow_files.empty()) server.push_back(files.c_str());
  const int watched = fcntl(kConnection, F_DUPFD_CLOEXEC, 10);
  const tw::Runtime runtime(options);
  const tw::Server worker(runtime, "{\"sandbox\": [\"pipe:fd3m5\"]}", "sandbox", 0, server);
  close(kMemory);  // already mapped
  Say("ready");
  close(kConversation);
  // Waits until the parent is gone or closes the connection.
  for (pollfd p = {watched, 0, 0}; poll(&p, 1, -1) <= 0;) continue;
  _exit(0);
}

}  // namespace
}  // namespace thalweg::sandbox

int main() {
  using namespace thalweg::sandbox;
  if (fcntl(kConnection, F_GETFD) < 0 || fcntl(kConversation, F_GETFD) < 0 || fcntl(kMemory, F_GETFD) < 0) {
    std::fprintf(stderr, "usage: thalweg-sandbox, by a runtime; people use `thalweg worker --sandbox`\n");
    return 2;
  }
  const Settings settings = ReadSettings();
  Confine(settings);
  try {
    return Serve(settings);
  } catch (const std::exception& e) {
    Fail(e.what());
  }
}
