#include "dispatch.h"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <string_view>

#include "utf8.h"

namespace thalweg::cli {
namespace {

bool AsksForHelp(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word == "--") return false;
    if (word == "--help" || word == "-h") return true;
  }
  return false;
}

// Escapes control characters: a message may quote a file, and must not move the terminal's cursor.
void Complain(const Command& command, std::string_view text) {
  std::string out = std::string("thalweg ") + command.name + ":";
  for (size_t at = 0; at != text.npos;) {
    const size_t end = text.find('\n', at);
    out += (at ? "\n" : " ") + OneLine(text.substr(at, end - at));
    at = end == text.npos ? end : end + 1;
  }
  std::fprintf(stderr, "%s\n", out.c_str());
}

}  // namespace

int Dispatch(const Command& command, const std::vector<std::string>& words) {
  if (AsksForHelp(words)) {
    std::fputs(command.Help().c_str(), stdout);
    return kGood;
  }
  try {
    return command.run(command.Parse(words));
  } catch (const UsageError& e) {
    Complain(command, e.text + (e.text.back() == '?' ? " see" : "; see") + " thalweg " + command.name + " --help");
    return kUsage;
  } catch (const std::bad_alloc&) {
    Complain(command, "there is not enough memory");
    return kFailed;
  } catch (const std::filesystem::filesystem_error& e) {
    Complain(command, "'" + e.path1().string() + "': " + e.code().message());
    return kFailed;
  } catch (const std::exception& e) {
    Complain(command, e.what());
    return kFailed;
  }
}

int Finish(int status) {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return status;
  std::fprintf(stderr, "thalweg: cannot write to standard output\n");
  return kFailed;
}

}  // namespace thalweg::cli
