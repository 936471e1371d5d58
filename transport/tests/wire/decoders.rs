//! Whatever a peer sends, a decoder answers with a message or an error: it never panics and never stores more than a
//! frame may hold.

use crate::samples;

use proptest::prelude::*;
use rota_transport::frame::{MOST_BYTES, MOST_BYTES_BEFORE_HELLO, Reader, decode};
use rota_transport::message::{FromJoiner, FromUser, ToAgent, ToHead, ToJoiner, ToUser};

/// Feeds bytes to every decoder, whole and through a reader.
fn feed_all(bytes: &[u8]) {
    fn feed<M: serde::de::DeserializeOwned>(bytes: &[u8]) {
        let _ = decode::<M>(bytes);
        let mut reader = Reader::new();
        for piece in bytes.chunks(7) {
            reader.feed(piece);
            while let Ok(Some(_)) = reader.take::<M>() {}
        }
    }
    feed::<ToHead>(bytes);
    feed::<ToAgent>(bytes);
    feed::<FromUser>(bytes);
    feed::<ToUser>(bytes);
    feed::<FromJoiner>(bytes);
    feed::<ToJoiner>(bytes);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn random_bytes_are_an_error_or_a_message(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        feed_all(&bytes);
    }

    #[test]
    fn mutated_messages_are_an_error_or_a_message(
        which in any::<prop::sample::Index>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let frames = samples::all();
        let mut body = which.get(&frames).1[4..].to_vec();
        for (place, byte) in changes {
            if !body.is_empty() {
                let at = place.index(body.len());
                body[at] = byte;
            }
        }
        feed_all(&body);
        feed_all(&body[..cut.index(body.len() + 1)]);
    }

    #[test]
    fn lengths_past_the_cap_are_refused_at_once(n_bytes in MOST_BYTES as u32 + 1..) {
        let mut reader = Reader::new();
        reader.trust();
        reader.feed(&n_bytes.to_le_bytes());
        prop_assert!(reader.take::<ToHead>().is_err());
    }

    #[test]
    fn counts_that_promise_more_than_the_frame_holds_are_refused(claimed in 1_000_u64..=u64::MAX / 2) {
        // An inventory whose list of GPUs claims to be long: nothing may be reserved on the strength of that.
        let mut body = vec![1];
        let mut rest = claimed;
        while rest >= 0x80 {
            body.push((rest as u8 & 0x7f) | 0x80);
            rest >>= 7;
        }
        body.push(rest as u8);
        prop_assert!(decode::<ToHead>(&body).is_err());
    }
}

#[test]
fn a_message_of_the_other_direction_is_no_message() {
    let hello = &samples::all().into_iter().find(|(name, _)| name == "ToHead::Hello").expect("a hello").1;
    assert!(decode::<ToAgent>(&hello[4..]).is_err());
    assert!(hello.len() < MOST_BYTES_BEFORE_HELLO);
}
