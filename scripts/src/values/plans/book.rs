//! What rounds by shares remember between decisions, as text: private memory of a script is plain data.
//!
//! `2 1920 0 360 180 9f3a;4=0.5,,;0.25,180,-3.5 4+7=…;` : types, when accounts were opened, when the last plan was made, what accounts
//! begin with, what the shares depend on; then the entries, with share, received beyond the beginning and deficit for each type.

use std::collections::BTreeMap;
use std::fmt::Write;

use rota_core::by_share::Account;

/// A job, or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Who {
    /// Its number.
    pub(super) first: u32,
    /// That of the other.
    pub(super) second: Option<u32>,
}

/// All accounts. Who has none is due nothing, has received what accounts begin with, and is owed nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Book {
    pub(super) n_types: usize,
    /// When the accounts were opened.
    pub(super) opened_s: Option<f64>,
    /// When the last plan was made.
    pub(super) last_s: Option<f64>,
    /// Seconds received that accounts begin with.
    pub(super) begin_s: f64,
    /// What the shares were computed for.
    pub(super) cause: Option<u64>,
    /// For how long accounts stay open at least; not written down.
    pub(super) reset_s: f64,
    pub(super) entries: BTreeMap<Who, Vec<Account>>,
}

impl Who {
    pub(super) fn alone(job: u32) -> Self {
        Who { first: job, second: None }
    }

    pub(super) fn pair(a: u32, b: u32) -> Self {
        Who { first: a.min(b), second: Some(a.max(b)) }
    }

    pub(super) fn ids(self) -> impl Iterator<Item = u32> {
        std::iter::once(self.first).chain(self.second)
    }
}

impl Book {
    /// The accounts of somebody, one for each type.
    pub(super) fn entry(&mut self, who: Who) -> &mut [Account] {
        let fresh = Account { received_s: self.begin_s, ..Account::default() };
        self.entries.entry(who).or_insert_with(|| vec![fresh; self.n_types])
    }

    /// Closes the accounts, which were open for so long, and opens them anew. Pairs are formed anew too.
    pub(super) fn reopen(&mut self, open_s: f64) {
        for account in self.entries.values_mut().flatten() {
            account.reopen(open_s, self.begin_s);
        }
        self.entries.retain(|who, _| who.second.is_none());
    }

    pub(super) fn clear_shares(&mut self) {
        self.entries.values_mut().flatten().for_each(|account| account.share = 0.0);
    }

    pub(super) fn write(&self) -> String {
        let mut text = format!(
            "{} {} {} {} ",
            self.n_types,
            optional(self.opened_s),
            optional(self.last_s),
            self.begin_s
        );
        if let Some(cause) = self.cause {
            let _ = write!(text, "{cause:x}");
        }
        text.push(';');
        for (who, accounts) in &self.entries {
            let _ = match who.second {
                None => write!(text, "{}=", who.first),
                Some(second) => write!(text, "{}+{second}=", who.first),
            };
            for account in accounts {
                for number in [account.share, account.received_s - self.begin_s, account.deficit_s] {
                    // Most are 0.
                    if number != 0.0 {
                        let _ = write!(text, "{number}");
                    }
                    text.push(',');
                }
            }
            text.push(' ');
        }
        text
    }

    /// The book in a text; an empty one in an empty text, nothing in one that was not written here.
    pub(super) fn read(text: &str) -> Option<Book> {
        if text.is_empty() {
            return Some(Book::default());
        }
        let (head, entries) = text.split_once(';')?;
        let [n_types, opened, last, begin, cause] = head.split(' ').collect::<Vec<_>>()[..] else {
            return None;
        };
        let maybe = |text: &str| match text {
            "-" => Some(None),
            number => number.parse::<f64>().ok().filter(|number| number.is_finite()).map(Some),
        };
        let mut book = Book {
            n_types: n_types.parse().ok().filter(|n| *n <= 1000)?,
            opened_s: maybe(opened)?,
            last_s: maybe(last)?,
            begin_s: maybe(begin)??,
            cause: if cause.is_empty() { None } else { Some(u64::from_str_radix(cause, 16).ok()?) },
            ..Book::default()
        };
        for entry in entries.split_ascii_whitespace() {
            let (who, numbers) = entry.split_once('=')?;
            let who = match who.split_once('+') {
                None => Who::alone(who.parse().ok()?),
                Some((first, second)) => Who::pair(first.parse().ok()?, second.parse().ok()?),
            };
            let number = |text: &str| if text.is_empty() { Some(0.0) } else { maybe(text)? };
            let numbers: Vec<f64> =
                numbers.strip_suffix(',')?.split(',').map(number).collect::<Option<_>>()?;
            if numbers.len() != 3 * book.n_types {
                return None;
            }
            let begin_s = book.begin_s;
            let account = |of: &[f64]| Account {
                share: of[0],
                received_s: begin_s + of[1],
                deficit_s: of[2],
                ..Account::default()
            };
            book.entries.insert(who, numbers.chunks(3).map(account).collect());
        }
        Some(book)
    }
}

fn optional(number: Option<f64>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_book_is_read_as_it_was_written() {
        let mut book = Book { n_types: 2, begin_s: 180.0, ..Book::default() };
        assert_eq!(Book::read(&book.write()), Some(book.clone()));
        (book.opened_s, book.last_s, book.cause) = (Some(0.0), Some(1920.25), Some(u64::MAX));
        book.entry(Who::alone(7))[1] =
            Account { share: 0.1 + 0.2, received_s: 540.0, deficit_s: -1e-7, ..Account::default() };
        book.entry(Who::pair(9, 3))[0].share = 1.0;
        assert_eq!(Book::read(&book.write()), Some(book));
        for odd in ["x", "2 - - 180;", "2 - - 180 ;7=1", "2 - - 180 ;7=1,,,", "2 - - NaN ;", "2 - - 180 q;"] {
            assert_eq!(Book::read(odd), None, "{odd}");
        }
        assert_eq!(Book::read(""), Some(Book::default()));
    }

    #[test]
    fn what_was_due_and_not_received_is_owed_when_accounts_are_opened_anew() {
        let mut book = Book { n_types: 1, begin_s: 180.0, ..Book::default() };
        book.entry(Who::alone(0))[0].share = 0.5;
        book.entry(Who::alone(1))[0] =
            Account { share: 0.5, received_s: 180.0 + 1000.0, ..Account::default() };
        book.reopen(1000.0);
        let accounts = [0, 1].map(|job| book.entry(Who::alone(job))[0]);
        let numbers = accounts.map(|account| (account.received_s, account.deficit_s));
        assert_eq!(numbers, [(180.0, 500.0), (180.0, -500.0)]);
    }
}
