// Texts in lower and upper case by Unicode's full mappings, in no language in particular: one character may become several, and a Greek
// sigma at the end of a word has its own form. Bytes that are no UTF-8 become U+FFFD, one for each run that might have been a character.
#ifndef THALWEG_PLUGINS_CPU_KERNELS_UNICODE_CASE_H_
#define THALWEG_PLUGINS_CPU_KERNELS_UNICODE_CASE_H_

#include <string>
#include <string_view>

namespace thalweg::cpu {

std::string UnicodeLower(std::string_view text);
std::string UnicodeUpper(std::string_view text);

}  // namespace thalweg::cpu

#endif  // THALWEG_PLUGINS_CPU_KERNELS_UNICODE_CASE_H_
