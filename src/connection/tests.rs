use super::*;
use crate::error::ErrorKind;

fn code(line: &str) -> (String, ErrorKind) {
    let error = ConnectionError::refused(line);
    let kind = error.kind();
    match error {
        ConnectionError::Refused { code, .. } => (code, kind),
        other => panic!("{other:?}"),
    }
}

#[test]
fn refusals_of_old_and_new_servers_have_one_code() {
    let wrong_type = "WRONGTYPE Operation against a key holding the wrong kind of value";
    let old = format!(
        "ERR Error running script (call to f_6b1bf486c81ceb7edf3c093f4c48582e38c0e791): @user_script:12: {wrong_type}"
    );
    let denied = "ERR Error running script (call to f_6b): @user_script:3: -NOPERM this user has no permissions";
    let new = format!("{wrong_type} script: 6b1bf, on @user_script:12.");
    assert_eq!(code(&old), ("WRONGTYPE".into(), ErrorKind::WrongType));
    assert_eq!(code(&new), ("WRONGTYPE".into(), ErrorKind::WrongType));
    assert_eq!(code(denied), ("NOPERM".into(), ErrorKind::Denied));
    let denied = "ERR The user executing the script can't run this command or subcommand script: 6b1bf, on x:12.";
    assert_eq!(code(denied), ("NOPERM".into(), ErrorKind::Denied));
    let denied = "ERR Error running script (call to f_6b): @user_script:3: @user_script: 3: The user executing the script \
                  can't run this command or subcommand";
    assert_eq!(code(denied), ("NOPERM".into(), ErrorKind::Denied));
    let denied =
        "ERR ACL failure in script: User a has no permissions to run the 'set' command script: on @user_script:48.";
    assert_eq!(code(denied), ("NOPERM".into(), ErrorKind::Denied));
    assert_eq!(code(&format!("ERR {denied}")), ("NOPERM".into(), ErrorKind::Denied), "raised again by the script");
    assert_eq!(code("LOADING Redis is loading"), ("LOADING".into(), ErrorKind::Refused));
    assert_eq!(code("ERR unknown command 'EVALSHA'"), ("ERR".into(), ErrorKind::Unsupported));
    assert_eq!(code("ERR max number of clients reached"), ("ERR".into(), ErrorKind::Refused));
    assert_eq!(code("ERR"), ("ERR".into(), ErrorKind::Protocol));
    assert_eq!(code("").0, "");
}

#[test]
fn a_call_is_built_from_its_parts() {
    let script = Script::all().next().unwrap();
    let (keys, args) = (["k"], [Arg::Number(1)]);
    let call = Call::new(script, &keys, &args);
    assert_eq!((call.script.name(), call.keys, call.args.len(), call.within), (script.name(), &keys[..], 1, None));
    assert_eq!(call.within(Duration::from_secs(1)).within, Some(Duration::from_secs(1)));
    assert!(Topology::single_server().publish_counts_everyone && !Topology::cluster().publish_counts_everyone);
    let sharded = Topology::sharded_cluster();
    assert!(sharded.sharded_messages && sharded.publish_counts_everyone && sharded.one_name_per_call);
}
