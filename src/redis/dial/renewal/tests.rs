use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;

use super::super::handshake::{self, Fresh};
use super::super::wishes::Wishes;
use super::*;
use crate::mutex::lock;
use crate::redis::lab::{Lab, Said, Tasks, ms};
use crate::redis::login::Credentials;
use crate::redis::options::ConnectOptions;

const TOKEN: Duration = Duration::from_secs(1000);

/// Gives the passwords `1`, `2`, .., and fails as often as it is told to.
struct Numbered {
    executor: Arc<Lab>,
    /// When each question came, and which login was refused.
    asked: Mutex<Vec<(Instant, Option<String>)>>,
    failures: AtomicUsize,
    /// The number of the question that gets no answer.
    unanswered: AtomicUsize,
    time: Duration,
}

#[async_trait]
impl Credentials for Numbered {
    async fn login(&self, refused: Option<&Login>) -> Result<Login, Box<dyn std::error::Error + Send + Sync>> {
        let refused = refused.map(|login| login.password().to_owned());
        let number = {
            let mut asked = lock(&self.asked);
            asked.push((self.executor.now(), refused));
            asked.len()
        };
        if self.unanswered.load(Ordering::SeqCst) == number {
            return pending().await;
        }
        if self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
            return Err("not now".into());
        }
        Ok(Login::new("u", number.to_string()).valid_for(self.time))
    }
}

struct Scene {
    lab: Arc<Lab>,
    tasks: Tasks,
    provider: Arc<Numbered>,
    /// The passwords that the server has seen, each with its command.
    seen: Arc<Mutex<Vec<String>>>,
}

impl Scene {
    /// A server that refuses these passwords.
    fn new(refuses: &'static [&'static str], time: Duration) -> Self {
        let lab = Lab::new(&[1], 1);
        let provider = Arc::new(Numbered {
            executor: lab.clone(),
            asked: Mutex::default(),
            failures: AtomicUsize::new(0),
            unanswered: AtomicUsize::new(0),
            time,
        });
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let sees = Arc::clone(&seen);
        lab.nodes[&1].answers(move |_, words| {
            let at = words.iter().position(|word| *word == "AUTH")?;
            let [user, password] = words[at + 1..] else { return None };
            assert_eq!(user, "u");
            lock(&sees).push(format!("{} {password}", words[0]));
            let refused = || Said::Now("-WRONGPASS no\r\n".to_owned());
            if refuses.contains(&password) { Some(refused()) } else { None }
        });
        Self { lab, tasks: Tasks::new(), provider, seen }
    }

    fn log_in(&mut self) -> Result<Fresh, Failure> {
        let options = ConnectOptions::new("redis://h:1").credentials(Arc::clone(&self.provider));
        self.log_in_to(&Arc::new(Target::of(&options.parts().unwrap()).unwrap()))
    }

    fn log_in_to(&mut self, target: &Arc<Target>) -> Result<Fresh, Failure> {
        let (lab, executor, progress) = (self.lab.clone(), self.lab.clone() as Arc<dyn Executor>, Arc::default());
        let login = handshake::login(Arc::clone(target), &*lab, &executor, &progress, Wishes::default());
        self.lab.run(&mut self.tasks, login).map(|greeted| greeted.fresh)
    }

    /// Drives a connection for this time.
    fn drive(&mut self, fresh: Fresh, time: Duration) {
        let (lab, Fresh { connection, driver, .. }) = (self.lab.clone(), fresh);
        let driven = futures::future::select(driver, lab.sleep(time));
        let ended = matches!(self.lab.run(&mut self.tasks, driven), futures::future::Either::Left(_));
        assert!(!ended, "the connection lives as long as it is used");
        drop(connection);
    }

    fn seen(&self) -> Vec<String> {
        lock(&self.seen).clone()
    }

    /// The times between the questions.
    fn pauses(&self) -> Vec<Duration> {
        lock(&self.provider.asked).windows(2).map(|pair| pair[1].0 - pair[0].0).collect()
    }

    fn refused(&self) -> Vec<Option<String>> {
        lock(&self.provider.asked).iter().map(|(_, refused)| refused.clone()).collect()
    }
}

#[test]
fn a_login_is_renewed_before_it_ends_again_and_again() {
    let mut scene = Scene::new(&[], TOKEN);
    let fresh = scene.log_in().unwrap();
    scene.drive(fresh, TOKEN * 3);
    assert_eq!(scene.seen()[..4], ["HELLO 1", "AUTH 2", "AUTH 3", "AUTH 4"]);
    for pause in scene.pauses() {
        assert!((TOKEN * 65 / 100..=TOKEN * 3 / 4).contains(&pause), "{pause:?}");
    }
    assert!(scene.pauses().windows(2).any(|pair| pair[0] != pair[1]), "no jitter: {:?}", scene.pauses());
}

