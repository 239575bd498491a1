# The tests of the package. The environment has THALWEG_TEST_MODEL, an ONNX file that adds two values. With the argument "cost" it measures
# calls.
options(keep.source = TRUE)
library(thalweg)

failures <- 0
test <- function(what, body) {
  e <- tryCatch({
    force(body)
    NULL
  }, error = function(e) e)
  if (is.null(e)) cat("passed ", what, "\n") else {
    failures <<- failures + 1
    cat("FAILED ", what, ":", conditionMessage(e), "\n", deparse(conditionCall(e)), "\n")
  }
}
equal <- function(a, b, tolerance = 1e-6) if (!isTRUE(all.equal(a, b, tolerance = tolerance))) stop(paste(deparse(a), "is not", deparse(b))[[1]])
raised <- function(body, kind = "thalweg_error") {
  e <- tryCatch({
    force(body)
    NULL
  }, error = function(e) e)
  if (is.null(e)) stop("no error of ", kind)
  if (!inherits(e, kind)) stop("another error than ", kind, ": ", paste(class(e), collapse = " "), " ", conditionMessage(e))
  e
}

# A graph with y = x + x, and a session of one thread.
doubling <- function() {
  g <- new_graph()
  s <- scope(g)
  x <- placeholder(s, "x", "float", numeric(0))
  y <- name_output(x + x, "y")
  session <- session(g, "threads=1")
  list(g = g, s = s, x = x, y = y, session = session, step = prepare(session, x, y))
}
# A session with an operation that waits at an empty queue.
waiting <- function() {
  g <- new_graph()
  s <- scope(g)
  list(get = op$QueueDequeueV2(s, op$FIFOQueueV2(s, "float"), "float")[[1]], session = session(g))
}
number <- function(t) as.array(t)[[1]]

if (identical(commandArgs(TRUE), "cost")) {
  d <- doubling()
  tensors <- list(scalar(1))
  best <- function(call) min(vapply(1:400, function(r) { # short rounds, some of which no other program interrupts
    began <- Sys.time()
    for (i in 1:500) call()
    as.numeric(difftime(Sys.time(), began, units = "secs")) / 500
  }, 0)) * 1e9
  rank <- best(function() tw_tensor_rank(tensors[[1]]))
  cat(sprintf("cost rank %.0f run %.0f\n", rank, best(function() run(d$step, tensors))))
  quit()
}

test("every function is in the library", {
  functions <- ls("package:thalweg", pattern = "^tw_")
  symbols <- getDLLRegisteredRoutines("thalweg")$.Call
  linked <- sub("^R_", "", grep("^R_tw_", names(symbols), value = TRUE))
  equal(sort(functions), sort(linked))
  for (name in functions) equal(length(formals(get(name))), symbols[[paste0("R_", name)]]$numParameters)
  equal(length(functions) > 500, TRUE)
  equal(tw_tensor_rank(NULL), 0)
})

test("tensors are arrays", {
  m <- matrix(c(1, 4, 2, 5, 3, 6), 2)
  a <- tensor(m)
  equal(format(a), "[[1, 2, 3], [4, 5, 6]]")
  equal(as.array(a), m)
  equal(dim(a), c(2, 3))
  equal(tensor_dtype(a), "float")
  cube <- array(as.integer(1:24), c(2, 3, 4))
  equal(as.array(tensor(cube)), cube)
  equal(as.array(tensor(c(TRUE, FALSE))), c(TRUE, FALSE))
  equal(as.array(tensor(c("", "\u00e9", "text"))), c("", "\u00e9", "text"))
  equal(as.array(tensor(as.raw(c(1, 255)))), c(1L, 255L))
  equal(as.array(tensor(c(1, 2^40), "int64")), c(1, 2^40))
  equal(dim(tensor(1:6, dim = c(2, NA))), c(2, 3))
  equal(length(tensor(numeric(0))), 0)
  equal(dim(scalar(3)), numeric(0))
  equal(as.array(tensor_reshape(a, c(3, 2))), matrix(1:6 + 0, 3, byrow = TRUE))
  equal(as.array(tensor_zeros("int32", 3)), c(0L, 0L, 0L))
})

