/* Datasets of files with types, windows by key and batches by length, against what the test wrote and counted itself. */
#define _XOPEN_SOURCE 700
#include "check.h"
#include "folder.h"

static char folder[4096];
static tw_graph* graph;
static tw_scope* s;

static void open_graph(void) {
  OK(tw_graph_create(NULL, &graph));
  s = tw_scope_create(graph, NULL);
}

/* Writes a file of the folder and returns its name as a value of the graph. */
static tw_output written(const char* name, const void* bytes, size_t n) {
  char path[4200];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE* f = fopen(path, "wb");
  CHECK(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
  tw_tensor* t = NULL;
  OK(tw_tensor_create_string(path, strlen(path), &t));
  const tw_output value = tw_scope_constant(s, t);
  tw_tensor_release(t);
  return value;
}
static tw_output written_text(const char* name, const char* text) { return written(name, text, strlen(text)); }

/* Returns the elements as a text: components with a blank between, elements with a bar behind each. The error that ends them is left in
 * *out_failed. */
static const char* elements_or(tw_output dataset, tw_status** out_failed) {
  static char text[8192];
  *text = 0;
  tw_iterator* it = NULL;
  OK(tw_dataset_iterator_create(graph, dataset, NULL, &it));
  *out_failed = NULL;
  for (uint32_t end = 0; it && !end && !*out_failed;) {
    tw_tensor* got[4] = {NULL};
    *out_failed = tw_iterator_next(it, got, &end);
    if (*out_failed || end) continue;
    for (uint32_t k = 0; k < it->n_tensors; ++k) {
      tw_buffer* b = NULL;
      OK(tw_tensor_text(got[k], 0, &b));
      snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", k ? " " : "", (const char*)tw_buffer_data(b));
      tw_buffer_release(b);
      tw_tensor_release(got[k]);
    }
    strcat(text, "|");
  }
  tw_iterator_destroy(it);
  return text;
}
static void gives(tw_output dataset, const char* want) {
  tw_status* failed = NULL;
  const char* got = elements_or(dataset, &failed);
  OK(failed);
  CHECK(strcmp(got, want) == 0);
  if (strcmp(got, want) != 0) printf("  %s\n  is not %s\n", got, want);
}
static void ends_with(tw_output dataset, uint32_t code, const char* part) {
  tw_status* failed = NULL;
  elements_or(dataset, &failed);
  FAILS(failed, code, part);
}

static tw_dataset_column column(const char* name, uint32_t dtype, tw_output missing) {
  tw_dataset_column c;
  tw_dataset_column_init(&c);
  c.name = name;
  c.dtype = dtype;
  c.missing = missing;
  return c;
}

static void ColumnsOfCsvFilesHaveTypes(void) {
  open_graph();
  const tw_output file = written_text("a.csv", "name,age,height\n\"a, b\",3,1.5\nc,4,\n");
  const tw_output plain = written_text("plain.csv", "1;x\n-;y\n");
  const tw_dataset_column age = column("age", TW_INT32, 0), name = column("name", TW_STRING, 0),
                          height = column("height", TW_DOUBLE, tw_scope_scalar(s, TW_DOUBLE, -1));
  const tw_dataset_column* const chosen[] = {&age, &name, &height};
  const tw_output by_name = tw_dataset_csv(s, file, chosen, 3, NULL);
  const tw_dataset_column first = column(NULL, TW_INT64, tw_scope_scalar(s, TW_INT64, 9)), second = column(NULL, TW_STRING, 0);
  const tw_dataset_column* const both[] = {&first, &second};
  tw_dataset_csv_options options;
  tw_dataset_csv_options_init(&options);
  options.header = 0;
  options.delimiter = ";";
  options.missing = "-";
  const tw_output in_order = tw_dataset_csv(s, plain, both, 2, &options);
  const tw_dataset_column wrong = column("name", TW_INT32, 0);
  const tw_dataset_column* const bad[] = {&wrong};
  const tw_output no_number = tw_dataset_csv(s, file, bad, 1, NULL);
  OK(tw_scope_finish(s));
  gives(by_name, "3 \"a, b\" 1.5|4 \"c\" -1|");
  gives(in_order, "1 \"x\"|9 \"y\"|");
  ends_with(no_number, TW_INVALID_ARGUMENT, "a.csv' line 2: column 'name' is 'a, b', which is no int32");
  uint32_t dtype = 0;
  OK(tw_dataset_component(graph, by_name, 2, &dtype, NULL));
  CHECK(dtype == TW_DOUBLE && tw_dataset_component_count(graph, by_name) == 3);
  tw_graph_destroy(graph);
}

static void MembersOfJsonLinesHaveTypesAndShapes(void) {
  open_graph();
  const tw_output file =
      written_text("a.jsonl", "{\"n\": 2, \"tags\": [\"x\", \"y\"], \"ok\": true}\n\n{\"ok\": false, \"tags\": [], \"n\": 3}\n");
  const int64_t any = -1;
  tw_dataset_column n = column("n", TW_INT64, 0), tags = column("tags", TW_STRING, 0),
                    more = column("more", TW_FLOAT, tw_scope_scalar(s, TW_FLOAT, 7));
  tags.rank = 1;
  tags.dims = &any;
  const tw_dataset_column* const all[] = {&n, &tags, &more};
  const tw_output d = tw_dataset_json_lines(s, file, all, 3, NULL);
  const tw_dataset_column needed = column("more", TW_FLOAT, 0);
  const tw_dataset_column* const one[] = {&needed};
  const tw_output missing = tw_dataset_json_lines(s, file, one, 1, NULL);
  OK(tw_scope_finish(s));
  gives(d, "2 [\"x\", \"y\"] 7|3 [] 7|");
  ends_with(missing, TW_INVALID_ARGUMENT, "a.jsonl' line 1: ");
  tw_graph_destroy(graph);
}

static void CompressedFilesAreUnpacked(void) {
  /* gzip of "one\ntwo\n" */
  static const unsigned char kPacked[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xcb, 0xcf, 0x4b, 0xe5,
                                          0x2a, 0x29, 0xcf, 0xe7, 0x02, 0x00, 0xe6, 0x0b, 0xba, 0x12, 0x08, 0x00, 0x00, 0x00};
  open_graph();
  const tw_output file = written("a.gz", kPacked, sizeof kPacked);
  const tw_output lines = tw_dataset_lines_packed(s, file, "gzip"), raw = tw_dataset_records_packed(s, file, "zlib");
  OK(tw_scope_finish(s));
  gives(lines, "\"one\"|\"two\"|");
  ends_with(raw, TW_DATA_LOSS, "a.gz' at byte");
  tw_graph_destroy(graph);
}

/* The .npy file of a matrix of int32. Returns its size. */
static size_t npy(unsigned char* to, const int32_t* values, int rows, int width) {
  char head[119];
  const int n = snprintf(head, sizeof head, "{'descr': '<i4', 'fortran_order': False, 'shape': (%d, %d), }", rows, width);
  memset(head + n, ' ', sizeof head - (size_t)n);
  memcpy(to, "\x93NUMPY\x01\x00\x76\x00", 10); /* 118 bytes of head */
  memcpy(to + 10, head, 117);
  to[127] = '\n';
  memcpy(to + 128, values, (size_t)(rows * width) * 4);
  return 128 + (size_t)(rows * width) * 4;
}

static uint32_t crc32_of(const unsigned char* p, size_t n) {
  uint32_t crc = ~0u;
  for (size_t i = 0; i < n; ++i) {
    crc ^= p[i];
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
  }
  return ~crc;
}
static unsigned char* little(unsigned char* to, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) *to++ = (unsigned char)(value >> 8 * i);
  return to;
}
/* The zip archive of one stored member "x.npy". Returns its size. */
static size_t npz(unsigned char* to, const unsigned char* member, size_t n, uint32_t crc) {
  unsigned char* p = to;
  for (int directory = 0; directory < 2; ++directory) {
    const size_t at = (size_t)(p - to);
    p = little(p, directory ? 0x02014b50 : 0x04034b50, 4);
    if (directory) p = little(p, 20, 2);
    p = little(p, 20, 2); /* version; then flags, method, time, date */
    p = little(little(p, 0, 4), 0, 4);
    p = little(little(little(p, crc, 4), n, 4), n, 4);
    p = little(little(p, 5, 2), 0, 2);                                            /* sizes of name and extra */
    if (directory) p = little(little(little(little(p, 0, 2), 0, 4), 0, 4), 0, 4); /* comment, disk and attributes, attributes, place */
    memcpy(p, "x.npy", 5);
    p += 5;
    if (!directory) {
      memcpy(p, member, n);
      p += n;
      continue;
    }
    const size_t size = (size_t)(p - to) - at;
    p = little(little(p, 0x06054b50, 4), 0, 4);
    p = little(little(little(little(little(p, 1, 2), 1, 2), size, 4), at, 4), 0, 2);
  }
  return (size_t)(p - to);
}

