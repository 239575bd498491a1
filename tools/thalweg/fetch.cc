#include "fetch.h"

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <sys/wait.h>

#include "handles.h"

extern char** environ;

namespace thalweg::cli {
namespace {

struct FileActions {
  posix_spawn_file_actions_t c;
  FileActions() { posix_spawn_file_actions_init(&c); }
  ~FileActions() { posix_spawn_file_actions_destroy(&c); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
};

// Reads until the end, or until more than `most` bytes were read.
std::string ReadAll(int file, uint64_t most) {
  std::string bytes;
  char part[65536];
  for (ssize_t n; bytes.size() <= most && (n = read(file, part, sizeof part)) != 0;) {
    if (n > 0) bytes.append(part, size_t(n));
    if (n < 0 && errno != EINTR) throw std::runtime_error(std::string("cannot read from a pipe: ") + std::strerror(errno));
  }
  return bytes;
}

}  // namespace

int Program::Run(std::string* said) const {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  int pipe[2];
  if (pipe2(pipe, O_CLOEXEC) != 0) throw std::runtime_error(std::string("cannot make a pipe: ") + std::strerror(errno));
  FileActions actions;
  posix_spawn_file_actions_addopen(&actions.c, 0, input.empty() ? "/dev/null" : input.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions.c, pipe[1], 1);
  if (quiet) posix_spawn_file_actions_addopen(&actions.c, 2, "/dev/null", O_WRONLY, 0);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, pointers[0], &actions.c, nullptr, pointers.data(), environ);
  close(pipe[1]);
  if (error) {
    close(pipe[0]);
    throw std::runtime_error("cannot start '" + words[0] + "': " + std::strerror(error) + "; " + remedy);
  }
  std::string out = ReadAll(pipe[0], most);
  close(pipe[0]);
  const bool too_much = out.size() > most;
  if (too_much) kill(pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (too_much) throw std::runtime_error("'" + words.back() + "' has more than " + std::to_string(most) + " bytes");
  if (WIFSIGNALED(status)) throw std::runtime_error("'" + words[0] + "' was ended by the signal " + strsignal(WTERMSIG(status)));
  if (said) *said = std::move(out);
  return WEXITSTATUS(status);
}

Source::Source(std::string place) : place_(std::move(place)) {
  remote_ = place_.rfind("https://", 0) == 0 || place_.rfind("http://", 0) == 0;
  if (!remote_ && place_.find("://") != place_.npos)
    throw std::runtime_error("'" + place_ + "' is neither a folder nor an address that begins with https:// or http://");
  while (place_.size() > 1 && place_.back() == '/') place_.pop_back();
}

std::string Source::Fetch(const std::string& name, uint64_t most) const {
  const std::string from = place_ + "/" + name;
  if (!remote_) return ReadFile(from, most);
  Program curl;
  curl.words = {"curl", "--silent",          "--show-error", "--fail",       "--location", "--proto",       "=http,https", "--max-redirs",
                "5",    "--connect-timeout", "30",           "--speed-time", "60",         "--speed-limit", "1",           "--",
                from};
  curl.remedy = "install curl, or give a folder";
  curl.most = most;
  std::string bytes;
  if (const int status = curl.Run(&bytes))
    throw std::runtime_error("cannot fetch '" + from + "': curl ends with status " + std::to_string(status));
  return bytes;
}

}  // namespace thalweg::cli
