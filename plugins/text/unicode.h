// Unicode's normalization forms, case folding, lower case and groups of characters. Threads: pure
// functions.
#ifndef THALWEG_PLUGINS_TEXT_UNICODE_H_
#define THALWEG_PLUGINS_TEXT_UNICODE_H_

#include "chars.h"

namespace thalweg::text {

enum class Form { kNfc, kNfd, kNfkc, kNfkd };

// Normalizes a text (UAX 15). A character that becomes several passes on its origin to each of
// them; one that is composed of several has the origin of all of them.
void Normalize(Form form, Chars* text);
// Folds case as NFKC_Casefold does (Unicode 3.13): also normalizes to NFKC, and drops characters
// that are ignorable by default.
void CaseFold(Chars* text);
// Converts each character to lower case by itself, by the full mapping: a Greek sigma at the end of
// a word has no form of its own.
void Lower(Chars* text);

bool IsSpace(uint32_t c);        // White_Space
bool IsPunctuation(uint32_t c);  // of the categories P*
bool IsNumber(uint32_t c);       // N*
bool IsMark(uint32_t c);         // M*
bool IsNonspacing(uint32_t c);   // Mn
bool IsOther(uint32_t c);        // C*: controls, formats, private use, not assigned
bool IsWord(uint32_t c);         // \w of regular expressions (UTS 18): letters, marks, digits, connectors

}  // namespace thalweg::text

#endif  // THALWEG_PLUGINS_TEXT_UNICODE_H_
