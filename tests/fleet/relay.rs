//! A piece of network between an agent and the head that can be cut, lose packets and be slow. QUIC runs over UDP, so a
//! relay of datagrams is all it takes, and nobody needs to be root.

use std::collections::{BTreeMap, BinaryHeap};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};

/// Larger than any datagram that QUIC sends.
const MOST_BYTES: usize = 65_536;

/// One agent's way to the head.
pub(crate) struct Relay {
    address: SocketAddr,
    weather: Arc<Weather>,
}

/// What happens to datagrams, in both directions.
#[derive(Default)]
struct Weather {
    is_cut: AtomicBool,
    lost_percent: AtomicU32,
    delay_ms: AtomicU32,
    is_over: AtomicBool,
}

/// A datagram on its way: the earliest is the greatest.
struct Letter {
    due: Instant,
    sender: Arc<UdpSocket>,
    to: SocketAddr,
    bytes: Vec<u8>,
}

impl Relay {
    /// A relay to the head; seeds make losses repeatable.
    pub(crate) fn to(head: SocketAddr, seed: u64) -> Self {
        let front = Arc::new(UdpSocket::bind("127.0.0.1:0").expect("a port"));
        let address = front.local_addr().expect("an address");
        let weather = Arc::new(Weather::default());
        let (letters, posted) = mpsc::channel();
        std::thread::spawn(move || deliver(&posted));
        let post = Post::new(Arc::clone(&weather), letters, seed);
        std::thread::spawn(move || post.take_in(&front, head));
        Relay { address, weather }
    }

    /// Where the agent finds it.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Nothing passes from now on.
    pub(crate) fn cut(&self) {
        self.weather.is_cut.store(true, Ordering::Relaxed);
    }

    /// Everything passes again.
    pub(crate) fn mend(&self) {
        self.weather.is_cut.store(false, Ordering::Relaxed);
        self.spoil(0, 0);
    }

    /// Loses so many of a hundred datagrams and keeps each for up to so many milliseconds, so that they overtake.
    pub(crate) fn spoil(&self, lost_percent: u32, delay_ms: u32) {
        self.weather.lost_percent.store(lost_percent, Ordering::Relaxed);
        self.weather.delay_ms.store(delay_ms, Ordering::Relaxed);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.weather.is_over.store(true, Ordering::Relaxed);
    }
}

struct Post {
    weather: Arc<Weather>,
    letters: mpsc::Sender<Letter>,
    random: ChaCha8Rng,
}

impl Post {
    fn new(weather: Arc<Weather>, letters: mpsc::Sender<Letter>, seed: u64) -> Self {
        Post { weather, letters, random: ChaCha8Rng::seed_from_u64(seed) }
    }

    /// From the agent to the head: a socket of its own for every address the agent writes from, as a router would have.
    fn take_in(mut self, front: &Arc<UdpSocket>, head: SocketAddr) {
        let mut backs: BTreeMap<SocketAddr, Arc<UdpSocket>> = BTreeMap::new();
        self.forward(&Arc::clone(front), |post, from, bytes| {
            let back = backs.entry(from).or_insert_with(|| {
                let back = Arc::new(UdpSocket::bind("127.0.0.1:0").expect("a port"));
                let (weather, letters) = (Arc::clone(&post.weather), post.letters.clone());
                let mut post = Post::new(weather, letters, post.random.random());
                let (front, socket) = (Arc::clone(front), Arc::clone(&back));
                std::thread::spawn(move || {
                    post.forward(&socket, |post, _, bytes| post.carry(&front, from, bytes));
                });
                back
            });
            let back = Arc::clone(back);
            post.carry(&back, head, bytes);
        });
    }

    /// Hands out what a socket receives, until the relay is over.
    fn forward(&mut self, socket: &UdpSocket, mut hand: impl FnMut(&mut Self, SocketAddr, &[u8])) {
        socket.set_read_timeout(Some(Duration::from_millis(200))).expect("set");
        let mut buffer = vec![0; MOST_BYTES];
        while !self.weather.is_over.load(Ordering::Relaxed) {
            // An error is a wait that ended, or a head that is not there: neither ends a network.
            if let Ok((n_bytes, from)) = socket.recv_from(&mut buffer) {
                hand(self, from, &buffer[..n_bytes]);
            }
        }
    }

    fn carry(&mut self, sender: &Arc<UdpSocket>, to: SocketAddr, bytes: &[u8]) {
        let is_lost = self.random.random_range(0..100) < self.weather.lost_percent.load(Ordering::Relaxed);
        if is_lost || self.weather.is_cut.load(Ordering::Relaxed) {
            return;
        }
        let most_ms = self.weather.delay_ms.load(Ordering::Relaxed);
        let delay = Duration::from_millis(self.random.random_range(0..=most_ms).into());
        let letter =
            Letter { due: Instant::now() + delay, sender: Arc::clone(sender), to, bytes: bytes.to_vec() };
        // Nobody delivers any more when the relay is over.
        let _ = self.letters.send(letter);
    }
}

/// Sends every letter when it is due.
fn deliver(posted: &mpsc::Receiver<Letter>) {
    let mut waiting = BinaryHeap::new();
    loop {
        let next = waiting.peek().map(|letter: &Letter| letter.due.saturating_duration_since(Instant::now()));
        match posted.recv_timeout(next.unwrap_or(Duration::from_secs(1))) {
            Ok(letter) => waiting.push(letter),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        }
        while waiting.peek().is_some_and(|letter| letter.due <= Instant::now()) {
            if let Some(letter) = waiting.pop() {
                // Datagrams that nobody takes are lost, as datagrams are.
                let _ = letter.sender.send_to(&letter.bytes, letter.to);
            }
        }
    }
}

impl Ord for Letter {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.due.cmp(&self.due)
    }
}

impl PartialOrd for Letter {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Letter {
    fn eq(&self, other: &Self) -> bool {
        self.due == other.due
    }
}

impl Eq for Letter {}
