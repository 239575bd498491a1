// Supervisor: starts the processes of a launch on this machine, shows their output with a prefix,
// passes signals on, starts again those that end badly, and ends all together.
// Threads: none of its own; one at a time in a process, because it blocks signals.
#pragma once
#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "own_program.h"

namespace thalweg::cli {

// A process to start.
struct Process {
  std::string name;                           // the prefix of each line of its output; "": it writes where we write
  std::vector<std::string> words;             // program and arguments
  bool own = false;                           // words[0] is this program, also after its file was replaced
  bool server = false;                        // serves the programs: gets no signals but the last, and is ended when all programs are done
  std::vector<std::string> environment = {};  // NAME=VALUE, in place of what we have under those names
};

// The processes of the same launch elsewhere.
class Elsewhere {
 public:
  virtual ~Elsewhere() = default;
  // Called once: all programs here have succeeded.
  virtual void Succeeded() = 0;
  // Called once: a process here has ended badly. status: the exit status of the launch.
  virtual void Failed(int status, const std::string& what) = 0;
  // Returns true if all programs elsewhere have succeeded too. *status: not 0 if one has failed;
  // *what then says which one and how.
  virtual bool Done(int* status, std::string* what) = 0;
};

class Supervisor {
 public:
  // restarts: how often each process that ends badly is started again.   patience: milliseconds
  // from the first signal that ends all to SIGKILL.   elsewhere: borrowed; NULL: all is here.
  // Signals are blocked from here on, and handled by Run.
  struct Options {
    int64_t restarts = 0;
    int patience = 5000;
    Elsewhere* elsewhere = nullptr;
  };
  explicit Supervisor(const Options& options);
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // Starts the processes and returns when all have ended: 0 if all programs have succeeded; the
  // status of the first process that ended badly, 128 + N if signal N killed it; 1 after a signal
  // to us. Throws std::runtime_error if one cannot be started. REQUIRES: called once.
  int Run(const std::vector<Process>& processes);
  // Returns true if a signal to us ended all.
  bool told_to_end() const { return told_to_end_; }

 private:
  using Clock = std::chrono::steady_clock;
  struct Child {
    Process is;
    std::vector<std::string> environment;  // complete
    pid_t pid = -1;                        // also the id of the process group that it leads; -1: no process and no group
    bool ended = false;                    // true: the process is kept as a zombie, so that its group id is not reused
    int output = -1;
    std::string line = {};  // output since the last complete line
    int64_t starts = 0;
    Clock::time_point again = {};  // time of the next start; the clock's epoch: none is due
  };

  void Spawn(Child* c);
  [[noreturn]] void CannotStart(const Child& c, int error);
  bool Running() const;
  static bool Lives(const Child& c) { return c.pid > 0 && !c.ended; }
  static bool IsToStart(const Child& c) { return c.again != Clock::time_point(); }
  int Patience() const;
  void StartAgain();
  void Turn();
  void AskElsewhere();
  static void Read(Child* c);
  static void LetGo(Child* c);
  static void Close(Child* c);
  static void Show(Child* c);
  void Reap();
  void Ended(Child* c, const siginfo_t& how);
  void Fail(int status, const std::string& what);
  static void Finish(Child* c);
  void End(int signal);
  void EndHard();

  const Options options_;
  const OwnProgram own_;
  sigset_t before_;
  int signals_ = -1;
  bool ending_ = false, failed_ = false, told_to_end_ = false;
  bool succeeded_ = false;      // elsewhere knows that all programs here have succeeded
  bool told_failure_ = false;   // elsewhere knows that a process here has failed, or has told us of its own
  int status_ = 0;              // of the first process that ended badly
  Clock::time_point hard_at_;   // the time of SIGKILL, once all are being ended
  Clock::time_point ask_at_{};  // the time of the next question to elsewhere
  std::vector<Child> children_;
};

}  // namespace thalweg::cli
