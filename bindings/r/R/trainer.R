# The training loop, its batches, savers and checkpoints.

# Trains loss by step. feeds: tensor i of a batch is fed to feeds[[i]]. inputs: predictions need only the first so many of them; 0: all.
# training: a bool value that is true while the loop trains, as dropout needs it.
trainer <- function(session, feeds, loss, step, metrics = list(), predictions = list(), inputs = 0, training = NULL) {
  expect(session, "thalweg_session_of", "session")
  tw_graph_count(session$graph)
  feeds <- as_list(feeds)
  metrics <- as_list(metrics)
  predictions <- as_list(predictions)
  for (m in metrics) expect(m, "thalweg_metric", "each of the metrics")
  m <- record("tw_trainer_model")
  tw_trainer_model_init(m)
  fields <- list(graph = session$graph, session = session$handle, feeds = ids(feeds), n_feeds = length(feeds), n_inputs = inputs, loss = one(loss, "loss"),
                 step = expect(step, "thalweg_operation", "step")$address, n_metrics = length(metrics),
                 metrics = as.raw(unlist(lapply(metrics, function(x) x$record$bytes))),
                 metric_names = texts(vapply(metrics, function(x) x$name, "")), predictions = ids(predictions), n_predictions = length(predictions))
  if (!is.null(training)) fields$training <- one(training, "training")
  for (field in names(fields)) set_field(m, field, fields[[field]])
  out <- raw(8)
  check(tw_trainer_create(m, out))
  handle <- own(out, "thalweg_trainer", session$handle, session$graph)
  names <- vapply(seq_len(tw_trainer_value_count(handle)) - 1, function(i) tw_trainer_value_name(handle, i), "")
  structure(list(handle = handle, names = names, predictions = length(predictions)), class = "thalweg_trainer_of")
}

# Catches what a function of the program raises, for call_r in C: a text is a failure. `box` keeps the condition.
catching <- function(box, f) {
  function(...) tryCatch(f(...), error = function(e) {
    if (is.null(box$thrown)) box$thrown <- e
    paste("a function of R failed:", conditionMessage(e))
  }, interrupt = function(e) {
    box$thrown <- e
    "interrupted"
  })
}
rethrow <- function(box) {
  e <- box$thrown
  box$thrown <- NULL
  if (inherits(e, "interrupt")) stop("interrupted", call. = FALSE)
  if (!is.null(e)) stop(e)
}

fit <- function(trainer, data, epochs = 1, validation = NULL, watch = NULL, patience = 0, keep_best = FALSE, larger_is_better = FALSE, progress = FALSE,
                folder = NULL, every_steps = 0, after_step = NULL, epoch_end = NULL) {
  expect(trainer, "thalweg_trainer_of", "trainer")
  expect(data, "thalweg_batches_of", "data")
  o <- record("tw_fit_options")
  tw_fit_options_init(o)
  flags <- sum(c(TW_FIT_KEEP_BEST, TW_FIT_LARGER_IS_BETTER, TW_FIT_PROGRESS)[c(isTRUE(keep_best), isTRUE(larger_is_better), isTRUE(progress))])
  fields <- list(flags = flags, epochs = epochs, patience = patience, every_steps = every_steps)
  if (!is.null(validation)) fields$validation <- expect(validation, "thalweg_batches_of", "validation")$handle
  if (!is.null(watch)) fields$watch <- c(charToRaw(text(watch, "watch")), as.raw(0))
  if (!is.null(folder)) fields$folder <- c(charToRaw(text(folder, "folder")), as.raw(0))
  for (field in names(fields)) set_field(o, field, fields[[field]])
  report <- record("tw_fit_report")
  box <- new.env(parent = emptyenv())
  wrapped <- lapply(list(after_step, epoch_end), function(f) if (!is.null(f)) catching(box, function(at) isTRUE(match.fun(f)(at))))
  status <- .Call(C_R_fit, trainer$handle, data$handle, o$bytes, report$bytes, wrapped[[1]], wrapped[[2]])
  if (!is.null(status)) raise_first(status, box, data$box, validation$box)
  invisible(list(epochs = get_field(report, "epochs"), steps = get_field(report, "steps"), resumed_at = get_field(report, "resumed_at"),
                 best_epoch = get_field(report, "best_epoch"), best = get_field(report, "best"), stopped = get_field(report, "why") != TW_FIT_COMPLETE))
}

