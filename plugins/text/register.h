// One function per source file with kernels; each adds them to the plugin.
#ifndef THALWEG_PLUGINS_TEXT_REGISTER_H_
#define THALWEG_PLUGINS_TEXT_REGISTER_H_

#include "thalweg/cpp/plugin.hpp"

namespace thalweg::text {

void register_normalize(tw::Plugin& p);
void register_regex_split(tw::Plugin& p);
void register_sentencepiece(tw::Plugin& p);
void register_tokenizer(tw::Plugin& p);

}  // namespace thalweg::text

#endif  // THALWEG_PLUGINS_TEXT_REGISTER_H_
