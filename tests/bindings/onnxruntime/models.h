/* Small ONNX models for the tests, written field by field in the wire format of Protocol Buffers. Threads: values. */
#ifndef THALWEG_ONNXRUNTIME_MODELS_H
#define THALWEG_ONNXRUNTIME_MODELS_H
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct Bytes {
  size_t size;
  unsigned char data[4096];
} Bytes;

static inline void put_varint(Bytes* to, uint64_t v) {
  for (; v >= 128; v >>= 7) to->data[to->size++] = (unsigned char)(v | 128);
  to->data[to->size++] = (unsigned char)v;
}
static inline void put_number(Bytes* to, unsigned field, int64_t v) {
  put_varint(to, field << 3);
  put_varint(to, (uint64_t)v);
}
static inline void put_raw(Bytes* to, unsigned field, const void* data, size_t size) {
  put_varint(to, field << 3 | 2);
  put_varint(to, size);
  memcpy(to->data + to->size, data, size);
  to->size += size;
}
static inline void put_text(Bytes* to, unsigned field, const char* text) { put_raw(to, field, text, strlen(text)); }
static inline void put(Bytes* to, unsigned field, const Bytes* message) { put_raw(to, field, message->data, message->size); }

/* Adds an input (11) or output (12) of a graph. shape: texts separated by spaces; a number is a size, "?" a size without a name, another
 * text the name of a size; NULL: unknown rank. */
static inline void put_value(Bytes* graph, unsigned field, const char* name, int type, const char* shape) {
  Bytes dims = {0, {0}}, tensor = {0, {0}}, kind = {0, {0}}, info = {0, {0}};
  put_number(&tensor, 1, type);
  for (const char* at = shape; at && *at;) {
    Bytes dim = {0, {0}};
    const size_t n = strcspn(at, " ");
    int64_t size = 0;
    for (size_t i = 0; i < n; ++i) size = size * 10 + at[i] - '0';
    if (*at >= '0' && *at <= '9')
      put_number(&dim, 1, size);
    else if (*at != '?')
      put_raw(&dim, 2, at, n);
    put(&dims, 1, &dim);
    at += n + (at[n] == ' ');
  }
  if (shape) put(&tensor, 2, &dims);
  put(&kind, 1, &tensor);
  put_text(&info, 1, name);
  put(&info, 2, &kind);
  put(graph, field, &info);
}
/* Adds an output that is a sequence of tensors. */
static inline void put_sequence(Bytes* graph, unsigned field, const char* name, int type) {
  Bytes tensor = {0, {0}}, element = {0, {0}}, sequence = {0, {0}}, kind = {0, {0}}, info = {0, {0}};
  put_number(&tensor, 1, type);
  put(&element, 1, &tensor);
  put(&sequence, 1, &element);
  put(&kind, 4, &sequence);
  put_text(&info, 1, name);
  put(&info, 2, &kind);
  put(graph, field, &info);
}
/* Adds a node. b: NULL for an op of one input. number: the value of an integer attribute, if `attribute` is not NULL. */
static inline void put_node(Bytes* graph, const char* op, const char* a, const char* b, const char* out, const char* attribute,
                            int64_t number) {
  Bytes node = {0, {0}}, attr = {0, {0}};
  put_text(&node, 1, a);
  if (b) put_text(&node, 1, b);
  put_text(&node, 2, out);
  put_text(&node, 4, op);
  if (attribute) {
    put_text(&attr, 1, attribute);
    put_number(&attr, 3, number);
    put_number(&attr, 20, 2);
    put(&node, 5, &attr);
  }
  put(graph, 1, &node);
}
static inline void put_floats(Bytes* graph, const char* name, const float* values, int64_t count) {
  Bytes tensor = {0, {0}};
  put_number(&tensor, 1, count);
  put_number(&tensor, 2, 1);
  put_text(&tensor, 8, name);
  put_raw(&tensor, 9, values, (size_t)count * sizeof(float));
  put(graph, 5, &tensor);
}
/* The model of a graph, with texts about it. */
static inline Bytes model_of(Bytes* graph) {
  Bytes model = {0, {0}}, opset = {0, {0}}, entry = {0, {0}};
  put_number(&model, 1, 8);
  put_text(&model, 2, "test writer");
  put_text(&model, 4, "org.example");
  put_number(&model, 5, 42);
  put_text(&model, 6, "what the model is for");
  put_text(graph, 2, "small graph");
  put_text(graph, 10, "what the graph is for");
  put(&model, 7, graph);
  put_text(&opset, 1, "");
  put_number(&opset, 2, 17);
  put(&model, 8, &opset);
  put_text(&entry, 1, "colour");
  put_text(&entry, 2, "blue");
  put(&model, 14, &entry);
  return model;
}
/* z = x + y, floats of shape [n, 2]. */
static inline Bytes add_model(void) {
  Bytes graph = {0, {0}};
  put_node(&graph, "Add", "x", "y", "z", NULL, 0);
  put_value(&graph, 11, "x", 1, "n 2");
  put_value(&graph, 11, "y", 1, "n 2");
  put_value(&graph, 12, "z", 1, "n 2");
  return model_of(&graph);
}
/* y = op(x), with an integer attribute if it is not NULL. */
static inline Bytes unary_model(const char* op, int from, int to, const char* shape, const char* attribute, int64_t number) {
  Bytes graph = {0, {0}};
  put_node(&graph, op, "x", NULL, "y", attribute, number);
  put_value(&graph, 11, "x", from, shape);
  put_value(&graph, 12, "y", to, shape);
  return model_of(&graph);
}
#endif
