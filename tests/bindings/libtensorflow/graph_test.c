/* Graphs: building, inspection, attributes, shapes, import and export. */
#include "support.h"

/* The bytes of a GraphDef, or of another message, contain a text. */
static int contains(const TF_Buffer* b, const char* text) {
  const size_t n = strlen(text);
  for (size_t i = 0; b->data && i + n <= b->length; ++i) {
    if (memcmp((const char*)b->data + i, text, n) == 0) return 1;
  }
  return 0;
}

static void set_shape(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Output x = out(placeholder(g, TF_INT32, "feed", s), 0);
  CHECK(TF_GraphGetTensorNumDims(g, x, s) == -1);
  OK(s);
  TF_GraphSetTensorShape(g, x, NULL, -1, s);
  OK(s);
  CHECK(TF_GraphGetTensorNumDims(g, x, s) == -1);
  int64_t dims[] = {2, -1}, got[2] = {0, 0};
  TF_GraphSetTensorShape(g, x, dims, 2, s);
  OK(s);
  CHECK(TF_GraphGetTensorNumDims(g, x, s) == 2);
  TF_GraphGetTensorShape(g, x, got, 2, s);
  OK(s);
  CHECK(got[0] == 2 && got[1] == -1);
  dims[1] = 3;
  TF_GraphSetTensorShape(g, x, dims, 2, s);
  OK(s);
  TF_GraphGetTensorShape(g, x, got, 2, s);
  CHECK(got[0] == 2 && got[1] == 3);
  TF_GraphSetTensorShape(g, x, NULL, -1, s);
  OK(s);
  dims[0] = dims[1] = -1;
  TF_GraphSetTensorShape(g, x, dims, 2, s);
  OK(s);
  TF_GraphGetTensorShape(g, x, got, 2, s);
  CHECK(got[0] == 2 && got[1] == 3);
  TF_GraphGetTensorShape(g, x, got, 5, s);
  CODE(s, TF_INVALID_ARGUMENT);
  dims[1] = 5;
  TF_GraphSetTensorShape(g, x, dims, 2, s);
  CODE(s, TF_INVALID_ARGUMENT);
  TF_Output three = out(scalar(g, 3, "scalar", s), 0);
  CHECK(TF_GraphGetTensorNumDims(g, three, s) == 0);
  TF_GraphGetTensorShape(g, three, got, 0, s);
  OK(s);
  TF_DeleteGraph(g);
}