test("errors name the line", {
  s <- scope(new_graph(), "head")
  a <- placeholder(s, "a", "float", c(2, 3))
  b <- placeholder(s, "b", "float", c(4, 5))
  wrong <- function() {
    op$MatMul(s, a, b)
  }
  e <- raised(wrong(), "thalweg_invalid_argument")
  equal(e$place, paste0("binding_test.R:", attr(body(wrong), "srcref")[[2]][[1]]))
  equal(e$operation, "head/MatMul")
  equal(e$code, "INVALID_ARGUMENT")
  equal(grepl(e$place, conditionMessage(e), fixed = TRUE), TRUE)
  equal(output_dim(op$Shape(s, a)), 2) # the scope goes on
})

test("ops take attributes", {
  g <- new_graph()
  s <- scope(g)
  a <- constant(s, matrix(c(1, 2), 1))
  b <- constant(s, matrix(c(3, 4), 1))
  x <- op$MatMul(s, a, b, transpose_b = TRUE, name = "x")
  parts <- op$Split(s, constant(s, 1L), a, 2)
  found <- run(session(g), list(x, parts[[1]], parts[[2]]))
  equal(vapply(found, format, ""), c("[[11]]", "[[1]]", "[[2]]"))
  equal(operation_type(find_operation(g, "x")), "MatMul")
  equal(number(run(session(g), 2 * x - 1)), 21)
})

test("gradients are graphs again", {
  g <- new_graph()
  s <- scope(g)
  x <- placeholder(s, "x", "float", 2)
  first <- gradients(sum(x * x * x), list(x))[[1]]
  clipped <- clip_by_global_norm(s, list(first), 1)[[1]]
  second <- gradients(sum(first$values), list(x))[[1]]
  found <- lapply(run(session(g), list(first$values, clipped$values, second$values), feed(x, c(1, 2))), as.array)
  equal(found[[1]], c(3, 12))
  equal(sum(found[[2]]^2), 1, tolerance = 1e-5)
  equal(found[[3]], c(6, 12))
})

test("training saves and goes on", {
  g <- new_graph()
  s <- scope(g)
  x <- placeholder(s, "x", "float", c(NA, 2))
  y <- placeholder(s, "y", "float", c(NA, 1))
  z <- dense(x, "layer", 1, seed = 3)
  square <- (z - y) * (z - y)
  loss <- mean(square)
  step <- minimize(loss, momentum(0.05, 0.9))
  metric <- mean_metric("square", square)
  init <- initializer(s)
  session <- session(g, "threads=1")
  run(session, init)
  net <- trainer(session, list(x, y), loss, step, metric, z, inputs = 1)
  xs <- cbind((0:99) %% 7 / 7, (0:99) %% 5 / 5)
  data <- batches(list(tensor(xs), tensor(matrix(2 * xs[, 1] - xs[, 2]))), 10, TRUE)
  epochs <- 0
  report <- fit(net, data, epochs = 40, epoch_end = function(at) {
    epochs <<- epochs + 1
    epochs == 30 && at$values[["square"]] < 1
  })
  values <- evaluate(net, data)
  equal(report$stopped, TRUE)
  equal(report$steps, 300)
  equal(values[["loss"]] < 1e-3 && abs(values[["loss"]] - values[["square"]]) < 1e-6, TRUE)
  equal(dim(predict(net, data)[[1]]), c(100, 1))
  prefix <- file.path(tempdir(), "model")
  keeper <- saver(g)
  save_variables(keeper, session, prefix)
  saved <- checkpoint(prefix)
  equal("layer/kernel" %in% names(saved), TRUE)
  equal(abs(number(checkpoint_read(saved, "layer/kernel")) - 2) < 0.2, TRUE)
  run(session, init)
  restore_variables(keeper, session, prefix)
  equal(evaluate(net, data), values)
  checkpoint_write(paste0(prefix, "2"), list(a = scalar(5L)))
  equal(number(checkpoint_read(checkpoint(paste0(prefix, "2")), "a")), 5L)
  equal(length(graph_import(graph_export(g))), length(g))
})

