/* Sharded tables behave like one matrix: rows, gradients, the full and the sampled softmax,
 * checkpoints with another number of shards. */
#define _XOPEN_SOURCE 700
#include "check.h"
#include "folder.h"

enum { kClasses = 11, kWidth = 4, kMost = 4, kBatch = 3 };

/* A table as one variable, and the same in shards. */
typedef struct both {
  tw_graph* graph;
  tw_session* session;
  tw_scope* s;
  tw_output whole, biases, shards[kMost], parts[kMost];
  tw_sharded table, offsets;
} both;

static float value(int row, int column) { return (float)((row * 7 + column * 3) % 13) / 13 - 0.4f; }

/* Returns the table row that is row `row` of shard k. */
static int row_of(const both* b, int k, int row) {
  if (b->table.partition == TW_SHARDED_MOD) return row * (int)b->table.n + k;
  int before = 0;
  for (int i = 0; i < k; ++i) before += (int)tw_sharded_rows(kClasses, b->table.n, (uint32_t)i);
  return before + row;
}

static tw_output variable(both* b, const char* name, int k, int rows, int width) {
  const int64_t dims[] = {rows, width};
  float values[kClasses * kWidth];
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < (width ? width : 1); ++j) values[i * (width ? width : 1) + j] = value(k < 0 ? i : row_of(b, k, i), width ? j : 9);
  }
  tw_tensor* t = floats(dims, width ? 2 : 1, values);
  char text[32];
  snprintf(text, sizeof text, k < 0 ? "%s" : "%s_%d", name, k);
  const tw_output made = tw_variable_create(b->s, text, tw_scope_constant(b->s, t));
  tw_tensor_release(t);
  return made;
}

static both* make(uint32_t n, uint32_t partition) {
  both* b = calloc(1, sizeof *b);
  OK(tw_graph_create(NULL, &b->graph));
  b->s = tw_scope_create(b->graph, NULL);
  b->table = (tw_sharded){sizeof b->table, 0, b->shards, n, partition};
  b->offsets = (tw_sharded){sizeof b->offsets, 0, b->parts, n, partition};
  b->whole = variable(b, "whole", -1, kClasses, kWidth);
  b->biases = variable(b, "biases", -1, kClasses, 0);
  for (uint32_t k = 0; k < n; ++k) {
    const int rows = (int)tw_sharded_rows(kClasses, n, k);
    b->shards[k] = variable(b, "shard", (int)k, rows, kWidth);
    b->parts[k] = variable(b, "part", (int)k, rows, 0);
  }
  return b;
}

static void begin(both* b) {
  static int count;
  char container[32];
  snprintf(container, sizeof container, "container=sharded%d", count++);
  const char* options[] = {container};
  const tw_operation* init = tw_variable_initializer(b->s, NULL);
  OK(tw_scope_finish(b->s));
  OK(tw_session_create(b->graph, options, 1, &b->session));
  run(b->session, init);
}

static void end(both* b) {
  tw_session_destroy(b->session);
  tw_graph_destroy(b->graph);
  free(b);
}

static tw_output gather(tw_scope* s, tw_output table, tw_output ids) {
  tw_op* op = tw_scope_begin(s, "ResourceGather", NULL);
  tw_op_add_input(op, table);
  tw_op_add_input(op, ids);
  tw_op_set_type(op, "dtype", TW_FLOAT);
  return tw_scope_end(s, op);
}

static void same(tw_session* session, tw_output a, tw_output b, double tolerance) {
  tw_tensor *x = fetch(session, 0, NULL, a), *y = fetch(session, 0, NULL, b);
  CHECK(x && y && tw_tensor_bytes(x) == tw_tensor_bytes(y) && tw_tensor_rank(x) == tw_tensor_rank(y));
  if (x && y && tw_tensor_bytes(x) == tw_tensor_bytes(y)) {
    for (uint64_t i = 0; i < tw_tensor_bytes(x) / sizeof(float); ++i)
      CHECK(near(((const float*)tw_tensor_data(x))[i], ((const float*)tw_tensor_data(y))[i], tolerance));
  }
  tw_tensor_release(x);
  tw_tensor_release(y);
}

static tw_output numbers(tw_scope* s, const int32_t* values, const int64_t* dims, uint32_t rank) {
  tw_tensor* t = NULL;
  uint64_t n = 1;
  for (uint32_t i = 0; i < rank; ++i) n *= (uint64_t)dims[i];
  OK(tw_tensor_create_copy(TW_INT32, dims, rank, values, n * sizeof(int32_t), &t));
  const tw_output made = tw_scope_constant(s, t);
  tw_tensor_release(t);
  return made;
}

