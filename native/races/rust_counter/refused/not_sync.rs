//! A counter that may change behind a shared reference. The compiler refuses it as a global: it is not `Sync`.

use std::cell::Cell;

static COUNTER: Cell<i64> = Cell::new(0);

pub fn increment() {
    COUNTER.set(COUNTER.get() + 1);
}
