# Runs a model file on zeros.
library(thalweg)

model <- load_model(commandArgs(TRUE)[[1]])
inputs <- signatures(model)[[1]]$inputs
zeros <- lapply(inputs, function(v) tensor_zeros(v$dtype, v$dim))
names(zeros) <- vapply(inputs, function(v) v$name, "")
outputs <- run(model, zeros)
for (name in names(outputs)) cat(name, paste0("[", paste(dim(outputs[[name]]), collapse = ", "), "]"), format(outputs[[name]]), "\n")
