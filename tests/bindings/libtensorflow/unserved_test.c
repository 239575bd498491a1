/* Functions that are not served say so, with their names. */
#include "support.h"

static void refusals(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Operation *one = scalar(g, 1, "one", s), *neg = op1(g, "Neg", "neg", out(one, 0), s);
  TF_Input in = {neg, 0};
  TF_UpdateEdge(g, out(one, 0), in, s);
  CODE(s, TF_UNIMPLEMENTED);
  HAS(TF_Message(s), "TF_UpdateEdge");
  CHECK(TF_NewServer(NULL, 0, s) == NULL);
  CODE(s, TF_UNIMPLEMENTED);
  HAS(TF_Message(s), "TF_NewServer");
  TF_RegisterFilesystemPlugin("x.so", s);
  CODE(s, TF_UNIMPLEMENTED);
  HAS(TF_Message(s), "TF_RegisterFilesystemPlugin");
  TF_DeleteGraph(g);
}

static int lines;
static void listen(const char* text) { lines += strstr(text, "TF_SetRequestedDevice") != NULL; }
static void warnings(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_RegisterLogListener(listen);
  TF_SetRequestedDevice(g, scalar(g, 1, "one", s), "/device:CPU:0");
  CHECK(lines == 1);
  TF_RegisterLogListener(NULL);
  TF_DeleteGraph(g);
}

int main(void) {
  const Case cases[] = {{"Refusals", refusals}, {"Warnings", warnings}};
  return run_cases(cases, COUNT(cases));
}