test("datasets give batches", {
  s <- scope(new_graph())
  d <- ds_filter(ds_range(s, 0, 10), function(s, e) e[[1]] > 3)
  b <- ds_batches(ds_batch(ds_map(d, function(s, e) e[[1]] * e[[1]]), 4))
  found <- character()
  while (!is.null(batch <- next_batch(b))) found <- c(found, format(batch[[1]]))
  equal(found, c("[16, 25, 36, 49]", "[64, 81]"))
})

test("a model file runs by its names", {
  path <- Sys.getenv("THALWEG_TEST_MODEL")
  if (!file.exists(path)) cat("skipped  there is no model file\n") else {
    model <- load_model(path, "threads=1")
    x <- array(0:59 + 0, c(3, 4, 5))
    equal(signatures(model)[[1]]$inputs[[1]]$name, "x")
    equal(as.array(run(model, list(x = x, y = x))$sum), 2 * x)
    equal(grepl("'z'", conditionMessage(raised(run(model, list(x = x, z = x))))), TRUE)
  }
})

# Initialises a variable of 3, empties the container with the function, and looks at what is left.
counting <- function() {
  g <- new_graph()
  s <- scope(g)
  v <- variable(s, "v", 3)
  list(g = g, read = read_variable(v), init = initializer(s))
}
resets <- function(session, counting, reset) for (i in 1:2) {
  run(session, counting$init)
  equal(number(run(session, counting$read)), 3)
  equal(reset(), 1)
  raised(run(session, counting$read), "thalweg_failed_precondition")
}

test("containers are reset", {
  d <- counting()
  one <- session(d$g)
  named <- session(d$g, "container=reset")
  resets(one, d, function() reset_session(one))
  resets(named, d, function() reset_session(one, "reset"))
  resets(named, d, function() reset_container("reset"))
  equal(reset_container("nothing"), 0)
  raised(reset_container("<graph"), "thalweg_invalid_argument")
  raised(reset_session(5), "thalweg_invalid_argument")
  raised(reset_cluster(5), "thalweg_invalid_argument")
  raised(reset_cluster("", timeout = -1), "thalweg_invalid_argument")
})

test("a server runs a session", {
  one <- server("{\"worker\": [\"grpc:127.0.0.1:0\"]}", "worker", 0, "insecure=true")
  server_start(one)
  d <- doubling()
  remote <- session(d$g, paste0("target=", server_address(one)), "insecure=true")
  equal(number(run(remote, d$y, feed(d$x, 4))), 8)
  close(remote)
  d <- counting()
  remote <- session(d$g, paste0("target=", server_address(one)), "insecure=true", "container=reset")
  resets(remote, d, function() reset_cluster(server_address(one), "reset", 60, "insecure=true"))
  close(remote)
  server_stop(one)
})

test("the child of a fork runs steps with what it inherited", {
  d <- doubling()
  equal(number(run(d$session, d$y, feed(d$x, 1))), 2)
  job <- parallel::mcparallel(vapply(1:20, function(i) number(run(d$session, d$y, feed(d$x, i))), 0))
  equal(parallel::mccollect(job, wait = FALSE, timeout = 60)[[1]], 2 * (1:20))
  equal(number(run(d$session, d$y, feed(d$x, 3))), 6)
})

test("timeouts end runs", {
  w <- waiting()
  raised(run(w$session, w$get, timeout = 0.001), "thalweg_deadline_exceeded")
})

mine <- function() stop(structure(class = c("mine", "error", "condition"), list(message = "mine", call = NULL)))

