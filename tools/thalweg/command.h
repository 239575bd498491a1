// A sub-command: its function and its table of options, from which the parser and --help are made.
// One file per sub-command.
//
// Exit status of all sub-commands: 0: success; 1: the command failed, or found the fault that it
// looks for (a damaged checkpoint, an ailing machine); 2: wrong arguments. Errors go to standard
// error as "thalweg NAME: MESSAGE".
#pragma once
#include <map>
#include <string>
#include <vector>

namespace thalweg::cli {

enum Exit { kGood = 0, kFailed = 1, kUsage = 2 };

struct Option {
  const char* name;   // "--feed"
  const char* value;  // placeholder of the value in --help, from which completion derives its offers; NULL: a flag
  const char* help;
};

class Args {
 public:
  bool has(const std::string& option) const { return values_.count(option) > 0; }
  // Returns all values of an option, in order; empty if the option was not given.
  const std::vector<std::string>& all(const std::string& option) const;
  // Returns the last value, or `other` if the option was not given.
  std::string get(const std::string& option, const std::string& other = "") const;
  // Returns the last value as a number >= `least`, or `other` if the option was not given. Throws
  // UsageError naming the option.
  int64_t integer(const std::string& option, int64_t other, int64_t least) const;
  double number(const std::string& option, double other, double least) const;
  // Returns a copy of the arguments with one more value of an option.
  Args with(const std::string& option, const std::string& value) const;
  const std::vector<std::string>& positional() const { return positional_; }
  // Returns the words that were parsed, for another program that takes the same ones.
  const std::vector<std::string>& words() const { return words_; }

 private:
  friend struct Command;
  std::map<std::string, std::vector<std::string>> values_;
  std::vector<std::string> positional_, words_;
};

// Thrown for wrong arguments: main prints the text and a pointer to the help, and exits with
// kUsage.
struct UsageError {
  std::string text;
};

struct Command {
  const char* name;
  const char* positional;  // "GRAPH", "verify|list PREFIX"; "" for none
  const char* summary;     // one line
  const char* details;     // printed below the options in --help; may be ""
  std::vector<Option> options;
  size_t min_positional, max_positional;
  int (*run)(const Args& args);

  // Throws UsageError.
  Args Parse(const std::vector<std::string>& words) const;
  std::string Help() const;
};

// Returns all commands, in the order of --help.
const std::vector<const Command*>& Commands();

const Command& RunCommand();
const Command& ReplayCommand();
const Command& BenchCommand();
const Command& InspectCommand();
const Command& DebugCommand();
const Command& ConvertCommand();
const Command& PlotCommand();
const Command& TraceCommand();
const Command& OpsCommand();
const Command& PluginsCommand();
const Command& NewCommand();
const Command& DevicesCommand();
const Command& CkptCommand();
const Command& DoctorCommand();
const Command& CompletionCommand();
const Command& ServeCommand();
const Command& WorkerCommand();
const Command& LaunchCommand();
const Command& ClusterCommand();

}  // namespace thalweg::cli
