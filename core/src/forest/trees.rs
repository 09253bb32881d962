//! Links the rows of each tree, to enumerate the leaves of a root.

use super::chunks::Chunks;

/// Rings of rows: each row links to the next and the previous row of its tree, or to itself if the tree has one row.
#[derive(Default)]
pub struct Trees {
    rings: Chunks<[u32; 2]>,
}

impl Trees {
    /// Returns the memory used by the rings.
    pub fn size_bytes(&self) -> usize {
        self.rings.size_bytes()
    }

    /// Adds a row to the tree of its root. The row is either the next unused number or a removed row.
    pub fn add(&mut self, row: u32, root: u32) {
        if self.rings.len() == row as usize {
            self.rings.push([row, row]);
        }
        let next = self.rings[root as usize][0];
        self.rings[row as usize] = [next, root];
        self.rings[next as usize][1] = row;
        self.rings[root as usize][0] = row;
    }

    /// Removes a row from its tree.
    pub fn remove(&mut self, row: u32) {
        let [next, previous] = self.rings[row as usize];
        self.rings[previous as usize][0] = next;
        self.rings[next as usize][1] = previous;
        self.rings[row as usize] = [row, row];
    }

    /// Returns the other rows in the tree of a root.
    pub fn leaves(&self, root: u32) -> impl Iterator<Item = u32> + '_ {
        let next = move |row: &u32| Some(self.rings[*row as usize][0]).filter(|next| *next != root);
        std::iter::successors(next(&root), next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_leaves_are_listed_until_they_are_removed() {
        let mut trees = Trees::default();
        for (row, root) in [(0, 0), (1, 0), (2, 2), (3, 0), (4, 2)] {
            trees.add(row, root);
        }
        let leaves = |trees: &Trees, root| trees.leaves(root).collect::<Vec<_>>();
        assert_eq!((leaves(&trees, 0), leaves(&trees, 2)), (vec![3, 1], vec![4]));
        trees.remove(1);
        trees.remove(4);
        assert_eq!((leaves(&trees, 0), leaves(&trees, 2)), (vec![3], vec![]));
        trees.add(4, 0);
        // A root may be removed before its leaves.
        trees.remove(0);
        trees.add(0, 2);
        trees.remove(3);
        assert_eq!((leaves(&trees, 2), leaves(&trees, 4)), (vec![0], vec![]));
    }
}
