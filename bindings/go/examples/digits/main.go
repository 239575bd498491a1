// Trains a small convolutional net on four fifths of 1,797 handwritten digits and tests it on the others.
package main

import (
	"context"
	"fmt"
	"os"

	tw "thalweg.org/go"
)

func main() {
	var images, labels = [2][]float32{}, [2][]int32{} // to train, to test
	for i, row := range tw.Must(tw.ReadCSV(os.Args[1])) {
		set := map[bool]int{true: 1}[i%5 == 0]
		images[set], labels[set] = append(images[set], row[:64]...), append(labels[set], int32(row[64]))
	}
	data := func(set int) *tw.Iterator {
		x, y := tw.Must(tw.NewTensor(images[set], -1, 64)), tw.Must(tw.NewTensor(labels[set]))
		return tw.Must(tw.Batches(tw.BatchOptions{Shuffle: set == 0, Seed: 1}, x, y))
	}
	graph, seed := tw.Must(tw.NewGraph()), tw.LayerOptions{Seed: 1}
	s := graph.Scope("")
	image, label := s.Placeholder("image", tw.Float, -1, 64), s.Placeholder("label", tw.Int32, -1)
	x := s.Reshape(s.Mul(image, s.Scalar(tw.Float, 1.0/16)), -1, 8, 8, 1)
	x = s.Conv2D("conv2", s.Conv2D("conv1", x, 16, 3, tw.Relu, seed), 32, 3, tw.Relu, seed)
	logits := s.Dense("out", s.Flatten(s.MaxPool2D(x, 2)), 10, tw.Linear, seed)
	loss := s.SparseSoftmaxCrossEntropy(logits, label)
	step := s.Minimize(loss, tw.Adam{Rate: tw.Rate{LearningRate: 0.001}})
	accuracy, init := s.Accuracy("accuracy", logits, label), s.Initializer("init")
	if err := s.Finish(); err != nil {
		panic(err)
	}
	session, ctx := tw.Must(graph.NewSession()), context.Background()
	trainer := tw.Must(session.NewTrainer(tw.TrainerModel{Feeds: []tw.Output{image, label}, Loss: loss, Step: step, Metrics: []tw.Metric{accuracy}}))
	tw.Must(session.Run(ctx, nil, nil, init))
	tw.Must(trainer.Fit(ctx, data(0), tw.FitOptions{Epochs: 10, Progress: true}))
	fmt.Printf("test accuracy %.2f %%\n", 100*tw.Must(trainer.Evaluate(ctx, data(1)))["accuracy"])
}
