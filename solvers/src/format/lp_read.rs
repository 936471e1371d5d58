//! Reading LP text, as CPLEX, HiGHS and others write it for linear models.
//!
//! A variable exists from its first mention, is continuous and not negative unless a section says otherwise.

use std::collections::{HashMap, HashSet};

use super::lp_lexer::{Section, Token, Word, words};
use crate::error::{ModelError, ReadError};
use crate::model::{Kind, Model, Sense, Variable};

/// Reads LP text.
pub fn read_lp(text: &str) -> Result<Model, ReadError> {
    let tokens = words(text)?;
    let mut reader = Reader { tokens: &tokens, at: 0, draft: Draft::default() };
    reader.objective()?;
    loop {
        let token = reader.next();
        match token.word {
            Word::Section(Section::Rows) => reader.rows()?,
            Word::Section(Section::Bounds) => reader.bounds()?,
            Word::Section(Section::Integers) => reader.kinds(Section::Integers)?,
            Word::Section(Section::Binaries) => reader.kinds(Section::Binaries)?,
            Word::Section(Section::End) => return reader.draft.finish(),
            Word::End => return Err(token.error("the word End before the end of the text")),
            _ => return Err(token.error("a section: Subject To, Bounds, General, Binary or End")),
        }
    }
}

struct VariableDraft<'a> {
    name: &'a str,
    /// Where it was last spoken of.
    token: Token<'a>,
    kind: Kind,
    lower: f64,
    upper: f64,
    cost: f64,
}

struct RowDraft<'a> {
    token: Token<'a>,
    /// Without a label, a name is found at the end.
    label: Option<&'a str>,
    lower: f64,
    upper: f64,
    terms: Vec<(usize, f64)>,
}

#[derive(Default)]
struct Draft<'a> {
    is_maximize: bool,
    offset: f64,
    variables: Vec<VariableDraft<'a>>,
    index: HashMap<&'a str, usize>,
    rows: Vec<RowDraft<'a>>,
}

/// A sum as read: terms and a constant.
#[derive(Default)]
struct Linear {
    terms: Vec<(usize, f64)>,
    constant: f64,
}

/// A sum and the bounds written next to it.
#[derive(Default)]
struct Comparison {
    terms: Vec<(usize, f64)>,
    lower: Option<f64>,
    upper: Option<f64>,
}

struct Reader<'a, 't> {
    tokens: &'t [Token<'a>],
    at: usize,
    draft: Draft<'a>,
}

