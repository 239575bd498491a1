// thalweg-credentials FOLDER DAYS NAME[=HOST,HOST...]...: makes the certificates of a cluster's
// members. `thalweg cluster init` runs it.
// thalweg-credentials FOLDER revoke NAME|serial=HEX: revokes a member's certificates. `thalweg
// cluster revoke` runs it.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <string_view>

#include "certificate.h"

namespace {

thalweg::credentials::Member ParseMember(const std::string& word) {
  thalweg::credentials::Member m;
  const size_t equals = word.find('=');
  m.name = word.substr(0, equals);
  for (size_t at = equals; at != word.npos && at < word.size();) {
    const size_t end = word.find(',', ++at);
    if (const std::string host = word.substr(at, end - at); !host.empty()) m.hosts.push_back(host);
    at = end;
  }
  return m;
}

void Revoke(const std::string& folder, const std::string& word) {
  constexpr std::string_view kSerial = "serial=";
  const bool number = word.starts_with(kSerial);
  const auto added = thalweg::credentials::Revoke(folder, number ? "" : word, number ? word.substr(kSerial.size()) : "");
  for (const std::string& serial : added) std::printf("revoked %s\n", serial.c_str());
  if (added.empty()) std::printf("'%s' was revoked before\n", word.c_str());
}

int Guarded(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::filesystem::filesystem_error& e) {
    std::fprintf(stderr, "thalweg-credentials: '%s': %s\n", e.path1().c_str(), e.code().message().c_str());
    return 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "thalweg-credentials: %s\n", e.what());
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[2]) == "revoke") return Guarded([&] { Revoke(argv[1], argv[3]); });
  if (argc < 4) {
    std::fputs("usage: thalweg-credentials FOLDER DAYS NAME[=HOST,HOST...]...\n       thalweg-credentials FOLDER revoke NAME|serial=HEX\n",
               stderr);
    return 2;
  }
  char* end = nullptr;
  const long long days = std::strtoll(argv[2], &end, 10);
  if (end == argv[2] || *end || days < 1 || days > 36500) {
    std::fprintf(stderr, "thalweg-credentials: '%s' is no number of days from 1 to 36500\n", argv[2]);
    return 2;
  }
  std::vector<thalweg::credentials::Member> members;
  for (int i = 3; i < argc; ++i) members.push_back(ParseMember(argv[i]));
  return Guarded([&] { thalweg::credentials::MakeCluster(argv[1], members, int(days)); });
}
