# Layers, losses, metrics, gradients and optimizers.

activate <- function(x, kind = "linear") {
  activations <- c(linear = TW_ACTIVATION_NONE, relu = TW_ACTIVATION_RELU, gelu = TW_ACTIVATION_GELU, sigmoid = TW_ACTIVATION_SIGMOID,
                   tanh = TW_ACTIVATION_TANH, softmax = TW_ACTIVATION_SOFTMAX)
  if (!is.character(kind) || length(kind) != 1 || !kind %in% names(activations)) invalid("an activation must be one of ", paste(names(activations), collapse = ", "))
  if (kind == "linear") x else add_value(one(x, "x")$scope, function(p) tw_activation(p, activations[[kind]], x))
}

last_size <- function(what, x) {
  dim <- output_dim(x)
  if (!length(dim) || is.na(dim[[length(dim)]])) invalid(what, ": the last size must be known")
  dim[[length(dim)]]
}

layer_options <- function(seed) {
  o <- record("tw_layer_options")
  tw_layer_options_init(o)
  set_field(o, "seed", seed)
}

# activation(x kernel + bias). x: [.., inputs]; the result: [.., units]. seed 0: other first weights in each session.
dense <- function(x, name, units, activation = "linear", seed = 0) {
  inputs <- last_size(paste0("dense '", name, "'"), x)
  activate(add_value(x$scope, function(p) {
    layer <- record("tw_dense")
    tw_dense_create(p, text(name), layer_options(seed), inputs, units, layer)
    tw_dense_apply(p, layer, x)
  }), activation)
}

# A convolution with a square window over [batch, height, width, channels] that keeps height and width.
conv2d <- function(x, name, filters, window, activation = "linear", seed = 0) {
  channels <- last_size(paste0("conv2d '", name, "'"), x)
  activate(add_value(x$scope, function(p) {
    like <- record("tw_convolution")
    layer <- record("tw_convolution")
    sizes <- record("tw_convolution_sizes")
    tw_convolution_init(like)
    tw_convolution_init(layer)
    tw_convolution_sizes_init(sizes)
    for (field in c("window_1", "window_2")) set_field(sizes, field, window)
    set_field(sizes, "channels", channels)
    set_field(sizes, "filters", filters)
    tw_convolution_create(p, text(name), layer_options(seed), like, sizes, layer)
    tw_convolution_apply(p, layer, x)
  }), activation)
}

# Keeps the largest of each window of window x window elements.
max_pool2d <- function(x, window) add_value(one(x, "x")$scope, function(p) {
  pool <- record("tw_pool")
  tw_pool_init(pool)
  set_field(pool, "kind", TW_POOL_MAX)
  set_field(pool, "rank", 2)
  set_field(pool, "padding", TW_PADDING_VALID)
  for (field in c("window_1", "window_2", "stride_1", "stride_2")) set_field(pool, field, window)
  tw_pool_apply(p, pool, x)
})

# Makes a row of each example.
flatten <- function(x) {
  dim <- output_dim(x)
  if (anyNA(dim[-1]) || !length(dim)) invalid("flatten: the sizes behind the first must be known")
  reshape_output(x, c(NA, prod(dim[-1])))
}

dropout <- function(x, rate, training, seed = 0) add_value(one(x, "x")$scope, function(p) tw_dropout(p, x, rate, one(training, "training"), seed))

# The mean cross-entropy of logits [batch, classes] for labels [batch], which count from 0.
sparse_softmax_cross_entropy <- function(logits, labels) {
  s <- one(logits, "logits")$scope
  simple(s, "Mean", simple(s, "SparseSoftmaxCrossEntropyWithLogits", logits, one(labels, "labels")), constant(s, tensor(0L)))
}

# The gradients of a scalar loss for values or variables: lists of `values` and `rows`, where rows is NULL unless the gradient is sparse.
gradients <- function(loss, xs) {
  s <- one(loss, "loss")$scope
  xs <- as_list(xs)
  in_scope(s, function(p) {
    out <- raw(16 * length(xs))
    tw_scope_gradients(p, loss, ids(xs), length(xs), out)
    gradients_in(s, out)
  })
}

