use super::*;

fn address(port: u16) -> Address {
    Address::Tcp("10.0.0.1".to_owned(), port)
}

fn board(sentinels: u16) -> Board {
    let access = Target::parse("redis://h:1").unwrap().access.clone();
    Board::new((0..sentinels).map(|n| access.at(address(26379 + n)).unwrap()).collect())
}

fn names(port: u16, epoch: u64) -> SentinelAnswer {
    SentinelAnswer::Master(Named { address: address(port), epoch })
}

fn master(board: &Board) -> Option<(u16, u64)> {
    let Named { address: Address::Tcp(_, port), epoch } = board.master("m").ok()? else { return None };
    Some((port, epoch))
}

fn io(reason: &str) -> Failure {
    Failure::Io(reason.to_owned())
}

fn other(id: &str, port: u16) -> Other {
    Other { id: id.to_owned(), host: "10.0.0.1".to_owned(), port }
}

#[test]
fn the_highest_epoch_wins_whichever_sentinel_says_it() {
    let mut board = board(3);
    board.answered(0, 0, names(1, 6));
    board.answered(1, 0, names(1, 6));
    assert_eq!(master(&board), Some((1, 6)));
    assert!(!board.is_elsewhere(&address(1)));
    board.answered(2, 0, names(2, 7));
    assert_eq!(master(&board), Some((2, 7)));
    assert!(board.is_elsewhere(&address(1)) && !board.is_elsewhere(&address(2)));
}

#[test]
fn the_old_master_does_not_come_back_with_the_sentinel_that_missed_the_failover() {
    let mut board = board(3);
    board.answered(0, 0, names(2, 7));
    board.answered(1, 0, names(1, 6));
    board.failed(0, io("gone"));
    board.answered(1, 1, names(1, 6));
    assert_eq!(master(&board), Some((2, 7)));
    // Two of three sentinels were set up again, so their epochs start from the beginning.
    board.answered(1, 2, names(3, 0));
    assert_eq!(master(&board), Some((2, 7)));
    board.answered(2, 2, names(3, 0));
    assert_eq!(master(&board), Some((3, 0)));
    assert!(board.is_elsewhere(&address(2)));
}

#[test]
fn half_of_the_sentinels_cannot_be_set_up_anew_for_all() {
    let mut board = board(4);
    (0..4).for_each(|n| board.answered(n, 0, names(2, 7)));
    (0..2).for_each(|n| board.failed(n, io("gone")));
    (2..4).for_each(|n| board.answered(n, 1, names(1, 0)));
    assert_eq!(master(&board), Some((2, 7)), "the other half may still name it");
    board.answered(0, 1, names(1, 0));
    assert_eq!(master(&board), Some((1, 0)));
}

#[test]
fn of_two_masters_under_one_epoch_the_one_that_more_name_wins_and_then_the_current_one() {
    let mut board = board(4);
    board.answered(0, 0, names(1, 6));
    board.answered(1, 0, names(2, 6));
    assert_eq!(master(&board), Some((1, 6)));
    board.answered(2, 0, names(2, 6));
    assert_eq!(master(&board), Some((2, 6)));
    board.answered(3, 0, names(1, 6));
    assert_eq!(master(&board), Some((2, 6)));
}

#[test]
fn a_round_waits_for_those_that_may_answer() {
    let mut board = board(3);
    let round = board.ask();
    assert!(!board.is_complete(round) && !board.has_begun(round));
    board.failed(0, io("refused"));
    board.answered(1, round, SentinelAnswer::Unknown);
    assert!(!board.has_begun(round), "others may know");
    board.answered(1, round, names(1, 0));
    assert!(board.has_begun(round) && !board.is_complete(round));
    board.answered(2, round, names(1, 0));
    assert!(board.is_complete(round));
    let next = board.ask();
    assert!(!board.has_begun(next) && !board.is_complete(next), "what was said before is not asked for");
    assert_eq!(board.round(), next);
}