static void graph(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Operation* feed = placeholder(g, TF_INT32, "feed", s);
  OK(s);
  SAME(TF_OperationName(feed), "feed");
  SAME(TF_OperationOpType(feed), "Placeholder");
  SAME(TF_OperationDevice(feed), "");
  CHECK(TF_OperationNumOutputs(feed) == 1 && TF_OperationOutputType(out(feed, 0)) == TF_INT32);
  CHECK(TF_OperationOutputListLength(feed, "output", s) == 1);
  OK(s);
  CHECK(TF_OperationNumInputs(feed) == 0 && TF_OperationOutputNumConsumers(out(feed, 0)) == 0);
  CHECK(TF_OperationNumControlInputs(feed) == 0 && TF_OperationNumControlOutputs(feed) == 0);
  TF_DataType type = TF_FLOAT;
  TF_OperationGetAttrType(feed, "dtype", &type, s);
  OK(s);
  CHECK(type == TF_INT32);
  CHECK(TF_OperationOutputListLength(feed, "bogus", s) == -1);
  CODE(s, TF_INVALID_ARGUMENT);
  TF_OperationGetAttrType(feed, "missing", &type, s);
  CODE(s, TF_NOT_FOUND);
  HAS(TF_Message(s), "No attr named 'missing' in NodeDef");

  TF_Operation* three = scalar(g, 3, "scalar", s);
  TF_Operation* add = add_n(g, feed, three, "add", s);
  OK(s);
  SAME(TF_OperationOpType(add), "AddN");
  CHECK(TF_OperationOutputListLength(add, "sum", s) == 1 && TF_OperationInputListLength(add, "inputs", s) == 2);
  OK(s);
  CHECK(TF_OperationNumInputs(add) == 2);
  for (int i = 0; i < 2; ++i) {
    TF_Input in = {add, i};
    CHECK(TF_OperationInputType(in) == TF_INT32);
    CHECK(TF_OperationInput(in).oper == (i ? three : feed) && TF_OperationInput(in).index == 0);
  }
  TF_Output all[2];
  TF_OperationAllInputs(add, all, 2);
  CHECK(all[0].oper == feed && all[1].oper == three);
  int64_t n = 0;
  TF_OperationGetAttrInt(add, "N", &n, s);
  CHECK(n == 2);
  TF_Input consumer;
  CHECK(TF_OperationOutputNumConsumers(out(feed, 0)) == 1);
  CHECK(TF_OperationOutputConsumers(out(three, 0), &consumer, 1) == 1);
  CHECK(consumer.oper == add && consumer.index == 1);

  TF_OperationDescription* d = TF_NewOperation(g, "Neg", "neg");
  TF_AddInput(d, out(add, 0));
  TF_AddControlInput(d, feed);
  TF_SetDevice(d, "/device:CPU:0");
  TF_Operation* neg = TF_FinishOperation(d, s);
  OK(s);
  TF_Operation* controls[2] = {NULL, NULL};
  CHECK(TF_OperationNumControlInputs(neg) == 1 && TF_OperationGetControlInputs(neg, controls, 2) == 1 && controls[0] == feed);
  CHECK(TF_OperationNumControlOutputs(feed) == 1 && TF_OperationGetControlOutputs(feed, controls, 2) == 1 && controls[0] == neg);
  HAS(TF_OperationDevice(neg), "CPU:0");

  TF_Buffer* b = TF_NewBuffer();
  TF_OperationToNodeDef(neg, b, s);
  OK(s);
  CHECK(contains(b, "neg") && contains(b, "add") && contains(b, "^feed") && contains(b, "Neg"));
  TF_DeleteBuffer(b);
  b = TF_NewBuffer();
  TF_GraphToGraphDef(g, b, s);
  OK(s);
  CHECK(contains(b, "scalar") && contains(b, "AddN") && contains(b, "Placeholder"));
  TF_DeleteBuffer(b);

  CHECK(TF_GraphOperationByName(g, "neg") == neg && TF_GraphOperationByName(g, "nobody") == NULL);
  size_t pos = 0;
  int seen = 0;
  for (TF_Operation* o; (o = TF_GraphNextOperation(g, &pos)) != NULL;) seen += o == feed || o == three || o == add || o == neg ? 1 : 100;
  CHECK(seen == 4);
  b = TF_NewBuffer();
  TF_GraphVersions(g, b, s);
  OK(s);
  CHECK(b->length >= 2 && ((const unsigned char*)b->data)[0] == 0x08);
  TF_DeleteBuffer(b);
  TF_DeleteGraph(g);
}

static void errors(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  CHECK(op1(g, "NoSuchOp", "x", out(scalar(g, 1, "one", s), 0), s) == NULL);
  CHECK(TF_GetCode(s) != TF_OK);
  HAS(TF_Message(s), "NoSuchOp");
  CHECK(scalar(g, 1, "one", s) == NULL);
  CODE(s, TF_INVALID_ARGUMENT);
  HAS(TF_Message(s), "Duplicate node name in graph: 'one'");
  const int64_t two[] = {2}, three[] = {3};
  const char data[] = {1, 2, 3};
  TF_Operation* a = constant(g, tensor_of(TF_INT8, two, 1, data, 2), "vec2", s);
  TF_Operation* b = constant(g, tensor_of(TF_INT8, three, 1, data, 3), "vec3", s);
  OK(s);
  CHECK(op2(g, "AddV2", "add", out(a, 0), out(b, 0), s) == NULL);
  CODE(s, TF_INVALID_ARGUMENT);
  CHECK(TF_GraphOperationByName(g, "add") == NULL);
  TF_DeleteGraph(g);
}

/* Clients that were generated long ago use the first names of ops. */
static void old_names(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  const TF_DataType type = TF_INT32;
  const int64_t dims[] = {2};
  const int64_t* const shapes[] = {dims};
  const int rank = 1;
  TF_OperationDescription* d = TF_NewOperation(g, "Iterator", "iterator");
  TF_SetAttrString(d, "shared_name", "", 0);
  TF_SetAttrString(d, "container", "", 0);
  TF_SetAttrTypeList(d, "output_types", &type, 1);
  TF_SetAttrShapeList(d, "output_shapes", shapes, &rank, 1);
  TF_Operation* iterator = TF_FinishOperation(d, s);
  OK(s);
  CHECK(iterator && TF_OperationNumOutputs(iterator) == 1 && TF_OperationOutputType(out(iterator, 0)) == TF_RESOURCE);
  TF_DeleteGraph(g);
}

static void op_def(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_Buffer* b = TF_NewBuffer();
  TF_GraphGetOpDef(g, "Add", b, s);
  OK(s);
  CHECK(b->length > 10 && memcmp(b->data,
                                 "\x0a\x03"
                                 "Add",
                                 5) == 0);
  TF_DeleteBuffer(b);
  b = TF_NewBuffer();
  TF_GraphGetOpDef(g, "MyFakeOp", b, s);
  CODE(s, TF_NOT_FOUND);
  HAS(TF_Message(s), "Op type not registered 'MyFakeOp' in binary");
  TF_DeleteBuffer(b);
  TF_DeleteGraph(g);
}

