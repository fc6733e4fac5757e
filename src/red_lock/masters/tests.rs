use super::*;
use crate::acquire::builder::choices::{Options, Part};
use crate::context::tests::{Setup, setup};
use crate::handle::Primitive;
use crate::hold::owner::HoldSource;
use crate::protocol::vote::reply::Identity;

pub(in crate::red_lock) const SECOND: Duration = Duration::from_secs(1);

/// Three masters, whose clock is that of the first.
pub(in crate::red_lock) struct Three {
    pub(in crate::red_lock) setups: Vec<Setup>,
    pub(in crate::red_lock) masters: Arc<Masters>,
    pub(in crate::red_lock) votes: Vec<Arc<Keys>>,
    pub(in crate::red_lock) request: Request,
}

impl Three {
    /// With this retry timeout, and votes that count at once if the masters are `durable`.
    pub(in crate::red_lock) fn new(retry_timeout: Duration, durable: bool) -> Self {
        Self::of(3, retry_timeout, durable)
    }

    /// So many masters.
    fn of(count: usize, retry_timeout: Duration, durable: bool) -> Self {
        let mut setups: Vec<Setup> = (0..count).map(|_| setup()).collect();
        for setup in &mut setups {
            Arc::get_mut(&mut setup.context).unwrap().config.retry_timeout = retry_timeout;
        }
        let sources: Vec<_> = setups.iter().map(|setup| HoldSource::new(setup.context.clone())).collect();
        let part = Part { primitive: Primitive::new(&sources[0], Kind::Vote, "n"), amount: 1 };
        let request = Options::of_several(std::slice::from_ref(&part), "lock").request(&part, true).unwrap();
        let settings =
            Settings { node_timeout: SECOND / 2, longest_lease: 30 * SECOND, durable, new_masters: false, set: None };
        let masters = Arc::new(Masters::new(sources.into_iter().map(Master::new).collect(), settings));
        let votes = masters.keys(Kind::Vote, "n").unwrap();
        Self { setups, masters, votes, request }
    }

    pub(in crate::red_lock) fn durable() -> Self {
        Self::new(10 * SECOND, true)
    }

    pub(in crate::red_lock) fn advance(&self, time: Duration) {
        self.setups[0].executor.advance(time);
    }

    /// The master answers, as a process of this age.
    pub(in crate::red_lock) fn answers(&self, master: usize, run_id: &str, uptime: Duration) -> Option<Instant> {
        let identity = Some(Identity { run_id: run_id.into(), uptime });
        let process = Process { identity, saved: 0, micros: 5_000_000 };
        self.masters.learn(master, &process, 0, (self.masters.now(), self.masters.now()))
    }

    /// The master has denied the name for as long as this.
    pub(in crate::red_lock) fn denies(&self, master: usize, for_as_long: Duration) {
        let (keys, now) = (&self.votes[master], self.masters.now());
        let why = Some((ErrorKind::Denied, "NOPERM".to_owned()));
        self.masters.all[master].add_doubt(keys, why, (now, now, now + for_as_long));
    }
}

#[test]
fn masters_with_the_same_prefix_share_the_keys_of_a_name() {
    let mut three = Three::of(3, SECOND, true);
    let keys = three.masters.keys(Kind::Turn, "n").unwrap();
    assert!(Arc::ptr_eq(&keys[0], &keys[1]) && Arc::ptr_eq(&keys[0], &keys[2]));
    let prefixed = |prefix: &str| {
        let mut setup = setup();
        Arc::get_mut(&mut setup.context).unwrap().config.prefix = prefix.into();
        setup
    };
    three.setups = ["a", "a", "b"].map(prefixed).into();
    let masters = three.setups.iter().map(|setup| Master::new(HoldSource::new(setup.context.clone()))).collect();
    let masters = Masters::new(masters, three.masters.settings.clone());
    let keys = masters.keys(Kind::Vote, "n").unwrap();
    assert_eq!([0, 1, 2].map(|n| keys[n].main()), ["a:vote:{n}", "a:vote:{n}", "b:vote:{n}"]);
}

/// The limit leaves time for two silent masters, whatever is shortest.
#[test]
fn how_long_a_request_may_take() {
    let limit = |retry_timeout, lease| Three::new(retry_timeout, true).masters.node_timeout(lease);
    assert_eq!(limit(10 * SECOND, 30 * SECOND), SECOND / 2, "the node timeout");
    assert_eq!(limit(10 * SECOND, SECOND), SECOND / 4, "the lease");
    assert_eq!(limit(SECOND, 30 * SECOND), SECOND / 4, "the retry timeout");
    let masters = Three::new(Duration::ZERO, true).masters;
    assert_eq!((masters.retry_timeout(), masters.patience()), (Duration::ZERO, 3 * SECOND), "the command timeout");
    assert_eq!(masters.node_timeout(30 * SECOND), SECOND / 2);
    assert_eq!(Three::durable().masters.patience(), 10 * SECOND);
}

