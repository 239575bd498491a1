// Runs a model file on zeros: go run ./examples/model model.onnx
package main

import (
	"context"
	"fmt"
	"os"

	tw "thalweg.org/go"
)

func main() {
	model := tw.Must(tw.Load(os.Args[1]))
	inputs := map[string]*tw.Tensor{}
	for _, input := range tw.Must(model.Signatures())[0].Inputs {
		inputs[input.Name] = tw.Must(tw.Zeros[float32](input.Shape...))
	}
	for name, output := range tw.Must(model.Run(context.Background(), inputs)) {
		fmt.Println(name, output.Shape(), output)
	}
}
