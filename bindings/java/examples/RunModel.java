import java.util.LinkedHashMap;
import java.util.Map;
import org.thalweg.*;

/** Runs a model file on zeros. */
public class RunModel {
    public static void main(String[] arguments) {
        Model model = Model.load(arguments[0]);
        Map<String, Tensor> inputs = new LinkedHashMap<>();
        for (Model.Value input : model.signatures().get(0).inputs()) inputs.put(input.name(), Tensor.zeros(input.dtype(), input.shape()));
        model.run(inputs).forEach((name, tensor) -> System.out.println(name + " " + java.util.Arrays.toString(tensor.shape()) + " " + tensor));
    }
}
