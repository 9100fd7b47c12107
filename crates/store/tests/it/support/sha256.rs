//! SHA-256, so that recorded digests can be compared. Source: FIPS 180-4.

/// The digest as lower-case hexadecimal digits.
pub(crate) fn hex_digest(bytes: &[u8]) -> String {
    let keys = constants(64, f64::cbrt);
    let mut state: Vec<u32> = constants(8, f64::sqrt);
    let mut message = bytes.to_vec();
    message.push(0x80);
    while message.len() % 64 != 56 {
        message.push(0);
    }
    message.extend_from_slice(&(8 * bytes.len() as u64).to_be_bytes());
    for block in message.chunks(64) {
        add_block(&mut state, block, &keys);
    }
    state.iter().map(|word| format!("{word:08x}")).collect()
}

/// The first 32 bits of the fractional parts of the roots of the first primes.
fn constants(n: usize, root: fn(f64) -> f64) -> Vec<u32> {
    let is_prime = |n: &u32| (2..*n).all(|divisor| !n.is_multiple_of(divisor));
    let primes = (2..).filter(is_prime).take(n);
    primes
        .map(|prime| (root(f64::from(prime)).fract() * 2_f64.powi(32)) as u32)
        .collect()
}

fn add_block(state: &mut [u32], block: &[u8], keys: &[u32]) {
    let words = block.chunks(4);
    let mut w: Vec<u32> = words
        .map(|w| u32::from_be_bytes(w.try_into().unwrap()))
        .collect();
    for i in 16..64 {
        let (x, y) = (w[i - 15], w[i - 2]);
        let s0 = x.rotate_right(7) ^ x.rotate_right(18) ^ (x >> 3);
        let s1 = y.rotate_right(17) ^ y.rotate_right(19) ^ (y >> 10);
        w.push(
            w[i - 16]
                .wrapping_add(s0)
                .wrapping_add(w[i - 7])
                .wrapping_add(s1),
        );
    }
    let mut v = [0; 8];
    v.copy_from_slice(state);
    for (word, key) in w.iter().zip(keys) {
        let [a, b, c, d, e, f, g, h] = v;
        let s1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = (e & f) ^ (!e & g);
        let t1 = h
            .wrapping_add(s1)
            .wrapping_add(choice)
            .wrapping_add(*key)
            .wrapping_add(*word);
        let s0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let majority = (a & b) ^ (a & c) ^ (b & c);
        let t2 = s0.wrapping_add(majority);
        v = [t1.wrapping_add(t2), a, b, c, d.wrapping_add(t1), e, f, g];
    }
    for (word, add) in state.iter_mut().zip(v) {
        *word = word.wrapping_add(add);
    }
}

#[test]
fn digests_of_the_standard() {
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    assert_eq!(hex_digest(b""), empty);
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(hex_digest(b"abc"), abc);
}
