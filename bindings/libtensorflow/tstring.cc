// Strings in the memory of string tensors: 24 bytes, whose lowest two bits say where the characters are.
#include <cstdlib>
#include <cstring>

#include "tensorflow/c/c_api.h"

static_assert(sizeof(TF_TString) == 24);

static constexpr size_t kSmall = 22;  // characters inside, besides the terminating zero

TF_TString_Type TF_StringGetType(const TF_TString* s) { return static_cast<TF_TString_Type>(s->u.smll.size & 3); }

void TF_StringInit(TF_TString* s) { std::memset(s, 0, sizeof *s); }

void TF_StringDealloc(TF_TString* s) {
  if (TF_StringGetType(s) == TF_TSTR_LARGE) std::free(s->u.large.ptr);
  TF_StringInit(s);
}

size_t TF_StringGetSize(const TF_TString* s) {
  switch (TF_StringGetType(s)) {
    case TF_TSTR_SMALL: return s->u.smll.size >> 2;
    case TF_TSTR_OFFSET: return s->u.offset.size >> 2;
    default: return s->u.large.size >> 2;
  }
}

size_t TF_StringGetCapacity(const TF_TString* s) {
  switch (TF_StringGetType(s)) {
    case TF_TSTR_SMALL: return kSmall;
    case TF_TSTR_LARGE: return s->u.large.cap;
    default: return 0;
  }
}

const char* TF_StringGetDataPointer(const TF_TString* s) {
  switch (TF_StringGetType(s)) {
    case TF_TSTR_SMALL: return s->u.smll.str;
    case TF_TSTR_LARGE: return s->u.large.ptr;
    case TF_TSTR_OFFSET: return reinterpret_cast<const char*>(s) + s->u.offset.offset;
    default: return s->u.view.ptr;
  }
}

void TF_StringCopy(TF_TString* s, const char* src, size_t size) {
  TF_TString made;
  TF_StringInit(&made);
  if (size <= kSmall) {
    made.u.smll.size = static_cast<uint8_t>(size << 2);
    if (size > 0) std::memcpy(made.u.smll.str, src, size);
  } else {
    const size_t capacity = (size + 16) / 16 * 16 - 1;
    made.u.large.ptr = static_cast<char*>(std::malloc(capacity + 1));
    if (!made.u.large.ptr) std::abort();  // the function has no way to report it
    std::memcpy(made.u.large.ptr, src, size);
    made.u.large.ptr[size] = '\0';
    made.u.large.size = size << 2 | TF_TSTR_LARGE;
    made.u.large.cap = capacity;
  }
  TF_StringDealloc(s);
  *s = made;
}

void TF_StringAssignView(TF_TString* s, const char* src, size_t size) {
  TF_StringDealloc(s);
  s->u.view.size = size << 2 | TF_TSTR_VIEW;
  s->u.view.ptr = src;
}
