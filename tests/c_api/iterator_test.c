/* Iterators: orders, positions, strings, values of a session, records of programs, errors. */
#include "check.h"

/* rows [n, 2] of floats 0, 1, 2, ... and the row numbers as strings. */
static tw_tensor* rows_of(int64_t n) {
  const int64_t dims[] = {n, 2};
  float values[64];
  for (int i = 0; i < 2 * n; ++i) values[i] = (float)i;
  return floats(dims, 2, values);
}

static tw_tensor* texts_of(int64_t n) {
  tw_tensor* t = NULL;
  OK(tw_tensor_create(TW_STRING, &n, 1, &t));
  for (int64_t i = 0; i < n; ++i) {
    char text[16];
    OK(tw_tensor_set_string(t, (uint64_t)i, text, (uint64_t)snprintf(text, sizeof text, "row %d", (int)i)));
  }
  return t;
}

static tw_iterator* batches_of(int64_t n, int64_t batch, uint32_t shuffle, int64_t seed, uint32_t drop) {
  tw_tensor* both[] = {rows_of(n), texts_of(n)};
  tw_batch_options options;
  tw_batch_options_init(&options);
  options.batch = batch, options.shuffle = shuffle, options.seed = seed, options.drop_remainder = drop;
  tw_iterator* made = NULL;
  OK(tw_iterator_create_batches(both, 2, &options, &made));
  tw_tensor_release(both[0]);
  tw_tensor_release(both[1]);
  return made;
}

/* The numbers of the rows of the rest of the epoch, in the order of the iterator; returns how many batches there were. */
static int read_rows(tw_iterator* it, int* out, int* n_rows) {
  int batches = 0;
  *n_rows = 0;
  for (uint32_t end = 0;; ++batches) {
    tw_tensor* got[2];
    OK(tw_iterator_next(it, got, &end));
    if (end) {
      CHECK(!got[0] && !got[1]);
      return batches;
    }
    CHECK(got[0] && got[1] && tw_tensor_dim(got[0], 0) == tw_tensor_dim(got[1], 0));
    if (!got[0] || !got[1]) return batches;
    for (int64_t i = 0; i < tw_tensor_dim(got[0], 0); ++i) {
      const float* row = (const float*)tw_tensor_data(got[0]) + 2 * i;
      const char* text = NULL;
      char wanted[16];
      uint64_t bytes = 0;
      out[*n_rows] = (int)row[0] / 2;
      CHECK(row[1] == row[0] + 1);
      snprintf(wanted, sizeof wanted, "row %d", out[(*n_rows)++]);
      OK(tw_tensor_get_string(got[1], (uint64_t)i, &text, &bytes));
      CHECK(bytes == strlen(wanted) && !memcmp(text, wanted, bytes));
    }
    tw_tensor_release(got[0]);
    tw_tensor_release(got[1]);
  }
}

static void BatchesGiveEachRowOnceAnEpoch(void) {
  for (int shuffle = 0; shuffle < 2; ++shuffle) {
    tw_iterator* it = batches_of(10, 4, (uint32_t)shuffle, 7, 0);
    CHECK(it->n_tensors == 2 && it->n_batches == 3);
    int rows[2][16], n = 0, in_order = 1, as_before = 1;
    for (int epoch = 0; epoch < 2; ++epoch) {
      OK(tw_iterator_reset(it, epoch));
      CHECK(read_rows(it, rows[epoch], &n) == 3 && n == 10);
      int seen = 0;
      for (int i = 0; i < n; ++i) {
        seen |= 1 << rows[epoch][i];
        in_order = in_order && rows[epoch][i] == i;
        as_before = as_before && rows[epoch][i] == rows[0][i];
      }
      CHECK(seen == (1 << 10) - 1);
      int after = 0;
      CHECK(read_rows(it, rows[epoch] + 10, &after) == 0 && after == 0); /* the end stays the end */
    }
    CHECK(in_order == !shuffle && as_before == !shuffle);
    tw_iterator_destroy(it);
  }
}

static void OrdersNeverChange(void) { /* saved trainings depend on them; these were computed by another program */
  const int wanted[] = {5, 4, 2, 6, 0, 7, 1, 3};
  tw_iterator* it = batches_of(8, 8, 1, 1, 0);
  int rows[16], n = 0;
  OK(tw_iterator_reset(it, 3));
  read_rows(it, rows, &n);
  CHECK(n == 8);
  for (int i = 0; i < n; ++i) {
    if (rows[i] == wanted[i]) continue;
    printf("  row %d is %d, expected %d\n", i, rows[i], wanted[i]);
    ++failures;
  }
  tw_iterator_destroy(it);
}

static void TheRemainderMayBeLeftOut(void) {
  tw_iterator* it = batches_of(10, 4, 0, 0, 1);
  int rows[16], n = 0;
  CHECK(it->n_batches == 2 && read_rows(it, rows, &n) == 2 && n == 8);
  tw_iterator_destroy(it);
  it = batches_of(0, 4, 1, 0, 0);
  CHECK(it->n_batches == 0 && read_rows(it, rows, &n) == 0 && n == 0);
  tw_iterator_destroy(it);
}