#[test]
fn without_a_master_the_failure_says_why() {
    let mut board = board(2);
    board.failed(0, io("connection refused"));
    board.failed(1, io("no answer"));
    let failure = board.master("m").unwrap_err();
    assert!(matches!(failure, Failure::Io(_)));
    assert_eq!(
        failure.to_string(),
        "no sentinel answers (10.0.0.1:26379: connection refused; 10.0.0.1:26380: no answer)"
    );
    board.failed(1, Failure::Unsupported("no sentinel".to_owned()));
    assert!(matches!(board.master("m"), Err(Failure::Unsupported(_))));
    board.answered(0, 0, SentinelAnswer::Unknown);
    let failure = board.master("m").unwrap_err();
    assert!(matches!(&failure, Failure::Invalid(reason) if reason.contains("master=")), "{failure}");
    board.answered(1, 0, names(1, 0));
    assert_eq!(master(&board), Some((1, 0)), "one that knows is enough");
    // No sentinel can be asked any more, and an old answer does not count.
    board.failed(0, io("gone"));
    board.failed(1, io("gone"));
    assert!(matches!(board.master("m"), Err(Failure::Io(_))));
    assert!(!board.is_elsewhere(&address(1)), "but no reason to leave it");
}

#[test]
fn a_sentinel_that_others_name_is_watched_once() {
    let mut board = board(1);
    board.is_called(0, "a".to_owned());
    board.discovered(&[other("a", 9), other("b", 2), other("c", 3), other("d", 26379)]);
    assert_eq!(board.sentinels().len(), 3, "not itself under another address, nor what is at its own");
    board.discovered(&[other("b", 2), other("c", 4)]);
    assert_eq!(board.sentinels().len(), 3);
    assert!(board.knows(1) && board.knows(2));
    board.failed(2, io("gone"));
    board.discovered(&[other("b", 2)]);
    assert!(board.knows(1) && !board.knows(2), "it is down, and no sentinel names it");
    board.failed(0, io("gone"));
    board.discovered(&[]);
    assert!(board.knows(0), "it stands in the URL");
    let many: Vec<Other> = (0..40).map(|n| other(&n.to_string(), 100 + n)).collect();
    board.discovered(&many);
    assert_eq!(board.sentinels().len(), MOST);
}

#[test]
fn one_of_the_url_takes_the_place_of_the_same_one_discovered() {
    let mut board = board(2);
    board.is_called(0, "a".to_owned());
    board.discovered(&[other("b", 2)]);
    assert_eq!(board.sentinels().len(), 3);
    board.is_called(1, "b".to_owned());
    assert_eq!(board.sentinels().iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn those_that_answer_are_asked_first() {
    let mut board = board(3);
    board.answered(2, 0, SentinelAnswer::Unknown);
    assert_eq!(board.sentinels().iter().map(|(number, _)| *number).collect::<Vec<_>>(), [2, 0, 1]);
}

#[test]
fn it_takes_more_than_half_of_five_sentinels_to_be_set_up_anew() {
    let mut board = board(5);
    (0..5).for_each(|n| board.answered(n, 0, names(2, 7)));
    (0..5).for_each(|n| board.failed(n, io("gone")));
    (0..2).for_each(|n| board.answered(n, 1, names(1, 0)));
    assert_eq!(master(&board), Some((2, 7)));
    board.answered(2, 1, names(1, 0));
    assert_eq!(master(&board), Some((1, 0)));
}

/// A master may announce another address, which needs no failover.
#[test]
fn an_answer_of_the_same_epoch_is_newer_than_those_that_are_gone() {
    let mut board = board(3);
    (0..3).for_each(|n| board.answered(n, 0, names(2, 7)));
    (0..3).for_each(|n| board.failed(n, io("gone")));
    board.answered(0, 1, names(3, 7));
    assert_eq!(master(&board), Some((3, 7)));
}
