//! A request for a certificate: a public key, and the proof that the sender holds the secret one, which never leaves its
//! machine.
//!
//! It is what a certificate signing request says, without its many options: names and roles are not the sender's to choose.

use rcgen::{KeyPair, PublicKeyData, SignatureAlgorithm, SigningKey as _};
use ring::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
use serde::{Deserialize, Serialize};

use super::IdentityError;

/// Bytes of a public key: a point of the curve P-256, not compressed.
const N_KEY_BYTES: usize = 65;
/// The longest signature.
const MOST_SIGNATURE_BYTES: usize = 80;
/// What is signed begins with this, so that the signature is good for nothing else.
const CONTEXT: &[u8] = b"rota certificate request 1\0";

/// A request for a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRequest {
    public_key: Vec<u8>,
    signature: Vec<u8>,
}

/// A public key whose owner has shown to hold the secret one.
pub(super) struct ProvenKey(Vec<u8>);

impl KeyRequest {
    /// Signs a request with a key.
    pub(super) fn new(key: &KeyPair) -> Result<Self, IdentityError> {
        let public_key = key.public_key_raw().to_vec();
        let signature = key
            .sign(&[CONTEXT, &public_key].concat())
            .map_err(|error| IdentityError::Make { what: "a request for a certificate".into(), error })?;
        Ok(KeyRequest { public_key, signature })
    }

    /// The key, if the request was signed with it.
    pub(super) fn proven(&self) -> Option<ProvenKey> {
        let is_short = self.public_key.len() == N_KEY_BYTES && self.signature.len() <= MOST_SIGNATURE_BYTES;
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &self.public_key);
        let is_good = is_short && key.verify(&[CONTEXT, &self.public_key].concat(), &self.signature).is_ok();
        is_good.then(|| ProvenKey(self.public_key.clone()))
    }
}

impl PublicKeyData for ProvenKey {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &rcgen::PKCS_ECDSA_P256_SHA256
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_holder_of_the_key_can_ask_for_it() {
        let (mine, other) = (KeyPair::generate().expect("a key"), KeyPair::generate().expect("a key"));
        let request = KeyRequest::new(&mine).expect("signed");
        assert!(request.proven().is_some_and(|key| key.der_bytes() == mine.public_key_raw()));
        let stolen = KeyRequest { public_key: other.public_key_raw().to_vec(), ..request.clone() };
        assert!(stolen.proven().is_none());
        for bytes in [vec![], vec![4; N_KEY_BYTES], vec![0; 1_000]] {
            let nonsense = KeyRequest { public_key: bytes, ..request.clone() };
            assert!(nonsense.proven().is_none());
        }
    }
}
