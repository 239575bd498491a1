#include "operation_text.h"

#include "handles.h"
#include "utf8.h"

namespace thalweg::cli {

std::string ValueName(const tw::Graph& graph, tw_output value) {
  const tw_operation* producer = nullptr;
  uint32_t port = 0;
  tw::raise(tw_graph_producer(graph.c(), value, &producer, &port));
  return OneLine(tw_operation_name(producer)) + (port ? ":" + std::to_string(port) : "");
}

std::string InputsText(const tw::Graph& graph, const tw_operation* op) {
  std::string text;
  for (uint32_t i = 0; i < tw_operation_input_count(op); ++i) text += (i ? ", " : "") + ValueName(graph, tw_operation_input(op, i));
  for (uint32_t i = 0; i < tw_operation_control_count(op); ++i) {
    text += (text.empty() ? "^" : ", ^") + OneLine(tw_operation_name(tw_operation_control(op, i)));
  }
  return text;
}

std::string OutputsText(const tw::Graph& graph, const tw_operation* op) {
  std::string text;
  for (uint32_t i = 0; i < tw_operation_output_count(op); ++i) text += (i ? "; " : "") + Describe(graph, tw_operation_output(op, i));
  return text;
}

std::string AttrText(const tw_operation* op, const char* attr, size_t most) {
  tw_buffer* buffer = nullptr;
  tw::raise(tw_operation_attr_text(op, attr, &buffer));
  std::string text = OneLine(tw::take_text(buffer));
  if (most == 0 || text.size() <= most) return text;
  size_t end = most - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // never cuts inside a UTF-8 character
  return text.substr(0, end) + "...";
}

}  // namespace thalweg::cli