static void ASavedPositionGoesOnWithTheSameBatches(void) {
  tw_iterator *it = batches_of(10, 3, 1, 5, 0), *other = batches_of(10, 3, 1, 5, 0);
  int rows[16], again[16], n = 0, m = 0;
  uint32_t end = 0;
  tw_tensor* got[2];
  tw_buffer* position = NULL;
  OK(tw_iterator_reset(it, 4));
  OK(tw_iterator_next(it, got, &end));
  tw_tensor_release(got[0]);
  tw_tensor_release(got[1]);
  OK(tw_iterator_save(it, &position));
  CHECK(read_rows(it, rows, &n) == 3 && n == 7);
  OK(tw_iterator_restore(other, tw_buffer_data(position), tw_buffer_bytes(position)));
  CHECK(read_rows(other, again, &m) == 3 && m == 7 && !memcmp(rows, again, 7 * sizeof(int)));
  tw_iterator* differs = batches_of(10, 4, 1, 5, 0);
  FAILS(tw_iterator_restore(differs, tw_buffer_data(position), tw_buffer_bytes(position)), TW_INVALID_ARGUMENT, "batches of 3");
  FAILS(tw_iterator_restore(differs, "x", 1), TW_INVALID_ARGUMENT, "1 bytes");
  CHECK(read_rows(differs, rows, &n) == 3 && n == 10); /* unchanged */
  tw_buffer_release(position);
  tw_iterator_destroy(it);
  tw_iterator_destroy(other);
  tw_iterator_destroy(differs);
}

static void BatchesOutliveTheIterator(void) {
  tw_iterator* it = batches_of(4, 2, 0, 0, 0);
  tw_tensor* got[2];
  uint32_t end = 0;
  OK(tw_iterator_next(it, got, &end));
  tw_tensor_release(got[0]);
  tw_tensor_release(got[1]);
  OK(tw_iterator_next(it, got, &end));
  tw_iterator_destroy(it);
  CHECK(!end && got[0] && ((const float*)tw_tensor_data(got[0]))[0] == 4);
  tw_tensor_release(got[0]);
  tw_tensor_release(got[1]);
}

static void ValuesOfASessionAreBatches(void) {
  tw_graph* graph = NULL;
  OK(tw_graph_create(NULL, &graph));
  tw_scope* s = tw_scope_create(graph, NULL);
  const uint32_t types[] = {TW_INT64};
  tw_op* op = tw_scope_begin(s, "FIFOQueueV2", "queue");
  tw_op_set_types(op, "component_types", types, 1);
  const tw_output queue = tw_scope_end(s, op);
  const tw_output value = tw_scope_placeholder(s, "value", TW_INT64, NULL, 0);
  op = tw_scope_begin(s, "QueueEnqueueV2", NULL);
  tw_op_add_input(op, queue);
  tw_op_add_inputs(op, &value, 1);
  const tw_operation* put = tw_scope_end_operation(s, op);
  op = tw_scope_begin(s, "QueueDequeueV2", NULL);
  tw_op_add_input(op, queue);
  tw_op_set_types(op, "component_types", types, 1);
  const tw_output taken = tw_scope_end(s, op);
  op = tw_scope_begin(s, "QueueCloseV2", NULL);
  tw_op_add_input(op, queue);
  const tw_operation* close = tw_scope_end_operation(s, op);
  OK(tw_scope_finish(s));
  tw_session* session = NULL;
  OK(tw_session_create(graph, NULL, 0, &session));
  for (int i = 0; i < 5; ++i) {
    tw_tensor* number = NULL;
    OK(tw_tensor_create_int64(i, &number));
    const tw_signature what = {.size = sizeof what, .feeds = &value, .n_feeds = 1, .targets = &put, .n_targets = 1};
    OK(tw_session_run(session, &what, &number, NULL, NULL));
    tw_tensor_release(number);
  }
  run(session, close);
  tw_iterator *pairs = NULL, *rest = NULL;
  OK(tw_iterator_create_fetches(session, &taken, 1, 2, &pairs));
  OK(tw_iterator_create_fetches(session, &taken, 1, 0, &rest));
  int64_t next = 0;
  for (int epoch = 0; epoch < 2; ++epoch) {
    OK(tw_iterator_reset(pairs, epoch));
    for (int i = 0; i < 3; ++i) {
      tw_tensor* got = NULL;
      uint32_t end = 0;
      OK(tw_iterator_next(pairs, &got, &end));
      CHECK(end == (i == 2));
      if (got) CHECK(*(const int64_t*)tw_tensor_data(got) == next++);
      tw_tensor_release(got);
    }
  }
  CHECK(next == 4);
  for (int i = 0; i < 3; ++i) {
    tw_tensor* got = NULL;
    uint32_t end = 0;
    OK(tw_iterator_next(rest, &got, &end));
    CHECK(end == (i > 0));
    tw_tensor_release(got);
  }
  FAILS(tw_iterator_reset(rest, 1), TW_UNIMPLEMENTED, "cannot start epoch 1");
  tw_buffer* position = NULL;
  FAILS(tw_iterator_save(rest, &position), TW_UNIMPLEMENTED, "no function save");
  FAILS(tw_iterator_restore(rest, "", 0), TW_UNIMPLEMENTED, "no function restore");
  tw_iterator_destroy(pairs);
  tw_iterator_destroy(rest);
  tw_session_destroy(session);
  tw_graph_destroy(graph);
}

