//! Trains a small convolutional net on four fifths of 1,797 handwritten digits and tests it on the others.
use thalweg::*;

fn main() -> Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "digits.csv".into());
    let (mut images, mut labels) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]); // to train, to test
    for (i, row) in read_csv(&path)?.iter().enumerate() {
        images[(i % 5 == 0) as usize].extend_from_slice(&row[..64]);
        labels[(i % 5 == 0) as usize].push(row[64] as i32);
    }
    let data = |set: usize| -> Result<Batches> {
        let n = labels[set].len() as i64;
        let (x, y) = (Tensor::new(&images[set], &[n, 64])?, Tensor::new(&labels[set], &[n])?);
        Batches::new(&[&x, &y], BatchOptions { shuffle: set == 0, seed: 1, ..Default::default() })
    };
    let (graph, seed) = (Graph::new()?, LayerOptions::seed(1));
    let s = graph.scope("");
    let (image, label) = (s.placeholder("image", DType::FLOAT, &[-1, 64]), s.placeholder("label", DType::INT32, &[-1]));
    let x = s.reshape(s.mul(image, s.scalar(DType::FLOAT, 1.0 / 16.0)), &[-1, 8, 8, 1]);
    let x = s.conv2d("conv1", x, 16, 3, Activation::RELU, seed);
    let x = s.conv2d("conv2", x, 32, 3, Activation::RELU, seed);
    let logits = s.dense("out", s.flatten(s.max_pool2d(x, 2)), 10, Activation::LINEAR, seed);
    let loss = s.sparse_softmax_cross_entropy(logits, label);
    let step = s.minimize(loss, &Adam::new(0.001));
    let metrics = vec![s.accuracy("accuracy", logits, label)];
    let init = s.initializer("init");
    s.finish()?;

    let session = Session::new(&graph, &[])?;
    session.run(&[], &[], &[init.unwrap()])?;
    let model = TrainerModel { feeds: vec![image, label], loss, step, metrics, ..Default::default() };
    let mut trainer = Trainer::new(&graph, &session, &model)?;
    trainer.fit(&mut data(0)?, FitOptions { epochs: 10, progress: true, ..Default::default() })?;
    println!("test accuracy {:.2} %", 100.0 * trainer.evaluate(&mut data(1)?)?["accuracy"]);
    Ok(())
}
