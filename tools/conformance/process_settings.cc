#include "tools/conformance/process_settings.h"

#include <locale.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>

#include <sys/mman.h>
#include <sys/stat.h>

#include "framework/base/strings.h"

namespace thalweg::conformance {
namespace {

std::string Folder() {
  char path[PATH_MAX];
  return getcwd(path, sizeof path) ? path : "";
}

std::string Locale() {
  const char* name = setlocale(LC_ALL, nullptr);
  return name ? name : "";
}

mode_t Mask() {
  const mode_t mask = umask(0);
  umask(mask);
  return mask;
}

std::string SignalName(int signal) {
  const char* name = sigabbrev_np(signal);
  return name ? StrCat("SIG", name) : StrCat("signal ", signal);
}

}  // namespace

ProcessSettings::ProcessSettings() : folder_(Folder()), locale_(Locale()), mask_(Mask()) {
  for (int s = 1; s < int(actions_.size()); ++s) (void)sigaction(s, nullptr, &actions_[size_t(s)]);
}

std::string ProcessSettings::ChangedSince() const {
  const ProcessSettings now;
  std::string text;
  const auto add = [&](const auto&... parts) { text += StrCat(text.empty() ? "" : "; ", parts...); };
  if (now.folder_ != folder_) add("the working folder is '", now.folder_, "' instead of '", folder_, "'");
  for (int s = 1; s < int(actions_.size()); ++s) {
    const struct sigaction &was = actions_[size_t(s)], &is = now.actions_[size_t(s)];
    if (was.sa_handler != is.sa_handler || was.sa_flags != is.sa_flags) add("what is done on ", SignalName(s), " is changed");
  }
  if (!(now.floats_ == floats_)) {
    add("the floating-point state of the thread is changed (", now.floats_.text(), "), as by linking with -ffast-math or by fesetround");
  }
  if (now.locale_ != locale_) add("the locale is '", now.locale_, "' instead of '", locale_, "'");
  if (now.mask_ != mask_) add("the mask of new files' permissions is changed");
  return text;
}

void ProcessSettings::Restore() const {
  if (!folder_.empty()) (void)!chdir(folder_.c_str());
  for (int s = 1; s < int(actions_.size()); ++s) (void)sigaction(s, &actions_[size_t(s)], nullptr);
  floats_.Restore();
  setlocale(LC_ALL, locale_.c_str());
  umask(mask_);
}

Overheard::Overheard() {
  std::fflush(nullptr);
  file_ = memfd_create("overheard", MFD_CLOEXEC);
  out_ = dup(1);
  error_ = dup(2);
  if (file_ < 0 || out_ < 0 || error_ < 0) return;
  dup2(file_, 1);
  dup2(file_, 2);
}

std::string Overheard::Stop() {
  std::string text;
  std::fflush(nullptr);
  if (file_ >= 0 && out_ >= 0 && error_ >= 0) {
    dup2(out_, 1);
    dup2(error_, 2);
    char bytes[120];
    const ssize_t n = pread(file_, bytes, sizeof bytes, 0);
    if (n > 0) text.assign(bytes, size_t(n));
    const bool more = text.find('\n') < text.size() - 1;
    text = text.substr(0, text.find('\n'));
    if (more && !text.empty()) text += " ...";
    if (n > 0 && text.empty()) text = "an empty line";
  }
  for (int* fd : {&file_, &out_, &error_}) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
  }
  return text;
}

}  // namespace thalweg::conformance