/* ---- Colocation ---- */

typedef struct Colocated {
  TF_Graph* graph;
  TF_Operation *feed1, *feed2;
  TF_OperationDescription* d;
} Colocated;
static Colocated colocated(TF_Status* s) {
  Colocated c;
  c.graph = TF_NewGraph();
  c.feed1 = placeholder(c.graph, TF_INT32, "feed1", s);
  c.feed2 = placeholder(c.graph, TF_INT32, "feed2", s);
  TF_Output inputs[] = {{c.feed1, 0}, {scalar(c.graph, 10, "scalar", s), 0}};
  OK(s);
  c.d = TF_NewOperation(c.graph, "AddN", "add");
  TF_AddInputList(c.d, inputs, 2);
  return c;
}
static void by_list(TF_OperationDescription* d, const char* entry) {
  const void* values[] = {entry};
  const size_t lengths[] = {entry ? strlen(entry) : 0};
  TF_SetAttrStringList(d, "_class", values, lengths, entry ? 1 : 0);
}
static void by_proto(TF_OperationDescription* d, const char* entry, TF_Status* s) {
  char bytes[64] = {0x0a, 0};
  const size_t n = entry ? strlen(entry) : 0;
  if (entry) bytes[1] = (char)(n + 2), bytes[2] = 0x12, bytes[3] = (char)n, memcpy(bytes + 4, entry, n);
  TF_SetAttrValueProto(d, "_class", bytes, entry ? n + 4 : 2, s);
  OK(s);
}
static void expect(Colocated* c, const char* first, const char* second, TF_Status* s) {
  TF_Operation* add = TF_FinishOperation(c->d, s);
  OK(s);
  TF_AttrMetadata m = TF_OperationGetAttrMetadata(add, "_class", s);
  if (!first) {
    CODE(s, TF_INVALID_ARGUMENT);
    SAME(TF_Message(s), "Operation 'add' has no attr named '_class'.");
  } else {
    OK(s);
    const char* wanted[] = {first, second};
    const int n = second ? 2 : 1;
    CHECK(m.is_list == 1 && m.list_size == n && m.type == TF_ATTR_STRING);
    void* values[2];
    size_t lengths[2];
    char storage[64];
    TF_OperationGetAttrStringList(add, "_class", values, lengths, n, storage, sizeof storage, s);
    OK(s);
    for (int i = 0; i < n && m.list_size == n; ++i) CHECK(lengths[i] == strlen(wanted[i]) && memcmp(values[i], wanted[i], lengths[i]) == 0);
  }
  TF_DeleteGraph(c->graph);
}
static void colocation(TF_Status* s) {
  const char *one = "loc:@feed1", *two = "loc:@feed2";
  Colocated c = colocated(s);
  TF_ColocateWith(c.d, c.feed1);
  expect(&c, one, NULL, s);
  c = colocated(s), by_list(c.d, one), expect(&c, one, NULL, s);
  c = colocated(s), by_proto(c.d, one, s), expect(&c, one, NULL, s);
  c = colocated(s), TF_ColocateWith(c.d, c.feed1), by_list(c.d, two), expect(&c, two, NULL, s);
  c = colocated(s), TF_ColocateWith(c.d, c.feed1), by_proto(c.d, two, s), expect(&c, two, NULL, s);
  c = colocated(s), by_list(c.d, two), TF_ColocateWith(c.d, c.feed1), expect(&c, one, two, s);
  c = colocated(s), by_proto(c.d, two, s), TF_ColocateWith(c.d, c.feed1), expect(&c, one, two, s);
  c = colocated(s), TF_ColocateWith(c.d, c.feed1), TF_ColocateWith(c.d, c.feed2), expect(&c, one, two, s);
  c = colocated(s), by_proto(c.d, one, s), by_list(c.d, two), expect(&c, two, NULL, s);
  c = colocated(s), by_list(c.d, one), by_proto(c.d, two, s), expect(&c, two, NULL, s);
  c = colocated(s), TF_ColocateWith(c.d, c.feed1), by_list(c.d, NULL), expect(&c, NULL, NULL, s);
  c = colocated(s), TF_ColocateWith(c.d, c.feed1), by_proto(c.d, NULL, s), expect(&c, NULL, NULL, s);
}

/* ---- Import ---- */