/* ---- A program's own record ---- */

static tw_status* one_of_two(void* user, tw_tensor** out, uint32_t* end) { /* user: the case */
  const int kind = *(int*)user;
  if (kind != 2) OK(tw_tensor_create_float(1, &out[0]));
  *end = kind == 1;
  return kind == 2 || kind == 3 ? tw_status_create(TW_DATA_LOSS, "the file is torn") : NULL;
}

static void ResultsOfRecordsAreChecked(void) {
  int kind = 0;
  tw_iterator it = {.size = sizeof it, .n_tensors = 2, .n_batches = -1, .user = &kind, .next = one_of_two};
  tw_tensor* got[2];
  uint32_t end = 9;
  FAILS(tw_iterator_next(&it, got, &end), TW_INTERNAL, "gave 1 tensors of 2; its function next");
  CHECK(!got[0] && !got[1] && end == 0);
  kind = 1;
  FAILS(tw_iterator_next(&it, got, &end), TW_INTERNAL, "gave 1 tensors of 2 at the end");
  CHECK(!got[0] && end == 0);
  for (kind = 2; kind < 4; ++kind) {
    FAILS(tw_iterator_next(&it, got, &end), TW_DATA_LOSS, "the file is torn");
    CHECK(!got[0] && !got[1] && end == 0);
  }
  FAILS(tw_iterator_reset(&it, -1), TW_INVALID_ARGUMENT, "epoch is -1");
  it.n_tensors = 0;
  FAILS(tw_iterator_next(&it, got, &end), TW_INVALID_ARGUMENT, "n_tensors of the iterator is 0");
  it.n_tensors = 2, it.size = 8;
  FAILS(tw_iterator_next(&it, got, &end), TW_INVALID_ARGUMENT, "sizeof(tw_iterator)");
  tw_iterator_destroy(&it); /* too small for a destroy */
  it.size = sizeof it, it.next = NULL;
  FAILS(tw_iterator_reset(&it, 0), TW_INVALID_ARGUMENT, "no function next");
  tw_iterator_destroy(&it);
  tw_iterator_destroy(NULL);
}

static void WrongBatchesAreRefused(void) {
  tw_tensor *rows = rows_of(4), *fewer = rows_of(3), *one = scalar(1);
  tw_iterator* it = NULL;
  tw_batch_options options;
  tw_batch_options_init(&options);
  tw_tensor* both[] = {rows, fewer};
  FAILS(tw_iterator_create_batches(both, 2, &options, &it), TW_INVALID_ARGUMENT, "tensors[1] has 3 rows, and tensors[0] has 4");
  both[1] = one;
  FAILS(tw_iterator_create_batches(both, 2, &options, &it), TW_INVALID_ARGUMENT, "tensors[1] is a scalar");
  both[1] = NULL;
  FAILS(tw_iterator_create_batches(both, 2, &options, &it), TW_INVALID_ARGUMENT, "tensors[1] is NULL");
  FAILS(tw_iterator_create_batches(both, 0, &options, &it), TW_INVALID_ARGUMENT, "there are no tensors");
  options.batch = 0;
  FAILS(tw_iterator_create_batches(both, 1, &options, &it), TW_INVALID_ARGUMENT, "batch is 0");
  options.batch = 1, options.shuffle = 2;
  FAILS(tw_iterator_create_batches(both, 1, &options, &it), TW_INVALID_ARGUMENT, "shuffle is 2");
  options.size = 4;
  FAILS(tw_iterator_create_batches(both, 1, &options, &it), TW_INVALID_ARGUMENT, "tw_batch_options_init");
  CHECK(!it);
  tw_tensor_release(rows);
  tw_tensor_release(fewer);
  tw_tensor_release(one);
}

MAIN(TEST(BatchesGiveEachRowOnceAnEpoch), TEST(OrdersNeverChange), TEST(TheRemainderMayBeLeftOut),
     TEST(ASavedPositionGoesOnWithTheSameBatches), TEST(BatchesOutliveTheIterator), TEST(ValuesOfASessionAreBatches),
     TEST(ResultsOfRecordsAreChecked), TEST(WrongBatchesAreRefused))
