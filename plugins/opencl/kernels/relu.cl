// Relu keeps NaN. Its gradient is dy where x > 0, else 0.
#define RELU(T, x) select(x, (T)(0.0f), isless(x, (T)(0.0f)))
#define RELU_GRAD(T, dy, x) select((T)(0.0f), dy, isgreater(x, (T)(0.0f)))
MAP(relu, RELU)
MAP_PAIRS(relu_grad, RELU_GRAD)
