using System;
using System.Linq;
using Thalweg;

/// <summary>Trains a small convolutional net on four fifths of 1,797 handwritten digits and tests it on the others.</summary>
static class Digits
{
    static Batches Data(float[][] rows, bool test)
    {
        float[][] mine = rows.Where((row, i) => i % 5 == 0 == test).ToArray();
        Tensor images = Tensor.Of(mine.SelectMany(row => row.Take(64)).ToArray(), -1, 64);
        return Batches.Of(32, !test, 1, images, Tensor.Of(mine.Select(row => (int)row[64]).ToArray()));
    }

    static void Main(string[] arguments)
    {
        float[][] rows = Library.ReadCsv(arguments[0]);
        Graph graph = new Graph();
        Scope s = graph.Scope();
        Output image = s.Placeholder("image", DType.Float, new long[] {-1, 64}), label = s.Placeholder("label", DType.Int32, new long[] {-1});
        Output x = s.Reshape(s.Mul(image, s.Scalar(DType.Float, 1.0 / 16)), new[] {-1, 8, 8, 1});
        x = s.Convolution2D("conv1", x, 16, 3, Activation.Relu, 1);
        x = s.Convolution2D("conv2", x, 32, 3, Activation.Relu, 1);
        Output logits = s.Dense("out", s.Flatten(s.MaxPool2D(x, 2)), 10, Activation.Linear, 1);
        Output loss = s.SparseSoftmaxCrossEntropy(logits, label);
        var training = new Training {
            Feeds = new[] {image, label}, Loss = loss, Step = s.Minimize(loss, Optimizer.Adam(0.001)),
            Metrics = new[] {s.Accuracy("accuracy", logits, label)}};
        Operation init = s.Initializer();
        using (Session session = new Session(graph))
        using (Trainer trainer = new Trainer(session, training))
        {
            session.Run(init);
            trainer.Fit(Data(rows, false), epochs: 10, progress: true);
            Console.WriteLine("test accuracy {0:F2} %", 100 * trainer.Evaluate(Data(rows, true))["accuracy"]);
        }
    }
}
