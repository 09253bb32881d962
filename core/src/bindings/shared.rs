//! A Python object that threads share.

use std::sync::Mutex;

use pyo3::prelude::*;

use crate::batch::{Fault, guarded};

/// An object that threads share under a lock. After a panic, this call and all later ones fail.
pub struct Shared<T> {
    /// The object.
    pub held: Mutex<T>,
    // What error messages call it.
    name: &'static str,
}

impl<T: Send> Shared<T> {
    /// Wraps an object; error messages call it by `name`.
    pub fn new(name: &'static str, held: T) -> Shared<T> {
        Shared { held: Mutex::new(held), name }
    }

    /// Does work with the interpreter's lock released.
    pub fn with<F: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut T) -> F + Send) -> PyResult<F> {
        // After a panic, the lock is poisoned.
        self.settled(py, py.detach(|| guarded(|| self.held.lock().ok().map(|mut held| work(&mut held)))))
    }

    /// Does work of about a microsecond without releasing the interpreter's lock, if no other thread holds the object:
    /// to get that lock back from a busy thread may take milliseconds.
    pub fn briefly<F: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut T) -> F + Send) -> PyResult<F> {
        match self.held.try_lock() {
            Ok(mut held) => self.settled(py, guarded(move || Some(work(&mut held)))),
            Err(_) => self.with(py, work),
        }
    }

    fn settled<F>(&self, py: Python<'_>, done: Result<Option<F>, Fault>) -> PyResult<F> {
        let fault = match done {
            Ok(Some(found)) => return Ok(found),
            Ok(None) => "an earlier call was stopped in the middle of a change".to_owned(),
            Err(Fault(place)) => place,
        };
        let class = py.import("esdedup.errors")?.getattr("EsdedupError")?;
        Err(PyErr::from_value(class.call1((format!("{} has failed: {fault}", self.name),))?))
    }
}
