// Converts text to lower and upper case by Unicode's full, language-independent mappings. One
// character may become several, and a Greek sigma at the end of a word has its own form. Invalid
// UTF-8 becomes U+FFFD, one for each run of bytes that could have been a character.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_UNICODE_CASE_H_
#define THALWEG_PLUGINS_CPU_KERNELS_UNICODE_CASE_H_

#include <string>
#include <string_view>

namespace thalweg::cpu {

std::string UnicodeLower(std::string_view text);
std::string UnicodeUpper(std::string_view text);

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_UNICODE_CASE_H_
