//! Recognising peers that speak another protocol: the commonest mistake of all.

/// What the first bytes of a connection look like, and what to say about it.
pub(crate) fn recognise(head: [u8; 8]) -> Option<&'static str> {
    const HTTP: [&[u8]; 8] = [b"GET ", b"POST", b"PUT ", b"HEAD", b"DELE", b"OPTI", b"PATC", b"PRI "];
    if HTTP.iter().any(|method| head.starts_with(method)) {
        return Some("HTTP came to a Kafka listener: point the browser, probe or proxy at another port");
    }
    // RFC 8446 5.1: a handshake record of any version of TLS.
    if head.starts_with(&[0x16, 0x03]) && head[2] <= 4 {
        return Some("TLS came to a PLAINTEXT listener: set security.protocol=PLAINTEXT in the client");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_and_tls_are_recognised_and_nothing_else() {
        assert!(recognise(*b"GET / HT").unwrap().contains("HTTP"));
        assert!(recognise(*b"PRI * HT").unwrap().contains("HTTP"));
        assert!(recognise([0x16, 3, 1, 2, 0, 1, 0, 1]).unwrap().contains("TLS"));
        assert_eq!(recognise([0xff; 8]), None);
        assert_eq!(recognise(*b"SSH-2.0-"), None);
    }
}
