//! `client_ask`: whom it tells, and that only a server that takes writes does.

use bowline::wire;

use crate::lab::{Attempt, Lab, attempt};
use crate::refusals::Refusal;

fn ask(lab: &mut Lab, attempts: &[&Attempt]) -> Result<(), String> {
    let attempts: Vec<_> = attempts.iter().map(|attempt| attempt.wire()).collect();
    let sent = wire::Resource::lock("p", "n").unwrap().ask(&attempts);
    let keys: Vec<String> = sent.keys().into_iter().map(str::to_owned).collect();
    lab.run("client_ask", &keys, &sent.words(), true, |_| ())
}

#[test]
fn each_client_is_told_of_its_hold() {
    let (mut lab, a, _) = Lab::held();
    let (b, c) = (attempt(2, 1), attempt(2, 2));
    let inboxes = [lab.listen(1), lab.listen(2)];
    ask(&mut lab, &[&a, &b, &c]).unwrap();
    assert_eq!(lab.read(&inboxes[0]), [format!("asked {}", a.id)]);
    assert_eq!(lab.read(&inboxes[1]), [format!("asked {}", b.id), format!("asked {}", c.id)]);
    lab.assert_holder(&a);
    ask(&mut lab, &[]).unwrap();
    assert_eq!(lab.read(&inboxes[0]).len(), 0);
}

#[test]
fn a_user_who_may_not_publish_is_told_so() {
    let (mut lab, a, _) = Lab::held();
    lab.raw(&["ACL", "SETUSER", "default", "-publish"]);
    assert_eq!(ask(&mut lab, &[&a]).unwrap_err(), "NOPERM");
    lab.raw(&["ACL", "SETUSER", "default", "+@all"]);
}

/// At a replica, other clients listen than at its master.
#[test]
fn a_server_that_takes_no_writes_tells_nobody() {
    for refusal in Refusal::ALL {
        let mut lab = Lab::on(Refusal::server());
        if !refusal.applies(&lab) {
            continue;
        }
        let a = attempt(1, 1);
        let inbox = lab.listen(1);
        refusal.begin(&mut lab);
        assert_eq!(ask(&mut lab, &[&a]), Err(refusal.code()), "{refusal:?}");
        refusal.end(&mut lab);
        assert_eq!(lab.read(&inbox).len(), 0);
    }
}