/* Converts a gradient of rows to a matrix of that many rows. */
static tw_output dense(tw_scope* s, tw_gradient g, int64_t rows) {
  if (!g.rows) return g.values;
  return tw_scope_op3(s, "UnsortedSegmentSum", g.values, g.rows, tw_scope_scalar(s, TW_INT32, (double)rows));
}

/* Returns every row of a sharded table, in order. */
static tw_output all_rows(both* b, const tw_output* shard_values) {
  tw_op* stitch = tw_scope_begin(b->s, "DynamicStitch", NULL);
  for (uint32_t k = 0; k < b->table.n; ++k) {
    const int64_t rows = tw_sharded_rows(kClasses, b->table.n, k);
    int32_t ids[kClasses];
    for (int i = 0; i < rows; ++i) ids[i] = row_of(b, (int)k, i);
    tw_op_add_input(stitch, tw_scope_ints(b->s, ids, (uint32_t)rows));
  }
  for (uint32_t k = 0; k < b->table.n; ++k) tw_op_add_input(stitch, shard_values[k]);
  return tw_scope_end(b->s, stitch);
}

#define FOR_EACH_TABLE(n, partition)    \
  for (uint32_t n = 1; n <= kMost; ++n) \
    for (uint32_t partition = TW_SHARDED_MOD; partition <= TW_SHARDED_DIV; ++partition)

static void RowsAndTheirGradientsAreThoseOfTheWhole(void) {
  const int32_t ids[] = {10, 0, 3, 3, 7, 1};
  const int64_t dims[] = {2, 3}, none[] = {0};
  FOR_EACH_TABLE(n, partition) {
    both* b = make(n, partition);
    const tw_output wanted = numbers(b->s, ids, dims, 2);
    const tw_output found = tw_sharded_lookup(b->s, &b->table, wanted), expected = gather(b->s, b->whole, wanted);
    const tw_output empty = tw_sharded_lookup(b->s, &b->table, numbers(b->s, ids, none, 1));
    const int32_t axes[] = {0, 1, 2};
    const tw_output loss = tw_scope_op2(b->s, "Sum", tw_scope_op1(b->s, "Square", found), tw_scope_ints(b->s, axes, 3));
    const tw_output other = tw_scope_op2(b->s, "Sum", tw_scope_op1(b->s, "Square", expected), tw_scope_ints(b->s, axes, 3));
    tw_gradient g[kMost], w;
    tw_output parts[kMost];
    tw_scope_gradients(b->s, loss, b->shards, n, g);
    tw_scope_gradients(b->s, other, &b->whole, 1, &w);
    for (uint32_t k = 0; k < n; ++k) {
      CHECK(g[k].rows != 0); /* not the whole shard */
      parts[k] = dense(b->s, g[k], tw_sharded_rows(kClasses, n, k));
    }
    const tw_output together = all_rows(b, parts), dense_whole = dense(b->s, w, kClasses);
    begin(b);
    same(b->session, found, expected, 0);
    same(b->session, together, dense_whole, 1e-6);
    tw_tensor* t = fetch(b->session, 0, NULL, empty);
    CHECK(t && tw_tensor_rank(t) == 2 && tw_tensor_dims(t)[0] == 0 && tw_tensor_dims(t)[1] == kWidth);
    tw_tensor_release(t);
    end(b);
  }
}

static void ANumberThatIsNoRowIsRefused(void) {
  const int32_t ids[] = {kClasses, -1};
  const int64_t one = 1;
  FOR_EACH_TABLE(n, partition) {
    both* b = make(n, partition);
    const tw_output asked = tw_scope_placeholder(b->s, "ids", TW_INT32, &one, 1);
    const tw_output row = tw_sharded_lookup(b->s, &b->table, asked);
    begin(b);
    for (int i = 0; i < 2; ++i) {
      tw_tensor *fed = NULL, *out = NULL;
      OK(tw_tensor_create_copy(TW_INT32, &one, 1, &ids[i], sizeof ids[i], &fed));
      const tw_signature what = {.size = sizeof what, .feeds = &asked, .n_feeds = 1, .fetches = &row, .n_fetches = 1};
      FAILS(tw_session_run(b->session, &what, &fed, NULL, &out), TW_INVALID_ARGUMENT, "");
      tw_tensor_release(fed);
    }
    end(b);
  }
}

static tw_output hidden_of(both* b) {
  const int64_t dims[] = {kBatch, kWidth};
  float values[kBatch * kWidth];
  for (int i = 0; i < kBatch * kWidth; ++i) values[i] = (float)(i % 5) - 1.7f;
  tw_tensor* t = floats(dims, 2, values);
  const tw_output made = tw_scope_constant(b->s, t);
  tw_tensor_release(t);
  return made;
}

