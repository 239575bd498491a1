# Trains a small convolutional net on four fifths of 1,797 handwritten digits and tests it on the others.
library(thalweg)

rows <- as.matrix(read.csv(commandArgs(TRUE)[[1]], header = FALSE))
test <- seq_len(nrow(rows)) %% 5 == 1
data <- function(mine, shuffle) batches(list(tensor(rows[mine, 1:64], "float"), tensor(as.integer(rows[mine, 65]))), 32, shuffle, seed = 1)

g <- new_graph()
s <- scope(g)
image <- placeholder(s, "image", "float", c(NA, 64))
label <- placeholder(s, "label", "int32", NA)
x <- reshape_output(image * (1 / 16), c(NA, 8, 8, 1))
x <- conv2d(x, "conv1", 16, 3, "relu", seed = 1)
x <- max_pool2d(conv2d(x, "conv2", 32, 3, "relu", seed = 1), 2)
logits <- dense(flatten(x), "out", 10, seed = 1)
loss <- sparse_softmax_cross_entropy(logits, label)
step <- minimize(loss, adam(0.001))
metric <- accuracy("accuracy", logits, label)
init <- initializer(s)

session <- session(g)
run(session, init)
net <- trainer(session, list(image, label), loss, step, metric)
fit(net, data(!test, TRUE), epochs = 10, progress = TRUE)
cat(sprintf("test accuracy %.2f %%\n", 100 * evaluate(net, data(test, FALSE))[["accuracy"]]))