static TF_Buffer* small_graph(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  placeholder(g, TF_INT32, "feed", s);
  op1(g, "Neg", "neg", out(scalar(g, 3, "scalar", s), 0), s);
  TF_Buffer* def = TF_NewBuffer();
  TF_GraphToGraphDef(g, def, s);
  OK(s);
  TF_DeleteGraph(g);
  return def;
}
static TF_Operation* need(TF_Graph* g, const char* name) {
  TF_Operation* op = TF_GraphOperationByName(g, name);
  if (!op) ++failures, fprintf(stderr, "there is no '%s'\n", name);
  return op;
}

static void import_graph_def(TF_Status* s) {
  TF_Buffer* def = small_graph(s);
  TF_Graph* g = TF_NewGraph();
  TF_ImportGraphDefOptions* o = TF_NewImportGraphDefOptions();
  TF_ImportGraphDefOptionsSetPrefix(o, "imported");
  TF_GraphImportGraphDef(g, def, o, s);
  OK(s);
  TF_Operation *scalar1 = need(g, "imported/scalar"), *feed1 = need(g, "imported/feed"), *neg1 = need(g, "imported/neg");
  if (!neg1) return;
  TF_Input neg_in = {neg1, 0};
  CHECK(TF_OperationNumInputs(neg1) == 1 && TF_OperationInput(neg_in).oper == scalar1);
  CHECK(TF_OperationNumControlInputs(neg1) == 0 && TF_OperationNumControlOutputs(scalar1) == 0);
  TF_DeleteImportGraphDefOptions(o);

  o = TF_NewImportGraphDefOptions(); /* with a mapping */
  TF_ImportGraphDefOptionsSetPrefix(o, "imported2");
  TF_ImportGraphDefOptionsAddInputMapping(o, "scalar", 0, out(scalar1, 0));
  TF_ImportGraphDefOptionsAddReturnOutput(o, "feed", 0);
  TF_ImportGraphDefOptionsAddReturnOutput(o, "scalar", 0);
  TF_ImportGraphDefOptionsAddReturnOperation(o, "scalar");
  CHECK(TF_ImportGraphDefOptionsNumReturnOutputs(o) == 2 && TF_ImportGraphDefOptionsNumReturnOperations(o) == 1);
  TF_ImportGraphDefResults* r = TF_GraphImportGraphDefWithResults(g, def, o, s);
  OK(s);
  TF_Operation *scalar2 = need(g, "imported2/scalar"), *feed2 = need(g, "imported2/feed"), *neg2 = need(g, "imported2/neg");
  if (!neg2) return;
  TF_Input neg2_in = {neg2, 0};
  CHECK(TF_OperationInput(neg2_in).oper == scalar1);
  int n = 0;
  TF_Output* outputs = NULL;
  TF_Operation** operations = NULL;
  TF_ImportGraphDefResultsReturnOutputs(r, &n, &outputs);
  CHECK(n == 2 && outputs[0].oper == feed2 && outputs[1].oper == scalar1);
  TF_ImportGraphDefResultsReturnOperations(r, &n, &operations);
  CHECK(n == 1 && operations[0] == scalar2);
  TF_DeleteImportGraphDefResults(r);
  TF_DeleteImportGraphDefOptions(o);

  o = TF_NewImportGraphDefOptions(); /* with control dependencies */
  TF_ImportGraphDefOptionsSetPrefix(o, "imported3");
  TF_ImportGraphDefOptionsAddControlDependency(o, feed1);
  TF_ImportGraphDefOptionsAddControlDependency(o, feed2);
  TF_GraphImportGraphDef(g, def, o, s);
  OK(s);
  TF_DeleteImportGraphDefOptions(o);
  TF_Operation *scalar3 = need(g, "imported3/scalar"), *neg3 = need(g, "imported3/neg"), *controls[4] = {NULL, NULL, NULL, NULL};
  if (!scalar3 || !neg3) return;
  CHECK(TF_OperationGetControlInputs(scalar3, controls, 4) == 2 && controls[0] == feed1 && controls[1] == feed2);
  CHECK(TF_OperationNumControlInputs(neg3) == 0);
  TF_DeleteBuffer(def);

  def = TF_NewBuffer();
  TF_GraphToGraphDef(g, def, s);
  OK(s);
  o = TF_NewImportGraphDefOptions(); /* with a remapped control dependency */
  TF_ImportGraphDefOptionsSetPrefix(o, "imported4");
  TF_ImportGraphDefOptionsRemapControlDependency(o, "imported/feed", feed1);
  TF_GraphImportGraphDef(g, def, o, s);
  OK(s);
  TF_Operation *scalar4 = need(g, "imported4/imported3/scalar"), *feed4 = need(g, "imported4/imported2/feed");
  if (!scalar4) return;
  CHECK(TF_OperationGetControlInputs(scalar4, controls, 4) == 2 && controls[0] == feed1 && controls[1] == feed4);
  TF_DeleteImportGraphDefOptions(o);
  TF_DeleteBuffer(def);
  add_n(g, feed1, scalar1, "add", s);
  OK(s);
  TF_DeleteGraph(g);
}

