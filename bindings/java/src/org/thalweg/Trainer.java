package org.thalweg;

import static org.thalweg.ThalwegException.check;
import static org.thalweg.ThalwegException.invalid;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Runs the training loop. One thread at a time. */
public final class Trainer extends Handle {
    /** What a trainer trains. Fields that are not set mean none. */
    public static final class Model {
        /** Tensor i of a batch is fed to feeds[i]. */
        public List<Output> feeds = List.of();
        /** Predictions need only the first so many of them; 0: all. */
        public int inputs;
        public Output loss = new Output(0);
        public Operation step;
        public Output training = new Output(0);
        public List<Metric> metrics = List.of();
        public List<Output> predictions = List.of();
    }

    /** The place of a loop. */
    public record Progress(long epoch, long epochs, long step, long batch, Map<String, Double> values, Map<String, Double> validation, boolean improved,
            double seconds) {}

    /** A function that the loop calls; true ends the loop as if all were done. */
    public interface Function {
        boolean apply(Progress at) throws Exception;
    }

    /** Options of {@code fit}. */
    public static final class Options {
        public long epochs = 1;
        public Batches validation;
        /** The watched value; null: the loss. */
        public String watch;
        /** Epochs without a better value after which training stops; 0: never. */
        public long patience;
        public boolean keepBest;
        public boolean largerIsBetter;
        /** A line for each epoch on standard error. */
        public boolean progress;
        /** For checkpoints, from which a training goes on; null: none. */
        public String folder;
        public long everySteps;
        public CancelToken cancel;
        public Function afterStep;
        public Function epochEnd;
    }

    /** The result of {@code fit}. */
    public record Report(long epochs, long steps, long resumedAt, long bestEpoch, double best, boolean stopped) {}

    private final List<String> names = new ArrayList<>();
    private final int predictions;

    public Trainer(Session session, Model model) {
        super(create(session, model), address -> {
            Low.tw_trainer_destroy(address);
            session.graph().leave(); // both outlive the trainer
            session.leave();
        });
        predictions = model.predictions.size();
        with(t -> {
            for (int i = 0; i < Low.tw_trainer_value_count(t); ++i) names.add(Memory.string(Low.tw_trainer_value_name(t, i)));
            return null;
        });
    }

    private static long create(Session session, Model model) {
        if (session == null || model == null) throw invalid("the session or the model is null");
        long s = session.use(), g;
        try {
            g = session.graph().use();
        } catch (RuntimeException e) {
            session.leave();
            throw e;
        }
        try (Memory.Frame frame = Memory.Frame.push()) {
            Memory.Room m = frame.room(Low.tw_trainer_model), out = frame.room(8);
            Low.tw_trainer_model_init(m.address);
            Memory.Room metrics = frame.room(Low.tw_metric * model.metrics.size());
            List<String> names = new ArrayList<>();
            for (Metric metric : model.metrics) {
                if (metric == null || metric.update() == null || metric.reset() == null) throw invalid("a metric is null, or has null in it");
                int at = Low.tw_metric * names.size();
                metrics.setInt(at, Low.tw_metric).setLong(at + Low.tw_metric__value, metric.value().id())
                        .setLong(at + Low.tw_metric__update, metric.update().address).setLong(at + Low.tw_metric__reset, metric.reset().address);
                names.add(metric.name());
            }
            m.setLong(Low.tw_trainer_model__graph, g).setLong(Low.tw_trainer_model__session, s)
                    .setLong(Low.tw_trainer_model__feeds, frame.outputs(model.feeds)).setInt(Low.tw_trainer_model__n_feeds, model.feeds.size())
                    .setInt(Low.tw_trainer_model__n_inputs, model.inputs).setLong(Low.tw_trainer_model__loss, model.loss.id())
                    .setLong(Low.tw_trainer_model__training, model.training.id()).setLong(Low.tw_trainer_model__step, model.step == null ? 0 : model.step.address)
                    .setInt(Low.tw_trainer_model__n_metrics, names.size()).setLong(Low.tw_trainer_model__metrics, metrics.address)
                    .setLong(Low.tw_trainer_model__metric_names, frame.texts(names))
                    .setLong(Low.tw_trainer_model__predictions, frame.outputs(model.predictions))
                    .setInt(Low.tw_trainer_model__n_predictions, model.predictions.size());
            check(Low.tw_trainer_create(m.address, out.address));
            return out.getLong(0);
        } catch (RuntimeException e) {
            session.graph().leave();
            session.leave();
            throw e;
        }
    }

    private static Map<String, Double> values(ByteBuffer at, int field) {
        Map<String, Double> all = new LinkedHashMap<>();
        int n = at.getInt(Low.tw_fit_progress__n_values);
        long values = at.getLong(field), names = at.getLong(Low.tw_fit_progress__names);
        for (int i = 0; values != 0 && i < n; ++i)
            all.put(Memory.string(Memory.at(names, 8L * n).getLong(8 * i)), Memory.at(values, 8L * n).getDouble(8 * i));
        return all;
    }