test("functions that fail end the loop with what they raised", {
  d <- doubling()
  s <- scope(d$g, "more")
  loss <- d$y * read_variable(variable(s, "v", 1))
  step <- minimize(loss, sgd(0.01))
  run(d$session, initializer(s))
  net <- trainer(d$session, d$x, loss, step)
  one <- scalar(1)
  endless <- batches_from(1, function() {
    gc(FALSE)
    one
  }, function(epoch) NULL)
  raised(fit(net, endless, after_step = function(at) mine()), "mine")
  equal(fit(net, endless, after_step = function(at) at$step >= 3)$stopped, TRUE)
  raised(next_batch(batches_from(1, mine)), "mine")
  raised(fit(trainer(d$session, d$x, loss, step), batches_from(1, mine)), "mine")
  for (bad in list(function() list(one, one), function() list(1), function() list())) {
    raised(next_batch(batches_from(1, bad)), "thalweg_invalid_argument")
    raised(evaluate(net, batches_from(1, bad)), "thalweg_invalid_argument")
  }
  equal(next_batch(batches_from(1, function() NULL)), NULL)
  raised(ds_map(ds_range(s, 0, 3), function(s, e) mine()), "mine")
  closing <- trainer(d$session, d$x, loss, step) # closed in its own loop, which keeps it until the end
  equal(fit(closing, endless, after_step = function(at) {
    close(closing)
    gc(FALSE)
    TRUE
  })$stopped, TRUE)
  raised(evaluate(closing, endless), "thalweg_failed_precondition")
  kept <- NULL
  ds_map(ds_range(s, 0, 3), function(s, e) {
    kept <<- s
    e
  })
  raised(constant(kept, 1), "thalweg_failed_precondition")
})