static void import_return_outputs(TF_Status* s) {
  TF_Buffer* def = small_graph(s);
  TF_Graph* g = TF_NewGraph();
  TF_ImportGraphDefOptions* o = TF_NewImportGraphDefOptions();
  TF_ImportGraphDefOptionsAddReturnOutput(o, "feed", 0);
  TF_ImportGraphDefOptionsAddReturnOutput(o, "scalar", 0);
  TF_Output outputs[2];
  TF_GraphImportGraphDefWithReturnOutputs(g, def, o, outputs, 2, s);
  OK(s);
  CHECK(outputs[0].oper == need(g, "feed") && outputs[1].oper == need(g, "scalar"));
  TF_GraphImportGraphDef(g, def, o, s); /* the names are taken */
  CODE(s, TF_INVALID_ARGUMENT);
  TF_DeleteImportGraphDefOptions(o);
  o = TF_NewImportGraphDefOptions();
  TF_ImportGraphDefOptionsSetUniquifyNames(o, 1);
  TF_GraphImportGraphDef(g, def, o, s);
  OK(s);
  TF_Operation* neg = need(g, "neg_1");
  TF_Input in = {neg, 0};
  if (neg) CHECK(TF_OperationInput(in).oper == need(g, "scalar_1"));
  TF_DeleteImportGraphDefOptions(o);
  o = TF_NewImportGraphDefOptions();
  TF_ImportGraphDefOptionsSetPrefix(o, "neg");
  TF_ImportGraphDefOptionsSetUniquifyPrefix(o, 1);
  TF_GraphImportGraphDef(g, def, o, s);
  OK(s);
  need(g, "neg_2/scalar");
  TF_DeleteImportGraphDefOptions(o);
  o = TF_NewImportGraphDefOptions();
  TF_ImportGraphDefOptionsAddReturnOutput(o, "nobody", 0);
  TF_ImportGraphDefOptionsSetPrefix(o, "p");
  CHECK(TF_GraphImportGraphDefWithResults(g, def, o, s) == NULL);
  CODE(s, TF_INVALID_ARGUMENT);
  TF_DeleteImportGraphDefOptions(o);
  TF_DeleteBuffer(def);
  TF_DeleteGraph(g);
}

static void import_missing(TF_Status* s) {
  TF_Buffer* def = small_graph(s);
  TF_Graph* g = TF_NewGraph();
  TF_ImportGraphDefOptions* o = TF_NewImportGraphDefOptions();
  TF_GraphImportGraphDef(g, def, o, s);
  OK(s);
  TF_Output three = out(need(g, "scalar"), 0);
  TF_DeleteImportGraphDefOptions(o);
  o = TF_NewImportGraphDefOptions();
  TF_ImportGraphDefOptionsSetPrefix(o, "imported");
  TF_ImportGraphDefOptionsAddInputMapping(o, "scalar", 0, three);
  TF_ImportGraphDefOptionsAddInputMapping(o, "fake", 0, three);
  TF_ImportGraphDefResults* r = TF_GraphImportGraphDefWithResults(g, def, o, s);
  OK(s);
  int n = 0, *indexes = NULL;
  const char** names = NULL;
  TF_ImportGraphDefResultsMissingUnusedInputMappings(r, &n, &names, &indexes);
  CHECK(n == 1);
  if (n == 1) CHECK(strcmp(names[0], "fake") == 0 && indexes[0] == 0);
  TF_DeleteImportGraphDefResults(r);
  TF_DeleteImportGraphDefOptions(o);
  TF_DeleteBuffer(def);
  def = TF_NewBufferFromString("\xff\xff\xff", 3);
  o = TF_NewImportGraphDefOptions();
  TF_GraphImportGraphDef(g, def, o, s);
  CODE(s, TF_INVALID_ARGUMENT);
  TF_DeleteImportGraphDefOptions(o);
  TF_DeleteBuffer(def);
  TF_DeleteGraph(g);
}

/* ---- Attributes ---- */

static TF_OperationDescription* described;
static TF_OperationDescription* attributes_of(TF_Graph* g, const char* op) { return described = TF_NewOperation(g, op, op); }