# Raises what a function of the program raised, or the failure of a status.
raise_first <- function(status, ...) {
  for (box in list(...)) if (!is.null(box$thrown)) {
    tw_status_release(status)
    rethrow(box)
  }
  check(status)
}

# The loss and the metrics over one epoch, by their names.
evaluate <- function(trainer, data) {
  values <- numeric(length(expect(trainer, "thalweg_trainer_of", "trainer")$names)) + 0
  status <- tw_trainer_evaluate(trainer$handle, expect(data, "thalweg_batches_of", "data")$handle, NULL, values)
  if (!is.null(status)) raise_first(status, data$box)
  stats::setNames(values, trainer$names)
}

# The predictions for one epoch, with the rows of all batches.
predict.thalweg_trainer_of <- function(object, data, ...) {
  out <- raw(8 * object$predictions)
  status <- tw_trainer_predict(object$handle, expect(data, "thalweg_batches_of", "data")$handle, NULL, out)
  if (!is.null(status)) raise_first(status, data$box)
  .Call(C_R_own_tensors, out)
}

close.thalweg_trainer_of <- function(con, ...) close_object(con$handle)

# ---- Batches ----

batches_of <- function(handle, width, box = NULL) structure(list(handle = handle, width = width, box = box), class = "thalweg_batches_of")

# Rows of tensors with equal first sizes.
batches <- function(tensors, size, shuffle = FALSE, seed = 0) {
  tensors <- as_list(tensors)
  o <- record("tw_batch_options")
  tw_batch_options_init(o)
  set_field(o, "batch", size)
  set_field(o, "seed", seed)
  set_field(o, "shuffle", if (isTRUE(shuffle)) 1 else 0)
  out <- raw(8)
  check(tw_iterator_create_batches(.Call(C_R_tensor_addresses, tensors, FALSE), length(tensors), o, out))
  batches_of(own(out, "thalweg_batches"), length(tensors))
}

# What a function returns: a list of n tensors, or NULL at the end of an epoch. begin: a function that begins an epoch; NULL: there is one.
batches_from <- function(n, next_batch, begin = NULL) {
  if (!is.numeric(n) || length(n) != 1 || is.na(n) || n < 1 || !is.function(next_batch)) invalid("batches need a function, and at least one tensor")
  box <- new.env(parent = emptyenv())
  give <- catching(box, function() {
    batch <- next_batch()
    if (is.null(batch)) return(NULL)
    batch <- as_list(batch)
    if (length(batch) != n) invalid("the source returned ", length(batch), " tensors, not ", n)
    for (x in batch) dim(expect(x, "thalweg_tensor", "each item of a batch")) # raises if it is closed
    batch
  })
  reset <- catching(box, function(epoch) {
    if (!is.null(begin)) begin(epoch) else if (epoch > 0) failure("UNIMPLEMENTED", "the source has one epoch only")
    NULL
  })
  batches_of(.Call(C_R_source, as.integer(n), give, reset), n, box)
}

# The next batch, a list of tensors; NULL at the end of the epoch.
next_batch <- function(data) {
  expect(data, "thalweg_batches_of", "data")
  out <- raw(8 * data$width)
  end <- raw(4)
  status <- tw_iterator_next(data$handle, out, end)
  if (!is.null(status)) raise_first(status, data$box)
  if (peek(end, 0, "u32") != 0) NULL else .Call(C_R_own_tensors, out)
}

reset_batches <- function(data, epoch) {
  status <- tw_iterator_reset(expect(data, "thalweg_batches_of", "data")$handle, epoch)
  if (!is.null(status)) raise_first(status, data$box)
  invisible(data)
}

close.thalweg_batches_of <- function(con, ...) close_object(con$handle)

# ---- Datasets: values of a graph ----

ds_rows <- function(s, ...) {
  components <- ids(list(...))
  add_value(s, function(p) tw_dataset_rows(p, components, length(components) / 8))
}
ds_range <- function(s, start, stop, step = 1) add_value(s, function(p) tw_dataset_range(p, start, stop, step))
ds_lines <- function(s, files) add_value(s, function(p) tw_dataset_lines(p, as_output(s, files)))
ds_records <- function(s, files) add_value(s, function(p) tw_dataset_records(p, as_output(s, files)))