static void RowsOfArraysInFiles(void) {
  open_graph();
  const int32_t values[] = {1, 2, 3, -4, 5, 6};
  unsigned char array[256], archive[512], damaged[512];
  const size_t n = npy(array, values, 3, 2);
  const size_t whole = npz(archive, array, n, crc32_of(array, n));
  const int64_t two = 2;
  const tw_output file = written("a.npy", array, n), zipped = written("a.npz", archive, whole);
  memcpy(damaged, archive, whole);
  damaged[35 + n - 1] ^= 1; /* the last byte of the array, behind a head of 30 bytes and the name */
  const tw_output spoilt = written("spoilt.npz", damaged, whole);
  static const unsigned char kIdx[] = {0, 0, 0x0B, 2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 1, 1, 0, 0xFF, 0xFF, 0, 9};
  const tw_output images = written("a.idx", kIdx, sizeof kIdx);
  tw_dataset_column x = column("x", TW_INT32, 0);
  x.rank = 1;
  x.dims = &two;
  const tw_dataset_column* const arrays[] = {&x};
  const tw_output rows = tw_dataset_npy(s, file, TW_INT32, &two, 1, NULL), members = tw_dataset_npz(s, zipped, arrays, 1);
  const tw_output bad = tw_dataset_npz(s, spoilt, arrays, 1), idx = tw_dataset_idx(s, images, TW_INT16, &two, 1, "");
  const tw_output other = tw_dataset_npy(s, file, TW_FLOAT, &two, 1, NULL);
  OK(tw_scope_finish(s));
  gives(rows, "[1, 2]|[3, -4]|[5, 6]|");
  gives(members, "[1, 2]|[3, -4]|[5, 6]|");
  gives(idx, "[1, 256]|[-1, 9]|");
  ends_with(bad, TW_DATA_LOSS, "spoilt.npz': array 'x': the checksum of its 152 bytes is wrong");
  ends_with(other, TW_INVALID_ARGUMENT, "the array is int32; the component is float");
  tw_graph_destroy(graph);
}

