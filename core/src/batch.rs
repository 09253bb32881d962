//! Processes the texts of a batch in several threads. A failure on one text does not affect the others.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

/// The place where the crate panicked, as `FILE:LINE`. The panic's message is dropped, since it may quote the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault(pub String);

thread_local! {
    /// The place where this thread panicked; `None` outside [`guarded`].
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Returns the result of `work`, or the place where it panics, without printing the panic.
pub fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, Fault> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            PLACE.with_borrow_mut(|place| match (place, panic.location()) {
                (Some(place), Some(at)) => *place = format!("{}:{}", at.file(), at.line()),
                _ => usual(panic),
            });
        }));
    });
    PLACE.set(Some(String::new()));
    // This is unwind safe: `work` clears the memory that it reuses, and a panic poisons its locks.
    let result = catch_unwind(AssertUnwindSafe(work));
    let place = PLACE.take().filter(|place| !place.is_empty());
    result.map_err(|_| Fault(place.unwrap_or_else(|| "an unknown place".to_owned())))
}

/// Returns the results of `work` for the items, in order. The items are divided among `threads` threads, or fewer if
/// the system cannot start so many.
pub fn each<I: Sync, T: Send>(
    items: &[I],
    threads: usize,
    work: impl Fn(&I) -> T + Sync,
) -> Vec<Result<T, Fault>> {
    let next = AtomicUsize::new(0);
    // Texts differ in length by a factor of a thousand, so each thread takes the next text when it has finished one.
    let share = || {
        let mut done = Vec::new();
        loop {
            let position = next.fetch_add(1, Relaxed);
            let Some(item) = items.get(position) else { return done };
            done.push((position, guarded(|| work(item))));
        }
    };
    let shared = || {
        thread::scope(|scope| {
            let begin = |_| thread::Builder::new().spawn_scoped(scope, share).ok();
            let others: Vec<_> = (1..threads.min(items.len())).map_while(begin).collect();
            let mut done = share();
            done.extend(others.into_iter().flat_map(|other| other.join().expect("each text is guarded")));
            done.sort_unstable_by_key(|(position, _)| *position);
            done
        })
    };
    // Entering a scope, even without threads, takes as long as processing a short text.
    let done = if threads.min(items.len()) < 2 { share() } else { shared() };
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_text_does_not_stop_the_batch_and_is_not_quoted() {
        let texts: Vec<String> = (0..100).map(|number| format!("{number}é")).collect();
        for threads in [1, 4] {
            let found = each(&texts, threads, |text| text[..text.len() % 4 + 2].len());
            for (position, result) in found.into_iter().enumerate() {
                match result {
                    Ok(length) => assert!(position >= 10 && length == 2, "{position}"),
                    Err(Fault(place)) => {
                        assert!(position < 10 && place.starts_with("src/batch.rs:"), "{place}")
                    }
                }
            }
        }
        let nothing: [Result<(), Fault>; 0] = [];
        assert_eq!(each(&[(); 0], 4, |()| ()), nothing);
    }

    #[test]
    fn several_threads_return_the_same_results_as_one() {
        let numbers: Vec<usize> = (0..1_000).collect();
        let found = each(&numbers, 8, |number| {
            assert!(*number % 3 > 0, "a fault");
            number.to_string().len()
        });
        for (number, result) in found.into_iter().enumerate() {
            assert_eq!(result.ok(), (number % 3 > 0).then_some(number.to_string().len()));
        }
    }
}