static tw_output total(tw_scope* s, tw_output losses) {
  const int32_t axis = 0;
  return tw_scope_op2(s, "Sum", losses, tw_scope_ints(s, &axis, 1));
}

static void TheFullSoftmaxIsThatOfOneMatrix(void) {
  const int32_t classes[] = {2, 10, 5};
  const int64_t batch = kBatch;
  FOR_EACH_TABLE(n, partition) {
    both* b = make(n, partition);
    const tw_output labels = numbers(b->s, classes, &batch, 1), hidden = hidden_of(b);
    const tw_output found = tw_sharded_softmax(b->s, &b->table, &b->offsets, labels, hidden);
    const tw_output plain = tw_sharded_softmax(b->s, &b->table, NULL, labels, hidden);
    tw_op* product = tw_scope_begin(b->s, "MatMul", NULL);
    tw_op_add_input(product, hidden);
    tw_op_add_input(product, tw_variable_read(b->s, b->whole));
    tw_op_set_bool(product, "transpose_b", 1);
    const tw_output scores = tw_scope_end(b->s, product);
    const tw_output logits = tw_scope_op2(b->s, "BiasAdd", scores, tw_variable_read(b->s, b->biases));
    const tw_output expected = tw_scope_op2(b->s, "SparseSoftmaxCrossEntropyWithLogits", logits, labels);
    const tw_output expected_plain = tw_scope_op2(b->s, "SparseSoftmaxCrossEntropyWithLogits", scores, labels);
    tw_output xs[kMost + 1] = {hidden}, whole[] = {hidden, b->whole};
    memcpy(xs + 1, b->shards, n * sizeof *xs);
    tw_gradient g[kMost + 1], w[2];
    tw_scope_gradients(b->s, total(b->s, found), xs, n + 1, g);
    tw_scope_gradients(b->s, total(b->s, expected), whole, 2, w);
    tw_output parts[kMost];
    for (uint32_t k = 0; k < n; ++k) parts[k] = g[k + 1].values;
    const tw_output together = all_rows(b, parts);
    begin(b);
    same(b->session, found, expected, 1e-5);
    same(b->session, plain, expected_plain, 1e-5);
    same(b->session, g[0].values, w[0].values, 1e-5);
    same(b->session, together, w[1].values, 1e-5);
    end(b);
  }
}

static void TheSampledSoftmaxIsThatOfOneMatrix(void) {
  const int32_t classes[] = {2, 10, 5};
  const int64_t dims[] = {kBatch, 1};
  FOR_EACH_TABLE(n, partition) {
    both* b = make(n, partition);
    const tw_output labels = numbers(b->s, classes, dims, 2), hidden = hidden_of(b);
    tw_op* sampler = tw_scope_begin(b->s, "UniformCandidateSampler", NULL);
    tw_op* cast = tw_scope_begin(b->s, "Cast", NULL);
    tw_op_add_input(cast, labels);
    tw_op_set_type(cast, "DstT", TW_INT64);
    tw_op_add_input(sampler, tw_scope_end(b->s, cast));
    tw_op_set_int(sampler, "num_true", 1);
    tw_op_set_int(sampler, "num_sampled", 6);
    tw_op_set_bool(sampler, "unique", 1);
    tw_op_set_int(sampler, "range_max", kClasses);
    tw_op_set_int(sampler, "seed", 3);
    tw_sampled_loss options;
    tw_sampled_loss_init(&options);
    options.candidates = tw_scope_end(b->s, sampler);
    const tw_output found = tw_sharded_sampled_softmax(b->s, &b->table, &b->offsets, labels, hidden, &options);
    const tw_output expected = tw_sampled_softmax(b->s, b->whole, b->biases, labels, hidden, &options);
    const tw_output difference = tw_scope_op2(b->s, "Sub", found, expected);
    tw_gradient g[kMost];
    tw_scope_gradients(b->s, total(b->s, found), b->shards, n, g);
    for (uint32_t k = 0; k < n; ++k) CHECK(g[k].rows != 0);
    begin(b);
    tw_tensor* t = fetch(b->session, 0, NULL, difference);
    for (int i = 0; t && i < kBatch; ++i) CHECK(near(((const float*)tw_tensor_data(t))[i], 0, 1e-5));
    tw_tensor_release(t);
    for (uint32_t k = 0; k < n; ++k) tw_tensor_release(fetch(b->session, 0, NULL, g[k].values));
    end(b);
  }
}

static tw_saver* saver_of(both* b, uint32_t flags) {
  const char* names[] = {"table", "offsets"};
  const tw_sharded tables[] = {b->table, b->offsets};
  const tw_saver_options options = {.size = sizeof options, .flags = flags, .table_names = names, .tables = tables, .n_tables = 2};
  tw_saver* saver = NULL;
  OK(tw_saver_create_with(b->graph, NULL, 0, &options, &saver));
  return saver;
}