static tw_block* remainder_of(tw_output dataset, int64_t divisor) {
  tw_output x;
  tw_block* b = tw_dataset_block(s, dataset, &x);
  const tw_output key = tw_scope_op2(tw_block_scope(b), "FloorMod", x, tw_scope_scalar(tw_block_scope(b), TW_INT64, (double)divisor));
  tw_block_give(b, &key, 1);
  return b;
}

static void WindowsHaveElementsOfOneKey(void) {
  open_graph();
  const tw_output d = tw_dataset_range(s, 0, 8, 1);
  tw_output key, window;
  tw_block* key_of = remainder_of(d, 3);
  tw_block* reduce = tw_dataset_window_block(s, d, &key, &window);
  const tw_output batch = tw_dataset_batch(tw_block_scope(reduce), window, 2, 0);
  tw_block_give(reduce, &batch, 1);
  const tw_output grouped = tw_dataset_group_by_window(s, d, key_of, reduce, 2);
  OK(tw_scope_finish(s));
  /* Windows 0: 0, 3; 1: 1, 4; 2: 2, 5 fill in this order; 6 and 7 stay. */
  gives(grouped, "[0, 3]|[1, 4]|[2, 5]|[6]|[7]|");
  tw_graph_destroy(graph);
}

/* A dataset of vectors of the lengths 1 to 6, each of its length. */
static tw_output vectors(void) {
  const tw_output lengths = tw_dataset_range(s, 1, 7, 1);
  tw_output n;
  tw_block* b = tw_dataset_block(s, lengths, &n);
  tw_scope* in = tw_block_scope(b);
  const tw_output shape = tw_scope_op2(in, "ExpandDims", n, tw_scope_scalar(in, TW_INT32, 0)), filled = tw_scope_op2(in, "Fill", shape, n);
  tw_block_give(b, &filled, 1);
  return tw_dataset_map(s, lengths, b, 1);
}
static tw_block* length_of(tw_output dataset) {
  tw_output v;
  tw_block* b = tw_dataset_block(s, dataset, &v);
  const tw_output n = tw_scope_op1(tw_block_scope(b), "Size", v);
  tw_block_give(b, &n, 1);
  return b;
}