stage <- function(d, call) add_value(one(d, "d")$scope, call)
ds_take <- function(d, n) stage(d, function(p) tw_dataset_take(p, d, n))
ds_skip <- function(d, n) stage(d, function(p) tw_dataset_skip(p, d, n))
ds_shard <- function(d, shards, index) stage(d, function(p) tw_dataset_shard(p, d, shards, index))
# All elements again; -1: without end.
ds_repeat <- function(d, n = -1) stage(d, function(p) tw_dataset_repeat(p, d, n))
ds_shuffle <- function(d, buffer, seed = 0) stage(d, function(p) tw_dataset_shuffle(p, d, buffer, seed, 1))
ds_batch <- function(d, n) stage(d, function(p) tw_dataset_batch(p, d, n, 0))
ds_prefetch <- function(d, n) stage(d, function(p) tw_dataset_prefetch(p, d, n))

# f(s, element) gives the results for an element, a list of values; it adds operations through its scope.
ds_map <- function(d, f) with_function(d, f, function(p, block) tw_dataset_map(p, d, block, TW_DATASET_AUTO))
# Keeps the elements for which a function gives true.
ds_filter <- function(d, f) with_function(d, f, function(p, block) tw_dataset_filter(p, d, block))

with_function <- function(d, f, end) {
  if (!is.function(f)) invalid("a dataset needs a function here")
  outer <- one(d, "d")$scope
  add_value(outer, function(p) {
    n <- tw_dataset_component_count(tw_scope_graph(p), d)
    arguments <- raw(8 * n)
    block <- tw_dataset_block(p, d, arguments)
    s <- structure(new.env(parent = emptyenv()), class = "thalweg_scope")
    s$graph <- outer$graph
    s$inner <- tw_block_scope(block)
    tryCatch({
      results <- ids(as_list(f(s, lapply(seq_len(n), function(i) output_of(s, arguments[8 * i - 7:0])))))
      tw_block_give(block, results, length(results) / 8)
    }, error = function(e) {
      tw_block_destroy(block)
      stop(e)
    }, finally = s$inner <- NULL)
    end(p, block)
  })
}

# Runs a dataset in a session of its own. options: "key=value".
ds_batches <- function(d, ...) {
  options <- as.character(c(...))
  o <- record("tw_dataset_iterator_options")
  tw_dataset_iterator_options_init(o)
  set_field(o, "session", texts(options))
  set_field(o, "n_session", length(options))
  out <- raw(8)
  check(tw_dataset_iterator_create(one(d, "d")$scope$graph, d, o, out))
  handle <- own(out, "thalweg_batches")
  batches_of(handle, get_field(record_at("tw_iterator", handle), "n_tensors"))
}

# ---- Savers and checkpoints ----

# Writes variables to checkpoints in TensorFlow's format and reads them back. variables: none: all that the graph has now.
saver <- function(g, variables = list()) {
  variables <- as_list(variables)
  out <- raw(8)
  check(tw_saver_create(expect(g, "thalweg_graph", "g"), if (length(variables)) ids(variables), length(variables), out))
  own(out, "thalweg_saver", g)
}
save_variables <- function(saver, session, prefix) {
  check(tw_saver_save(expect(saver, "thalweg_saver", "saver"), expect(session, "thalweg_session_of", "session")$handle, text(prefix, "the prefix")))
}
restore_variables <- function(saver, session, prefix) {
  check(tw_saver_restore(expect(saver, "thalweg_saver", "saver"), expect(session, "thalweg_session_of", "session")$handle, text(prefix, "the prefix")))
}

# Opens the files prefix.*.
checkpoint <- function(prefix) {
  out <- raw(8)
  check(tw_checkpoint_open(text(prefix, "the prefix"), out))
  own(out, "thalweg_checkpoint")
}
names.thalweg_checkpoint <- function(x) vapply(seq_len(tw_checkpoint_count(x)) - 1, function(i) tw_checkpoint_name(x, i), "")
checkpoint_read <- function(x, name) {
  out <- raw(8)
  check(tw_checkpoint_read(expect(x, "thalweg_checkpoint", "x"), text(name), out))
  own(out, "thalweg_tensor")
}
# Writes a list of tensors with names to the files prefix.*.
checkpoint_write <- function(prefix, tensors) {
  if (!is.list(tensors) || is.null(names(tensors))) invalid("tensors must be a list with names")
  check(tw_checkpoint_write(text(prefix, "the prefix"), texts(names(tensors)), .Call(C_R_tensor_addresses, unname(tensors), FALSE), length(tensors)))
}
