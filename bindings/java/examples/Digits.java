import java.util.List;
import org.thalweg.*;

/** Trains a small convolutional net on four fifths of 1,797 handwritten digits and tests it on the others. */
public class Digits {
    static Batches data(List<float[]> rows, boolean test) {
        int n = 0;
        float[] images = new float[64 * rows.size()];
        int[] labels = new int[rows.size()];
        for (int i = 0; i < rows.size(); ++i) {
            if ((i % 5 == 0) != test) continue;
            System.arraycopy(rows.get(i), 0, images, 64 * n, 64);
            labels[n++] = (int) rows.get(i)[64];
        }
        return Batches.of(32, !test, 1, Tensor.of(java.util.Arrays.copyOf(images, 64 * n), n, 64), Tensor.of(java.util.Arrays.copyOf(labels, n)));
    }

    public static void main(String[] arguments) {
        List<float[]> rows = Thalweg.readCsv(arguments[0]);
        Graph graph = new Graph();
        Scope s = graph.scope("");
        Output image = s.placeholder("image", DType.FLOAT, -1, 64), label = s.placeholder("label", DType.INT32, -1);
        Output x = s.reshape(s.mul(image, s.scalar(DType.FLOAT, 1.0 / 16)), -1, 8, 8, 1);
        x = s.conv2d("conv2", s.conv2d("conv1", x, 16, 3, Scope.Activation.RELU, 1), 32, 3, Scope.Activation.RELU, 1);
        Output logits = s.dense("out", s.flatten(s.maxPool2d(x, 2)), 10, Scope.Activation.LINEAR, 1);
        Trainer.Model model = new Trainer.Model();
        model.feeds = List.of(image, label);
        model.loss = s.sparseSoftmaxCrossEntropy(logits, label);
        model.step = s.minimize(model.loss, Optimizer.adam(0.001));
        model.metrics = List.of(s.accuracy("accuracy", logits, label));
        Session session = new Session(graph);
        session.run(s.initializer("init"));
        Trainer trainer = new Trainer(session, model);
        Trainer.Options options = new Trainer.Options();
        options.epochs = 10;
        options.progress = true;
        trainer.fit(data(rows, false), options);
        System.out.printf("test accuracy %.2f %%%n", 100 * trainer.evaluate(data(rows, true)).get("accuracy"));
    }
}