static void BatchesHaveElementsOfSimilarLengths(void) {
  open_graph();
  const tw_output d = vectors();
  const int64_t edges[] = {3, 5}, sizes[] = {2, 1, 2}, large[] = {3, 7};
  tw_dataset_bucket_options options;
  tw_dataset_bucket_options_init(&options);
  const tw_output plain = tw_dataset_bucket_by_length(s, d, length_of(d), edges, sizes, 2, NULL);
  const tw_output minus = tw_scope_scalar(s, TW_INT64, -1);
  options.padding = &minus;
  options.to_boundary = 1;
  const tw_output filled = tw_dataset_bucket_by_length(s, d, length_of(d), large, sizes, 2, &options);
  const tw_output short_ = tw_dataset_bucket_by_length(s, d, length_of(d), edges, sizes, 2, &options);
  OK(tw_scope_finish(s));
  gives(plain, "[[1, 0], [2, 2]]|[[3, 3, 3]]|[[4, 4, 4, 4]]|[[5, 5, 5, 5, 5, 0], [6, 6, 6, 6, 6, 6]]|");
  gives(filled, "[[1, -1], [2, 2]]|[[3, 3, 3, -1, -1, -1]]|[[4, 4, 4, 4, -1, -1]]|[[5, 5, 5, 5, 5, -1]]|[[6, 6, 6, 6, 6, 6]]|");
  ends_with(short_, TW_INVALID_ARGUMENT, "a length must be below 5, the last boundary; it is");
  tw_graph_destroy(graph);
}

static void refused(tw_output result, const char* part) {
  CHECK(result == 0);
  FAILS(tw_scope_finish(s), TW_INVALID_ARGUMENT, part);
  s = tw_scope_create(graph, NULL);
}

