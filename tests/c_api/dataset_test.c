/* Datasets: elements of pipelines against lists, positions, elements in steps, files of records, refusals. */
#define _XOPEN_SOURCE 700
#include "check.h"
#include "folder.h"

enum { kMost = 64 };

/* Runs a dataset of one int64 component and checks all elements, which lie one after the other in `want`. */
static void gives(tw_graph* graph, tw_output dataset, const int64_t* want, int n) {
  tw_iterator* it = NULL;
  OK(tw_dataset_iterator_create(graph, dataset, NULL, &it));
  int at = 0;
  for (uint32_t end = 0; it && !end;) {
    tw_tensor* t = NULL;
    tw_status* s = tw_iterator_next(it, &t, &end);
    CHECK(!s);
    if (s) {
      OK(s);
      break;
    }
    for (uint64_t i = 0; t && i < tw_tensor_count(t); ++i, ++at) {
      if (at < n && ((const int64_t*)tw_tensor_data(t))[i] != want[at]) {
        printf("  element %d is %lld, not %lld\n", at, (long long)((const int64_t*)tw_tensor_data(t))[i], (long long)want[at]);
        ++failures;
      }
    }
    tw_tensor_release(t);
  }
  CHECK(at == n);
  tw_iterator_destroy(it);
}
#define GIVES(graph, dataset, ...)                                  \
  do {                                                              \
    const int64_t want[] = {__VA_ARGS__};                           \
    gives(graph, dataset, want, (int)(sizeof want / sizeof *want)); \
  } while (0)

static tw_graph* graph;
static tw_scope* s;
static void open_graph(void) {
  OK(tw_graph_create(NULL, &graph));
  s = tw_scope_create(graph, NULL);
}
static void close_graph(void) {
  tw_graph_destroy(graph);
  graph = NULL;
}

/* A block that multiplies an element by `factor`, a value of the graph around. */
static tw_block* times(tw_output dataset, tw_output factor) {
  tw_output x;
  tw_block* b = tw_dataset_block(s, dataset, &x);
  const tw_output y = tw_scope_op2(tw_block_scope(b), "Mul", x, factor);
  tw_block_give(b, &y, 1);
  return b;
}

static void ElementsPassThroughAPipeline(void) {
  open_graph();
  tw_tensor* t = NULL;
  OK(tw_tensor_create_int64(3, &t));
  const tw_output d = tw_dataset_range(s, 0, 6, 1), three = tw_scope_op1(s, "Identity", tw_scope_constant(s, t));
  tw_output x;
  tw_block* small = tw_dataset_block(s, d, &x);
  const tw_output is = tw_scope_op2(tw_block_scope(small), "Less", x, three);
  tw_block_give(small, &is, 1);
  tw_block* also = tw_dataset_block(s, d, &x);
  const tw_output yes = tw_scope_op2(tw_block_scope(also), "Less", x, three);
  tw_block_give(also, &yes, 1);
  const tw_output tripled = tw_dataset_map(s, d, times(d, three), TW_DATASET_AUTO), one = tw_dataset_map(s, d, times(d, three), 1);
  const tw_output filtered = tw_dataset_filter(s, d, small), while_ = tw_dataset_take_while(s, d, also);
  const tw_output parts[] = {tw_dataset_skip(s, d, 4), d};
  const tw_output windows = tw_dataset_window(s, d, 3, 2, 1, 1);
  tw_output window;
  tw_block* w = tw_dataset_block(s, windows, &window);
  const tw_output stacked = tw_dataset_batch(tw_block_scope(w), window, 3, 0);
  tw_block_give(w, &stacked, 1);
  const tw_output flat = tw_dataset_flat_map(s, windows, w);
  tw_block* two = tw_dataset_block(s, d, &x);
  const tw_output range = tw_dataset_range(tw_block_scope(two), 7, 9, 1);
  tw_block_give(two, &range, 1);
  const tw_output turns = tw_dataset_interleave(s, tw_dataset_take(s, d, 2), two, 2, 1);
  const tw_output again = tw_dataset_repeat(s, tw_dataset_cache(s, tw_dataset_take(s, d, 2)), 2);
  const tw_output shards = tw_dataset_shard(s, d, 4, 1), both = tw_dataset_concatenate(s, shards, parts[0]);
  const tw_output rows = tw_dataset_unbatch(s, tw_dataset_batch(s, tw_dataset_prefetch(s, d, 2), 4, 1));
  const tw_output padded = tw_dataset_padded_batch(s, flat, 2, NULL, NULL, 0);
  const tw_output zipped = tw_dataset_zip(s, parts, 2);
  OK(tw_scope_finish(s));
  GIVES(graph, tripled, 0, 3, 6, 9, 12, 15);
  GIVES(graph, one, 0, 3, 6, 9, 12, 15);
  GIVES(graph, filtered, 0, 1, 2);
  GIVES(graph, while_, 0, 1, 2);
  GIVES(graph, flat, 0, 1, 2, 2, 3, 4);
  GIVES(graph, turns, 7, 7, 8, 8);
  GIVES(graph, again, 0, 1, 0, 1);
  GIVES(graph, both, 1, 5, 4, 5);
  GIVES(graph, rows, 0, 1, 2, 3);
  GIVES(graph, padded, 0, 1, 2, 2, 3, 4);
  CHECK(tw_dataset_component_count(graph, zipped) == 2);
  CHECK(tw_dataset_component_count(graph, three) == 0);
  uint32_t dtype = 0;
  tw_shape shape;
  OK(tw_dataset_component(graph, padded, 0, &dtype, &shape));
  CHECK(dtype == TW_INT64 && shape.rank == 2 && shape.dims[0] == -1 && shape.dims[1] == -1);
  FAILS(tw_dataset_component(graph, zipped, 2, &dtype, &shape), TW_INVALID_ARGUMENT, "component 2 is asked for, and there are 2");
  tw_tensor_release(t);
  close_graph();
}