    private static Progress progress(long address) {
        ByteBuffer p = Memory.at(address, Low.tw_fit_progress);
        return new Progress(p.getLong(Low.tw_fit_progress__epoch), p.getLong(Low.tw_fit_progress__epochs), p.getLong(Low.tw_fit_progress__step),
                p.getLong(Low.tw_fit_progress__batch), values(p, Low.tw_fit_progress__values), values(p, Low.tw_fit_progress__validation),
                p.getInt(Low.tw_fit_progress__improved) != 0, p.getDouble(Low.tw_fit_progress__seconds));
    }

    /** Trains over the batches. An unchecked exception of a function comes back as it is. */
    public Report fit(Batches data, Options given) {
        Options options = given == null ? new Options() : given;
        Callback callback = new Callback() {
            @Override
            long run(int what, long a, long b) throws Exception {
                if ((what == Memory.AFTER_STEP ? options.afterStep : options.epochEnd).apply(progress(a))) Memory.at(b, 4).putInt(0, 1);
                return 0;
            }
        };
        long validation = options.validation == null ? 0 : options.validation.use();
        long cancel = 0, user = 0;
        try {
            cancel = options.cancel == null ? 0 : options.cancel.use();
            user = Memory.keep(callback);
            return fit(data, options, callback, validation, cancel, user);
        } finally {
            if (user != 0) Memory.forget(user);
            if (cancel != 0) options.cancel.leave();
            if (validation != 0) options.validation.leave();
        }
    }

    private Report fit(Batches data, Options options, Callback callback, long validation, long cancel, long user) {
        return with(t -> Handle.with(data, "the data", batches -> {
            try (Memory.Frame frame = Memory.Frame.push()) {
                Memory.Room o = frame.room(Low.tw_fit_options), r = frame.room(Low.tw_fit_report).setInt(0, Low.tw_fit_report);
                Low.tw_fit_options_init(o.address);
                Memory.Room c = frame.room(Low.tw_fit_callback).setInt(0, Low.tw_fit_callback).setLong(Low.tw_fit_callback__user, user)
                        .setLong(Low.tw_fit_callback__after_step, options.afterStep == null ? 0 : Memory.function(Memory.AFTER_STEP))
                        .setLong(Low.tw_fit_callback__epoch_end, options.epochEnd == null ? 0 : Memory.function(Memory.EPOCH_END));
                o.setInt(Low.tw_fit_options__flags, (options.keepBest ? Low.TW_FIT_KEEP_BEST : 0) | (options.largerIsBetter ? Low.TW_FIT_LARGER_IS_BETTER : 0)
                        | (options.progress ? Low.TW_FIT_PROGRESS : 0));
                o.setLong(Low.tw_fit_options__epochs, options.epochs).setLong(Low.tw_fit_options__validation, validation)
                        .setLong(Low.tw_fit_options__watch, frame.text(options.watch)).setLong(Low.tw_fit_options__patience, options.patience)
                        .setLong(Low.tw_fit_options__folder, frame.text(options.folder)).setLong(Low.tw_fit_options__every_steps, options.everySteps)
                        .setLong(Low.tw_fit_options__callbacks, c.address).setInt(Low.tw_fit_options__n_callbacks, 1)
                        .setLong(Low.tw_fit_options__cancel, cancel);
                long status = Low.tw_trainer_fit(t, batches, o.address, r.address);
                if (status != 0) {
                    ThalwegException failure = ThalwegException.of(status);
                    callback.rethrow();
                    data.rethrow();
                    if (options.validation != null) options.validation.rethrow();
                    throw failure;
                }
                return new Report(r.getLong(Low.tw_fit_report__epochs), r.getLong(Low.tw_fit_report__steps), r.getLong(Low.tw_fit_report__resumed_at),
                        r.getLong(Low.tw_fit_report__best_epoch), r.getDouble(Low.tw_fit_report__best), r.getInt(Low.tw_fit_report__why) != Low.TW_FIT_COMPLETE);
            }
        }));
    }

    /** The loss and the metrics over one epoch, by their names. */
    public Map<String, Double> evaluate(Batches data) {
        return with(t -> Handle.with(data, "the data", batches -> {
            try (Memory.Frame frame = Memory.Frame.push()) {
                Memory.Room values = frame.room(8 * names.size());
                data.rethrowing(Low.tw_trainer_evaluate(t, batches, 0, values.address));
                Map<String, Double> all = new LinkedHashMap<>();
                for (int i = 0; i < names.size(); ++i) all.put(names.get(i), values.getDouble(8 * i));
                return all;
            }
        }));
    }

    /** The predictions for one epoch, with the rows of all batches. */
    public List<Tensor> predict(Batches data) {
        return with(t -> Handle.with(data, "the data", batches -> {
            try (Memory.Frame frame = Memory.Frame.push()) {
                Memory.Room out = frame.room(8 * predictions);
                data.rethrowing(Low.tw_trainer_predict(t, batches, 0, out.address));
                return Tensor.own(out, predictions);
            }
        }));
    }
}