test("misuse is an error of the package", {
  d <- doubling()
  foreign <- constant(scope(new_graph()), 1)
  one <- scalar(1)
  ints <- tensor(1:2)
  words <- tensor("a")
  closed <- scalar(1)
  closed_graph <- new_graph()
  shut <- scope(closed_graph)
  closed_session <- session(d$g)
  closed_step <- prepare(d$session, d$x, d$y)
  orphan <- prepare(closed_session, d$x, d$y)
  closed_data <- batches(ints, 1)
  data <- batches(ints, 1)
  operation <- find_operation(d$g, "y")
  for (i in 1:2) for (x in list(closed, closed_graph, closed_session, closed_step, closed_data)) close(x) # twice is fine
  s <- scope(d$g, "wrong")
  calls <- expression(
    tensor(1:3, dim = c(2, 2)), tensor(1, dim = c(NA, NA)), tensor(1, dim = -2), tensor(1, dim = c(2^62, 2^62)), tensor(NULL), tensor(list(1)), tensor(1i),
    tensor(sum), tensor(1, "no type"), tensor(1, 7), tensor("a", "float"), tensor(1, "string"), tensor(NA_character_), tensor(NA, "bool"), tensor(1.5, "int32"),
    tensor(NA_integer_), tensor(300, "uint8"), tensor(2^60, "int64"), tensor("a", dim = 2), tensor_zeros("double", c(2^40, 2^40)), tensor_zeros("resource", 1),
    tensor_zeros("float", -1), tensor_zeros("float", "a"), tensor_reshape(ints, 3), tensor_reshape(1, 1), as.array(closed), dim(closed), length(closed),
    format(closed), tensor_dtype(1), feed(d$x, "a"), feed(1, 1), feed(d$x, NULL), run(d$session, d$y, feed(d$x, closed)), run(d$session, d$y, feed(d$x, words)),
    run(d$session, d$y, feed(d$x, ints)), run(d$session, d$y), run(d$session, foreign), run(d$session, 1), run(d$session, d$y, list(1)), run(d$session, targets = 1),
    run(closed_session), run(d$session, d$y, timeout = "a"), run(d$session, d$y, timeout = -1), run(d$step), run(d$step, list(one, one)), run(d$step, one),
    run(d$step, list(1)), run(d$step, list(words)), run(closed_step, list(one)), run(orphan, list(one)), prepare(d$session, list(d$x, d$x), d$y), prepare(1, d$x, d$y),
    session(d$g, "no_such_option=1"), session(d$g, "threads=many"), session(d$g, NA), session(1), session(closed_graph), graph_export(closed_graph), scope(closed_graph),
    scope(1), scope(d$g, 1), constant(shut, 1), find_operation(d$g, "nothing"), find_operation(d$g, NULL), find_output(s, "y:7"), graph_import(as.raw(1:3)),
    graph_import("a"), op$MatMul(s, d$x, NULL), op$MatMul(s, d$x, 1), op$MatMul(s, d$x, d$x, transpose_a = 1), op$MatMul(s, d$x, d$x, transpose_a = NA), op$Pack(s, 1),
    op$MatMul(1, d$x, d$x), op$Cast(s, d$x, "no type"), op$Split(s, d$x, d$x, 1.5), op$Split(s, d$x, d$x, "a"), d$x + foreign, d$x + "a", d$x %% 2, !d$x, constant(s, closed),
    constant(s, sum), constant(s, NULL), dense(d$x, "d", 3), dense(1, "d", 3), activate(d$x, "no"), activate(1, "relu"), flatten(d$x), minimize(d$y, sgd(1)),
    minimize(1, sgd(1)), apply_gradients(s, 1, list(), list()), apply_gradients(s, sgd(1), list(d$x), list()), gradients(d$y, 1), gradients(1, d$x),
    clip_by_global_norm(s, 1, 1), clip_by_global_norm(s, list(1), 1), group(s, "g", 1), placeholder(s, "p", "float", "a"), placeholder(s, NULL, "float", 1),
    placeholder(s, "p", "no type", 1), set_device(s, 1), variable(s, 1, 1), read_variable(1), assign_variable(d$x, 1), ds_map(ds_range(s, 0, 3), 1),
    ds_map(ds_range(s, 0, 3), function(s, e) list()), ds_map(ds_range(s, 0, 3), function(s, e) 1), ds_map(1, identity), ds_batches(ds_range(s, 0, 3), "no_such_option=1"),
    ds_range(s, "a", 3), batches(one, 1), batches(list(), 1), batches(1, 1), batches(ints, -1), batches(ints, "a"), batches_from(0, identity), batches_from(1, 1),
    next_batch(closed_data), next_batch(1), reset_batches(closed_data, 0), reset_batches(data, -1), trainer(1, d$x, d$y, operation), trainer(d$session, d$x, 1, operation),
    trainer(closed_session, d$x, d$y, operation), trainer(d$session, d$x, d$y, 1), trainer(d$session, d$x, d$y, operation, 1), fit(1, data), evaluate(1, data), saver(1),
    saver(d$g, foreign), saver(closed_graph), checkpoint("/no/such/place"), checkpoint(NULL), checkpoint_write("/no/such/place", list(a = closed)),
    checkpoint_write("/no/such/place", list(1)), load_model("/no/such/file.onnx"), load_model(NULL), server("no json"), server(NULL), load_plugin("/no/such/plugin.so"),
    load_plugin(1), tw_tensor_rank("a"), tw_tensor_dim(one, "a"), tw_tensor_dim(one, -1), tw_tensor_dim(one, 1.5), tw_tensor_dim(one, NA), tw_tensor_rank(closed))
  for (i in seq_along(calls)) {
    e <- tryCatch(raised(eval(calls[[i]])), error = function(e) stop(deparse(calls[[i]])[[1]], ": ", conditionMessage(e)))
    if (!inherits(e, "thalweg_error") || !nzchar(conditionMessage(e))) stop(deparse(calls[[i]]))
    if (i %% 20 == 0) gc(FALSE)
  }
  equal(length(calls) >= 50, TRUE)
  close(d$g)
  raised(operation_name(operation), "thalweg_failed_precondition")
  equal(number(run(d$step, list(one))[[1]]), 2) # sessions go on
})

resident <- function() 4096 * as.numeric(strsplit(readLines("/proc/self/statm"), " ")[[1]][[2]])

test("nothing leaks", {
  d <- doubling()
  big <- numeric(65536)
  round <- function() {
    for (i in 1:25) { # nobody closes anything
      equal(length(tensor_reshape(tensor(big), c(2, 32768))), 65536)
      run(d$session, d$y, feed(d$x, 1))
      constant(scope(new_graph()), 1)
      raised(find_operation(new_graph(), "nothing"), "thalweg_not_found")
      next_batch(batches_from(1, function() NULL))
    }
    gc(FALSE)
  }
  for (i in 1:5) round()
  before <- resident()
  for (i in 1:40) round() # 1,000 tensors of 256 KiB
  grown <- (resident() - before) / 2^20
  if (grown > 96) stop(grown, " MiB more")
})

quit(status = failures > 0)
