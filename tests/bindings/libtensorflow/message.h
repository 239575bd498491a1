/* Reads serialised messages, so that a test sees what a FunctionDef or a GraphDef says without classes of the messages. Threads: one. */
#ifndef THALWEG_LIBTENSORFLOW_MESSAGE_H
#define THALWEG_LIBTENSORFLOW_MESSAGE_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Bytes {
  const unsigned char* at;
  size_t n;
} Bytes;
typedef struct Field {
  uint32_t number;
  uint64_t value; /* of a varint */
  Bytes bytes;    /* of a text or a message */
} Field;

static inline uint64_t read_varint(Bytes* from) {
  uint64_t value = 0;
  for (int shift = 0; from->n > 0 && shift < 64; shift += 7) {
    const unsigned char byte = *from->at++;
    --from->n;
    value |= (uint64_t)(byte & 127) << shift;
    if (byte < 128) break;
  }
  return value;
}
/* Takes the next field; returns 0 at the end, and at bytes that are no field. */
static inline int next_field(Bytes* from, Field* f) {
  if (from->n == 0) return 0;
  const uint64_t tag = read_varint(from);
  f->number = (uint32_t)(tag >> 3);
  f->value = 0;
  f->bytes.at = from->at;
  f->bytes.n = 0;
  switch (tag & 7) {
    case 0: f->value = read_varint(from); return 1;
    case 1: f->bytes.n = 8; break;
    case 2:
      f->bytes.n = (size_t)read_varint(from);
      f->bytes.at = from->at;
      break;
    case 5: f->bytes.n = 4; break;
    default: return 0;
  }
  if (f->bytes.n > from->n) return 0;
  from->at += f->bytes.n;
  from->n -= f->bytes.n;
  return 1;
}
/* The last field with the number; empty if there is none. */
static inline Field find_field(Bytes message, uint32_t number) {
  Field found = {0, 0, {NULL, 0}}, f;
  while (next_field(&message, &f)) {
    if (f.number == number) found = f;
  }
  return found;
}
static inline int count_fields(Bytes message, uint32_t number) {
  int n = 0;
  for (Field f; next_field(&message, &f);) n += f.number == number;
  return n;
}
/* The value that a map has for a key. */
static inline Bytes find_entry(Bytes message, uint32_t map, const char* key, size_t length) {
  for (Field f; next_field(&message, &f);) {
    if (f.number != map) continue;
    const Bytes k = find_field(f.bytes, 1).bytes;
    if (k.n == length && memcmp(k.at, key, length) == 0) return find_field(f.bytes, 2).bytes;
  }
  const Bytes none = {NULL, 0};
  return none;
}

typedef struct Text {
  char chars[2048];
  size_t n;
} Text;
static inline void put(Text* t, const char* chars, size_t n) {
  if (n > sizeof t->chars - 1 - t->n) n = sizeof t->chars - 1 - t->n;
  if (n > 0) memcpy(t->chars + t->n, chars, n);
  t->n += n;
  t->chars[t->n] = '\0';
}
static inline void put_text(Text* t, const char* text) { put(t, text, strlen(text)); }
static inline void put_bytes(Text* t, Bytes b) { put(t, (const char*)b.at, b.n); }
static inline void put_args(Text* t, Bytes signature, uint32_t number) {
  char type[16];
  for (Field f; next_field(&signature, &f);) {
    if (f.number != number) continue;
    put_text(t, " ");
    put_bytes(t, find_field(f.bytes, 1).bytes);
    snprintf(type, sizeof type, ":%d", (int)find_field(f.bytes, 3).value);
    put_text(t, type);
  }
}

enum { FUNCTION_SIGNATURE = 1, FUNCTION_NODE = 3, FUNCTION_RET = 4, FUNCTION_ARG_ATTR = 7 };
enum { OP_NAME = 1, OP_INPUT = 2, OP_OUTPUT = 3, OP_DESCRIPTION = 6, OP_STATEFUL = 17 };
enum { GRAPH_LIBRARY = 2, LIBRARY_FUNCTION = 1, LIBRARY_GRADIENT = 2 };

/* A FunctionDef as "in: x:3; neg = Neg(x); out: y:3; y = neg:y:0". */
static inline Text function_text(Bytes def) {
  Text t = {"", 0};
  const Bytes signature = find_field(def, FUNCTION_SIGNATURE).bytes;
  put_text(&t, "in:");
  put_args(&t, signature, OP_INPUT);
  Bytes rest = def;
  for (Field f; next_field(&rest, &f);) {
    if (f.number != FUNCTION_NODE) continue;
    put_text(&t, "; ");
    put_bytes(&t, find_field(f.bytes, 1).bytes);
    put_text(&t, " = ");
    put_bytes(&t, find_field(f.bytes, 2).bytes);
    put_text(&t, "(");
    Bytes node = f.bytes;
    int n = 0;
    for (Field in; next_field(&node, &in);) {
      if (in.number != 3) continue;
      if (n++ > 0) put_text(&t, ", ");
      put_bytes(&t, in.bytes);
    }
    put_text(&t, ")");
  }
  put_text(&t, "; out:");
  put_args(&t, signature, OP_OUTPUT);
  rest = signature;
  for (Field f; next_field(&rest, &f);) {
    if (f.number != OP_OUTPUT) continue;
    const Bytes name = find_field(f.bytes, 1).bytes;
    put_text(&t, "; ");
    put_bytes(&t, name);
    put_text(&t, " = ");
    put_bytes(&t, find_entry(def, FUNCTION_RET, (const char*)name.at, name.n));
  }
  return t;
}
#endif
