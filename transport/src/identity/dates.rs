//! From when to when a certificate is valid, to the second: read from its bytes, because the library that checks certificates
//! does not say.
//!
//! The certificate was checked, or is one's own. Even so, bytes that are not a certificate only give no answer.

use rustls::pki_types::CertificateDer;
use time::{Date, Month, OffsetDateTime, Time};

use super::Validity;

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The validity of a certificate; none if these are not the bytes of one.
pub(crate) fn validity_of(certificate: &CertificateDer<'_>) -> Option<Validity> {
    let (certificate, _) = expect(certificate, SEQUENCE)?;
    let (mut body, _) = expect(certificate, SEQUENCE)?;
    if let Some((_, rest)) = expect(body, VERSION) {
        body = rest;
    }
    // Serial number, algorithm, issuer; then the validity.
    let (_, body) = expect(body, INTEGER)?;
    let (_, body) = expect(body, SEQUENCE)?;
    let (_, body) = expect(body, SEQUENCE)?;
    let (validity, _) = expect(body, SEQUENCE)?;
    let (from, rest) = date(validity)?;
    let (to, _) = date(rest)?;
    Some(Validity { from, to })
}

/// The content of the next element, if it is of this kind, and what follows it.
fn expect(bytes: &[u8], kind: u8) -> Option<(&[u8], &[u8])> {
    let (found, content, rest) = element(bytes)?;
    (found == kind).then_some((content, rest))
}

fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (kind, bytes) = bytes.split_first()?;
    let (first, bytes) = bytes.split_first()?;
    let (length, bytes) = match first {
        0..=0x7f => (usize::from(*first), bytes),
        0x81..=0x83 => {
            let (digits, bytes) = bytes.split_at_checked(usize::from(first & 0x7f))?;
            (digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit)), bytes)
        }
        _ => return None,
    };
    let (content, rest) = bytes.split_at_checked(length)?;
    Some((*kind, content, rest))
}

fn date(bytes: &[u8]) -> Option<(OffsetDateTime, &[u8])> {
    let (kind, content, rest) = element(bytes)?;
    let text = std::str::from_utf8(content).ok()?.strip_suffix('Z')?;
    let (year, text) = match kind {
        UTC_TIME => {
            let (year, text) = text.split_at_checked(2)?;
            let year: i32 = year.parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, text)
        }
        GENERALIZED_TIME => {
            let (year, text) = text.split_at_checked(4)?;
            (year.parse().ok()?, text)
        }
        _ => return None,
    };
    let two = |at: usize| text.get(at..at + 2)?.parse::<u8>().ok();
    let day = Date::from_calendar_date(year, Month::try_from(two(0)?).ok()?, two(2)?).ok()?;
    let time = Time::from_hms(two(4)?, two(6)?, two(8)?).ok()?;
    Some((OffsetDateTime::new_utc(day, time), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::Duration;

    #[test]
    fn dates_are_those_that_were_asked_for_in_this_century_and_the_next() {
        let key = rcgen::KeyPair::generate().expect("a key");
        let now = OffsetDateTime::now_utc().replace_nanosecond(0).expect("a whole second");
        for to in [now + Duration::seconds(5), now + Duration::days(36_500)] {
            let mut params = rcgen::CertificateParams::new(vec!["a.rota".to_owned()]).expect("good");
            (params.not_before, params.not_after) = (now, to);
            let certificate = params.self_signed(&key).expect("signed");
            assert_eq!(validity_of(certificate.der()), Some(Validity { from: now, to }));
            let bytes = certificate.der().to_vec();
            for end in 0..200.min(bytes.len()) {
                let cut = CertificateDer::from(bytes.get(..end).unwrap_or_default().to_vec());
                assert_eq!(validity_of(&cut), None);
            }
        }
    }
}
