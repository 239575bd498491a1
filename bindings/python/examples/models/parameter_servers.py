"""The variational autoencoder of vae.py, trained by several processes whose weights are on parameter servers.

    thalweg launch -n 2 --ps 2 -- python3 parameter_servers.py --data digits.csv
    python3 parameter_servers.py --data digits.csv --alone          # one process

The argument `servers` of the trainer makes the difference. Every worker runs this file and trains with its share of the digits; all
update the same weights."""
import training
import vae

import thalweg as tw


def main(arguments=None):
    parser = training.options(__doc__, epochs=40)
    parser.add_argument("--alone", action="store_true", help="one process, without a cluster")
    parser.add_argument("--plugin", action="append", default=[], help="a plugin to load, such as a transport")
    given = training.parsed(parser, arguments)
    for plugin in given.plugin:
        tw.load_plugin(plugin)
    servers = None if given.alone else tw.ParameterServers()
    (learnt,), (held,) = training.split(training.digits(given.data)[0].reshape(-1, 64))
    share = (learnt, learnt) if servers is None else servers.share(learnt, learnt)

    trainer = tw.train.Trainer(vae.VAE(), vae.loss, vae.optimizer(), servers=servers, threads=given.threads)  # servers: the only change

    trainer.fit(share, given.epochs, batch=given.batch, seed=given.seed, logdir=given.logdir)
    reached = trainer.evaluate((held, held))["loss"]
    training.said("parameter_servers" if servers is None else f"worker {servers.worker}", "held-out loss", reached, given.epochs)
    return reached


if __name__ == "__main__":
    main()
