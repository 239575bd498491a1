//! The tests of the crate. The environment has THALWEG_TEST_MODEL, an ONNX file that adds two values.
use std::sync::Arc;
use std::time::{Duration, Instant};
use thalweg::*;

/// A graph with y = x + x, and a session of one thread.
fn doubling() -> (Graph, Session, Output, Output) {
    let g = Graph::new().unwrap();
    let s = g.scope("");
    let x = s.placeholder("x", DType::FLOAT, &[]);
    let y = s.name("y", s.add(x, x));
    s.finish().unwrap();
    let session = Session::new(&g, &["threads=1"]).unwrap();
    (g, session, x, y)
}

#[test]
fn every_function_is_linked_and_records_have_their_layout() {
    let mut all = low::every();
    let n = all.len();
    all.sort_unstable();
    all.dedup();
    assert!(all.len() == n && n > 480 && all[0] != 0);
    let offsets = low::offsets();
    assert!(offsets.len() > 400);
    for (field, here, in_c) in offsets {
        assert_eq!(here, in_c, "{}", field);
    }
}

#[test]
fn tensors_share_memory_and_guard_it() {
    let mut a = Tensor::from_vec(vec![1f32, 2., 3., 4., 5., 6.], &[2, 3]).unwrap();
    a.data_mut::<f32>().unwrap()[0] = 7.;
    assert_eq!(format!("{:?} {:?} {:?}", a.shape(), a.dtype(), a), "[2, 3] float [[7, 2, 3], [4, 5, 6]]");
    let b = a.clone();
    assert_eq!(a.data_mut::<f32>().unwrap_err().code, Code::FailedPrecondition);
    drop(b);
    assert!(a.data_mut::<f32>().is_ok());
    assert_eq!(Tensor::scalar(2.5f64).unwrap().item::<f64>().unwrap(), 2.5);
    assert_eq!(Tensor::strings(&["", "any\0bytes"], &[2]).unwrap().string(1).unwrap(), b"any\0bytes");
    assert!(Tensor::zeros::<i64>(&[0, 4]).unwrap().data::<i64>().unwrap().is_empty());
}

#[test]
fn errors_name_the_line() {
    let g = Graph::new().unwrap();
    let s = g.scope("head");
    let (a, b) = (s.placeholder("a", DType::FLOAT, &[2, 3]), s.placeholder("b", DType::FLOAT, &[4, 5]));
    let line = line!() + 1;
    s.matmul(a, b);
    assert_eq!(s.add(a, b), Output::default()); // nothing, after a failure
    let e = s.finish().unwrap_err();
    let place = format!("binding.rs:{}", line);
    assert_eq!((e.code, e.place.as_deref()), (Code::InvalidArgument, Some(place.as_str())));
    assert!(e.message.contains(&place) && e.operation.as_deref() == Some("head/MatMul"), "{}", e);
    let s = g.scope("ops");
    let line = line!() + 1;
    ops::mat_mul_with(&s, a, b, &ops::MatMulAttrs { transpose_a: Some(true), ..Default::default() });
    assert_eq!(s.finish().unwrap_err().place, Some(format!("binding.rs:{}", line)));
}

