// Engines that start the processes of a cluster: MPI launchers, Slurm, Kubernetes. How each tells a
// process which of all it is, and how each is told to start them. Threads: values, no sharing.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace thalweg::cli {

// Returns the value of an environment variable; NULL if it is not set.
using Environment = std::function<const char*(const char* name)>;
const char* OwnVariable(const char* name);  // of this process; NULL also in a process with more rights than who started it

// A process among all that an engine has started for one launch.
struct Rank {
  int64_t rank = 0, size = 0;
  std::string from;  // the variables that say so: "OMPI_COMM_WORLD_RANK"
};

// Returns the rank that the environment names: Open MPI's variables, those of PMI and PMIx, then
// Slurm's. srun's own come last because a batch script has them too.
// Throws std::runtime_error if there are none, or if they make no sense.
Rank RankFrom(const Environment& environment);

// A task of the cluster.
struct TaskName {
  std::string job;
  int64_t index = 0;
  std::string text() const { return job + "/" + std::to_string(index); }
};

// The first `ps` ranks are parameter servers, the others workers.
TaskName TaskOf(int64_t rank, int64_t ps);

// Returns the task of "ps/3"; of "ps" alone, with the index from the environment of a pod: the
// completion index of a Job, or the number at the end of the pod's name in a StatefulSet.
// Throws UsageError for text without sense; std::runtime_error if the environment names no index.
TaskName TaskFrom(const std::string& text, const Environment& environment);

// How many processes are to be started, and what the engine's own command gets.
struct Start {
  int64_t processes = 0;
  std::vector<std::string> options;  // for the engine's command, from the user
  std::vector<std::string> words;    // program and arguments of each process
};

// Returns the command that starts them: mpirun ..., srun ....   open_mpi: mpirun is Open MPI's.
// names: of variables that are set here, and that the processes need.
std::vector<std::string> MpiCommand(const Start& start, bool open_mpi, const std::vector<std::string>& names);
std::vector<std::string> SlurmCommand(const Start& start);

// Returns the names of our environment's variables that a process elsewhere needs: those of
// Thalweg, and the search paths for programs, libraries and modules.
std::vector<std::string> NeededVariables();

// Returns the file of a program on the PATH; none if there is none.
std::optional<std::string> FindProgram(const std::string& name);
// Runs the program and returns what it writes to standard output; none if it cannot be started or
// fails.
std::optional<std::string> OutputOf(const std::vector<std::string>& words);

// Returns the words as a line for a shell.
std::string ShellLine(const std::vector<std::string>& words);

}  // namespace thalweg::cli