#[test]
fn the_first_master_is_the_first_that_is_up_and_has_not_denied_the_name() {
    let three = Three::durable();
    let first = || {
        let is_first = |setup: &Setup| three.masters.is_first(&setup.context, &three.votes);
        three.setups.iter().map(is_first).collect::<Vec<_>>()
    };
    assert_eq!(first(), [true, false, false]);
    three.masters.set_down(0, None, three.masters.now());
    assert_eq!(first(), [false, true, false]);
    three.denies(1, SECOND);
    assert_eq!(first(), [false, false, true]);
    three.advance(SECOND);
    assert_eq!(first(), [false, false, true], "it may still deny the name");
    three.masters.set_down(2, None, three.masters.now());
    assert_eq!(first(), [true, true, true], "no turn is given up for a master that does not answer");
}

#[test]
fn the_master_of_a_client_answers_unless_it_is_down() {
    let (three, other) = (Three::durable(), setup());
    let answers = |setup: &Setup| three.masters.answers_to(&setup.context);
    three.masters.set_down(1, None, three.masters.now());
    assert_eq!(three.setups.iter().map(answers).collect::<Vec<_>>(), [true, false, true]);
    assert!(!answers(&other), "it is no master");
    assert_eq!(three.masters.stats().masters_down, 1);
}

#[test]
fn a_majority_has_gone_with_the_second_of_three_masters() {
    let three = Three::durable();
    let began = three.masters.now();
    let gone = || three.masters.majority_gone(&three.votes, three.masters.now()).map(|gone| gone - began);
    assert_eq!(gone(), None);
    three.masters.set_down(2, None, began + SECOND);
    assert_eq!(gone(), None);
    three.advance(2 * SECOND);
    three.denies(0, SECOND);
    assert_eq!(gone(), Some(2 * SECOND));
    three.masters.set_down(1, None, began + 3 * SECOND);
    assert_eq!(gone(), Some(2 * SECOND), "the third one changes nothing");
    three.masters.all[0].served(&three.votes[0]);
    assert_eq!(gone(), Some(3 * SECOND));
    three.masters.all[1].set_up();
    assert_eq!(gone(), None);
}

/// Their votes do not count before the longest lease has passed.
#[test]
fn masters_that_have_restarted_are_no_majority() {
    let three = Three::new(10 * SECOND, false);
    let began = three.masters.now();
    let gone = || three.masters.majority_gone(&three.votes, three.masters.now());
    three.answers(0, "a", SECOND);
    assert_eq!(gone(), None);
    three.answers(1, "b", SECOND);
    assert_eq!(gone(), Some(began));
    let from = three.masters.counts_from(1).unwrap();
    assert!(from > began + 30 * SECOND);
    three.advance(from - began);
    assert_eq!(gone(), None, "they count from that moment");
}

#[test]
fn who_says_that_no_master_can_have_lost_a_hold() {
    for (durable, new_masters, first, later) in
        [(false, false, false, false), (true, false, true, true), (false, true, true, false)]
    {
        let mut three = Three::new(10 * SECOND, durable);
        Arc::get_mut(&mut three.masters).unwrap().settings.new_masters = new_masters;
        assert_eq!(three.answers(0, "a", SECOND).is_none(), first);
        assert_eq!(three.answers(0, "b", SECOND).is_none(), later, "it has restarted");
        assert_eq!(three.masters.counts_from(0).is_none(), later);
    }
}

#[test]
fn one_server_is_no_two_masters() {
    let three = Three::durable();
    assert!(three.masters.check_distinct("lock").is_ok(), "servers that have not said who they are");
    three.answers(0, "", SECOND);
    three.answers(1, "", SECOND);
    assert!(three.masters.check_distinct("lock").is_ok());
    three.answers(0, "a", SECOND);
    three.answers(1, "b", SECOND);
    assert!(three.masters.check_distinct("lock").is_ok());
    three.answers(2, "b", SECOND);
    let error = three.masters.check_distinct("lock").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("masters 2 and 3 of the RedLock are the same server"), "{error}");
    assert!(three.masters.check_alone(1, "lock").is_ok(), "the second one was there first");
}

#[test]
fn an_acquisition_fails_at_once_if_time_does_not_mend_a_majority() {
    let three = Three::durable();
    let usable = || three.masters.check_usable(&three.request, &three.votes, 2);
    three.denies(0, SECOND);
    three.masters.set_down(1, Some((ErrorKind::Refused, "OOM".to_owned())), three.masters.now());
    assert!(usable().is_ok(), "a master may have memory again");
    three.denies(2, SECOND);
    let error = usable().unwrap_err();
    assert_eq!((error.kind(), error.name()), (ErrorKind::Denied, Some("n")));
    assert!(error.to_string().contains("master 1: NOPERM; master 3: NOPERM"), "{error}");
    assert!(three.masters.check_usable(&three.request, &three.votes, 1).is_ok());
    assert!(!three.masters.is_closed());
    three.setups[2].context.engine.close(three.masters.now());
    assert!(three.masters.is_closed());
    assert_eq!(usable().unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn a_majority_has_gone_with_the_third_of_five_masters() {
    let five = Three::of(5, 10 * SECOND, true);
    let began = five.masters.now();
    let gone = || five.masters.majority_gone(&five.votes, five.masters.now()).map(|gone| gone - began);
    for (n, expected) in [(4, None), (1, None), (2, Some(2 * SECOND)), (0, Some(2 * SECOND))] {
        five.masters.set_down(n, None, five.masters.now());
        assert_eq!(gone(), expected, "master {n}");
        five.advance(SECOND);
    }
}