/* Takes up to n batches of one component, joined to a text. */
static void take(tw_iterator* it, int n, char* text) {
  for (uint32_t over = 0; n > 0; --n) {
    tw_tensor* t = NULL;
    tw_buffer* b = NULL;
    OK(tw_iterator_next(it, &t, &over));
    if (over || !t) return;
    OK(tw_tensor_text(t, 0, &b));
    strcat(text, tw_buffer_data(b));
    tw_buffer_release(b);
    tw_tensor_release(t);
  }
}

static void PositionsAreRestoredInAnotherGraph(void) {
  char whole[4096] = "", parts[4096] = "";
  for (int prefetch = 0; prefetch < 4; prefetch += 3) {
    tw_buffer* position = NULL;
    *whole = *parts = 0;
    for (int restored = 0; restored < 2; ++restored) {
      open_graph();
      const tw_output d = tw_dataset_batch(s, tw_dataset_shuffle(s, tw_dataset_range(s, 0, 50, 1), 20, 7, 1), 3, 0);
      OK(tw_scope_finish(s));
      tw_dataset_iterator_options options;
      tw_dataset_iterator_options_init(&options);
      options.prefetch = prefetch;
      tw_iterator* it = NULL;
      OK(tw_dataset_iterator_create(graph, d, &options, &it));
      CHECK(it && it->n_batches == 17 && it->n_tensors == 1);
      if (restored) {
        OK(tw_iterator_restore(it, tw_buffer_data(position), tw_buffer_bytes(position)));
        take(it, kMost, parts);
        FAILS(tw_iterator_restore(it, "nonsense", 8), TW_INVALID_ARGUMENT, "no position");
      } else {
        take(it, 5, parts);
        OK(tw_iterator_save(it, &position));
        OK(tw_iterator_reset(it, 0));
        take(it, kMost, whole);
        char second[4096] = "";
        OK(tw_iterator_reset(it, 1));
        take(it, kMost, second);
        CHECK(strlen(second) == strlen(whole) && strcmp(second, whole) != 0);
      }
      tw_iterator_destroy(it);
      close_graph();
    }
    CHECK(strcmp(whole, parts) == 0);
    tw_buffer_release(position);
  }
}

static void StepsTakeElements(void) {
  open_graph();
  const tw_output d = tw_dataset_range(s, 3, 5, 1), position = tw_dataset_position(s, "input", d);
  const tw_operation* start = tw_dataset_start(s, d, position);
  tw_output element = 0;
  tw_dataset_next(s, d, position, &element);
  OK(tw_scope_finish(s));
  tw_session* session = NULL;
  OK(tw_session_create(graph, NULL, 0, &session));
  const tw_signature next = {.size = sizeof next, .fetches = &element, .n_fetches = 1};
  const tw_signature begin_ = {.size = sizeof begin_, .targets = &start, .n_targets = 1};
  tw_tensor* t = NULL;
  FAILS(tw_session_run(session, &next, NULL, NULL, &t), TW_FAILED_PRECONDITION, "run MakeIterator first");
  OK(tw_session_run(session, &begin_, NULL, NULL, NULL));
  for (int64_t want = 3; want < 5; ++want) {
    OK(tw_session_run(session, &next, NULL, NULL, &t));
    CHECK(t && *(const int64_t*)tw_tensor_data(t) == want);
    tw_tensor_release(t);
    t = NULL;
  }
  FAILS(tw_session_run(session, &next, NULL, NULL, &t), TW_OUT_OF_RANGE, "End of sequence");
  tw_session_destroy(session);
  close_graph();
}

