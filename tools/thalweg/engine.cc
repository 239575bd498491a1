#include "engine.h"

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include <sys/wait.h>

#include "command.h"

extern char** environ;

namespace thalweg::cli {
namespace {

std::optional<int64_t> NumberIn(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

// Returns the number of a variable; none if it is not set. Throws if it is no number.
std::optional<int64_t> Number(const Environment& environment, const char* name) {
  const char* text = environment(name);
  if (!text) return std::nullopt;
  const auto value = NumberIn(text);
  if (!value) throw std::runtime_error("environment variable " + std::string(name) + " is '" + text + "', which is no number");
  return value;
}

}  // namespace

const char* OwnVariable(const char* name) { return secure_getenv(name); }

Rank RankFrom(const Environment& environment) {
  struct Names {
    const char* rank;
    std::vector<const char*> sizes;  // the first one that is set
  };
  // PMIx gives no size in the environment; under srun Slurm's variables have it.
  static const std::vector<Names> all = {{"OMPI_COMM_WORLD_RANK", {"OMPI_COMM_WORLD_SIZE"}},
                                         {"PMI_RANK", {"PMI_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}},
                                         {"PMIX_RANK", {"PMIX_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}},
                                         {"SLURM_PROCID", {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}}};
  std::string looked;
  for (const Names& names : all) {
    looked += (looked.empty() ? "" : ", ") + std::string(names.rank);
    const auto rank = Number(environment, names.rank);
    if (!rank) continue;
    for (const char* name : names.sizes) {
      const auto size = Number(environment, name);
      if (!size) continue;
      if (*rank >= *size) {
        throw std::runtime_error("environment variables " + std::string(names.rank) + "=" + std::to_string(*rank) + " and " + name + "=" +
                                 std::to_string(*size) + " contradict each other");
      }
      return {*rank, *size, names.rank};
    }
    throw std::runtime_error("environment variable " + std::string(names.rank) + " is set and none with the number of processes is (" +
                             names.sizes[0] + ")");
  }
  throw std::runtime_error("no engine has started this process: none of " + looked +
                           " is set; --meet is for processes that mpirun or srun has started");
}

TaskName TaskOf(int64_t rank, int64_t ps) { return rank < ps ? TaskName{"ps", rank} : TaskName{"worker", rank - ps}; }

TaskName TaskFrom(const std::string& text, const Environment& environment) {
  const size_t slash = text.find('/');
  const TaskName name{text.substr(0, slash), 0};
  if (name.job.empty()) throw UsageError{"--task takes JOB/INDEX or JOB, not '" + text + "'"};
  if (slash != text.npos) {
    const auto index = NumberIn(std::string_view(text).substr(slash + 1));
    if (!index) throw UsageError{"--task takes JOB/INDEX or JOB, not '" + text + "'"};
    return {name.job, *index};
  }
  if (const auto index = Number(environment, "JOB_COMPLETION_INDEX")) return {name.job, *index};
  for (const char* variable : {"POD_NAME", "HOSTNAME"}) {
    const char* pod = environment(variable);
    if (!pod) continue;
    const std::string_view whole(pod);
    const size_t dash = whole.rfind('-');
    const auto index = dash == whole.npos ? std::nullopt : NumberIn(whole.substr(dash + 1));
    if (index) return {name.job, *index};
    throw std::runtime_error("environment variable " + std::string(variable) + " is '" + pod +
                             "', which does not end with the task's index;" + " give --task " + name.job + "/INDEX");
  }
  throw std::runtime_error("the index of this task is not known: none of JOB_COMPLETION_INDEX, POD_NAME, HOSTNAME is set; give --task " +
                           name.job + "/INDEX");
}

std::vector<std::string> MpiCommand(const Start& start, bool open_mpi, const std::vector<std::string>& names) {
  std::vector<std::string> all = {"mpirun", "-n", std::to_string(start.processes)};
  if (open_mpi) {
    // Open MPI would give each process one core, and one second between SIGTERM and SIGKILL.
    for (const char* word : {"--bind-to", "none", "--mca", "odls_base_sigkill_timeout", "10"}) all.emplace_back(word);
    for (const std::string& name : names) all.insert(all.end(), {"-x", name});
  }
  all.insert(all.end(), start.options.begin(), start.options.end());
  all.insert(all.end(), start.words.begin(), start.words.end());
  return all;
}

std::vector<std::string> SlurmCommand(const Start& start) {
  std::vector<std::string> all = {"srun", "--ntasks=" + std::to_string(start.processes), "--kill-on-bad-exit=1", "--export=ALL"};
  all.insert(all.end(), start.options.begin(), start.options.end());
  all.insert(all.end(), start.words.begin(), start.words.end());
  return all;
}

std::vector<std::string> NeededVariables() {
  static const std::vector<std::string_view> paths = {"PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV"};
  std::vector<std::string> all;
  for (char** e = environ; *e; ++e) {
    const std::string_view name(*e, std::strcspn(*e, "="));
    if (name.starts_with("THALWEG_") || std::find(paths.begin(), paths.end(), name) != paths.end()) all.emplace_back(name);
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::optional<std::string> FindProgram(const std::string& name) {
  if (name.find('/') != name.npos) return access(name.c_str(), X_OK) == 0 ? std::optional(name) : std::nullopt;
  const char* path = std::getenv("PATH");
  std::string_view rest = path ? path : "/usr/bin:/bin";
  for (;;) {
    const size_t colon = rest.find(':');
    const std::string file = std::string(rest.substr(0, colon)) + "/" + name;
    if (access(file.c_str(), X_OK) == 0) return file;
    if (colon == rest.npos) return std::nullopt;
    rest.remove_prefix(colon + 1);
  }
}

std::optional<std::string> OutputOf(const std::vector<std::string>& words) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, pointers[0], &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string out;
  char bytes[4096];
  for (ssize_t n; error == 0 && ((n = read(ends[0], bytes, sizeof bytes)) > 0 || (n < 0 && errno == EINTR));) {
    if (n > 0) out.append(bytes, size_t(n));
  }
  close(ends[0]);
  int status = 0;
  if (error != 0) return std::nullopt;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
  return out;
}

std::string ShellLine(const std::vector<std::string>& words) {
  static constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    if (!word.empty() && word.find_first_not_of(kPlain) == word.npos) {
      line += word;
      continue;
    }
    line += '\'';
    for (char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

}  // namespace thalweg::cli
