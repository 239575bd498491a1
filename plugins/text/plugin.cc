// The plugin's registration.
#include "thalweg/cpp/plugin.hpp"

#include "register.h"

TW_CPP_PLUGIN("org.thalweg.text", "0.1.0", p) {
  thalweg::text::register_normalize(p);
  thalweg::text::register_regex_split(p);
  thalweg::text::register_sentencepiece(p);
  thalweg::text::register_tokenizer(p);
}