static void RecordsAreWrittenAndRead(void) {
  char folder[4096], path[4200];
  CHECK(make_folder(folder, sizeof folder, "dataset") == 0);
  snprintf(path, sizeof path, "%s/a.tfrecord", folder);
  tw_record_writer* w = NULL;
  OK(tw_record_writer_create(NULL, path, &w));
  OK(tw_record_writer_write(w, "one", 3));
  OK(tw_record_writer_write(w, NULL, 0));
  OK(tw_record_writer_close(w));
  FAILS(tw_record_writer_write(w, "late", 4), TW_FAILED_PRECONDITION, "is closed");
  tw_record_writer_destroy(w);
  open_graph();
  tw_tensor* name = NULL;
  OK(tw_tensor_create_string(path, strlen(path), &name));
  const tw_output d = tw_dataset_records(s, tw_scope_constant(s, name));
  OK(tw_scope_finish(s));
  tw_iterator* it = NULL;
  OK(tw_dataset_iterator_create(graph, d, NULL, &it));
  char text[256] = "";
  take(it, kMost, text);
  CHECK(strcmp(text, "\"one\"\"\"") == 0);
  tw_iterator_destroy(it);
  tw_tensor_release(name);
  close_graph();
  remove_folder(folder);
}

static void refused(tw_output result, const char* part) {
  CHECK(result == 0);
  FAILS(tw_scope_finish(s), TW_INVALID_ARGUMENT, part);
  s = tw_scope_create(graph, NULL);
}

static void WrongUsesAreRefused(void) {
  open_graph();
  const tw_output d = tw_dataset_range(s, 0, 5, 1), number = tw_scope_scalar(s, TW_FLOAT, 1);
  refused(tw_dataset_range(s, 0, 5, 0), "step is 0");
  refused(tw_dataset_take(s, number, 1), "is no dataset of this graph");
  refused(tw_dataset_take(s, d, -2), "count is -2");
  refused(tw_dataset_shard(s, d, 3, 3), "index is 3");
  refused(tw_dataset_shuffle(s, d, 0, 1, 1), "buffer is 0");
  refused(tw_dataset_batch(s, d, 0, 0), "size is 0");
  refused(tw_dataset_window(s, d, 1, 0, 1, 0), "shift is 0");
  refused(tw_dataset_zip(s, NULL, 0), "there are no datasets");
  refused(tw_dataset_rows(s, NULL, 0), "there are no components");
  refused(tw_dataset_map(s, d, NULL, 1), "block 0 is NULL");
  tw_output x;
  tw_block* b = tw_dataset_block(s, d, &x);
  refused(tw_dataset_map(s, d, b, 1), "has no results");
  b = tw_dataset_block(s, d, &x);
  tw_block_give(b, &x, 1);
  refused(tw_dataset_filter(s, d, b), "one scalar of type bool");
  b = tw_dataset_block(s, d, &x);
  tw_block_give(b, &x, 1);
  refused(tw_dataset_flat_map(s, d, b), "must give one dataset");
  OK(tw_scope_finish(s));
  tw_iterator* it = NULL;
  FAILS(tw_dataset_iterator_create(graph, number, NULL, &it), TW_INVALID_ARGUMENT, "is no dataset of this graph");
  tw_dataset_iterator_options options = {0};
  FAILS(tw_dataset_iterator_create(graph, d, &options, &it), TW_INVALID_ARGUMENT, "tw_dataset_iterator_options_init");
  tw_dataset_iterator_options_init(&options);
  options.prefetch = -2;
  FAILS(tw_dataset_iterator_create(graph, d, &options, &it), TW_INVALID_ARGUMENT, "prefetch is -2");
  close_graph();
}

MAIN(TEST(ElementsPassThroughAPipeline), TEST(PositionsAreRestoredInAnotherGraph), TEST(StepsTakeElements), TEST(RecordsAreWrittenAndRead),
     TEST(WrongUsesAreRefused))
