//! Work on the texts of a batch, of which none can stop the others.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// A text at which the crate failed: a mistake in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The position of the text in the batch.
    pub position: usize,
    /// What the mistake is.
    pub message: String,
}

/// Returns what `work` makes of each item, in their order, or the first failure.
pub fn each<I, T>(
    items: impl IntoIterator<Item = I>,
    mut work: impl FnMut(I) -> T,
) -> Result<Vec<T>, Failure> {
    let results = items.into_iter().enumerate().map(|(position, item)| {
        // What `work` keeps between items is memory that it clears first.
        catch_unwind(AssertUnwindSafe(|| work(item)))
            .map_err(|panic| Failure { position, message: message(panic.as_ref()) })
    });
    results.collect()
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|each| (*each).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "unknown".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_names_the_position_of_its_text() {
        let found = each(["one", "two", "three"], |text| {
            assert!(text != "two", "cannot read {text}");
            text.len()
        });
        assert_eq!(found, Err(Failure { position: 1, message: "cannot read two".to_owned() }));
        assert_eq!(each(["one"], str::len), Ok(vec![3]));
    }
}
