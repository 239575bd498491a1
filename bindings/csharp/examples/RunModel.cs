using System;
using System.Linq;
using Thalweg;

/// <summary>Runs a model file on zeros.</summary>
static class RunModel
{
    static void Main(string[] arguments)
    {
        using (Model model = Model.Load(arguments[0]))
            foreach (var output in model.Run(model.Signatures[0].Inputs.ToDictionary(v => v.Name, v => Tensor.Zeros(v.DType, v.Shape))))
                Console.WriteLine("{0} [{1}] {2}", output.Key, string.Join(", ", output.Value.Shape), output.Value);
    }
}
