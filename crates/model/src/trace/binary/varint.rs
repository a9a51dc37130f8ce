//! LEB128 numbers and length-prefixed strings in byte buffers.

pub(super) fn put(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Small numbers of either sign become small numbers.
pub(super) fn put_signed(out: &mut Vec<u8>, n: i64) {
    put(out, ((n << 1) ^ (n >> 63)) as u64);
}

pub(super) fn put_str(out: &mut Vec<u8>, s: &str) {
    put(out, s.len() as u64);
    out.extend_from_slice(s.as_bytes());
}

/// Takes numbers and strings off a buffer; nothing when it ends too early or holds no number.
#[derive(Clone, Copy)]
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    #[inline]
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    #[inline]
    pub(super) fn number(&mut self) -> Option<u64> {
        let first = self.byte()?;
        if first < 0x80 {
            Some(u64::from(first))
        } else {
            self.long_number(u64::from(first & 0x7f))
        }
    }

    fn long_number(&mut self, mut n: u64) -> Option<u64> {
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return None;
            }
            n |= bits << shift;
            if byte < 0x80 {
                return Some(n);
            }
        }
        None
    }

    #[inline]
    pub(super) fn number_u32(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    #[inline]
    pub(super) fn signed(&mut self) -> Option<i64> {
        let n = self.number()?;
        Some((n >> 1) as i64 ^ -((n & 1) as i64))
    }

    pub(super) fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(head)
    }

    pub(super) fn str(&mut self) -> Option<&'a str> {
        let n = usize::try_from(self.number()?).ok()?;
        std::str::from_utf8(self.take(n)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive() {
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), 1 << 62, u64::MAX];
        let mut out = Vec::new();
        for &n in &numbers {
            put(&mut out, n);
            put_signed(&mut out, n as i64);
            put_signed(&mut out, (n as i64).wrapping_neg());
        }
        let mut bytes = Bytes(&out);
        for &n in &numbers {
            assert_eq!(bytes.number(), Some(n));
            assert_eq!(bytes.signed(), Some(n as i64));
            assert_eq!(bytes.signed(), Some((n as i64).wrapping_neg()));
        }
        assert_eq!(bytes.byte(), None);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        assert_eq!(Bytes(&[0xff; 11]).number(), None, "longer than 64 bits");
        assert_eq!(Bytes(&[0x80]).number(), None, "cut off");
        assert_eq!(Bytes(&[5, b'a']).str(), None, "string cut off");
    }
}