static void attributes(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  /* Attributes whose names begin with an underscore fit every op. */
  TF_OperationDescription* d = attributes_of(g, "NoOp");
  const void* texts[] = {"bugs", "bunny", "duck"};
  const size_t lengths[] = {4, 5, 4};
  const int64_t ints[] = {0, 1, 1, 2, 3, 5, 8, 13}, dims1[] = {1, 3}, dims2[] = {2, 4, 6};
  const int64_t* shapes[] = {dims1, dims2, NULL};
  const int ranks[] = {2, 3, -1};
  const float floats[] = {1.414f, 2.718f, 3.1415f};
  const unsigned char bools[] = {0, 1, 1, 0, 0, 1, 1};
  const TF_DataType types[] = {TF_FLOAT, TF_DOUBLE, TF_HALF, TF_COMPLEX128};
  TF_SetAttrString(d, "_string", "bunny", 5);
  TF_SetAttrStringList(d, "_strings", texts, lengths, 3);
  TF_SetAttrInt(d, "_int", 31415);
  TF_SetAttrIntList(d, "_ints", ints, 8);
  TF_SetAttrFloat(d, "_float", 2.718f);
  TF_SetAttrFloatList(d, "_floats", floats, 3);
  TF_SetAttrBool(d, "_bool", 1);
  TF_SetAttrBoolList(d, "_bools", bools, 7);
  TF_SetAttrType(d, "_type", TF_COMPLEX128);
  TF_SetAttrTypeList(d, "_types", types, 4);
  TF_SetAttrShape(d, "_shape", dims1, 2);
  TF_SetAttrShape(d, "_unknown", NULL, -1);
  TF_SetAttrShapeList(d, "_shapes", shapes, ranks, 3);
  TF_SetAttrFuncName(d, "_func", "f", 1);
  const char shape_proto[] = {0x12, 2, 0x08, 7}; /* [7] */
  TF_SetAttrTensorShapeProto(d, "_shape_proto", shape_proto, sizeof shape_proto, s);
  OK(s);
  TF_SetAttrTensorShapeProto(d, "_bad", "\xff", 1, s);
  CODE(s, TF_INVALID_ARGUMENT);
  TF_SetAttrValueProto(d, "_value", "\x18\x05", 2, s); /* the int 5 */
  OK(s);
  TF_Operation* o = TF_FinishOperation(d, s);
  OK(s);
  if (!o) return;

  TF_AttrMetadata m = TF_OperationGetAttrMetadata(o, "_string", s);
  OK(s);
  CHECK(!m.is_list && m.type == TF_ATTR_STRING && m.total_size == 5);
  char text[8] = "";
  TF_OperationGetAttrString(o, "_string", text, 5, s);
  SAME(text, "bunny");
  m = TF_OperationGetAttrMetadata(o, "_strings", s);
  CHECK(m.is_list && m.list_size == 3 && m.type == TF_ATTR_STRING && m.total_size == 13);
  void* values[3];
  size_t got_lengths[3];
  char storage[13];
  TF_OperationGetAttrStringList(o, "_strings", values, got_lengths, 3, storage, 13, s);
  OK(s);
  CHECK(got_lengths[1] == 5 && memcmp(values[1], "bunny", 5) == 0 && memcmp(values[2], "duck", 4) == 0);
  TF_OperationGetAttrStringList(o, "_strings", values, got_lengths, 3, storage, 12, s);
  CODE(s, TF_INVALID_ARGUMENT);
  int64_t i = 0, got_ints[8];
  TF_OperationGetAttrInt(o, "_int", &i, s);
  CHECK(i == 31415);
  TF_OperationGetAttrInt(o, "_value", &i, s);
  CHECK(i == 5);
  TF_OperationGetAttrIntList(o, "_ints", got_ints, 8, s);
  CHECK(memcmp(ints, got_ints, sizeof ints) == 0);
  float f = 0, got_floats[3];
  TF_OperationGetAttrFloat(o, "_float", &f, s);
  CHECK(f == 2.718f);
  TF_OperationGetAttrFloatList(o, "_floats", got_floats, 3, s);
  CHECK(memcmp(floats, got_floats, sizeof floats) == 0);
  unsigned char bit = 0, got_bools[7];
  TF_OperationGetAttrBool(o, "_bool", &bit, s);
  CHECK(bit == 1);
  TF_OperationGetAttrBoolList(o, "_bools", got_bools, 7, s);
  CHECK(memcmp(bools, got_bools, sizeof bools) == 0);
  TF_DataType type = TF_FLOAT, got_types[4];
  TF_OperationGetAttrType(o, "_type", &type, s);
  CHECK(type == TF_COMPLEX128);
  TF_OperationGetAttrTypeList(o, "_types", got_types, 4, s);
  CHECK(memcmp(types, got_types, sizeof types) == 0);
  m = TF_OperationGetAttrMetadata(o, "_types", s);
  CHECK(m.is_list && m.list_size == 4 && m.type == TF_ATTR_TYPE);
  m = TF_OperationGetAttrMetadata(o, "_shape", s);
  CHECK(!m.is_list && m.type == TF_ATTR_SHAPE && m.total_size == 2);
  int64_t dims[8];
  TF_OperationGetAttrShape(o, "_shape", dims, 2, s);
  CHECK(dims[0] == 1 && dims[1] == 3);
  m = TF_OperationGetAttrMetadata(o, "_unknown", s);
  CHECK(m.type == TF_ATTR_SHAPE && m.total_size == -1);
  TF_OperationGetAttrShape(o, "_shape_proto", dims, 1, s);
  CHECK(dims[0] == 7);
  m = TF_OperationGetAttrMetadata(o, "_shapes", s);
  CHECK(m.is_list && m.list_size == 3 && m.total_size == 5);
  int64_t *got_shapes[3], space[5];
  int got_ranks[3];
  TF_OperationGetAttrShapeList(o, "_shapes", got_shapes, got_ranks, 3, space, 5, s);
  OK(s);
  CHECK(got_ranks[0] == 2 && got_ranks[1] == 3 && got_ranks[2] == -1 && got_shapes[1][2] == 6);
  TF_OperationGetAttrShapeList(o, "_shapes", got_shapes, got_ranks, 3, space, 4, s);
  CODE(s, TF_INVALID_ARGUMENT);
  TF_SetStatus(s, TF_OK, ""); /* TensorFlow's getters of messages keep a failure that is there */
  TF_Buffer* b = TF_NewBuffer();
  TF_OperationGetAttrTensorShapeProto(o, "_shape_proto", b, s);
  OK(s);
  CHECK(b->length == 4 && memcmp(b->data, shape_proto, 4) == 0);
  TF_DeleteBuffer(b);
  b = TF_NewBuffer();
  TF_OperationGetAttrValueProto(o, "_int", b, s);
  OK(s);
  CHECK(b->length == 4 && memcmp(b->data, "\x18\xb7\xf5\x01", 4) == 0);
  TF_DeleteBuffer(b);
  m = TF_OperationGetAttrMetadata(o, "_func", s);
  CHECK(m.type == TF_ATTR_FUNC && !m.is_list);
  TF_OperationGetAttrInt(o, "_string", &i, s); /* of another kind */
  CODE(s, TF_INVALID_ARGUMENT);
  TF_DeleteGraph(g);
}

