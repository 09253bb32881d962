//! A table of two periods, with changes that can be undone.

use super::table::Table;

/// Keys and their numbers in the order in which they were put; of a key that comes several times, the last counts.
#[derive(Clone, Default, Debug)]
pub struct Puts<const C: usize> {
    /// The keys.
    pub keys: Vec<u64>,
    /// Their numbers.
    pub numbers: Vec<[u32; C]>,
}

impl<const C: usize> Puts<C> {
    /// Returns those from one on.
    pub fn since(&self, start: usize) -> Puts<C> {
        Puts { keys: self.keys[start..].to_vec(), numbers: self.numbers[start..].to_vec() }
    }

    /// Returns each key with its numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u64, [u32; C])> + '_ {
        self.keys.iter().copied().zip(self.numbers.iter().copied())
    }
}

impl<const C: usize> FromIterator<(u64, [u32; C])> for Puts<C> {
    fn from_iter<I: IntoIterator<Item = (u64, [u32; C])>>(puts: I) -> Self {
        let (keys, numbers) = puts.into_iter().unzip();
        Puts { keys, numbers }
    }
}

/// The table of the present period and of the one before: what the present one has counts.
#[derive(Default, Debug)]
pub struct Periods<const C: usize> {
    present: Table<C>,
    former: Table<C>,
    // While changes are recorded: what was put, the numbers before, and the tables that were forgotten, each with
    // how much had been put by then.
    puts: Puts<C>,
    before: Vec<[u32; C]>,
    forgotten: Vec<(usize, Table<C>)>,
}

/// A moment, to which changes can be undone.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    puts: usize,
    forgotten: usize,
}

impl<const C: usize> Periods<C> {
    /// Returns the memory of both tables.
    pub fn size_bytes(&self) -> usize {
        self.present.size_bytes() + self.former.size_bytes()
    }

    /// Returns the latest numbers of a key.
    #[inline]
    pub fn get(&self, key: u64) -> Option<[u32; C]> {
        self.present.get(key).or_else(|| self.former.get(key))
    }

    /// Sets the numbers of a key in the present period.
    pub fn put(&mut self, key: u64, numbers: [u32; C], is_recorded: bool) {
        let before = self.present.put(key, numbers);
        if is_recorded {
            self.puts.keys.push(key);
            self.puts.numbers.push(numbers);
            self.before.push(before);
        }
    }

    /// Forgets the former period; the present one takes its place.
    pub fn begin_period(&mut self, is_recorded: bool) {
        let following = self.present.emptied();
        let present = std::mem::replace(&mut self.present, following);
        let forgotten = std::mem::replace(&mut self.former, present);
        if is_recorded {
            self.forgotten.push((self.before.len(), forgotten));
        }
    }

    /// Returns all keys and their latest numbers.
    pub fn all(&self) -> impl Iterator<Item = (u64, [u32; C])> + '_ {
        let former = self.former.iter().filter(|(key, _)| self.present.get(*key).is_none());
        self.present.iter().chain(former)
    }

    /// Returns this moment.
    pub fn moment(&self) -> Moment {
        Moment { puts: self.before.len(), forgotten: self.forgotten.len() }
    }

    /// Returns what was put since a moment.
    pub fn puts_since(&self, moment: Moment) -> Puts<C> {
        self.puts.since(moment.puts)
    }

    /// Undoes all changes since a moment.
    pub fn undo_to(&mut self, moment: Moment) {
        while self.forgotten.len() > moment.forgotten {
            if let Some((puts, former)) = self.forgotten.pop() {
                self.undo_puts(puts);
                self.present = std::mem::replace(&mut self.former, former);
            }
        }
        self.undo_puts(moment.puts);
    }

    fn undo_puts(&mut self, count: usize) {
        let changed = self.puts.keys[count..].iter().zip(&self.before[count..]);
        for (key, numbers) in changed.rev() {
            self.present.put(*key, *numbers);
        }
        self.puts.keys.truncate(count);
        self.puts.numbers.truncate(count);
        self.before.truncate(count);
    }

    /// Forgets what was recorded: it can no longer be undone.
    pub fn keep(&mut self) {
        self.puts = Puts::default();
        self.before = Vec::new();
        self.forgotten = Vec::new();
    }
}