#[test]
fn training_saves_and_goes_on() {
    let g = Graph::new().unwrap();
    let s = g.scope("");
    let (x, y) = (s.placeholder("x", DType::FLOAT, &[-1, 2]), s.placeholder("y", DType::FLOAT, &[-1, 1]));
    let z = s.dense("layer", x, 1, Activation::LINEAR, LayerOptions::seed(3));
    let d = s.sub(z, y);
    let loss = s.mean(s.mul(d, d));
    let step = s.minimize(loss, &Momentum::new(0.05));
    let metrics = vec![s.mean_metric("square", s.mul(d, d))];
    let init = s.initializer("init").unwrap();
    s.finish().unwrap();
    let session = Session::new(&g, &["threads=1"]).unwrap();
    session.run(&[], &[], &[init]).unwrap();
    let model = TrainerModel { feeds: vec![x, y], inputs: 1, loss, step, metrics, predictions: vec![z], ..Default::default() };
    let mut trainer = Trainer::new(&g, &session, &model).unwrap();
    let xs: Vec<f32> = (0..100).flat_map(|i| [(i % 7) as f32 / 7., (i % 5) as f32 / 5.]).collect();
    let ys: Vec<f32> = xs.chunks(2).map(|r| 2. * r[0] - r[1]).collect();
    let (xs, ys) = (Tensor::from_vec(xs, &[100, 2]).unwrap(), Tensor::from_vec(ys, &[100, 1]).unwrap());
    let mut data = Batches::new(&[&xs, &ys], BatchOptions { size: 10, shuffle: true, ..Default::default() }).unwrap();
    let mut epochs = 0;
    let report = {
        let epoch_end: Box<dyn FnMut(&Progress) -> Result<bool>> = Box::new(|p| {
            epochs += 1;
            assert!(p.values.contains_key("square"));
            Ok(epochs == 30)
        });
        trainer.fit(&mut data, FitOptions { epochs: 40, epoch_end: Some(epoch_end), ..Default::default() }).unwrap()
    };
    let values = trainer.evaluate(&mut data).unwrap();
    assert!(report.stopped && report.steps == 300 && values["loss"] < 1e-3 && (values["loss"] - values["square"]).abs() < 1e-6, "{:?}", values);
    assert_eq!(trainer.predict(&mut data).unwrap()[0].shape(), &[100, 1]);
    let folder = std::env::temp_dir().join(format!("thalweg-crate-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let prefix = folder.join("model").to_str().unwrap().to_string();
    let saver = Saver::new(&g, &[]).unwrap();
    saver.save(&session, &prefix).unwrap();
    let checkpoint = Checkpoint::open(&prefix).unwrap();
    let kernel = checkpoint.read("layer/kernel").unwrap();
    assert!((kernel.data::<f32>().unwrap()[0] - 2.).abs() < 0.2 && checkpoint.names().len() >= 2);
    session.run(&[], &[], &[init]).unwrap();
    saver.restore(&session, &prefix).unwrap();
    assert_eq!(trainer.evaluate(&mut data).unwrap(), values);
    assert_eq!(Graph::import(&g.export().unwrap()).unwrap().len(), g.len());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn datasets_are_iterators() {
    let g = Graph::new().unwrap();
    let s = g.scope("");
    let d = s.range(0, 10, 1).filter(&s, |s, e| s.op("Greater", &[e[0], s.scalar(DType::INT64, 3.)]));
    let d = d.map(&s, |s, e| vec![s.mul(e[0], e[0])]).batch(&s, 4);
    s.finish().unwrap();
    let got: Vec<String> = d.batches(&g, &[]).unwrap().map(|b| format!("{:?}", b.unwrap()[0])).collect();
    assert_eq!(got, ["[16, 25, 36, 49]", "[64, 81]"]);
}

#[test]
fn a_model_file_runs_by_its_names() {
    let path = std::env::var("THALWEG_TEST_MODEL").unwrap_or_default();
    if !std::path::Path::new(&path).exists() {
        return eprintln!("skipped: no model file '{}'", path);
    }
    let m = Model::load_with(&path, &ModelOptions { session: &["threads=1"], ..Default::default() }).unwrap();
    assert_eq!(m.signatures()[0].inputs[0].name, "x");
    let x = Tensor::from_vec((0..60).map(|i| i as f32).collect(), &[3, 4, 5]).unwrap();
    assert_eq!(m.run(&[("x", &x), ("y", &x)]).unwrap()["sum"].data::<f32>().unwrap()[59], 118.);
    let e = m.run(&[("x", &x), ("z", &x)]).unwrap_err();
    assert!(e.code == Code::InvalidArgument && e.message.contains("'z'"), "{}", e);
}

/// A graph with a variable of 3: its initialisation and its read, as names.
fn counting() -> Graph {
    let g = Graph::new().unwrap();
    let s = g.scope("");
    let v = s.variable("v", s.scalar(DType::FLOAT, 3.));
    s.name("read", s.read(v));
    s.initializer("init").unwrap();
    s.finish().unwrap();
    g
}

/// Initialises the variable, empties the container with the function, and looks at what is left.
fn resets(g: &Graph, session: &Session, reset: &dyn Fn() -> Result<u64>) {
    let (init, read) = (g.operation("init").unwrap(), g.output("read").unwrap());
    for _ in 0..2 {
        session.run(&[], &[], &[init]).unwrap();
        assert_eq!(session.run(&[], &[read], &[]).unwrap()[0].item::<f32>().unwrap(), 3.);
        assert_eq!(reset().unwrap(), 1);
        assert_eq!(session.run(&[], &[read], &[]).unwrap_err().code, Code::FailedPrecondition);
    }
}

#[test]
fn containers_are_reset() {
    let g = counting();
    let (session, named) = (Session::new(&g, &[]).unwrap(), Session::new(&g, &["container=reset"]).unwrap());
    resets(&g, &session, &|| session.reset(""));
    resets(&g, &named, &|| session.reset("reset"));
    resets(&g, &named, &|| reset_container("reset"));
    assert_eq!(reset_container("nothing").unwrap(), 0);
    assert_eq!(reset_container("<graph").unwrap_err().code, Code::InvalidArgument);
}

#[test]
fn a_server_runs_a_session() {
    let server = Server::new(r#"{"worker": ["grpc:127.0.0.1:0"]}"#, "worker", 0, &["insecure=true"]).unwrap();
    match server.start() {
        Err(e) if e.code == Code::NotFound => return eprintln!("skipped: {}", e),
        started => started.unwrap(),
    }
    let (g, _session, x, y) = doubling();
    let target = format!("target={}", server.address().unwrap());
    let session = Session::new(&g, &[&target, "insecure=true"]).unwrap();
    let four = Tensor::scalar(4f32).unwrap();
    assert_eq!(session.run(&[(x, &four)], &[y], &[]).unwrap()[0].item::<f32>().unwrap(), 8.);
    drop(session);
    let (g, address) = (counting(), server.address().unwrap());
    let session = Session::new(&g, &[&target, "insecure=true", "container=reset"]).unwrap();
    resets(&g, &session, &|| reset_cluster(&address, "reset", Duration::from_secs(60), &["insecure=true"]));
    drop(session);
    server.stop().unwrap();
    server.join(Duration::from_secs(60)).unwrap();
}

/// A session with an operation that waits at an empty queue.
fn waiting() -> (Graph, Session, Output) {
    let g = Graph::new().unwrap();
    let s = g.scope("");
    let queue = ops::fifo_queue_v2(&s, &[DType::FLOAT]);
    let get = ops::queue_dequeue_v2(&s, queue, &[DType::FLOAT])[0];
    s.finish().unwrap();
    let session = Session::new(&g, &[]).unwrap();
    (g, session, get)
}

#[test]
fn runs_end_by_tokens_and_timeouts() {
    let (_g, session, get) = waiting();
    let cancel = CancelToken::new().unwrap();
    let other = cancel.clone();
    let thread = std::thread::spawn(move || other.cancel());
    let e = session.run_with(&[], &[get], &[], &RunOptions { cancel: Some(cancel.clone()), ..Default::default() }).unwrap_err();
    assert!(e.code == Code::Cancelled && cancel.is_cancelled(), "{}", e);
    thread.join().unwrap();
    let late = RunOptions { timeout: Some(Duration::from_millis(1)), ..Default::default() };
    assert_eq!(session.run_with(&[], &[get], &[], &late).unwrap_err().code, Code::DeadlineExceeded);
}

#[test]
fn callbacks_that_fail_end_the_loop() {
    let (g, session, x, y) = doubling();
    let s = g.scope("more");
    let v = s.variable("v", s.scalar(DType::FLOAT, 1.));
    let loss = s.mul(y, s.read(v));
    let (step, init) = (s.minimize(loss, &Sgd::default()), s.initializer("init").unwrap());
    s.finish().unwrap();
    session.run(&[], &[], &[init]).unwrap();
    let mut trainer = Trainer::new(&g, &session, &TrainerModel { feeds: vec![x], loss, step, ..Default::default() }).unwrap();
    let one = Tensor::scalar(1f32).unwrap();
    let endless = one.clone();
    let mut data = Batches::from_fn(1, move || Ok(Some(vec![endless.clone()])), None);
    let own = |p: &Progress| -> Result<bool> { Err(Error::new(Code::DataLoss, format!("mine at {}", p.step))) };
    let e = trainer.fit(&mut data, FitOptions { after_step: Some(Box::new(own)), ..Default::default() }).unwrap_err();
    assert!(e.code == Code::DataLoss && e.message == "mine at 1", "{}", e);
    std::panic::set_hook(Box::new(|_| ()));
    let panics = |_: &Progress| -> Result<bool> { panic!("out of cheese") };
    let e = trainer.fit(&mut data, FitOptions { after_step: Some(Box::new(panics)), ..Default::default() }).unwrap_err();
    assert!(e.message.contains("out of cheese"), "{}", e);
    let two = one.clone();
    let bad: Vec<(&str, Batches)> = vec![
        ("out of cheese", Batches::from_fn(1, || panic!("out of cheese"), None)),
        ("mine", Batches::from_fn(1, || Err(Error::new(Code::NotFound, "mine")), None)),
        ("2 tensors", Batches::from_fn(1, move || Ok(Some(vec![two.clone(), two.clone()])), None)),
        ("reset", Batches::from_fn(1, || Ok(None), Some(Box::new(|_| Err(Error::new(Code::Aborted, "no reset")))))),
    ];
    for (what, mut batches) in bad {
        let e = trainer.fit(&mut batches, FitOptions::default()).unwrap_err();
        assert!(e.message.contains(what), "{}: {}", what, e);
    }
    let _ = std::panic::take_hook();
}

type Call<'a> = Box<dyn Fn() -> Option<Error> + 'a>;

/// Each call is wrong; each must give an Error, and nothing may crash. What Rust refuses to compile is in tests/bindings/crate_test.py.
#[test]
fn misuse_is_an_error() {
    let (g, session, x, y) = doubling();
    let g = &g;
    let other = Graph::new().unwrap();
    let os = other.scope("");
    let foreign = os.scalar(DType::FLOAT, 1.);
    os.finish().unwrap();
    let (one, ints) = (Tensor::scalar(1f32).unwrap(), Tensor::new(&[1i32, 2], &[2]).unwrap());
    let words = Tensor::strings(&["a"], &[1]).unwrap();
    let closed = Session::new(g, &[]).unwrap();
    closed.close().unwrap();
    closed.close().unwrap();
    let step = session.callable(&[x], &[y], &[]).unwrap();
    let orphan = closed.callable(&[x], &[y], &[]).ok();
    let scoped = |f: &dyn Fn(&Scope<'_>)| {
        let s = g.scope("wrong");
        f(&s);
        s.finish().err()
    };
    let scoped = &scoped;
    let none = Output::default();
    let trainer = |m: TrainerModel<'_>| Trainer::new(g, &session, &m).err();
    let mut calls: Vec<Call> = vec![
        Box::new(|| Tensor::new(&[1f32, 2., 3.], &[2, 2]).err()),
        Box::new(|| Tensor::new(&[1f32], &[-1]).err()),
        Box::new(|| Tensor::new(&[1f32], &[1 << 62, 1 << 62]).err()),
        Box::new(|| Tensor::from_vec(vec![1f64], &[2]).err()),
        Box::new(|| Tensor::zeros::<f64>(&[1 << 40, 1 << 40]).err()),
        Box::new(|| Tensor::zeros::<f64>(&[-1]).err()),
        Box::new(|| Tensor::strings(&["a"], &[2]).err()),
        Box::new(|| one.data::<f64>().err()),
        Box::new(|| words.data::<u8>().err()),
        Box::new(|| one.clone().data_mut::<f32>().err()),
        Box::new(|| ints.item::<i32>().err()),
        Box::new(|| ints.string(0).err()),
        Box::new(|| words.string(1).err()),
        Box::new(|| ints.reshape(&[3]).err()),
        Box::new(|| ints.reshape(&[-1]).err()),
        Box::new(|| session.run(&[(x, &words)], &[y], &[]).err()),
        Box::new(|| session.run(&[(x, &ints)], &[y], &[]).err()),
        Box::new(|| session.run(&[], &[y], &[]).err()),
        Box::new(|| session.run(&[], &[none], &[]).err()),
        Box::new(|| session.run(&[], &[foreign], &[]).err()),
        Box::new(|| session.run(&[(x, &one), (x, &one)], &[y], &[]).err()),
        Box::new(|| closed.run(&[(x, &one)], &[y], &[]).err()),
        Box::new(|| step.run(&[]).err()),
        Box::new(|| step.run(&[&one, &one]).err()),
        Box::new(|| step.run(&[&words]).err()),
        Box::new(|| orphan.as_ref().map_or(Some(Error::new(Code::FailedPrecondition, "closed")), |c| c.run(&[&one]).err())),
        Box::new(|| session.callable(&[x, x], &[y], &[]).err()),
        Box::new(|| session.callable(&[foreign], &[y], &[]).err()),
        Box::new(|| Session::new(g, &["no_such_option=1"]).err()),
        Box::new(|| Session::new(g, &["threads=many"]).err()),
        Box::new(|| Session::new(g, &["threads=1\0"]).err()),
        Box::new(|| g.operation("nothing").err()),
        Box::new(|| g.operation("zero\0byte").err()),
        Box::new(|| g.output("y:7").err()),
        Box::new(|| g.output("y:").err()),
        Box::new(|| g.describe(none).err()),
        Box::new(|| g.describe(foreign).err()),
        Box::new(|| Graph::import(b"no graph").err()),
        Box::new(move || scoped(&|s| drop(s.op("NoSuchOp", &[])))),
        Box::new(move || scoped(&|s| drop(s.op("Add", &[x])))),
        Box::new(move || scoped(&|s| drop(s.add(none, none)))),
        Box::new(move || scoped(&|s| drop(s.add(foreign, foreign)))),
        Box::new(move || scoped(&|s| drop(s.scalar(DType(999), 1.)))),
        Box::new(move || scoped(&|s| drop(s.dense("d", x, 3, Activation::RELU, LayerOptions::default())))),
        Box::new(move || scoped(&|s| drop(s.activation(Activation(99), x)))),
        Box::new(move || scoped(&|s| drop(s.flatten(none)))),
        Box::new(move || scoped(&|s| drop(s.minimize(y, &Sgd::default())))),
        Box::new(move || scoped(&|s| drop(s.apply(&Sgd::default(), &[x], &[])))),
        Box::new(move || scoped(&|s| drop(s.begin("Add", Some("y"))) /* begun and not ended */).or_else(|| Some(Error::new(Code::Aborted, "")))),
        Box::new(move || scoped(&|s| drop(s.range(0, 3, 1).map(s, |_, _| vec![])))),
        Box::new(move || scoped(&|s| s.fail(Error::new(Code::DataLoss, "own")))),
    ];
    calls.push(Box::new(|| Batches::new(&[&one], BatchOptions::default()).err()));
    calls.push(Box::new(|| Batches::new(&[], BatchOptions::default()).err()));
    calls.push(Box::new(|| Batches::new(&[&ints], BatchOptions { size: -1, ..Default::default() }).err()));
    calls.push(Box::new(|| Batches::new(&[&ints], BatchOptions::default()).unwrap().reset(-1).err()));
    calls.push(Box::new(|| Batches::from_fn(1, || Ok(None), None).reset(0).err()));
    calls.push(Box::new(|| Dataset(none).batches(g, &[]).err()));
    calls.push(Box::new(|| trainer(TrainerModel::default())));
    calls.push(Box::new(|| trainer(TrainerModel { feeds: vec![x], metrics: vec![Metric { name: "m".into(), value: y, update: None, reset: None }], ..Default::default() })));
    calls.push(Box::new(|| Saver::new(g, &[foreign]).err()));
    calls.push(Box::new(|| Checkpoint::open("/no/such/place").err()));
    calls.push(Box::new(|| Checkpoint::write("/no/such/place", &[("a", &one)]).err()));
    calls.push(Box::new(|| Model::load("/no/such/file.onnx").err()));
    calls.push(Box::new(|| Server::new("no json", "", 0, &[]).err()));
    calls.push(Box::new(|| reset_container("a\0b").err()));
    calls.push(Box::new(|| reset_cluster("", "", Duration::ZERO, &[]).err()));
    calls.push(Box::new(|| load_plugin("/no/such/plugin.so").err()));
    calls.push(Box::new(|| read_csv("/no/such/file.csv").err()));
    assert!(calls.len() >= 50);
    for (i, call) in calls.iter().enumerate() {
        match call() {
            Some(e) => assert!(!e.message.is_empty() || e.code == Code::Aborted, "call {}", i),
            None => panic!("call {} did not fail", i),
        }
    }
    assert_eq!(step.run(&[&one]).unwrap()[0].item::<f32>().unwrap(), 2.); // nothing of it did harm
}

#[test]
fn threads_share_a_session() {
    fn shared<T: Send + Sync>() {}
    fn moved<T: Send>() {}
    shared::<Tensor>();
    shared::<Graph>();
    shared::<Session>();
    shared::<Callable<'_>>();
    shared::<Model>();
    shared::<Operation<'_>>();
    shared::<Saver<'_>>();
    shared::<Server>();
    shared::<CancelToken>();
    moved::<Scope<'_>>();
    moved::<Batches>();
    moved::<Trainer<'_>>();
    let (_g, session, x, y) = doubling();
    let session = Arc::new(session);
    let threads: Vec<_> = (0..8)
        .map(|i| {
            let session = session.clone();
            std::thread::spawn(move || {
                let step = session.callable(&[x], &[y], &[])?;
                for k in 0..200 {
                    let value = (i * 1000 + k) as f32;
                    assert_eq!(step.run(&[&Tensor::scalar(value)?])?[0].item::<f32>()?, 2. * value);
                    if i == 7 && k == 150 {
                        session.close()?; // while the others run
                    }
                }
                Ok(())
            })
        })
        .collect();
    for thread in threads {
        let result: Result<()> = thread.join().unwrap();
        assert!(result.map_or_else(|e| e.code == Code::FailedPrecondition, |_| true));
    }
}

fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
fn nothing_leaks() {
    let (_g, session, x, y) = doubling();
    let round = || {
        for _ in 0..50 {
            let tensor = Tensor::from_vec(vec![0f32; 1 << 16], &[1 << 16]).unwrap();
            let _view = tensor.reshape(&[2, 1 << 15]).unwrap();
            session.run(&[(x, &Tensor::scalar(1f32).unwrap())], &[y], &[]).unwrap();
            let g = Graph::new().unwrap();
            g.scope("").scalar(DType::FLOAT, 1.);
            let _ = g.operation("nothing");
            let _ = Batches::from_fn(1, || Ok(None), None);
        }
    };
    round();
    round();
    let before = resident();
    (0..20).for_each(|_| round()); // 1,000 tensors of 256 KiB
    assert!(resident().saturating_sub(before) < 64 << 20, "{} bytes more", resident() - before);
}

extern "C" {
    fn fork() -> i32;
    fn waitpid(child: i32, status: *mut i32, options: i32) -> i32;
    fn _exit(status: i32) -> !;
}

/// Is run alone, by its name, because a fork takes only its own thread along.
#[test]
#[ignore]
fn a_fork_goes_on() {
    let (_g, session, x, y) = doubling();
    let step = session.callable(&[x], &[y], &[]).unwrap();
    let runs = |value: f32| step.run(&[&Tensor::scalar(value)?])?[0].item::<f32>().map(|got| got == 2. * value);
    assert!(runs(1.).unwrap());
    let child = unsafe { fork() };
    if child == 0 {
        let well = (0..50).all(|i| runs(i as f32).unwrap_or(false)) && doubling().1.run(&[], &[y], &[]).is_err();
        unsafe { _exit(if well { 7 } else { 1 }) }
    }
    let mut status = 0;
    assert!(runs(2.).unwrap());
    assert_eq!(unsafe { waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 7 << 8);
}

/// Is run alone, by its name.
#[test]
#[ignore]
fn cost() {
    let (_g, session, x, y) = doubling();
    let step = session.callable(&[x], &[y], &[]).unwrap();
    let one = Tensor::scalar(1f32).unwrap();
    let mut best = [u128::MAX; 2];
    for _ in 0..40 {
        let began = Instant::now();
        (0..5000).for_each(|_| assert_eq!(one.len(), 1));
        best[0] = best[0].min(began.elapsed().as_nanos() / 5000);
        let began = Instant::now();
        (0..5000).for_each(|_| drop(step.run(&[&one]).unwrap()));
        best[1] = best[1].min(began.elapsed().as_nanos() / 5000);
    }
    println!("cost rank {} run {}", best[0], best[1]);
}
