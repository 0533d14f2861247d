//! Every interleaving of two threads, tried by loom: `loom_model CASE` prints one JSON object.
//!
//! {"executions": how many were tried, "failure": what went wrong in the last one, or null}

#[path = "../../rust_counter/src/counter.rs"]
mod counter;

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use loom::sync::atomic::{
    AtomicI64,
    Ordering::{self, Acquire, Relaxed, Release},
};
use loom::sync::{Arc, Mutex};
use loom::thread;

use counter::{Counter, FetchAdd, Locked, LoadThenStore};

static EXECUTIONS: AtomicUsize = AtomicUsize::new(0);

fn count(make: fn() -> Box<dyn Counter>) {
    let counter: Arc<Box<dyn Counter>> = Arc::new(make());
    let other = counter.clone();
    let thread = thread::spawn(move || other.add());
    counter.add();
    thread.join().unwrap();
    assert_eq!(counter.value(), 2, "two threads added one each");
}

// [publish]
/// One thread writes data and raises a flag, the other one reads once it sees the flag.
fn publish(raise: Ordering, look: Ordering) {
    let message = Arc::new((AtomicI64::new(0), AtomicI64::new(0)));
    let other = message.clone();
    let thread = thread::spawn(move || {
        other.0.store(42, Relaxed);
        other.1.store(1, raise);
    });
    if message.1.load(look) == 1 {
        let data = message.0.load(Relaxed);
        assert_eq!(data, 42, "the flag was seen, and the data was not");
    }
    thread.join().unwrap();
}
// [/publish]

fn main() {
    let case = std::env::args().nth(1).unwrap_or_default();
    let model: fn() = match case.as_str() {
        "load then store" => || count(|| Box::new(LoadThenStore(AtomicI64::new(0)))),
        "fetch_add" => || count(|| Box::new(FetchAdd(AtomicI64::new(0)))),
        "Mutex" => || count(|| Box::new(Locked(Mutex::new(0)))),
        "publish, Relaxed" => || publish(Relaxed, Relaxed),
        "publish, Release and Acquire" => || publish(Release, Acquire),
        _ => {
            eprintln!("there is no case {case:?}");
            std::process::exit(2);
        }
    };
    std::panic::set_hook(Box::new(|_| {})); // the failure goes into the answer
    let outcome = std::panic::catch_unwind(|| {
        loom::model(move || {
            EXECUTIONS.fetch_add(1, SeqCst);
            model();
        })
    });
    let failure = outcome.err().map(|reason| {
        let text = reason.downcast_ref::<String>().cloned();
        text.or_else(|| reason.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or("it failed".into())
    });
    let failure = failure.map_or("null".into(), |text| format!("{text:?}"));
    println!("{{\"executions\": {}, \"failure\": {failure}}}", EXECUTIONS.load(SeqCst));
}
