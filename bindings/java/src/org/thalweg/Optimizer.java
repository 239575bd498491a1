package org.thalweg;

import java.util.LinkedHashMap;
import java.util.Map;

/** An optimizer, its learning rate, and options that are not left at the defaults of train.h. */
public final class Optimizer {
    interface Call {
        long apply(long scope, long variables, long gradients, int n, long options);
    }

    interface Init {
        void init(long options);
    }

    final String name;
    final int size;
    final int rateOffset;
    final Init init;
    final Call call;
    final double rate;
    Output schedule;
    final Map<Integer, Double> fields = new LinkedHashMap<>();

    private Optimizer(String name, int size, int rateOffset, Init init, Call call, double rate) {
        this.name = name;
        this.size = size;
        this.rateOffset = rateOffset;
        this.init = init;
        this.call = call;
        this.rate = rate;
    }

    private Optimizer set(int offset, double value) {
        fields.put(offset, value);
        return this;
    }

    /** Computes the learning rate in the graph instead. */
    public Optimizer schedule(Output value) {
        schedule = value;
        return this;
    }

    /** Gradient descent. */
    public static Optimizer sgd(double rate) {
        return new Optimizer("sgd", Low.tw_sgd, Low.tw_sgd__learning_rate, Low::tw_sgd_init, Low::tw_train_sgd, rate);
    }

    /** Gradient descent with momentum. */
    public static Optimizer momentum(double rate, double momentum) {
        return new Optimizer("momentum", Low.tw_momentum, Low.tw_momentum__learning_rate, Low::tw_momentum_init, Low::tw_train_momentum, rate)
                .set(Low.tw_momentum__momentum, momentum);
    }

    /** By Kingma and Ba, arXiv:1412.6980. */
    public static Optimizer adam(double rate) {
        return new Optimizer("adam", Low.tw_adam, Low.tw_adam__learning_rate, Low::tw_adam_init, Low::tw_train_adam, rate);
    }

    public static Optimizer adam(double rate, double beta1, double beta2, double epsilon) {
        return adam(rate).set(Low.tw_adam__beta1, beta1).set(Low.tw_adam__beta2, beta2).set(Low.tw_adam__epsilon, epsilon);
    }

    /** By Duchi, Hazan and Singer, 2011. */
    public static Optimizer adagrad(double rate) {
        return new Optimizer("adagrad", Low.tw_adagrad, Low.tw_adagrad__learning_rate, Low::tw_adagrad_init, Low::tw_train_adagrad, rate);
    }

    /** By Tieleman and Hinton, 2012. */
    public static Optimizer rmsProp(double rate) {
        return new Optimizer("rmsprop", Low.tw_rmsprop, Low.tw_rmsprop__learning_rate, Low::tw_rmsprop_init, Low::tw_train_rmsprop, rate);
    }
}