static void WrongUsesAreRefused(void) {
  open_graph();
  const tw_output d = tw_dataset_range(s, 0, 5, 1), v = vectors(), file = written_text("b.csv", "a\n1\n");
  const tw_dataset_column a = column("a", TW_INT32, 0), none = column(NULL, TW_INT32, 0), half = column("h", TW_HALF, 0);
  tw_dataset_column wide = a, small = a;
  wide.rank = 1;
  small.size = 8;
  const tw_dataset_column *one[] = {&a}, *mixed[] = {&a, &none}, *unnamed[] = {&none}, *halves[] = {&half}, *empty[] = {NULL},
                          *wides[] = {&wide}, *smalls[] = {&small};
  refused(tw_dataset_csv(s, file, NULL, 0, NULL), "there are no columns");
  refused(tw_dataset_csv(s, file, empty, 1, NULL), "column 0 is NULL");
  refused(tw_dataset_csv(s, file, smalls, 1, NULL), "fill the record with tw_dataset_column_init first");
  refused(tw_dataset_csv(s, file, mixed, 2, NULL), "column 1 has no name, and column 0 has one");
  refused(tw_dataset_csv(s, file, halves, 1, NULL), "column 'h' is half; there are float, double, int32, int64 and string");
  refused(tw_dataset_csv(s, file, wides, 1, NULL), "column 'a' has the rank 1, and its dims are NULL");
  const int64_t two = 2;
  wide.dims = &two;
  refused(tw_dataset_csv(s, file, wides, 1, NULL), "column 'a' has a shape; a field is a single value");
  refused(tw_dataset_json_lines(s, file, unnamed, 1, NULL), "column 0 has no name");
  refused(tw_dataset_json_lines(s, file, one, 1, "zstd"), "compression is 'zstd'; it must be 'gzip', 'zlib' or ''");
  refused(tw_dataset_npz(s, file, unnamed, 1), "array 0 has no name");
  refused(tw_dataset_lines_packed(s, file, "bz2"), "compression is 'bz2'");
  tw_output key, window;
  tw_block* reduce = tw_dataset_window_block(s, d, &key, &window);
  tw_block_give(reduce, &window, 1);
  refused(tw_dataset_group_by_window(s, d, remainder_of(d, 2), reduce, 0), "size is 0");
  reduce = tw_dataset_window_block(s, d, &key, &window);
  tw_block_give(reduce, &key, 1);
  refused(tw_dataset_group_by_window(s, d, remainder_of(d, 2), reduce, 1), "must give one dataset");
  reduce = tw_dataset_window_block(s, d, &key, &window);
  tw_block_give(reduce, &window, 1);
  tw_output x;
  tw_block* real = tw_dataset_block(s, d, &x);
  const tw_output as_float = tw_scope_scalar(tw_block_scope(real), TW_FLOAT, 1);
  tw_block_give(real, &as_float, 1);
  refused(tw_dataset_group_by_window(s, d, real, reduce, 1), "the block of the key gives 1 results of type float");
  refused(tw_dataset_group_by_window(s, d, NULL, NULL, 1), "block 0 is NULL");
  const int64_t edges[] = {3, 3}, good[] = {3, 5}, sizes[] = {1, 1, 1}, zero[] = {1, 0, 1};
  refused(tw_dataset_bucket_by_length(s, v, length_of(v), NULL, sizes, 0, NULL), "there are no boundaries");
  refused(tw_dataset_bucket_by_length(s, v, length_of(v), edges, sizes, 2, NULL), "boundary 1 is 3, behind 3; the boundaries must grow");
  refused(tw_dataset_bucket_by_length(s, v, length_of(v), good, zero, 2, NULL), "a size is 0");
  refused(tw_dataset_bucket_by_length(s, v, NULL, good, sizes, 2, NULL), "must give one scalar");
  tw_dataset_bucket_options options;
  tw_dataset_bucket_options_init(&options);
  options.stacked = options.to_boundary = 1;
  refused(tw_dataset_bucket_by_length(s, v, length_of(v), good, sizes, 2, &options), "have no meaning; leave them out");
  OK(tw_scope_finish(s));
  tw_graph_destroy(graph);
}

static void FolderIsMade(void) { CHECK(make_folder(folder, sizeof folder, "dataset-files") == 0); }
static void FolderIsRemoved(void) { CHECK(remove_folder(folder) == 0); }

MAIN(TEST(FolderIsMade), TEST(ColumnsOfCsvFilesHaveTypes), TEST(MembersOfJsonLinesHaveTypesAndShapes), TEST(CompressedFilesAreUnpacked),
     TEST(RowsOfArraysInFiles), TEST(WindowsHaveElementsOfOneKey), TEST(BatchesHaveElementsOfSimilarLengths), TEST(WrongUsesAreRefused),
     TEST(FolderIsRemoved))