static void tensor_attributes(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  const int64_t dims[] = {2, 1};
  const int32_t values[] = {7, 42};
  TF_Operation* o = constant(g, tensor_of(TF_INT32, dims, 2, values, sizeof values), "c", s);
  OK(s);
  TF_AttrMetadata m = TF_OperationGetAttrMetadata(o, "value", s);
  CHECK(!m.is_list && m.type == TF_ATTR_TENSOR);
  TF_Tensor* t = NULL;
  TF_OperationGetAttrTensor(o, "value", &t, s);
  OK(s);
  CHECK(TF_TensorType(t) == TF_INT32 && TF_NumDims(t) == 2 && TF_Dim(t, 0) == 2 && memcmp(TF_TensorData(t), values, 8) == 0);
  TF_DeleteTensor(t);
  TF_TString* text = malloc(sizeof *text);
  TF_StringInit(text);
  TF_StringCopy(text, "a string that does not fit inside", 33);
  TF_Tensor* st = TF_AllocateTensor(TF_STRING, NULL, 0, sizeof *text);
  memcpy(TF_TensorData(st), text, sizeof *text);
  o = constant(g, st, "s", s);
  OK(s);
  TF_OperationGetAttrTensor(o, "value", &t, s);
  OK(s);
  CHECK(TF_TensorType(t) == TF_STRING && TF_StringGetSize(TF_TensorData(t)) == 33);
  TF_DeleteTensor(t);
  free(text);
  CHECK(TF_OperationGetNumAttrs(o) >= 2);
  TF_DeleteGraph(g);
}

/* ---- Attributes, the rest ---- */