impl<'a> Reader<'a, '_> {
    fn peek(&self) -> Token<'a> {
        // the last token is `End` and is never passed
        self.tokens[self.at.min(self.tokens.len() - 1)]
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at += 1;
        token
    }

    /// Whether a label follows.
    fn is_label(&self) -> bool {
        matches!(self.peek().word, Word::Name(_))
            && self.tokens.get(self.at + 1).is_some_and(|token| token.word == Word::Colon)
    }

    fn label(&mut self) -> Option<Token<'a>> {
        let label = self.is_label().then(|| self.peek());
        if label.is_some() {
            self.at += 2;
        }
        label
    }

    fn objective(&mut self) -> Result<(), ReadError> {
        let token = self.next();
        self.draft.is_maximize = match token.word {
            Word::Section(Section::Maximize) => true,
            Word::Section(Section::Minimize) => false,
            _ => return Err(token.error("Minimize or Maximize")),
        };
        self.label();
        let token = self.peek();
        let linear = self.linear()?;
        if !linear.constant.is_finite() {
            return Err(token.error("a finite constant in the objective"));
        }
        self.draft.offset = linear.constant;
        for (variable, coefficient) in linear.terms {
            self.draft.variables[variable].cost += coefficient;
        }
        Ok(())
    }

    /// Terms up to something that is none: a section, a comparison, a label, the end.
    fn linear(&mut self) -> Result<Linear, ReadError> {
        let mut linear = Linear::default();
        loop {
            let first = self.peek();
            let mut sign = 1.0;
            while let Word::Plus | Word::Minus = self.peek().word {
                if self.next().word == Word::Minus {
                    sign = -sign;
                }
            }
            let is_signed = self.peek().line != first.line || self.peek().column != first.column;
            if !is_signed && self.is_label() {
                return Ok(linear);
            }
            match self.peek().word {
                Word::Number(number) => {
                    let token = self.next();
                    if matches!(self.peek().word, Word::Name(_)) && !self.is_label() {
                        let variable = self.mention();
                        if !number.is_finite() {
                            return Err(token.error("a finite number"));
                        }
                        linear.terms.push((variable, sign * number));
                    } else {
                        linear.constant += sign * number;
                    }
                }
                Word::Name(_) => {
                    let variable = self.mention();
                    linear.terms.push((variable, sign));
                }
                _ if is_signed => return Err(self.peek().error("a number or a variable after the sign")),
                _ => return Ok(linear),
            }
        }
    }

    /// The variable named here, made on first mention.
    fn mention(&mut self) -> usize {
        let token = self.next();
        let next = self.draft.variables.len();
        let index = *self.draft.index.entry(token.text).or_insert(next);
        if index == next {
            let (lower, upper) = (0.0, f64::INFINITY);
            self.draft.variables.push(VariableDraft {
                name: token.text,
                token,
                kind: Kind::Continuous,
                lower,
                upper,
                cost: 0.0,
            });
        }
        index
    }

    /// A number with its sign: the right side of a comparison.
    fn signed_number(&mut self) -> Result<f64, ReadError> {
        let mut sign = 1.0;
        while let Word::Plus | Word::Minus = self.peek().word {
            if self.next().word == Word::Minus {
                sign = -sign;
            }
        }
        let token = self.next();
        match token.word {
            Word::Number(number) => Ok(sign * number),
            _ => Err(token.error("a number")),
        }
    }

    /// `sum op number`, `number op sum` or `number op sum op number`.
    fn comparison(&mut self) -> Result<Comparison, ReadError> {
        let first = self.peek();
        let mut linear = self.linear()?;
        let operator = self.operator()?;
        let mut comparison = Comparison::default();
        if linear.terms.is_empty() {
            comparison.narrow(flipped(operator), linear.constant);
            linear = self.linear()?;
            if let Word::AtMost | Word::AtLeast | Word::Equal = self.peek().word {
                let operator = self.operator()?;
                let number = self.signed_number()?;
                comparison.narrow(operator, number);
            }
        } else {
            let number = self.signed_number()?;
            comparison.narrow(operator, number);
        }
        let is_nan = |bound: Option<f64>| bound.is_some_and(f64::is_nan);
        if is_nan(comparison.lower) || is_nan(comparison.upper) || !linear.constant.is_finite() {
            return Err(first.error("finite constants next to variables"));
        }
        comparison.lower = comparison.lower.map(|lower| lower - linear.constant);
        comparison.upper = comparison.upper.map(|upper| upper - linear.constant);
        comparison.terms = linear.terms;
        Ok(comparison)
    }

    fn operator(&mut self) -> Result<Word<'a>, ReadError> {
        let token = self.next();
        match token.word {
            Word::AtMost | Word::AtLeast | Word::Equal => Ok(token.word),
            _ => Err(token.error("<=, >= or =")),
        }
    }

    fn rows(&mut self) -> Result<(), ReadError> {
        while !matches!(self.peek().word, Word::Section(_) | Word::End) {
            let token = self.peek();
            let label = self.label();
            let label = label.map(|label| label.text);
            let Comparison { terms, lower, upper } = self.comparison()?;
            let lower = lower.unwrap_or(f64::NEG_INFINITY);
            let upper = upper.unwrap_or(f64::INFINITY);
            self.draft.rows.push(RowDraft { token, label, lower, upper, terms });
        }
        Ok(())
    }

    fn bounds(&mut self) -> Result<(), ReadError> {
        while !matches!(self.peek().word, Word::Section(_) | Word::End) {
            let token = self.peek();
            let is_free = self
                .tokens
                .get(self.at + 1)
                .is_some_and(|t| matches!(t.word, Word::Name(word) if word.eq_ignore_ascii_case("free")));
            if is_free && matches!(token.word, Word::Name(_)) {
                let index = self.mention();
                self.at += 1;
                let variable = &mut self.draft.variables[index];
                (variable.lower, variable.upper) = (f64::NEG_INFINITY, f64::INFINITY);
                continue;
            }
            let comparison = self.comparison()?;
            let &[(index, coefficient)] = &*comparison.terms else {
                return Err(token.error("a bound of one variable"));
            };
            if coefficient != 1.0 {
                return Err(token.error("a bound of a variable without coefficient"));
            }
            let variable = &mut self.draft.variables[index];
            variable.token = token;
            variable.lower = comparison.lower.unwrap_or(variable.lower);
            variable.upper = comparison.upper.unwrap_or(variable.upper);
        }
        Ok(())
    }

    fn kinds(&mut self, section: Section) -> Result<(), ReadError> {
        while let Word::Name(_) = self.peek().word {
            let index = self.mention();
            let variable = &mut self.draft.variables[index];
            variable.kind = Kind::Integer;
            if section == Section::Binaries {
                (variable.lower, variable.upper) = (0.0, 1.0);
            }
        }
        Ok(())
    }
}

fn flipped(operator: Word<'_>) -> Word<'_> {
    match operator {
        Word::AtMost => Word::AtLeast,
        Word::AtLeast => Word::AtMost,
        other => other,
    }
}

impl Comparison {
    fn narrow(&mut self, operator: Word<'_>, number: f64) {
        match operator {
            Word::AtMost => self.upper = Some(number),
            Word::AtLeast => self.lower = Some(number),
            _ => (self.lower, self.upper) = (Some(number), Some(number)),
        }
    }
}

impl Draft<'_> {
    fn finish(self) -> Result<Model, ReadError> {
        let at = |token: &Token<'_>, error: ModelError| token.error(error.to_string());
        let mut model = Model::new(if self.is_maximize { Sense::Maximize } else { Sense::Minimize });
        for draft in &self.variables {
            model
                .variable(draft.name, draft.kind, draft.lower, draft.upper)
                .and_then(|variable| model.set_cost(variable, draft.cost))
                .map_err(|error| at(&draft.token, error))?;
        }
        model.set_offset(self.offset).map_err(|error| ReadError::new(1, 1, "", error.to_string()))?;
        let taken: HashSet<&str> = self.rows.iter().filter_map(|row| row.label).collect();
        for (position, row) in self.rows.into_iter().enumerate() {
            let mut name = row.label.map_or_else(|| format!("r{position}"), str::to_owned);
            while row.label.is_none() && taken.contains(&*name) {
                name.push('_');
            }
            let terms = row.terms.into_iter().map(|(index, value)| (Variable(index as u32), value));
            model.row(&name, row.lower, row.upper, terms).map_err(|error| at(&row.token, error))?;
        }
        Ok(model)
    }
}
