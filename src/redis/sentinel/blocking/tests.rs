use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use super::super::super::lab::Lab;
use super::super::url::SentinelConfig;
use super::*;
use crate::config::Config;
use crate::redis::dial::locate::Locate;
use crate::redis::url::address::Address;

/// What a sentinel does with those who connect.
#[derive(Clone, Copy)]
enum Does {
    Names(u16, u64),
    HangsUp,
    Nothing,
}

/// Sentinels of which each takes one connection and does this, their ports, and how many were asked.
fn sentinels(all: &[Does]) -> (Sentinels, Vec<u16>, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let start = |does: &Does| {
        let (listener, does) = (TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(), *does);
        let (port, asked) = (listener.local_addr().unwrap().port(), Arc::clone(&asked));
        let serve = move || {
            let (stream, _) = listener.accept().unwrap();
            asked.fetch_add(1, Ordering::SeqCst);
            serve(stream, does);
        };
        thread::Builder::new().spawn(serve).unwrap();
        port
    };
    let ports: Vec<u16> = all.iter().map(start).collect();
    let hosts: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let (url, lab) = (format!("redis-sentinel://{}/?master=m", hosts.join(",")), Lab::new(&[], 0));
    (Sentinels::new(lab.clone(), lab, SentinelConfig::parse(&url).unwrap(), &Config::default(), 7), ports, asked)
}

fn serve(mut stream: TcpStream, does: Does) {
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        let text = String::from_utf8(buffer[..read].to_vec()).unwrap();
        let Does::Names(port, epoch) = does else {
            match does {
                Does::HangsUp => return,
                _ => continue,
            }
        };
        for word in text.split("\r\n") {
            let answer = match word {
                "HELLO" => "%1\r\n$4\r\nmode\r\n$8\r\nsentinel\r\n".to_owned(),
                "MASTER" => format!("%1\r\n$12\r\nconfig-epoch\r\n$1\r\n{epoch}\r\n"),
                "GET-MASTER-ADDR-BY-NAME" => format!("*2\r\n$1\r\nh\r\n$3\r\n{port}\r\n"),
                _ => continue,
            };
            stream.write_all(answer.as_bytes()).unwrap();
        }
    }
}

/// What a client asks that has heard this before, and how many it asks.
fn named(all: &[Does], before: Option<Named>, within: Duration) -> (Option<Named>, usize) {
    let (sentinels, ports, asked) = sentinels(all);
    if let Some(before) = before {
        sentinels.post(|board| board.answered(0, 0, SentinelAnswer::Master(before)));
    }
    let named = ask(&sentinels, Deadline::after(within).unwrap());
    let asked = asked.load(Ordering::SeqCst);
    // The threads of those that were not asked wait for a client.
    ports.iter().for_each(|port| drop(TcpStream::connect((Ipv4Addr::LOCALHOST, *port))));
    (named, asked)
}

fn at(port: u16, epoch: u64) -> Named {
    Named { address: Address::Tcp("h".to_owned(), port), epoch }
}

const LONG: Duration = Duration::from_secs(20);

#[test]
fn three_sentinels_are_asked_and_the_rest_of_the_time_is_for_the_master() {
    assert_eq!(named(&[Does::HangsUp; 5], None, LONG), (None, 3));
    let all = [Does::HangsUp, Does::Names(101, 1), Does::Names(102, 2), Does::Names(103, 3)];
    assert_eq!(named(&all, None, LONG), (Some(at(102, 2)), 3));
}

/// A sentinel that is frozen costs a quarter of the time.
#[test]
fn one_that_says_nothing_leaves_time_for_the_others() {
    let (named, asked) = named(&[Does::Nothing, Does::Names(101, 1)], None, Duration::from_secs(4));
    assert_eq!((named, asked), (Some(at(101, 1)), 2));
}

#[test]
fn the_highest_epoch_wins_whoever_says_it() {
    for all in [[Does::Names(101, 2), Does::Names(102, 1)], [Does::Names(102, 1), Does::Names(101, 2)]] {
        assert_eq!(named(&all, None, LONG).0, Some(at(101, 2)));
    }
    let old = [Does::Names(101, 2)];
    assert_eq!(named(&old, Some(at(103, 3)), LONG).0, Some(at(103, 3)), "it has missed a failover");
    assert_eq!(named(&old, Some(at(100, 1)), LONG).0, Some(at(101, 2)), "there was a failover");
    assert_eq!(named(&old, Some(at(100, 2)), LONG).0, Some(at(101, 2)), "it may announce another address now");
    let same = [Does::Names(101, 2), Does::Names(102, 2)];
    assert_eq!(named(&same, None, LONG).0, Some(at(101, 2)), "those that have answered before are asked first");
}

#[test]
fn the_master_is_found_without_a_runtime() {
    let (sentinels, ports, _) = sentinels(&[Does::Names(101, 1)]);
    let target = sentinels.locate_blocking(Deadline::after(LONG).unwrap()).unwrap();
    assert_eq!(target.address, Address::Tcp("h".to_owned(), 101));
    let shown = sentinels.to_string();
    assert!(shown.contains(&format!("127.0.0.1:{}", ports[0])), "{shown}");
}