static void TablesAreRestoredFromAnyNumberOfShards(void) {
  char folder[256], prefix[300];
  CHECK(make_folder(folder, sizeof folder, "sharded") == 0);
  snprintf(prefix, sizeof prefix, "%s/model", folder);
  for (uint32_t partition = TW_SHARDED_MOD; partition <= TW_SHARDED_DIV; ++partition) {
    for (uint32_t from = 1; from <= kMost; ++from) {
      both* saved = make(from, partition);
      begin(saved);
      tw_saver* saver = saver_of(saved, TW_SAVER_BY_TASK);
      OK(tw_saver_save(saver, saved->session, prefix));
      CHECK(tw_saver_task_count(saver) == 1 && strcmp(tw_saver_task(saver, 0), "") == 0 && !tw_saver_task(saver, 1));
      tw_saver_destroy(saver);
      end(saved);
      for (uint32_t to = 1; to <= kMost; ++to) {
        both* b = make(to, partition);
        const tw_output expected = tw_variable_read(b->s, b->whole);
        tw_output reads[kMost];
        for (uint32_t k = 0; k < to; ++k) reads[k] = tw_variable_read(b->s, b->shards[k]);
        const tw_output together = all_rows(b, reads);
        const tw_operation* cleared[kMost];
        for (uint32_t k = 0; k < to; ++k) cleared[k] = tw_variable_assign(b->s, b->shards[k], tw_scope_op1(b->s, "ZerosLike", reads[k]));
        const tw_operation* clear = tw_scope_group(b->s, NULL, cleared, to);
        begin(b);
        run(b->session, clear);
        tw_saver* restored = saver_of(b, to % 2 ? TW_SAVER_BY_TASK : 0);
        OK(tw_saver_restore(restored, b->session, prefix));
        same(b->session, together, expected, 0);
        if (from != to && to % 2)
          FAILS(tw_saver_restore_task(restored, b->session, prefix, 0), TW_FAILED_PRECONDITION, "another number of shards");
        if (from == to && to % 2) OK(tw_saver_restore_task(restored, b->session, prefix, 0));
        tw_saver_destroy(restored);
        end(b);
      }
    }
  }
  CHECK(remove_folder(folder) == 0);
}

static void WhatIsNoTableIsRefused(void) {
  both* b = make(2, TW_SHARDED_MOD);
  OK(tw_scope_finish(b->s));
  const tw_output turned[] = {b->shards[1], b->shards[0]}, mixed[] = {b->shards[0], b->parts[1]};
  const struct {
    tw_sharded table;
    const char* why;
  } cases[] = {{{0, 0, b->shards, 2, 0}, "size is not set"},
               {{sizeof(tw_sharded), 0, b->shards, 0, 0}, "has no shards"},
               {{sizeof(tw_sharded), 0, b->shards, 2, 2}, "partition is 2"},
               {{sizeof(tw_sharded), 0, turned, 2, 0}, "shard 0, 'shard_1', has 5 rows; of 11 in 2 shards it has 6"},
               {{sizeof(tw_sharded), 0, mixed, 2, 0}, "is of another type, or has rows of another shape"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    tw_scope* s = tw_scope_create(b->graph, NULL);
    CHECK(tw_sharded_lookup(s, &cases[i].table, tw_scope_scalar(s, TW_INT32, 0)) == 0);
    FAILS(tw_scope_finish(s), TW_INVALID_ARGUMENT, cases[i].why);
  }
  tw_scope* s = tw_scope_create(b->graph, NULL);
  const tw_output labels = tw_scope_placeholder(s, NULL, TW_INT64, NULL, -1), hidden = tw_scope_placeholder(s, NULL, TW_FLOAT, NULL, -1);
  CHECK(tw_sharded_softmax(s, &b->table, &b->table, labels, hidden) == 0);
  FAILS(tw_scope_finish(s), TW_INVALID_ARGUMENT, "biases [classes]");
  CHECK(tw_sharded_rows(10, 3, 0) == 4 && tw_sharded_rows(10, 3, 1) == 3 && tw_sharded_rows(10, 3, 3) == 0 &&
        tw_sharded_rows(-1, 1, 0) == 0);
  end(b);
}

MAIN(TEST(RowsAndTheirGradientsAreThoseOfTheWhole), TEST(ANumberThatIsNoRowIsRefused), TEST(TheFullSoftmaxIsThatOfOneMatrix),
     TEST(TheSampledSoftmaxIsThatOfOneMatrix), TEST(TablesAreRestoredFromAnyNumberOfShards), TEST(WhatIsNoTableIsRefused))
