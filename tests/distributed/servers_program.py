"""A worker of training_test.py that trains over parameter servers: servers_program.py TRANSPORT FOLDER"""
import sys

import numpy as np

import thalweg as tw

tw.load_plugin(sys.argv[1])
servers = tw.ParameterServers()
random = np.random.default_rng(0)
x = random.normal(size=(400, 6)).astype(np.float32)
y = (x @ random.normal(size=(6, 3))).argmax(1).astype(np.int32)

net = tw.nn.Sequential(tw.nn.Dense(8, "relu"), tw.nn.BatchNorm(), tw.nn.Dense(3))
trainer = tw.train.Trainer(net, "sparse_softmax_cross_entropy", lambda: tw.train.Adam(tw.schedules.exponential(0.02, 100, 0.9)), ["accuracy"],
                           servers=servers, clip=1.0, sub_batches=2, threads=1)
history = trainer.fit(servers.share(x, y), 12, batch=20, validation=(x[:50], y[:50]))
found = trainer.evaluate((x, y))
assert found["accuracy"] == np.mean(trainer.predict(x).argmax(1) == y) or servers.workers > 1, found  # others may still change the weights
print(f"worker {servers.worker}: accuracy {found['accuracy']:.4f}, {history}", flush=True)

if servers.workers == 1:
    saver, path, weights = tw.Saver(by_task=True), sys.argv[2] + "/model", net.parameters()
    saver.save(trainer.session, path)
    before = trainer.session.run(weights)
    trainer.session.run([w.assign(np.zeros(w.shape, np.float32)) for w in weights])
    assert trainer.evaluate((x, y)) != found
    saver.restore(trainer.session, path)
    assert all(map(np.array_equal, before, trainer.session.run(weights))) and trainer.evaluate((x, y)) == found
    print("restored", flush=True)