#[test]
fn without_an_end_nothing_is_renewed_and_a_short_one_makes_no_storm() {
    let mut scene = Scene::new(&[], Duration::MAX);
    let fresh = scene.log_in().unwrap();
    scene.drive(fresh, TOKEN);
    assert_eq!(scene.seen(), ["HELLO 1"]);
    let mut scene = Scene::new(&[], Duration::ZERO);
    let fresh = scene.log_in().unwrap();
    scene.drive(fresh, SHORTEST_LOGIN * 10 + ms(1));
    assert_eq!(scene.seen().len(), 11);
}

#[test]
fn a_refused_login_is_asked_for_once_more() {
    let mut scene = Scene::new(&["1"], TOKEN);
    scene.log_in().unwrap();
    assert_eq!(scene.seen(), ["HELLO 1", "HELLO 2"]);
    assert_eq!(scene.refused(), [None, Some("1".to_owned())]);
    let mut scene = Scene::new(&["1", "2", "3"], TOKEN);
    let failure = scene.log_in().map(drop).unwrap_err();
    assert!(matches!(&failure, Failure::Refused(refusal) if refusal.kind() == ErrorKind::Denied), "{failure}");
    assert_eq!(scene.seen(), ["HELLO 1", "HELLO 2"], "and not again");
}

#[test]
fn a_refused_renewal_is_asked_for_once_more_and_then_with_growing_pauses() {
    let mut scene = Scene::new(&["2", "3", "4", "5"], TOKEN);
    let fresh = scene.log_in().unwrap();
    scene.drive(fresh, TOKEN);
    assert_eq!(scene.seen(), ["HELLO 1", "AUTH 2", "AUTH 3", "AUTH 4", "AUTH 5", "AUTH 6"]);
    let [second, fourth] = ["2", "4"].map(|password| Some(password.to_owned()));
    assert_eq!(scene.refused(), [None, None, second, None, fourth, None]);
    let pauses = scene.pauses();
    assert_eq!([pauses[1], pauses[3]], [Duration::ZERO; 2]);
    let around = |pause: Duration| pause * 3 / 4..=pause * 5 / 4;
    assert!(around(RENEWAL.shortest).contains(&pauses[2]), "{pauses:?}");
    assert!(around(RENEWAL.shortest * 2).contains(&pauses[4]), "{pauses:?}");
}

/// What a connection without a runtime would log in with.
#[test]
fn the_last_login_is_the_last_that_was_accepted() {
    let mut scene = Scene::new(&["2", "3"], TOKEN);
    let options = ConnectOptions::new("redis://h:1").credentials(Arc::clone(&scene.provider));
    let target = Arc::new(Target::of(&options.parts().unwrap()).unwrap());
    let last = || target.login().last().map(|login| login.password().to_owned());
    assert_eq!(last(), None);
    let fresh = scene.log_in_to(&target).unwrap();
    assert_eq!(last().as_deref(), Some("1"));
    assert!(scene.log_in_to(&target).is_err());
    assert_eq!(last().as_deref(), Some("1"), "the second and the third were refused");
    scene.drive(fresh, TOKEN);
    assert_eq!(last().as_deref(), Some("4"), "the renewal");
}

#[test]
fn a_provider_that_fails_is_asked_again_while_the_connection_lives() {
    let mut scene = Scene::new(&[], TOKEN);
    let fresh = scene.log_in().unwrap();
    scene.provider.failures.store(3, Ordering::SeqCst);
    scene.drive(fresh, TOKEN);
    assert_eq!(scene.seen(), ["HELLO 1", "AUTH 5"]);
    assert_eq!(scene.refused(), [const { None }; 5], "a failure is no refusal");
    scene.provider.failures.store(1, Ordering::SeqCst);
    let failure = scene.log_in().map(drop).unwrap_err();
    assert!(matches!(&failure, Failure::Io(why) if why == "the provider of credentials failed: not now"), "{failure}");
}

#[test]
fn a_provider_without_an_answer_is_asked_again() {
    for (time, limit) in [(TOKEN, RENEWAL.longest), (ms(8_000), ms(1_000)), (ms(80), SHORTEST_LOGIN)] {
        let mut scene = Scene::new(&[], time);
        scene.provider.unanswered.store(2, Ordering::SeqCst);
        let fresh = scene.log_in().unwrap();
        scene.drive(fresh, time.max(SHORTEST_LOGIN) + limit + RENEWAL.shortest * 2);
        assert_eq!(scene.seen()[..2], ["HELLO 1", "AUTH 3"]);
        assert_eq!(scene.refused()[..3], [const { None }; 3]);
        let pause = scene.pauses()[1] - limit;
        assert!((RENEWAL.shortest * 3 / 4..=RENEWAL.shortest * 5 / 4).contains(&pause), "{pause:?}");
    }
}

/// A connection may be lost while its login is renewed: the server keeps the command and sends nothing.
#[test]
fn an_auth_without_an_answer_is_sent_again() {
    let mut scene = Scene::new(&[], TOKEN);
    let fresh = scene.log_in().unwrap();
    scene.lab.nodes[&1].round_trip.lock().unwrap().clone_from(&(RENEWAL.longest * 2));
    scene.drive(fresh, TOKEN);
    assert!(scene.seen().len() > 2, "{:?}", scene.seen());
}
