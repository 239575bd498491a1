// The helper programs in lib/thalweg, beside libthalweg.so. They are programs of their own, so that
// `thalweg` does not load the libraries that only they need.
#pragma once
#include <string>
#include <vector>

namespace thalweg::cli {

// Returns the path of a helper such as "thalweg-credentials"; "" if it is not there.
std::string FindHelper(const std::string& name);

// Replaces this process by the helper, with these words as its arguments. Throws std::runtime_error
// if the helper cannot be started; `remedy` says in the message what to do if it is not there.
[[noreturn]] void ExecuteHelper(const std::string& name, const std::vector<std::string>& words, const std::string& remedy);

}  // namespace thalweg::cli
