//! Upstreams that count their connections: each answers with the number of the connection it was asked on.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

/// What an upstream speaks.
#[derive(Clone, Copy)]
pub enum Speech {
    Fastcgi,
    Uwsgi,
    Scgi,
    Memcached,
}

/// Starts one on a free port of the loopback; it ends with the test.
pub fn start(speech: Speech) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let Ok(stream) = stream else { return };
            thread::spawn(move || {
                let _ = match speech {
                    Speech::Fastcgi => fastcgi(stream, number),
                    Speech::Uwsgi => uwsgi(stream, number),
                    Speech::Scgi => scgi(stream, number),
                    Speech::Memcached => memcached(stream, number),
                };
            });
        }
    });
    port
}

/// Records of the `FastCGI` specification 1.0: answers each request, and keeps the connection if the request says so.
fn fastcgi(mut stream: TcpStream, number: usize) -> io::Result<()> {
    let mut keep = false;
    loop {
        let mut header = [0; 8];
        stream.read_exact(&mut header)?;
        let length = usize::from(u16::from_be_bytes([header[4], header[5]])) + usize::from(header[6]);
        let mut body = vec![0; length];
        stream.read_exact(&mut body)?;
        match header[1] {
            1 => keep = body[2] & 1 == 1,
            5 if header[4] == 0 && header[5] == 0 => {
                let text = format!("Content-Type: text/plain\r\n\r\n{number}\n");
                let record = |kind: u8, content: &[u8]| {
                    let mut out = vec![1, kind, header[2], header[3]];
                    out.extend((content.len() as u16).to_be_bytes());
                    out.extend([0, 0]);
                    out.extend(content);
                    out
                };
                let mut answer = record(6, text.as_bytes());
                answer.extend(record(6, b""));
                answer.extend(record(3, &[0; 8]));
                stream.write_all(&answer)?;
                if !keep {
                    return Ok(());
                }
            }
            _ => {}
        }
    }
}

/// One request and one answer in HTTP; the connection is left open for another, which never comes.
fn uwsgi(mut stream: TcpStream, number: usize) -> io::Result<()> {
    loop {
        let mut header = [0; 4];
        stream.read_exact(&mut header)?;
        let mut body = vec![0; usize::from(u16::from_le_bytes([header[1], header[2]]))];
        stream.read_exact(&mut body)?;
        let text = format!("{number}\n");
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len())?;
    }
}

/// A netstring of headers, then the same.
fn scgi(mut stream: TcpStream, number: usize) -> io::Result<()> {
    loop {
        let mut length = 0usize;
        loop {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            match byte[0] {
                b':' => break,
                digit => length = length * 10 + usize::from(digit - b'0'),
            }
        }
        let mut body = vec![0; length + 1];
        stream.read_exact(&mut body)?;
        let text = format!("{number}\n");
        write!(stream, "Status: 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len())?;
    }
}

/// `get KEY`.
fn memcached(mut stream: TcpStream, number: usize) -> io::Result<()> {
    let mut line = Vec::new();
    loop {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        line.push(byte[0]);
        if line.ends_with(b"\r\n") {
            let key = String::from_utf8_lossy(&line);
            let key = key.trim().strip_prefix("get ").unwrap_or_default().to_owned();
            let text = format!("{number}\n");
            write!(stream, "VALUE {key} 0 {}\r\n{text}\r\nEND\r\n", text.len())?;
            line.clear();
        }
    }
}
