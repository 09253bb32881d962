//! The state of a Python object that threads share.

use std::sync::Mutex;

use pyo3::prelude::*;

use crate::batch::{Fault, guarded};

/// A value that threads share under a lock. If a call panics, that call and all later calls fail.
pub struct Shared<T> {
    value: Mutex<T>,
    // The name of the value in error messages.
    name: &'static str,
}

impl<T: Send> Shared<T> {
    /// Wraps a value; error messages call it `name`.
    pub fn new(name: &'static str, value: T) -> Shared<T> {
        Shared { value: Mutex::new(value), name }
    }

    /// Returns whether a call has panicked.
    pub fn is_broken(&self) -> bool {
        self.value.is_poisoned()
    }

    /// Runs `work` with the interpreter's lock released.
    pub fn with<F: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut T) -> F + Send) -> PyResult<F> {
        // After a panic, the lock is poisoned.
        self.settled(py, py.detach(|| guarded(|| self.value.lock().ok().map(|mut value| work(&mut value)))))
    }

    /// Runs `work`, which must take only about a microsecond. If no other thread uses the value, the interpreter's
    /// lock is not released, since getting that lock back from a busy thread may take milliseconds.
    pub fn briefly<F: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut T) -> F + Send) -> PyResult<F> {
        match self.value.try_lock() {
            Ok(mut value) => self.settled(py, guarded(move || Some(work(&mut value)))),
            Err(_) => self.with(py, work),
        }
    }

    fn settled<F>(&self, py: Python<'_>, done: Result<Option<F>, Fault>) -> PyResult<F> {
        let fault = match done {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => "an earlier call failed in the middle of a change".to_owned(),
            Err(Fault(place)) => place,
        };
        let class = py.import("esdedup.errors")?.getattr("EsdedupError")?;
        Err(PyErr::from_value(class.call1((format!("{} has failed: {fault}", self.name),))?))
    }
}