gradients_in <- function(s, memory) {
  lapply(seq_len(length(memory) / 16), function(i) {
    rows <- memory[16 * i - 7:0]
    list(values = output_of(s, memory[16 * i - 15:8]), rows = if (any(rows != 0)) output_of(s, rows))
  })
}

gradient_memory <- function(gradients) {
  if (!is.list(gradients)) invalid("gradients must be given as a list")
  as.raw(unlist(lapply(gradients, function(g) {
    if (!is.list(g)) invalid("a gradient must be one that gradients() gave")
    c(one(g$values, "the values of a gradient")$id, if (is.null(g$rows)) raw(8) else g$rows$id)
  })))
}

# Scales gradients so that the norm of all together is at most max.
clip_by_global_norm <- function(s, gradients, max) in_scope(s, function(p) {
  all <- gradient_memory(gradients)
  tw_clip_by_global_norm(p, all, length(gradients), max)
  gradients_in(s, all)
})

optimizer <- function(name, rate, fields = list()) {
  force(rate)
  structure(list(name = name, rate = rate, fields = fields), class = "thalweg_optimizer")
}
# rate: a number, or a value of the graph.
sgd <- function(rate) optimizer("sgd", rate)
momentum <- function(rate, momentum) optimizer("momentum", rate, list(momentum = momentum))
# By Kingma and Ba, arXiv:1412.6980.
adam <- function(rate, beta1 = 0.9, beta2 = 0.999, epsilon = NULL) {
  optimizer("adam", rate, c(list(beta1 = beta1, beta2 = beta2), if (!is.null(epsilon)) list(epsilon = epsilon)))
}
# By Duchi, Hazan and Singer, 2011.
adagrad <- function(rate) optimizer("adagrad", rate)
# By Tieleman and Hinton, 2012.
rmsprop <- function(rate) optimizer("rmsprop", rate)

optimizer_calls <- function(name) {
  switch(name, sgd = list(tw_sgd_init, tw_train_sgd), momentum = list(tw_momentum_init, tw_train_momentum), adam = list(tw_adam_init, tw_train_adam),
         adagrad = list(tw_adagrad_init, tw_train_adagrad), rmsprop = list(tw_rmsprop_init, tw_train_rmsprop))
}

# Adds one update of variables by gradients.
apply_gradients <- function(s, optimizer, variables, gradients) {
  expect(optimizer, "thalweg_optimizer", "optimizer")
  if (length(variables) != length(gradients)) invalid("apply_gradients needs a gradient for each variable")
  rate <- as_output(s, optimizer$rate, "float")
  add_operation(s, function(p) {
    calls <- optimizer_calls(optimizer$name)
    o <- record(paste0("tw_", optimizer$name))
    calls[[1]](o)
    set_field(o, "learning_rate", rate)
    for (field in names(optimizer$fields)) set_field(o, field, optimizer$fields[[field]])
    calls[[2]](p, ids(variables), gradient_memory(gradients), length(variables), o)
  })
}

# Adds one update of all variables of the graph that hold real numbers and that the loss depends on.
minimize <- function(loss, optimizer) {
  s <- one(loss, "loss")$scope
  found <- Filter(function(v) v$dtype %in% c("float", "double", "half", "bfloat16"), variables(s))
  if (!length(found)) invalid("minimize: the graph has no variables of real numbers")
  handles <- lapply(found, function(v) v$handle)
  apply_gradients(s, optimizer, handles, gradients(loss, handles))
}

new_metric <- function(s, name, call) in_scope(s, function(p) {
  m <- record("tw_metric")
  call(p, text(name), m)
  structure(list(name = name, record = m), class = "thalweg_metric")
})
# The share of examples whose class is the label. predictions: scores [batch, classes], or classes.
accuracy <- function(name, predictions, labels) {
  new_metric(one(predictions, "predictions")$scope, name, function(p, n, m) tw_metric_accuracy(p, n, predictions, one(labels, "labels"), NULL, m))
}
# The mean of values.
mean_metric <- function(name, values) new_metric(one(values, "values")$scope, name, function(p, n, m) tw_metric_mean(p, n, values, NULL, m))
