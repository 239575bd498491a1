// Thalweg runs and trains machine-learning models. See thalweg.d.ts and README.md.
"use strict";

const low = require("./low.js");
const { ThalwegError, check, guarded, make } = require("./error.js");
const { DType, Tensor, readCsv } = require("./tensor.js");
const { Dataset, Graph, Operation, Optimizer, Scope, optimizers } = require("./graph.js");
const { Batches, Callable, Checkpoint, Model, Saver, Server, Session, Trainer, resetCluster, resetContainer } = require("./session.js");

function devices() {
  const list = make((out) => low.tw_devices_create(null, out));
  try {
    return Array.from({ length: low.tw_devices_count(list) }, (_, i) => low.tw_devices_name(list, i));
  } finally {
    low.tw_devices_destroy(list);
  }
}

module.exports = {
  Batches, Callable, Checkpoint, DType, Dataset, Graph, Model, Operation, Optimizer, Saver, Scope, Server, Session, Tensor, ThalwegError, Trainer,
  ...optimizers, devices, low, readCsv,
  load: Model.load,
  loadPlugin: (path) => guarded(() => check(low.tw_plugin_load(null, path))),
  get ops() { return require("./ops.js"); },
  resetCluster, resetContainer,
  version: low.tw_version_string(),
};