static void attribute_names(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_OperationDescription* d = attributes_of(g, "NoOp");
  TF_SetAttrString(d, "_v", "bunny", 5);
  TF_Operation* o = TF_FinishOperation(d, s);
  OK(s);
  CHECK(TF_OperationGetNumAttrs(o) == 1 && TF_OperationGetAttrNameLength(o, 0) == 2);
  char text[8] = "";
  TF_OperationGetAttrName(o, 0, text, s);
  OK(s);
  SAME(text, "_v");
  TF_OperationGetAttrName(o, 1, text, s);
  CODE(s, TF_OUT_OF_RANGE);
  TF_DeleteGraph(g);
}
static void shape_proto_list(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  const char first[] = {0x12, 2, 0x08, 2, 0x12, 2, 0x08, 4}, second[] = {0x12, 2, 0x08, 1, 0x12, 2, 0x08, 3}; /* [2, 4], [1, 3] */
  const void* const protos[] = {first, second};
  const size_t lengths[] = {8, 8};
  TF_OperationDescription* d = attributes_of(g, "NoOp");
  TF_SetAttrTensorShapeProtoList(d, "_v", protos, lengths, 2, s);
  OK(s);
  TF_Operation* o = TF_FinishOperation(d, s);
  OK(s);
  const TF_AttrMetadata m = TF_OperationGetAttrMetadata(o, "_v", s);
  CHECK(m.is_list && m.list_size == 2 && m.type == TF_ATTR_SHAPE && m.total_size == 4);
  TF_Buffer* values[2] = {NULL, NULL};
  TF_OperationGetAttrTensorShapeProtoList(o, "_v", values, 2, s);
  OK(s);
  for (int i = 0; i < 2; ++i) {
    CHECK(values[i] && values[i]->length == 8 && memcmp(values[i]->data, protos[i], 8) == 0);
    TF_DeleteBuffer(values[i]);
  }
  TF_DeleteGraph(g);
}
static void tensor_list(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  const int64_t dims1[] = {1, 2}, dims2[] = {2, 2};
  const char data1[] = {5, 7}, data2[] = {2, 4, 6, 8};
  TF_Tensor *given[] = {tensor_of(TF_INT8, dims1, 2, data1, 2), tensor_of(TF_INT8, dims2, 2, data2, 4)}, *got[2] = {NULL, NULL};
  TF_OperationDescription* d = attributes_of(g, "NoOp");
  TF_SetAttrTensorList(d, "_v", given, 2, s);
  OK(s);
  TF_DeleteTensor(given[0]);
  TF_DeleteTensor(given[1]);
  TF_Operation* o = TF_FinishOperation(d, s);
  OK(s);
  if (!o) return;
  const TF_AttrMetadata m = TF_OperationGetAttrMetadata(o, "_v", s);
  CHECK(m.is_list && m.list_size == 2 && m.type == TF_ATTR_TENSOR && m.total_size == -1);
  TF_OperationGetAttrTensorList(o, "_v", got, 2, s);
  OK(s);
  if (got[0]) CHECK(TF_TensorType(got[0]) == TF_INT8 && TF_Dim(got[0], 1) == 2 && memcmp(TF_TensorData(got[0]), data1, 2) == 0);
  if (got[1]) CHECK(TF_Dim(got[1], 0) == 2 && TF_TensorByteSize(got[1]) == 4 && memcmp(TF_TensorData(got[1]), data2, 4) == 0);
  TF_DeleteTensor(got[0]);
  TF_DeleteTensor(got[1]);
  TF_DeleteGraph(g);
}
static void empty_list(TF_Status* s) {
  TF_Graph* g = TF_NewGraph();
  TF_OperationDescription* d = TF_NewOperation(g, "Squeeze", "squeeze");
  TF_AddInput(d, out(placeholder(g, TF_FLOAT, "x", s), 0));
  TF_SetAttrIntList(d, "squeeze_dims", NULL, 0);
  TF_Operation* o = TF_FinishOperation(d, s);
  OK(s);
  if (!o) return;
  const TF_AttrMetadata m = TF_OperationGetAttrMetadata(o, "squeeze_dims", s);
  OK(s);
  CHECK(m.is_list && m.list_size == 0 && m.type == TF_ATTR_INT && m.total_size == -1);
  TF_DeleteGraph(g);
}

int main(void) {
  const Case cases[] = {{"SetShape", set_shape},
                        {"Graph", graph},
                        {"Errors", errors},
                        {"GetOpDef", op_def},
                        {"OldNames", old_names},
                        {"Colocation", colocation},
                        {"ImportGraphDef", import_graph_def},
                        {"ImportGraphDef_WithReturnOutputs", import_return_outputs},
                        {"ImportGraphDef_MissingUnusedInputMappings", import_missing},
                        {"Attributes", attributes},
                        {"TensorAttributes", tensor_attributes},
                        {"Names", attribute_names},
                        {"TensorShapeProtoList", shape_proto_list},
                        {"TensorList", tensor_list},
                        {"EmptyList", empty_list}};
  return run_cases(cases, COUNT(cases));
}
